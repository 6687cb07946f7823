//! Ultra Loop: the built `loon` ends a turn only once a reviewer accepts what the model claims.

use loon_testkit::{Finished, Home, Input, Loon, ModelServer, Reply, Repo, Request, call, text};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, edit, read};

const ACCEPT: &str = r#"{"verdict": "accept", "findings": []}"#;

/// A server that answers the agent by the number of its answers, and the reviewer one after another.
fn court(agent: Vec<Reply>, judge: Vec<Reply>) -> ModelServer {
    let mut judge = judge.into_iter();
    ModelServer::answering(move |request| {
        if is_review(request) {
            judge.next().unwrap_or_else(|| text("no more reviews"))
        } else {
            agent.get(request.answers()).cloned().unwrap_or_else(|| text("nothing more"))
        }
    })
}

fn is_review(request: &Request) -> bool {
    request.system().starts_with("You review whether a coding agent")
}

fn reviews(server: &ModelServer) -> Vec<Request> {
    server.requests().into_iter().filter(is_review).collect()
}

fn reject(finding: &str) -> Reply {
    text(json!({"verdict": "reject", "findings": [finding]}).to_string())
}

fn run(home: &Home, repo: &Repo, more: &[&str]) -> Finished {
    let arguments = ["--ultra", "--mode", "bypass"].into_iter().chain(more.iter().copied());
    Loon::exec(home, repo.path(), arguments).run()
}

fn verdicts(finished: &Finished) -> Vec<Value> {
    let reviews = finished.of_type("review.finished");
    reviews.iter().map(|event| event["review"]["verdict"].clone()).collect()
}

#[test]
fn findings_are_worked_on_and_then_the_work_is_accepted() {
    let server = court(
        vec![
            ask(read("a.txt")),
            ask(edit("a.txt", "two", "zwei")),
            text("It works."),
            ask(bash("grep -c zwei a.txt")),
            text("Proved."),
        ],
        vec![reject("nothing shows that a.txt holds it"), text(ACCEPT).usage(500, 0, 20)],
    );
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["put zwei in place of two"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(verdicts(&finished), ["findings", "accepted"]);
    let turn = finished.of_type("turn.finished").pop().expect("a turn");
    assert_eq!(turn["review"], json!({"accepted": true, "reviews": 2}));
    let accepted = &finished.of_type("review.finished")[1]["review"];
    assert_eq!(accepted["usage"]["input_tokens"], 500);
    assert_eq!(accepted["model"], "lab/coder");
    let reviews = reviews(&server);
    let shown = reviews.iter().map(|request| request.user_texts().concat()).collect::<Vec<_>>();
    assert!(shown[0].contains("put zwei in place of two") && shown[0].contains("+zwei"));
    assert!(shown[0].contains("Commands after the last change, in order: none"), "{}", shown[0]);
    assert!(shown[1].contains("- exit 0: grep -c zwei a.txt"), "{}", shown[1]);
    assert!(reviews[0].tool_names().is_empty());
    let agent = server.requests().into_iter().rfind(|request| !is_review(request));
    let words = agent.expect("requests of the agent").user_texts().concat();
    assert!(words.contains("- nothing shows that a.txt holds it"), "{words}");
    let replayed = Loon::new(&home, repo.path()).args(["replay", finished.exec().as_str()]).run();
    assert_eq!(replayed.code, Some(0), "{}", replayed.text());
}

#[test]
fn h068_open_plan_steps_end_as_not_accepted_and_no_review_is_asked_for() {
    let todos = json!([{"content": "test it", "status": "pending"}]);
    let server = court(
        vec![
            call("todo_write", json!({ "todos": todos })),
            text("done"),
            text("done"),
            text("done"),
        ],
        vec![text(ACCEPT)],
    );
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["--set", "supervisor.max_reviews=2", "go"]);
    assert_eq!(finished.code, Some(3));
    assert_eq!(finished.terminal()["error"]["code"], "NOT_ACCEPTED");
    assert!(reviews(&server).is_empty());
    let notices = finished.items("notice");
    assert_eq!(notices.len(), 2);
    let told = notices[0]["text"].as_str().expect("words");
    assert!(told.contains("- plan: [ ] test it"), "{told}");
}

#[test]
fn h069_a_cancel_or_a_signal_ends_the_loop_in_the_middle_of_a_review() {
    for by_signal in [false, true] {
        let server = court(vec![text("done")], vec![text("hm").stall()]);
        let (home, repo) = chat_setup(&server);
        let mut running = Loon::exec(&home, repo.path(), ["--ultra", "go"]).start();
        let exec = running.wait_type("review.started")["exec"].as_str().expect("an id").to_owned();
        server.wait_for_requests(2);
        if by_signal {
            running.signal(Signal::SIGINT);
        } else {
            let cancel = Loon::new(&home, repo.path()).args(["cancel", &exec]).run();
            assert_eq!(cancel.code, Some(0));
        }
        let finished = running.finish();
        assert_eq!(finished.code, Some(if by_signal { 130 } else { 143 }));
        assert_eq!(reviews(&server).len(), 1);
    }
}

#[test]
fn h069_a_denied_call_in_the_last_step_ends_the_loop() {
    let server = court(vec![ask(bash("touch made.txt")), text("done")], vec![text(ACCEPT)]);
    let (home, repo) = chat_setup(&server);
    let finished = Loon::exec(&home, repo.path(), ["--ultra", "go"]).run();
    assert_eq!(finished.code, Some(3));
    assert_eq!(finished.terminal()["error"]["code"], "DENIED");
    assert!(reviews(&server).is_empty() && !repo.has("made.txt"));
}

#[test]
fn a_review_counts_in_the_budget_of_the_session() {
    let server = court(vec![text("done").usage(90, 0, 10)], vec![text(ACCEPT)]);
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["--set", "budget.max_tokens=100", "go"]);
    assert_eq!(finished.code, Some(3));
    assert_eq!(finished.terminal()["error"]["code"], "QUOTA_EXCEEDED");
    assert!(reviews(&server).is_empty());
}

#[test]
fn the_switch_is_the_sessions_own_and_holds_after_a_resume() {
    let server = court(vec![text("one"), text("two")], vec![text(ACCEPT), text(ACCEPT)]);
    let (home, repo) = chat_setup(&server);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.write_line(json!({"type": "set_ultra_loop", "on": true}));
    running.write_line(json!({"type": "prompt", "text": "go"}));
    running.wait_type("turn.finished");
    running.close_input();
    let first = running.finish();
    assert_eq!(first.of_type("ultra.changed").len(), 1);
    let resumed = Loon::exec(&home, repo.path(), ["--resume", &first.exec(), "more"]).run();
    assert_eq!((resumed.code, verdicts(&resumed)), (Some(0), vec![json!("accepted")]));
    assert_eq!(resumed.of_type("session.opened")[0]["session"]["ultra"], true);
    let fresh = Loon::exec(&home, repo.path(), ["alone"]).run();
    assert!(fresh.of_type("review.started").is_empty());
}
