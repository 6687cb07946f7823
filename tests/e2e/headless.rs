//! The contract of `loon exec`: what it reads, what it prints, how it ends.

use std::fs::File;
use std::io::Read as _;

use loon_testkit::{Finished, Home, Input, Latch, Loon, ModelServer, Reply, Wire, text};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, read, small_repo};

fn run_one(reply: Reply, arguments: &[&str]) -> (ModelServer, Finished) {
    let server = ModelServer::queue([reply]);
    let (home, repo) = chat_setup(&server);
    let finished = Loon::exec(&home, repo.path(), arguments.iter().copied()).run();
    (server, finished)
}

fn outcome(finished: &Finished) -> (Option<i32>, Value) {
    (finished.code, finished.terminal()["outcome"].clone())
}

#[test]
fn with_a_prompt_standard_input_is_neither_read_nor_waited_for() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let inputs = [Input::Open, Input::Null, Input::Bytes(b"more words".to_vec())];
    for input in inputs {
        // The pipe of `Open` is still held by this test when the run ends.
        let finished = Loon::exec(&home, repo.path(), ["say ok"]).input(input).run();
        assert_eq!(outcome(&finished), (Some(0), json!("completed")));
        assert_eq!(server.last_request().user_texts(), ["say ok"]);
    }
    let closed = Loon::exec(&home, repo.path(), ["say ok"]).redirect("<&-").run();
    assert_eq!(outcome(&closed), (Some(0), json!("completed")));
}

#[test]
fn a_dash_or_no_prompt_reads_standard_input() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    for arguments in [&["-"][..], &[]] {
        let input = Input::Bytes(b"say ok\nin two lines\n".to_vec());
        let loon = Loon::exec(&home, repo.path(), arguments.iter().copied()).input(input);
        assert_eq!(loon.run().code, Some(0));
        let seen = server.last_request().user_texts();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].trim_end(), "say ok\nin two lines");
    }
}

#[test]
fn nothing_to_run_is_status_3() {
    let server = ModelServer::queue([]);
    let (home, repo) = chat_setup(&server);
    for loon in [
        Loon::exec(&home, repo.path(), ["-"]),
        Loon::exec(&home, repo.path(), ["-"]).input(Input::Bytes(b" \n\n".to_vec())),
        Loon::exec(&home, repo.path(), [" "]),
    ] {
        assert_eq!(outcome(&loon.run()), (Some(3), json!("stopped")));
    }
}

#[test]
fn a_wrong_command_line_is_status_2_in_a_whole_stream() {
    let server = ModelServer::queue([]);
    let (home, repo) = chat_setup(&server);
    for arguments in [&["--no-such-option", "go"][..], &["--deadline", "soon", "go"]] {
        let finished = Loon::exec(&home, repo.path(), arguments.iter().copied()).run();
        assert_eq!(outcome(&finished), (Some(2), json!("usage")), "{arguments:?}");
        let told = finished.terminal()["error"]["message"].clone();
        assert!(told.as_str().is_some_and(|told| told.contains(arguments[0])), "{told}");
        assert!(finished.stderr.contains(arguments[0]), "{}", finished.stderr);
    }
}

#[test]
fn a_setting_or_file_that_is_not_there_is_status_2_in_a_whole_stream() {
    let server = ModelServer::queue([]);
    let (home, repo) = chat_setup(&server);
    let refused = |arguments: &[&str], told: &str| {
        let finished = Loon::exec(&home, repo.path(), arguments.iter().copied()).run();
        let end = finished.terminal();
        assert_eq!((&end["outcome"], finished.code), (&json!("usage"), Some(2)), "{end}");
        assert!(end["error"].to_string().contains(told), "{end}");
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
    };
    refused(&["--model", "nowhere/coder", "go"], "nowhere");
    refused(&["--resume", "ffffffff", "go"], "ffffffff");
    refused(&["--output-schema", "no/such/file.json", "go"], "no/such/file.json");
    refused(&["--cwd", "no/such/folder", "go"], "no/such/folder");
    home.set_settings("[session\nmodel = 1");
    refused(&["go"], "config.toml");
    assert!(home.journals().is_empty(), "no session begins for it");
}

