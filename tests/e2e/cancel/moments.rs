//! Cancels at many moments of a run: while it goes on, while it is stopped, and when it is dead.

use loon_testkit::{Home, Loon, ModelServer, Repo, Running, Screen, key, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{cancel, cancels, kinds};
use crate::scripts::{ask, bash, chat_setup};

/// Steps of the scripted job.
const STEPS: usize = 12;

fn job() -> ModelServer {
    ModelServer::answering(|request| match request.answers() {
        step @ 0..STEPS => ask(bash(&format!("echo mark-{step} >> log.txt"))),
        _ => text("done").stall(),
    })
}

/// A run of the job that has told so many events.
fn run_until(home: &Home, repo: &Repo, events: usize) -> (Running, String) {
    let mut running = Loon::exec(home, repo.path(), ["--mode", "bypass", "go"]).start();
    let mut left = events;
    let event = running.wait_event("the moment", |_| {
        left -= 1;
        left == 0
    });
    (running, event["exec"].as_str().expect("an id").to_owned())
}

fn is_settled(home: &Home, repo: &Repo, exec: &str) {
    let kinds = kinds(home, exec);
    let last = kinds.last().map(String::as_str);
    assert_eq!((cancels(&kinds), last), (1, Some("execution.cancelled")));
    let verified = Loon::new(home, repo.path()).args(["sessions", "verify", exec]).run();
    assert_eq!(verified.code, Some(0), "{}{}", verified.text(), verified.stderr);
    let again = cancel(home, repo, &[exec]);
    assert_eq!(again.code, Some(1));
    assert_eq!(again.text(), format!("{exec} was cancelled already.\n"));
    let resumed = Loon::exec(home, repo.path(), ["--resume", exec, "more"]).run();
    assert_eq!(resumed.terminal()["error"]["code"], "CANCELLED");
}

#[test]
fn k029_a_stopped_run_writes_nothing_after_its_cancel_whenever_it_was_stopped() {
    for events in [1, 2, 4, 7, 11, 18, 29, 47, 60] {
        let server = job();
        let (home, repo) = chat_setup(&server);
        let (running, exec) = run_until(&home, &repo, events);
        running.signal(Signal::SIGSTOP);
        let done = cancel(&home, &repo, &[&exec, "--reason", "operator"]);
        assert_eq!(done.code, Some(0), "after {events}: {}", done.stderr);
        let settled = home.records(&exec);
        running.signal(Signal::SIGCONT);
        let ended = running.finish();
        assert_eq!(ended.code, Some(143), "after {events}: {}", ended.text());
        assert_eq!(home.records(&exec), settled, "after {events}");
        is_settled(&home, &repo, &exec);
    }
}

#[test]
fn k027_a_run_that_goes_on_is_cancelled_at_any_moment() {
    for events in [1, 3, 8, 21, 34, 55] {
        let server = job();
        let (home, repo) = chat_setup(&server);
        let (running, exec) = run_until(&home, &repo, events);
        assert_eq!(cancel(&home, &repo, &[&exec]).code, Some(0), "after {events}");
        let ended = running.finish();
        assert_eq!(ended.code, Some(143), "after {events}: {}", ended.text());
        is_settled(&home, &repo, &exec);
    }
}

#[test]
fn k028_what_a_dead_process_left_is_cancelled_by_whoever_asks() {
    for events in [2, 9, 30] {
        let server = job();
        let (home, repo) = chat_setup(&server);
        let (running, exec) = run_until(&home, &repo, events);
        running.signal(Signal::SIGKILL);
        running.finish();
        assert_eq!(cancel(&home, &repo, &[&exec]).code, Some(0), "after {events}");
        is_settled(&home, &repo, &exec);
    }
}

#[test]
fn k027_k033_a_shell_call_ends_with_the_session_even_if_it_ignores_signals() {
    let command = "trap '' TERM INT HUP; echo $$ > pid; echo up; while :; do sleep 1; done";
    let server = ModelServer::by_step([ask(bash(command))]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    let output = running.wait_event("output", |it| it["of"] == "output");
    let exec = output["exec"].as_str().expect("an id").to_owned();
    assert_eq!(cancel(&home, &repo, &[&exec]).code, Some(0));
    assert_eq!(running.finish().code, Some(143));
    let pid = repo.read("pid").trim().parse().map(Pid::from_raw).expect("a process id");
    assert!(kill(pid, None).is_err(), "the shell lives on");
    is_settled(&home, &repo, &exec);
    let records = home.records(&exec);
    let end = records.iter().find(|it| it["type"] == "effect.finished" && it["key"] == "t1/s0/c0");
    assert_eq!(end.expect("the end of the call")["status"], "aborted");
}

#[test]
fn k027_a_session_that_waits_for_its_next_command_ends_when_it_is_cancelled() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let waiting = Loon::exec(&home, repo.path(), ["--input", "jsonl", "go"]);
    let mut running = waiting.input(loon_testkit::Input::Open).start();
    let end = running.wait_type("turn.finished");
    let exec = end["exec"].as_str().expect("an id").to_owned();
    assert_eq!(cancel(&home, &repo, &[&exec]).code, Some(0));
    assert_eq!(running.finish().code, Some(143));
    is_settled(&home, &repo, &exec);
}

#[test]
fn an_id_that_nobody_has_is_an_error() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let refused = cancel(&home, &repo, &["01938a4e-8c00-7000-8000-000000000000"]);
    assert_eq!(refused.code, Some(2), "{}", refused.text());
    assert!(refused.stderr.contains("no session"), "{}", refused.stderr);
}

/// A screen that takes words, and the session in it.
fn screen(home: &Home, repo: &Repo, arguments: &[&str]) -> (Screen, String) {
    let screen = Screen::start(home, repo.path(), arguments, (100, 30));
    screen.wait_for("● ready");
    let journal = home.journals().pop().expect("a journal");
    let exec = journal.parent().and_then(|dir| dir.file_name()).expect("its folder");
    (screen, exec.to_string_lossy().into_owned())
}

#[test]
fn k027_a_screen_that_nobody_touches_closes_when_its_session_is_cancelled() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let (mut screen, exec) = screen(&home, &repo, &[]);
    assert_eq!(cancel(&home, &repo, &[&exec]).code, Some(0));
    assert_eq!(screen.wait_exit(), Some(143));
    is_settled(&home, &repo, &exec);
}

#[test]
fn k045_a_screen_closes_with_the_words_when_the_deadline_passes() {
    let server = ModelServer::answering(|_| text("I begin").stall());
    let (home, repo) = chat_setup(&server);
    let (mut screen, exec) = screen(&home, &repo, &["--set", "budget.deadline=1s"]);
    screen.paste("take your time");
    screen.wait_for("take your time");
    screen.press(key::ENTER);
    assert_eq!(screen.wait_exit(), Some(124));
    let said = String::from_utf8_lossy(&screen.raw()).into_owned();
    assert!(said.contains("the deadline of 1 s passed"), "{said}");
    is_settled(&home, &repo, &exec);
}
