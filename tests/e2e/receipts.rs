//! Receipts: what a turn verifiably did, whatever the model says.

use loon_testkit::{Finished, Loon, ModelServer, text};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, edit, read};

type Call = (&'static str, Value);

/// Makes these calls, then claims that all is well.
fn run(calls: impl IntoIterator<Item = Call>) -> (Finished, Finished) {
    let script: Vec<Call> = calls.into_iter().collect();
    let run = |arguments: &[&str]| {
        let replies = script.iter().cloned().map(ask);
        let server = ModelServer::by_step(replies.chain([text("All tests pass.")]));
        let (home, repo) = chat_setup(&server);
        let arguments = arguments.iter().chain(&["--mode", "bypass", "go"]).copied();
        let finished = Loon::new(&home, repo.path()).args(arguments).run();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        finished
    };
    (run(&["exec", "--json"]), run(&["exec"]))
}

fn receipt(finished: &Finished) -> Value {
    finished.of_type("turn.finished")[0]["receipt"].clone()
}

#[test]
fn a_claim_without_a_run_is_told_apart() {
    let (events, words) = run([bash("true"), read("a.txt"), edit("a.txt", "one", "uno")]);
    let told = receipt(&events);
    assert_eq!(told["changes"][0]["path"], "a.txt");
    assert!(told["changes"][0]["before"] != told["changes"][0]["after"]);
    assert_eq!((&told["runs_before"], &told["runs"]), (&json!(1), &Value::Null));
    assert!(words.stderr.contains("nothing was run after the last edit"), "{}", words.stderr);
}

#[test]
fn a_failing_check_after_the_last_edit_is_shown_with_its_counts() {
    // Functions make a stand-in for the program; the line that checks stands alone in its call.
    let line = "make test";
    let server = ModelServer::by_step([
        ask(read("a.txt")),
        ask(edit("a.txt", "one", "uno")),
        ask(bash(line)),
        text("All tests pass."),
    ]);
    let (home, repo) = chat_setup(&server);
    repo.write("Makefile", "test:\n\t@echo 'test result: FAILED. 1 passed; 2 failed'; exit 1\n");
    let finished = Loon::new(&home, repo.path()).args(["exec", "--mode", "bypass", "go"]).run();
    assert!(
        finished.stderr.contains("make test FAILED after the last edit"),
        "{}",
        finished.stderr
    );
    let exec = home.journals()[0]
        .parent()
        .and_then(|up| up.file_name())
        .map(std::borrow::ToOwned::to_owned);
    let exec = exec.expect("a session").into_string().expect("an id");
    let shown = Loon::new(&home, repo.path()).args(["sessions", "show", &exec]).run();
    assert!(shown.text().contains("make test FAILED after the last edit"), "{}", shown.text());
    assert!(shown.text().contains("$ make test  exit 2"), "{}", shown.text());
    let records = home.records(&exec);
    let end = records.iter().find(|record| record["type"] == "turn.finished").expect("an end");
    assert_eq!(end["receipt"]["runs"][0]["exit_code"], 2);
    assert_eq!(end["receipt"]["runs"][0]["check"], "test");
}

#[test]
fn a_check_that_may_never_have_run_is_not_called_failed() {
    let (events, words) =
        run([read("a.txt"), edit("a.txt", "one", "uno"), bash("false && cargo test")]);
    assert_eq!(receipt(&events)["runs"][0]["unclear"], json!(true));
    let line = "false && cargo test ended with 1 after the last edit, perhaps before its check ran";
    assert!(words.stderr.contains(line), "{}", words.stderr);
}

#[test]
fn a_check_beside_the_conversation_counts_with_its_end() {
    let start = |line: &str| ("process_start", json!({ "command": line }));
    let poll = ("process_poll", json!({ "id": "p1", "wait_secs": 60 }));
    let wait = "until [ -e go ]; do sleep 0.01; done; exit 3";
    let (_, words) = run([
        read("a.txt"),
        edit("a.txt", "one", "uno"),
        bash(&format!("echo '{wait}' > test.sh")),
        start("bash test.sh"),
        bash("touch go"),
        poll.clone(),
    ]);
    let line = "bash test.sh FAILED after the last edit";
    assert!(words.stderr.contains(line), "{}", words.stderr);
    let (_, words) = run([
        read("a.txt"),
        bash(&format!("echo '{wait}' > test.sh")),
        start("bash test.sh"),
        edit("a.txt", "one", "uno"),
        bash("touch go"),
        poll,
    ]);
    assert!(!words.stderr.contains("FAILED"), "{}", words.stderr);
}

#[test]
fn what_hides_the_status_of_a_check_is_no_check() {
    let (events, words) =
        run([read("a.txt"), edit("a.txt", "one", "uno"), bash("make test || true")]);
    let told = receipt(&events);
    assert_eq!(told["runs"][0]["check"], Value::Null);
    assert!(
        words
            .stderr
            .contains("no test, build or lint was run after the last edit (1 other command)"),
        "{}",
        words.stderr
    );
}

#[test]
fn a_turn_that_changes_nothing_says_nothing() {
    let (events, words) = run([read("a.txt")]);
    assert_eq!(receipt(&events), Value::Null);
    assert!(!words.stderr.contains("last edit"), "{}", words.stderr);
}