#[test]
fn without_any_provider_it_says_what_to_set() {
    let (home, repo) = (Home::new(), small_repo());
    let finished = Loon::exec(&home, repo.path(), ["go"]).run();
    let end = finished.terminal();
    assert_eq!(end["outcome"], "usage", "{end}");
    assert!(end["error"]["hints"].to_string().contains("session.model"), "{end}");
}

#[test]
fn a_failing_model_is_status_1() {
    let (server, finished) = run_one(loon_testkit::status(401).message("bad key"), &["go"]);
    assert_eq!(outcome(&finished), (Some(1), json!("failed")));
    let error = finished.terminal()["error"].clone();
    assert_eq!(error["code"], "AUTH");
    assert!(error["message"].as_str().is_some_and(|message| message.contains("bad key")));
    assert_eq!(server.requests().len(), 1, "a wrong key is not tried again");
}

#[test]
fn the_limit_of_requests_is_status_3() {
    let server = ModelServer::answering(|_| ask(read("a.txt")));
    let (home, repo) = chat_setup(&server);
    let finished = Loon::exec(&home, repo.path(), ["--max-turns", "2", "go"]).run();
    assert_eq!(outcome(&finished), (Some(3), json!("stopped")));
    assert_eq!(finished.terminal()["error"]["code"], "TURN_LIMIT");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_budget_is_status_3_before_the_request_that_would_pass_it() {
    let server = ModelServer::answering(|_| ask(read("a.txt")));
    let (home, repo) = chat_setup(&server);
    let arguments = ["--set", "budget.max_requests=3", "go"];
    let finished = Loon::exec(&home, repo.path(), arguments).run();
    assert_eq!(outcome(&finished), (Some(3), json!("stopped")));
    assert_eq!(finished.terminal()["error"]["code"], "QUOTA_EXCEEDED");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_deadline_is_status_124_and_leaves_the_server() {
    let (server, finished) = run_one(text("begun").stall(), &["--deadline", "700ms", "go"]);
    assert_eq!(outcome(&finished), (Some(124), json!("deadline_exceeded")));
    assert_eq!(finished.terminal()["error"]["code"], "DEADLINE_EXCEEDED");
    server.wait_abandoned(0);
}

#[test]
fn k045_a_deadline_is_the_end_of_the_session_and_the_last_record_says_so() {
    let server = ModelServer::queue([text("begun").stall()]);
    let (home, repo) = chat_setup(&server);
    let finished = Loon::exec(&home, repo.path(), ["--deadline", "700ms", "go"]).run();
    assert_eq!(outcome(&finished), (Some(124), json!("deadline_exceeded")));
    let records = home.records(&finished.exec());
    let [.., turn, last] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(
        (&turn["type"], &turn["status"]),
        (&json!("turn.finished"), &json!("deadline_exceeded"))
    );
    assert_eq!(last["type"], "execution.cancelled");
    assert_eq!(last["reason"], "the deadline of 700 ms passed");
    let exec = finished.exec();
    let again = Loon::exec(&home, repo.path(), ["--resume", &exec, "--deadline", "1h", "on"]).run();
    assert_eq!(again.terminal()["error"]["code"], "CANCELLED");
    assert_eq!(home.records(&exec).len(), records.len());
}

#[test]
fn a_deadline_ends_a_running_command() {
    let server = ModelServer::by_step([ask(bash("echo $$ > pid; exec sleep 300"))]);
    let (home, repo) = chat_setup(&server);
    let arguments = ["--mode", "bypass", "--deadline", "1500ms", "go"];
    let finished = Loon::exec(&home, repo.path(), arguments).run();
    assert_eq!(outcome(&finished), (Some(124), json!("deadline_exceeded")));
    assert!(!is_alive(&repo.read("pid")));
}

fn stopped_by(signal: Signal) -> (Finished, ModelServer) {
    let server = ModelServer::queue([text("I begin").stall()]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["go"]).start();
    running.wait_type("item.delta");
    running.signal(signal);
    (running.finish(), server)
}

#[test]
fn an_interrupt_is_status_130_and_keeps_what_had_arrived() {
    let (finished, server) = stopped_by(Signal::SIGINT);
    assert_eq!(outcome(&finished), (Some(130), json!("interrupted")));
    let item = &finished.items("assistant_message")[0];
    assert_eq!((&item["text"], &item["incomplete"]), (&json!("I begin"), &json!(true)));
    server.wait_abandoned(0);
}

#[test]
fn a_reader_that_takes_nothing_keeps_no_signal_from_being_heard() {
    let server = ModelServer::queue([text("words ".repeat(200_000)).stall()]);
    let (home, repo) = chat_setup(&server);
    let events = repo.path().join("events");
    mkfifo(&events, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe with a name");
    let redirect = format!("> '{}'", events.display());
    let running = Loon::exec(&home, repo.path(), ["go"]).redirect(&redirect).start();
    let mut reader = File::open(&events).expect("the pipe");
    // The first words say that it runs; from here on nobody reads.
    reader.read_exact(&mut [0; 64]).expect("the first event");
    server.wait_for_requests(1);
    running.signal(Signal::SIGTERM);
    assert_eq!(running.finish().code, Some(143));
}

#[test]
fn a_termination_is_status_143() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let (finished, _server) = stopped_by(signal);
        assert_eq!(outcome(&finished), (Some(143), json!("terminated")));
    }
}

#[test]
fn an_interrupted_command_is_gone_with_its_children() {
    let server = ModelServer::by_step([ask(bash("sleep 300 & echo $! > pid; echo up; wait"))]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    running.wait_event("output", |event| event["type"] == "item.delta" && event["of"] == "output");
    running.signal(Signal::SIGINT);
    let finished = running.finish();
    assert_eq!(outcome(&finished), (Some(130), json!("interrupted")));
    assert!(!is_alive(&repo.read("pid")));
    let item = finished.items("tool_call").pop().expect("the call");
    assert_eq!(item["status"], "cancelled");
}

/// True if a process with this id runs; a zombie does not.
pub(crate) fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly_and_keeps_the_session() {
    let latch = Latch::new();
    let server = ModelServer::queue([text("first").hold(&latch).text("more").stall()]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["go"]).reader_leaves_after(1).start();
    running.wait_output_closed();
    latch.release();
    let finished = running.finish();
    assert_eq!((finished.code, finished.signal), (Some(141), None), "{}", finished.stderr);
    assert_eq!(finished.stderr, "");
    let verified = Loon::new(&home, repo.path()).args(["sessions", "verify", "--all"]).run();
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
}

#[test]
fn a_full_disk_on_standard_output_is_an_error_and_no_crash() {
    let server = ModelServer::queue([text("ok")]);
    let (home, repo) = chat_setup(&server);
    let finished = Loon::exec(&home, repo.path(), ["go"]).redirect(">/dev/full").run();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("standard output"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("panicked"));
}

#[test]
fn a_closed_standard_error_changes_nothing() {
    let server = ModelServer::queue([text("ok")]);
    let (home, repo) = chat_setup(&server);
    let finished = Loon::exec(&home, repo.path(), ["go"]).redirect("2>&-").run();
    assert_eq!(outcome(&finished), (Some(0), json!("completed")));
}

#[test]
fn output_for_programs_is_pure_whatever_the_environment_says() {
    let server = ModelServer::queue([ask(read("a.txt")), text("ok")]);
    let (home, repo) = chat_setup(&server);
    let finished = Loon::exec(&home, repo.path(), ["go"])
        .env("FORCE_COLOR", "1")
        .env("CLICOLOR_FORCE", "1")
        .env("RUST_LOG", "trace")
        .run();
    assert_eq!(outcome(&finished), (Some(0), json!("completed")));
    assert!(!finished.stdout.contains(&0x1b));
}

#[test]
fn without_json_the_answer_is_on_standard_output_and_the_work_on_standard_error() {
    let server = ModelServer::queue([ask(read("a.txt")), text("The **answer**.\u{1b}[31m")]);
    let (home, repo) = chat_setup(&server);
    let finished = Loon::new(&home, repo.path()).args(["exec", "go"]).run();
    assert_eq!(finished.code, Some(0));
    assert_eq!(finished.text(), "The **answer**.\u{fffd}[31m\n");
    assert!(finished.stderr.contains("read a.txt"), "{}", finished.stderr);
}

#[test]
fn the_last_message_goes_to_the_file_it_is_told() {
    let server = ModelServer::queue([ask(read("a.txt")), text("final words")]);
    let (home, repo) = chat_setup(&server);
    let arguments = ["--output-last-message", "last.txt", "go"];
    assert_eq!(Loon::exec(&home, repo.path(), arguments).run().code, Some(0));
    assert_eq!(repo.read("last.txt").trim_end(), "final words");
}

fn with_schema(replies: [Reply; 2]) -> (ModelServer, Finished) {
    let server = ModelServer::queue(replies);
    let (home, repo) = chat_setup(&server);
    let schema = json!({"type": "object", "required": ["n"], "additionalProperties": false,
        "properties": {"n": {"type": "integer"}}});
    repo.write("schema.json", schema.to_string());
    let arguments = ["--output-schema", "schema.json", "count"];
    let finished = Loon::exec(&home, repo.path(), arguments).run();
    (server, finished)
}

#[test]
fn an_answer_that_breaks_the_schema_is_asked_for_once_more() {
    let (server, finished) = with_schema([text(r#"{"n": "four"}"#), text(r#"{"n": 4}"#)]);
    assert_eq!(outcome(&finished), (Some(0), json!("completed")));
    assert_eq!(finished.terminal()["message"], r#"{"n": 4}"#);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let told = requests[1].user_texts().pop().expect("a message about the fault");
    assert!(told.contains("four") || told.contains("integer"), "{told}");
}

#[test]
fn an_answer_that_breaks_the_schema_twice_fails() {
    let (server, finished) = with_schema([text("four"), text(r#"{"n": "four"}"#)]);
    assert_eq!(outcome(&finished), (Some(1), json!("failed")));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn another_folder_is_worked_in() {
    let server = ModelServer::queue([ask(read("a.txt")), text("ok")]);
    let (home, repo) = chat_setup(&server);
    let elsewhere = small_repo();
    let folder = repo.path();
    let folder = folder.to_str().expect("a plain path");
    repo.write("a.txt", "only here\n");
    let finished = Loon::exec(&home, elsewhere.path(), ["--cwd", folder, "go"]).run();
    assert_eq!(finished.code, Some(0));
    assert!(server.last_request().last_answer().contains("only here"));
}

#[test]
fn a_session_is_resumed_by_its_id_its_beginning_or_as_the_newest() {
    let server = ModelServer::answering(|request| text(format!("answer {}", request.answers())));
    let (home, repo) = chat_setup(&server);
    let first = Loon::exec(&home, repo.path(), ["first"]).run();
    let exec = first.exec();
    let by_id = Loon::exec(&home, repo.path(), ["--resume", exec.as_str(), "second"]).run();
    let short = &exec[..exec.len() - 8];
    let by_prefix = Loon::exec(&home, repo.path(), ["--resume", short, "third"]).run();
    let newest = Loon::exec(&home, repo.path(), ["--continue", "fourth"]).run();
    for finished in [&by_id, &by_prefix, &newest] {
        assert_eq!(finished.exec(), exec);
        assert_eq!(outcome(finished), (Some(0), json!("completed")));
    }
    let last = server.last_request();
    assert_eq!(last.user_texts(), ["first", "second", "third", "fourth"]);
    assert_eq!(last.assistant_texts(), ["answer 0", "answer 1", "answer 2"]);
    let opened = &newest.of_type("session.opened")[0]["session"];
    assert_eq!((&opened["resumed"], &opened["title"]), (&json!(true), &json!("first")));
}

#[test]
fn continue_keeps_to_the_sessions_of_the_folder() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let elsewhere = small_repo();
    let here = Loon::exec(&home, repo.path(), ["here"]).run();
    Loon::exec(&home, elsewhere.path(), ["there"]).run();
    let finished = Loon::exec(&home, repo.path(), ["--continue", "again"]).run();
    assert_eq!(finished.exec(), here.exec());
    let none = Loon::exec(&home, home.path(), ["--continue", "again"]).run();
    assert_eq!(none.code, Some(2), "{}", none.text());
}

#[test]
fn a_program_steers_a_running_turn() {
    let latch = Latch::new();
    let held = text("looking").hold(&latch).call("read", &json!({"path": "a.txt"}));
    let server = ModelServer::by_step([held, text("done")]);
    let (home, repo) = chat_setup(&server);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.write_line(json!({"type": "prompt", "text": "begin"}));
    latch.wait_reached(1);
    running.write_line(json!({"type": "steer", "text": "and mind the gap"}));
    running.wait_type("prompt.queued");
    latch.release();
    running.wait_type("turn.finished");
    running.close_input();
    let finished = running.finish();
    assert_eq!(outcome(&finished), (Some(0), json!("completed")));
    assert_eq!(server.last_request().user_texts(), ["begin", "and mind the gap"]);
    let steered = finished.items("user_message").pop().expect("the steering message");
    assert_eq!(steered["steer"], true);
}

#[test]
fn a_program_interrupts_and_goes_on() {
    let server = ModelServer::queue([text("slow").stall(), text("fast")]);
    let (home, repo) = chat_setup(&server);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.write_line(json!({"type": "prompt", "text": "begin"}));
    running.wait_type("item.delta");
    running.write_line(json!({"type": "interrupt"}));
    let turn = running.wait_type("turn.finished");
    assert_eq!(turn["status"], "interrupted");
    running.write_line("this is no command");
    running.write_line(json!({"type": "prompt", "text": "again"}));
    running.wait_type("turn.finished");
    running.close_input();
    let finished = running.finish();
    assert_eq!(outcome(&finished), (Some(0), json!("completed")));
    assert!(finished.stderr.contains("Line 3"), "{}", finished.stderr);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_program_approves_one_call_and_denies_another() {
    let server = ModelServer::by_step([
        ask(bash("echo yes > yes.txt")),
        ask(bash("echo no > no.txt")),
        text("done"),
    ]);
    let (home, repo) = chat_setup(&server);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.write_line(json!({"type": "prompt", "text": "begin"}));
    let asked = running.wait_type("approval.requested");
    assert_eq!(asked["approval"]["detail"], "echo yes > yes.txt");
    let id = &asked["approval"]["id"];
    running.write_line(json!({"type": "approve", "approval": id, "scope": "once"}));
    let asked = running.wait_type("approval.requested");
    let id = &asked["approval"]["id"];
    running.write_line(json!({"type": "deny", "approval": id, "reason": "not that one"}));
    running.wait_type("turn.finished");
    running.close_input();
    running.finish().terminal();
    assert_eq!(repo.read("yes.txt"), "yes\n");
    assert!(!repo.has("no.txt"));
    assert!(server.last_request().last_answer().contains("not that one"));
}

#[test]
fn a_bad_proxy_variable_does_not_keep_loopback_from_working() {
    let server = ModelServer::queue([text("ok")]);
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    let finished = Loon::exec(&home, repo.path(), ["go"])
        .env("NO_PROXY", "127.0.0.1")
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .run();
    assert_eq!(outcome(&finished), (Some(0), json!("completed")));
}
