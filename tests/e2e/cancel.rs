//! `loon cancel`: ending a session from another process.

use std::fs::File;
use std::io::{BufRead as _, BufReader};

use loon_testkit::{Finished, Home, Latch, Loon, ModelServer, Repo, text};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup};

mod moments;

fn cancel(home: &Home, repo: &Repo, arguments: &[&str]) -> Finished {
    Loon::new(home, repo.path()).args(["cancel"]).args(arguments.iter().copied()).run()
}

/// The types of all records, oldest first.
fn kinds(home: &Home, exec: &str) -> Vec<String> {
    let records = home.records(exec);
    records.iter().map(|record| record["type"].as_str().unwrap_or_default().to_owned()).collect()
}

fn cancels(kinds: &[String]) -> usize {
    kinds.iter().filter(|kind| *kind == "execution.cancelled").count()
}

#[test]
fn a_run_whose_output_nobody_takes_ends_when_it_is_cancelled() {
    let server = ModelServer::answering(|_| text("words ".repeat(200_000)).stall());
    let (home, repo) = chat_setup(&server);
    let pipe = repo.path().join("events");
    mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe with a name");
    let redirect = format!("> '{}'", pipe.display());
    let running = Loon::exec(&home, repo.path(), ["go"]).redirect(&redirect).start();
    let mut reader = BufReader::with_capacity(64, File::open(&pipe).expect("the pipe"));
    let mut first = String::new();
    reader.read_line(&mut first).expect("the first event");
    let first: Value = serde_json::from_str(&first).expect("JSON");
    let exec = first["exec"].as_str().expect("an id").to_owned();
    // From here on nobody reads.
    server.wait_for_requests(1);
    assert_eq!(cancel(&home, &repo, &[&exec, "--reason", "stuck"]).code, Some(0));
    assert_eq!(running.finish().code, Some(143));
    let kinds = kinds(&home, &exec);
    assert_eq!(
        (cancels(&kinds), kinds.last().map(String::as_str)),
        (1, Some("execution.cancelled"))
    );
    assert_eq!(cancel(&home, &repo, &[&exec]).code, Some(1));
}

#[test]
fn a_stopped_process_that_wakes_up_writes_nothing_more() {
    let server = ModelServer::queue([text("words").stall()]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["go"]).start();
    let exec = running.wait_type("item.delta")["exec"].as_str().expect("an id").to_owned();
    running.signal(Signal::SIGSTOP);
    assert_eq!(cancel(&home, &repo, &[&exec]).code, Some(0));
    let before = kinds(&home, &exec);
    running.signal(Signal::SIGCONT);
    let finished = running.finish();
    assert_eq!((finished.code, &finished.terminal()["outcome"]), (Some(143), &json!("terminated")));
    assert_eq!(kinds(&home, &exec), before);
    assert_eq!(before.last().map(String::as_str), Some("execution.cancelled"));
}

#[test]
fn a_cancelled_session_whose_owner_does_not_answer_is_over_for_everybody() {
    let server = ModelServer::queue([text("words").stall()]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["go"]).start();
    let exec = running.wait_type("item.delta")["exec"].as_str().expect("an id").to_owned();
    let holder = home.journal(&exec).with_file_name("holder");
    let held_by = || std::fs::read_to_string(&holder).expect("the holder");
    let owner = held_by();
    assert!(owner.contains(&running.pid().to_string()), "{owner}");
    running.signal(Signal::SIGSTOP);
    assert_eq!(cancel(&home, &repo, &[&exec, "--reason", "stuck"]).code, Some(0));
    let list = Loon::new(&home, repo.path()).args(["sessions", "list", "--json"]).run().text();
    let listed: Value = serde_json::from_str(list.trim()).expect("one session");
    assert_eq!((&listed["cancelled"], &listed["live"]), (&json!(true), &Value::Null));
    let list = Loon::new(&home, repo.path()).args(["sessions", "list"]).run().text();
    assert!(list.contains(" cancelled "), "{list}");
    // Who watches is told that it is over, and the watching ends.
    let watched = Loon::new(&home, repo.path()).args(["sessions", "watch", &exec, "--json"]).run();
    assert_eq!(watched.code, Some(0));
    let over = watched.of_type("session.released")[0]["over"].clone();
    assert!(over["message"].to_string().contains("was cancelled: stuck"), "{over}");
    let refused = Loon::exec(&home, repo.path(), ["--resume", &exec, "--take-over", "on"]).run();
    assert_eq!(refused.terminal()["error"]["code"], "CANCELLED");
    assert_eq!(held_by(), owner, "nobody works in it, so nobody is said to");
    running.signal(Signal::SIGCONT);
    assert_eq!(running.finish().code, Some(143));
}

#[test]
fn an_empty_id_is_told_as_that() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let refused = cancel(&home, &repo, &[""]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("The id of the session is empty."), "{}", refused.stderr);
}

#[test]
fn a_cancel_after_the_step_lets_its_calls_end() {
    let latch = Latch::new();
    let server =
        ModelServer::by_step([ask(bash("echo done > made")).hold(&latch), text("never asked for")]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    let exec = running.wait_type("turn.started")["exec"].as_str().expect("an id").to_owned();
    latch.wait_reached(1);
    let cancelled = cancel(&home, &repo, &[&exec, "--after-step", "--reason", "enough"]);
    assert_eq!(cancelled.text(), format!("{exec} will be cancelled when its step has ended.\n"));
    latch.release();
    let finished = running.finish();
    assert_eq!((finished.code, &finished.terminal()["outcome"]), (Some(143), &json!("terminated")));
    assert_eq!(repo.read("made"), "done\n");
    assert_eq!(server.requests().len(), 1);
    let kinds = kinds(&home, &exec);
    assert_eq!(kinds[kinds.len() - 2..], ["turn.finished", "execution.cancelled"]);
    assert_eq!(cancels(&kinds), 1);
    let last = home.records(&exec).pop().expect("records");
    assert_eq!(last["reason"], "enough");
}

#[test]
fn a_cancelled_session_cannot_be_continued() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let exec = Loon::exec(&home, repo.path(), ["go"]).run().exec();
    // Nobody is at work on it, so there is no step to wait for.
    assert_eq!(
        cancel(&home, &repo, &[&exec, "--after-step"]).text(),
        format!("{exec} is cancelled.\n")
    );
    let again = Loon::exec(&home, repo.path(), ["--resume", &exec, "more"]).run();
    assert_eq!(again.code, Some(1));
    assert_eq!(again.terminal()["error"]["code"], "CANCELLED");
}
