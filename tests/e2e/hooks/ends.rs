//! Hooks at the end of a session.

use loon_testkit::{Loon, ModelServer, Screen, key, text};
use nix::sys::signal::Signal;

use super::{go, hook, hook_ends, more_of, seen, setup};
use crate::scripts::{ask, bash};

#[test]
fn h194_the_end_of_a_run_is_told_and_recorded() {
    let server = ModelServer::by_step([text("done")]);
    let (home, repo) = setup(&server, &hook("SessionEnd", "cat > end.json"));
    let finished = go(&home, &repo);
    assert_eq!(finished.code, Some(0));
    let read = seen(&repo, "end.json");
    assert_eq!(
        (read["reason"].as_str(), read["session_id"].as_str()),
        (Some("close"), Some(&*finished.exec()))
    );
    assert_eq!(hook_ends(&finished)[0]["status"], "completed");
    assert!(home.records(&finished.exec()).iter().any(|record| record["kind"] == "hook"));
}

#[test]
fn h194_a_signal_that_asks_for_the_end_runs_it_and_a_forced_end_runs_none() {
    for (signal, expected) in [(Signal::SIGTERM, true), (Signal::SIGKILL, false)] {
        let server = ModelServer::by_step([ask(bash("touch began; sleep 1000")), text("never")]);
        let (home, repo) = setup(&server, &hook("SessionEnd", "cat > end.json"));
        let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
        running.wait_event("a call that runs", |event| event["item"]["status"] == "running");
        while !repo.has("began") {
            std::thread::yield_now();
        }
        running.signal(signal);
        let finished = running.finish();
        assert_eq!(repo.has("end.json"), expected, "{signal}");
        if expected {
            assert_eq!(finished.code, Some(143));
            assert_eq!(seen(&repo, "end.json")["reason"], "terminate");
        }
    }
}

#[test]
fn h194_leaving_the_screen_runs_it() {
    let server = ModelServer::by_step([text("never")]);
    let (home, repo) = setup(&server, &hook("SessionEnd", "sleep 3; cat > end.json"));
    let mut screen = Screen::start(&home, repo.path(), &[], (100, 30));
    screen.wait_for("● ready");
    screen.press(key::CTRL_C);
    screen.press(key::CTRL_C);
    assert_eq!(screen.wait_exit(), Some(0));
    assert_eq!(seen(&repo, "end.json")["reason"], "close");
}

#[test]
fn a_hook_at_the_end_that_fails_is_told() {
    let server = ModelServer::by_step([text("done")]);
    let (home, repo) = setup(&server, &more_of("SessionEnd", "sleep 1000", "timeout_secs = 1"));
    let finished = go(&home, &repo);
    assert_eq!(finished.code, Some(0));
    let told = finished.of_type("notice");
    let told = told.iter().any(|notice| notice["message"].to_string().contains("SessionEnd hook"));
    assert!(told, "{}", finished.text());
}
