//! `loon worker` and `loon exec --worker`: running a prompt in another process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use loon_testkit::{Home, Loon, ModelServer, Repo, Running, call, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::scripts::chat_setup;

const TOKEN: &str = "0123456789abcdef0123";

/// A worker in a home of its own, and a home of somebody who sends it work.
struct Setup {
    home: Home,
    repo: Repo,
    worker: Running,
    address: String,
    front: Home,
}

fn start(server: &ModelServer) -> Setup {
    let (home, repo) = chat_setup(server);
    let mut worker = Loon::new(&home, repo.path())
        .args(["worker", "--listen", "127.0.0.1:0"])
        .env("LOON_WORKER_TOKEN", TOKEN)
        .start();
    let line = worker.wait_line();
    let address = line.strip_prefix("listening on http://").expect("an address").to_owned();
    let front = Home::new();
    front.set_settings(&format!(
        "[workers.far]\nurl = \"http://{address}\"\ntoken_env = \"FAR_TOKEN\"\n"
    ));
    Setup { home, repo, worker, address, front }
}

impl Setup {
    fn exec(&self, arguments: &[&str]) -> Loon {
        Loon::exec(&self.front, self.repo.path(), ["--worker", "far"])
            .args(arguments.iter().copied())
            .env("FAR_TOKEN", TOKEN)
    }

    /// Sends a request and reads the status of its answer.
    fn post(&self, path: &str, token: Option<&str>, body: &Value) -> (u16, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(&self.address).expect("the worker");
        let body = body.to_string();
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{}content-type: \
             application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            token.unwrap_or_default(),
            body.len()
        )
        .expect("a request");
        let mut answer = BufReader::with_capacity(64, stream);
        let mut status = String::new();
        answer.read_line(&mut status).expect("a status");
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        (code.expect("a status"), answer)
    }

    fn cancel(&self, exec: &str) -> bool {
        let body = json!({"execution_id": exec, "reason": "enough"});
        let (status, mut answer) = self.post("/cancel", Some(TOKEN), &body);
        assert_eq!(status, 200);
        let mut text = String::new();
        answer.read_to_string(&mut text).expect("an answer");
        text.contains("{\"cancelled\":true}")
    }

    fn last_record(&self, exec: &str) -> Value {
        self.home.records(exec).pop().expect("records")
    }
}

fn dispatch(exec: &str, repo: &Repo) -> Value {
    json!({
        "execution_id": exec, "flow": "prompt", "version": 1,
        "input": {"prompt": "go", "cwd": repo.path()},
    })
}

