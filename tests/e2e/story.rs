//! One session through all that can happen to it: killed in mid-tool, resumed, branched off, the branch
//! cancelled from another process, the original resumed on another day, and replayed. Whoever tells of
//! it tells the same.

use loon_testkit::{Home, Loon, ModelServer, Repo, Running, Screen, Wire, key, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::headless::is_alive;
use crate::scripts::{ask, bash, edit, read};

/// A cent for each token; each answer has ten.
const PRICED: &str = "models.coder.price = { input = \"10000\", output = \"10000\" }";

const CHECK: &str = "make test passed after the last edit";

struct Story {
    home: Home,
    repo: Repo,
    exec: String,
}

/// The program that the killed process leaves behind. It ends with the test.
struct Orphan(String);

impl Drop for Orphan {
    fn drop(&mut self) {
        if let Ok(pid) = self.0.trim().parse() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn server() -> ModelServer {
    ModelServer::answering(|request| {
        let branch = request.user_texts().iter().any(|text| text == "another way");
        let reply = match request.answers() {
            4 if branch => return text("Slowly now").stall(),
            0 => ask(read("a.txt")),
            1 => ask(edit("a.txt", "two", "zwei")),
            2 | 7 => ask(bash("make test")),
            3 => text("Repaired and tested."),
            4 => ask(bash("echo $$ > pid; exec sleep 300")),
            5 => text("I go on after the crash."),
            6 => ask(edit("a.txt", "one", "eins")),
            _ => text("All is well on another day."),
        };
        reply.usage(10, 0, 0)
    })
}

impl Story {
    fn loon(&self, arguments: &[&str]) -> loon_testkit::Finished {
        Loon::new(&self.home, self.repo.path()).args(arguments.iter().copied()).run()
    }

    fn turn(&self, prompt: &str) -> Loon {
        let arguments = ["--mode", "bypass", "--resume", &self.exec, prompt];
        Loon::exec(&self.home, self.repo.path(), arguments)
    }

    /// What `loon sessions show` says, as items and as a text.
    fn shown(&self) -> (Vec<Value>, String) {
        let items = self.loon(&["sessions", "show", &self.exec, "--json"]).text();
        let items = items.lines().map(|line| serde_json::from_str(line).expect("an item"));
        (items.collect(), self.loon(&["sessions", "show", &self.exec]).text())
    }

    /// The final items of the journal.
    fn recorded(&self) -> Vec<Value> {
        let mut items: Vec<Value> = Vec::new();
        for record in self.home.records(&self.exec) {
            if record["type"] != "item.completed" {
                continue;
            }
            match items.iter_mut().find(|item| item["id"] == record["item"]["id"]) {
                Some(item) => *item = record["item"].clone(),
                None => items.push(record["item"].clone()),
            }
        }
        items
    }

    /// Puts the session back to another day, as if it had come to its present point then.
    fn age(&self) {
        let events = self.loon(&["sessions", "export", &self.exec, "--json"]).text();
        let aged = events.lines().map(|line| {
            let mut event: Value = serde_json::from_str(line).expect("an event");
            let at = event["at"].as_str().expect("a time").to_owned();
            let year: i32 = at[..4].parse().expect("a year");
            // Four years back, so that every day is one of the calendar.
            event["at"] = json!(format!("{}{}", year - 4, &at[4..]));
            format!("{event}\n")
        });
        let file = self.home.path().join("aged.jsonl");
        #[expect(clippy::disallowed_methods, reason = "a fixture, not a user's file")]
        std::fs::write(&file, aged.collect::<String>()).expect("the events");
        let file = file.display().to_string();
        assert_eq!(self.loon(&["sessions", "delete", &self.exec, "--yes"]).code, Some(0));
        let came = self.loon(&["sessions", "import", &file]);
        assert!(came.text().starts_with(&self.exec), "{} {}", came.text(), came.stderr);
    }

    fn holds(&self, exec: &str) {
        let verified = self.loon(&["sessions", "verify", exec, "--json"]).text();
        let verified: Value = serde_json::from_str(&verified).expect("JSON");
        assert_eq!((&verified["holds"], &verified["damage"]), (&json!(true), &Value::Null));
        let replayed = self.loon(&["replay", exec, "--json"]);
        let found: Value = serde_json::from_str(&replayed.text()).expect("JSON");
        assert_eq!((replayed.code, &found["difference"]), (Some(0), &Value::Null), "{found}");
        assert_ne!(found["requests"], 0, "requests were compared");
    }
}

fn statuses(items: &[Value]) -> Vec<(&str, &str)> {
    let calls = items.iter().filter(|item| item["kind"] == "tool_call");
    calls
        .map(|call| {
            let word = |name: &str| call[name].as_str().unwrap_or_default();
            (word("tool"), word("status"))
        })
        .collect()
}

fn begun(running: &mut Running) -> String {
    running.wait_type("turn.started")["exec"].as_str().expect("an id").to_owned()
}

#[test]
fn whatever_happens_to_a_session_all_who_tell_of_it_tell_the_same() {
    let server = server();
    let home = Home::with_server_and(&server, Wire::Chat, PRICED, "");
    let check = "test:\n\t@echo all is well\n";
    let repo = Repo::new(&[("a.txt", "one\ntwo\nthree\n"), ("Makefile", check)]);
    let first = Loon::exec(&home, repo.path(), ["--mode", "bypass", "repair it"]).run();
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let story = Story { exec: first.exec(), home, repo };

    // Killed while a program runs, which goes on.
    let mut killed = story.turn("wait for it").start();
    killed.wait_event("the running call", |event| event["item"]["status"] == "running");
    let pid = story.repo.path().join("pid");
    while std::fs::read_to_string(&pid).unwrap_or_default().trim().is_empty() {
        std::thread::yield_now();
    }
    let orphan = Orphan(story.repo.read("pid"));
    killed.signal(Signal::SIGKILL);
    killed.finish();
    assert!(is_alive(&orphan.0));

    let resumed = story.turn("go on").run();
    assert_eq!(resumed.terminal()["message"], "I go on after the crash.");
    assert_eq!(resumed.of_type("execution.resumed")[0]["unknown"], json!(["t2/s0/c0"]));
    let told = resumed.items("notice").iter().map(|item| item["text"].to_string()).next();
    let told = told.expect("a notice of the program");
    assert!(told.contains(&format!("may still run: {} (sleep 300)", orphan.0.trim())), "{told}");
    let read_by_model = server.last_request().user_texts().concat();
    assert!(read_by_model.contains("may still run"), "{read_by_model}");
    assert!(is_alive(&orphan.0), "it is not ended without being asked for");

    // Branched off before the crash, and the branch cancelled from outside.
    let fork = story.loon(&["sessions", "fork", &story.exec, "--at", "1", "--json"]).text();
    let fork: Value = serde_json::from_str(&fork).expect("JSON");
    let fork = Story { exec: fork["exec"].as_str().expect("an id").to_owned(), ..story };
    let mut branch = fork.turn("another way").start();
    assert_eq!(begun(&mut branch), fork.exec);
    branch.wait_type("item.delta");
    assert_eq!(fork.loon(&["cancel", &fork.exec, "--reason", "not that way"]).code, Some(0));
    let ended = branch.finish();
    let error = &ended.terminal()["error"];
    assert_eq!((ended.code, &error["code"]), (Some(143), &json!("CANCELLED")));
    assert!(error["message"].to_string().contains("not that way"), "{error}");
    fork.holds(&fork.exec);
    let (items, words) = fork.shown();
    assert_eq!(items, fork.recorded());
    assert!(words.contains("The session was cancelled: not that way"), "{words}");
    let fork_exec = fork.exec.clone();
    let story = Story { exec: first.exec(), ..fork };

    // The stream of the resumed turn and what is shown later have the same items.
    story.age();
    let (items, _) = story.shown();
    assert_eq!(items, story.recorded());
    for event in resumed.of_type("item.completed") {
        assert!(items.contains(&event["item"]), "{event}");
    }
    let calls = [("read", "done"), ("edit", "done"), ("bash", "done"), ("bash", "unknown")];
    assert_eq!(statuses(&items), calls);

    // On another day, on the screen.
    let arguments = ["--mode", "bypass", "--resume", &story.exec];
    let mut screen = Screen::start(&story.home, story.repo.path(), &arguments, (120, 70));
    screen.wait_for("I go on after the crash.");
    screen.paste("once more");
    screen.wait_for("once more");
    screen.press(key::ENTER);
    screen.wait_for("All is well on another day.");
    let seen = screen.wait_for(CHECK);
    screen.paste("/budget");
    screen.wait_for("/budget");
    screen.press(key::ENTER);
    screen.wait_for("spent $0.90");
    screen.press(key::CTRL_C);
    screen.press(key::CTRL_C);
    assert_eq!(screen.wait_exit(), Some(0));

    let records = story.home.records(&story.exec);
    let days: Vec<&str> = [records.first(), records.last()]
        .map(|record| record.and_then(|record| record["at"].as_str()).expect("a time"))
        .map(|at| &at[..10])
        .into();
    assert!(days[0] < days[1], "{days:?}");
    let (items, words) = story.shown();
    assert_eq!(items, story.recorded());
    assert_eq!(statuses(&items)[4..], [("edit", "done"), ("bash", "done")]);
    for item in &items {
        let text = item["text"].as_str().or(item["title"].as_str()).unwrap_or_default();
        let begin: String = text.lines().next().unwrap_or_default().chars().take(50).collect();
        assert!(seen.contains(begin.trim()), "{begin} on the screen:\n{seen}");
        assert!(words.contains(begin.trim()), "{begin} in the transcript:\n{words}");
    }
    assert_eq!(seen.matches("outcome unknown").count(), 1, "{seen}");
    assert_eq!(words.matches("(unknown)").count(), 1, "{words}");
    assert!(words.lines().nth(2).is_some_and(|line| line.ends_with(", $0.90")), "{words}");
    assert_eq!(words.matches(CHECK).count(), 2, "the receipts of the first turn and the last");
    let ends = records.iter().filter(|record| record["type"] == "turn.finished");
    let ends: Vec<(&Value, &Value)> =
        ends.map(|end| (&end["status"], &end["receipt"]["runs"][0]["check"])).collect();
    let (completed, test) = (json!("completed"), json!("test"));
    let none = Value::Null;
    assert_eq!(
        ends,
        [
            (&completed, &test),
            (&json!("interrupted"), &none),
            (&completed, &none),
            (&completed, &test)
        ]
    );
    let listed = story.loon(&["sessions", "list"]).text();
    let line = |exec: &str| listed.lines().find(|line| line.starts_with(exec)).unwrap_or_default();
    assert!(
        line(&story.exec).contains("$0.90") && line(&story.exec).contains(" open "),
        "{listed}"
    );
    assert!(line(&fork_exec).contains(" cancelled "), "{listed}");
    story.holds(&story.exec);
    assert_eq!(story.repo.read("a.txt"), "eins\nzwei\nthree\n");
}