/// Everything that a stream of lines still brings, without what chunking adds.
fn messages(mut answer: BufReader<TcpStream>) -> Vec<Value> {
    let mut text = String::new();
    answer.read_to_string(&mut text).expect("the rest of the stream");
    text.lines()
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

const EXEC: &str = "0196f000-0000-7000-8000-00000000000a";

#[test]
fn a_prompt_runs_on_a_worker_as_it_would_here() {
    let server = ModelServer::by_step([call("read", json!({"path": "a.txt"})), text("All done.")]);
    let setup = start(&server);
    let run = setup.exec(&["go"]).run();
    let terminal = run.terminal();
    assert_eq!((run.code, &terminal["outcome"]), (Some(0), &json!("completed")));
    assert_eq!(terminal["message"], "All done.");
    assert_eq!(run.items("tool_call").last().expect("a call")["status"], "done");
    // The journal is the worker's, and its records are the events that were passed on.
    assert!(setup.front.journals().is_empty());
    let told = run.events().iter().filter(|event| event.get("seq").is_some()).count();
    assert_eq!(setup.home.records(&run.exec()).len(), told);
}

#[test]
fn k056_k059_an_interrupt_is_forwarded_and_settles_as_a_cancel() {
    let server = ModelServer::queue([text("words").stall()]);
    let setup = start(&server);
    let mut running = setup.exec(&["go"]).start();
    let exec = running.wait_type("item.delta")["exec"].as_str().expect("an id").to_owned();
    running.signal(Signal::SIGTERM);
    let finished = running.finish();
    assert_eq!((finished.code, &finished.terminal()["outcome"]), (Some(143), &json!("terminated")));
    let last = setup.last_record(&exec);
    assert_eq!(last["type"], "execution.cancelled");
    assert_eq!(last["reason"], "stopped by who started it");
    assert!(!setup.cancel(&exec), "it was over before");
}

#[test]
fn without_the_token_nothing_runs() {
    let server = ModelServer::answering(|_| text("never"));
    let setup = start(&server);
    let refused = setup.exec(&["go"]).env("FAR_TOKEN", "another-token-of-length").run();
    assert_eq!((refused.code, &refused.terminal()["error"]["code"]), (Some(1), &json!("AUTH")));
    for path in ["/run", "/cancel"] {
        let body = dispatch(EXEC, &setup.repo);
        assert_eq!(setup.post(path, None, &body).0, 401);
        assert_eq!(setup.post(path, Some("0123456789abcdef012"), &body).0, 401);
    }
    assert!(server.requests().is_empty() && setup.home.journals().is_empty());
    let open = Loon::new(&setup.home, setup.repo.path()).args(["worker", "--listen", "0.0.0.0:0"]);
    let open = open.run();
    assert_eq!(open.code, Some(2), "{}", open.stderr);
    assert!(open.stderr.contains("Without a token"), "{}", open.stderr);
}

#[test]
fn a_reader_that_takes_nothing_does_not_keep_a_cancel_from_settling() {
    let server = ModelServer::answering(|_| text("words ".repeat(2_000_000)).stall());
    let setup = start(&server);
    let (status, mut answer) = setup.post("/run", Some(TOKEN), &dispatch(EXEC, &setup.repo));
    assert_eq!(status, 200);
    let mut line = String::new();
    while !line.contains("turn.started") {
        line.clear();
        assert_ne!(answer.read_line(&mut line).expect("a line"), 0);
    }
    server.wait_for_requests(1);
    assert!(setup.cancel(EXEC));
    // Whoever reads on is told how it ended.
    let last = messages(answer).pop().expect("a last message");
    assert_eq!(last, json!({"settled": {"status": "cancelled", "reason": "enough"}}));
    let records = setup.home.records(EXEC);
    let cancels = records.iter().filter(|record| record["type"] == "execution.cancelled").count();
    assert_eq!((cancels, &records[records.len() - 1]["reason"]), (1, &json!("enough")));
}

#[test]
fn a_worker_that_is_killed_leaves_an_end_that_claims_nothing() {
    let server = ModelServer::queue([text("words").stall()]);
    let setup = start(&server);
    let mut running = setup.exec(&["go"]).start();
    let exec = running.wait_type("item.delta")["exec"].as_str().expect("an id").to_owned();
    setup.worker.signal(Signal::SIGKILL);
    let finished = running.finish();
    let terminal = finished.terminal();
    assert_eq!((finished.code, &terminal["outcome"]), (Some(1), &json!("failed")));
    assert_eq!(terminal["error"]["code"], "OUTCOME_UNKNOWN");
    assert_eq!(terminal["exec"], exec.as_str());
    // Nobody settled it; whoever opens the journal does.
    let cancel = Loon::new(&setup.home, setup.repo.path()).args(["cancel", &exec]).run();
    assert_eq!(cancel.code, Some(0), "{}", cancel.stderr);
    assert_eq!(setup.last_record(&exec)["type"], "execution.cancelled");
}

#[test]
fn a_worker_that_is_not_there_is_told_before_anything_runs() {
    let server = ModelServer::answering(|_| text("never"));
    let setup = start(&server);
    setup.worker.signal(Signal::SIGTERM);
    let address = setup.address.clone();
    let Setup { worker, front, repo, .. } = setup;
    assert_eq!(worker.finish().code, Some(143));
    let run =
        Loon::exec(&front, repo.path(), ["--worker", "far", "go"]).env("FAR_TOKEN", TOKEN).run();
    let terminal = run.terminal();
    assert_eq!((run.code, &terminal["error"]["code"]), (Some(1), &json!("NETWORK")), "{address}");
    let unknown = Loon::exec(&front, repo.path(), ["--worker", "near", "go"]).run();
    assert_eq!((unknown.code, &unknown.terminal()["outcome"]), (Some(2), &json!("usage")));
}

#[test]
fn what_a_worker_cannot_run_fails_and_an_id_runs_once() {
    let server = ModelServer::answering(|_| text("ok"));
    let setup = start(&server);
    let run = |body: &Value| {
        let (status, answer) = setup.post("/run", Some(TOKEN), body);
        assert_eq!(status, 200);
        messages(answer).pop().expect("a last message")["settled"].clone()
    };
    let mut other = dispatch(EXEC, &setup.repo);
    other["flow"] = json!("mine-bitcoin");
    assert_eq!(run(&other)["error"]["code"], "NOT_FOUND");
    let mut wrong = dispatch(EXEC, &setup.repo);
    wrong["input"]["colour"] = json!("red");
    assert_eq!(run(&wrong)["error"]["code"], "INVALID");
    let settled = run(&dispatch(EXEC, &setup.repo));
    assert_eq!(settled, json!({"status": "completed", "output": {"message": "ok"}}));
    assert_eq!(run(&dispatch(EXEC, &setup.repo))["error"]["code"], "CONFLICT");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_prompt_runs_in_a_child_process_of_its_own() {
    let server = ModelServer::answering(|_| text("Here."));
    let (home, repo) = chat_setup(&server);
    let run = Loon::exec(&home, repo.path(), ["--worker", "child", "go"]).run();
    assert_eq!(
        (run.code, &run.terminal()["message"]),
        (Some(0), &json!("Here.")),
        "{}",
        run.stderr
    );
    assert_eq!(home.records(&run.exec()).last().expect("records")["type"], "turn.finished");
}

#[test]
fn k055_an_interrupt_reaches_a_child_process() {
    let server = ModelServer::queue([text("words").stall()]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["--worker", "child", "go"]).start();
    let exec = running.wait_type("item.delta")["exec"].as_str().expect("an id").to_owned();
    running.signal(Signal::SIGINT);
    let finished = running.finish();
    assert_eq!((finished.code, &finished.terminal()["outcome"]), (Some(143), &json!("terminated")));
    assert_eq!(home.records(&exec).last().expect("records")["type"], "execution.cancelled");
}

#[test]
fn a_child_process_that_does_not_answer_is_not_waited_for() {
    let server = ModelServer::queue([text("words").stall()]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["--worker", "child", "go"]).start();
    let exec = running.wait_type("item.delta")["exec"].as_str().expect("an id").to_owned();
    let holder = std::fs::read(home.journal(&exec).with_file_name("holder")).expect("the holder");
    let holder: Value = serde_json::from_slice(&holder).expect("JSON");
    let child = i32::try_from(holder["pid"].as_i64().expect("a number")).expect("a process id");
    assert_ne!(child, running.pid());
    kill(Pid::from_raw(child), Signal::SIGSTOP).expect("the child");
    running.signal(Signal::SIGINT);
    let finished = running.finish();
    assert_eq!(
        (finished.code, &finished.terminal()["outcome"]),
        (Some(130), &json!("interrupted"))
    );
    assert_eq!(finished.terminal()["error"]["code"], "OUTCOME_UNKNOWN");
    assert_eq!(home.records(&exec).last().expect("records")["type"], "execution.cancelled");
    // Killed, it is gone after a moment.
    while crate::headless::is_alive(&child.to_string()) {
        std::thread::yield_now();
    }
}

#[test]
fn a_schedule_that_cannot_be_kept_is_refused_with_the_reason() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let settings = std::fs::read_to_string(home.settings_path()).expect("settings");
    for (when, cwd, why) in [
        ("every = \"1h\"", "shop", "schedules.tick: cwd `shop` is relative"),
        ("cron = \"0 0 30 2 *\"", "/srv", "schedules.tick: cron `0 0 30 2 *` never falls due"),
    ] {
        home.set_settings(&format!(
            "{settings}\n[schedules.tick]\n{when}\nprompt = \"go\"\ncwd = \"{cwd}\"\n"
        ));
        let refused = Loon::new(&home, repo.path()).args(["worker", "--schedules"]).run();
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}

/// The execution that a line of a schedule names, and how it went.
fn occurrence(line: &str) -> (String, String) {
    let (head, how) = line.rsplit_once("): ").expect("how it went");
    let exec = head.rsplit_once('(').expect("an id").1;
    (exec.to_owned(), how.to_owned())
}

#[test]
fn k070_a_schedule_fires_each_occurrence_once_between_two_workers() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let settings = std::fs::read_to_string(home.settings_path()).expect("settings");
    home.set_settings(&format!(
        "{settings}\n[schedules.tick]\nevery = \"1s\"\nprompt = \"go\"\ncwd = \"{}\"\nwarm_lead = \"500ms\"\n",
        repo.path().display()
    ));
    let worker = || Loon::new(&home, repo.path()).args(["worker", "--schedules"]).start();
    let mut workers = [worker(), worker()];
    let mut completed = Vec::new();
    for worker in &mut workers {
        for _ in 0..2 {
            let line = worker.wait_line();
            assert!(line.starts_with("tick at "), "{line}");
            let (exec, how) = occurrence(&line);
            match how.as_str() {
                "completed" => completed.push(exec),
                other => assert_eq!(other, "begun by another worker"),
            }
        }
    }
    for worker in workers {
        worker.signal(Signal::SIGTERM);
        assert_eq!(worker.finish().code, Some(143));
    }
    let count = completed.len();
    completed.sort();
    completed.dedup();
    assert_eq!(completed.len(), count, "an occurrence ran twice");
    assert!(count > 0);
    for exec in completed {
        assert_eq!(home.records(&exec)[0]["kind"], "session");
    }
    let none = Loon::new(&Home::new(), repo.path()).args(["worker", "--schedules"]).run();
    assert_eq!(none.code, Some(2), "{}", none.stderr);
}

#[test]
fn a_worker_that_is_told_to_end_ends_what_runs_in_good_order() {
    let server = ModelServer::queue([text("words").stall()]);
    let setup = start(&server);
    let mut running = setup.exec(&["go"]).start();
    let exec = running.wait_type("item.delta")["exec"].as_str().expect("an id").to_owned();
    setup.worker.signal(Signal::SIGTERM);
    let finished = running.finish();
    assert_eq!((finished.code, &finished.terminal()["outcome"]), (Some(143), &json!("terminated")));
    let last = setup.last_record(&exec);
    assert_eq!((&last["type"], &last["status"]), (&json!("turn.finished"), &json!("interrupted")));
    assert_eq!(setup.worker.finish().code, Some(143));
}

#[test]
fn without_a_token_only_programs_of_this_machine_are_let_in() {
    let server = ModelServer::answering(|_| text("never"));
    let (home, repo) = chat_setup(&server);
    let worker = ["worker", "--listen", "127.0.0.1:0"];
    let mut running = Loon::new(&home, repo.path()).args(worker).start();
    let line = running.wait_line();
    let address = line.strip_prefix("listening on http://").expect("an address");
    let body = json!({"execution_id": EXEC}).to_string();
    let status = |host: &str, more: &str| {
        let mut stream = TcpStream::connect(address).expect("the worker");
        write!(
            stream,
            "POST /cancel HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}content-type: \
             application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("a request");
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status).expect("a status");
        status.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status(address, ""), "200");
    assert_eq!(status(address, "origin: http://evil.example\r\n"), "401");
    assert_eq!(status("evil.example:80", ""), "401");
}
