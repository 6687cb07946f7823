//! Sudden death at random moments: nothing that was shown is lost, nothing runs twice, and the
//! session goes on.

use std::collections::HashMap;

use loon_testkit::{Home, Loon, ModelServer, Repo, Wire, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::scripts::{ask, bash, small_repo};

/// Steps of the scripted job; each appends its own mark to a file.
const STEPS: usize = 5;

/// Kills in each of the two tests; `LOON_KILLS` asks for more.
fn kills() -> u64 {
    std::env::var("LOON_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(13)
}

/// A small generator of numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// A job of appends. After a restart the marks carry the number of the next step, so that a mark
/// in the file twice can only come from a call that ran twice.
fn job() -> ModelServer {
    ModelServer::answering(|request| {
        let step = request.answers();
        if step < STEPS { ask(bash(&format!("echo mark-{step} >> log.txt"))) } else { text("done") }
    })
}

fn marks(repo: &Repo) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    if repo.has("log.txt") {
        for line in repo.read("log.txt").lines() {
            *counts.entry(line.to_owned()).or_insert(0) += 1;
        }
    }
    counts
}

fn kill_once(seed: u64, wire: Wire) {
    let mut dice = Dice(seed);
    let server = job();
    let (home, repo) = (Home::with_server(&server, wire), small_repo());
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    let mut left = 1 + dice.below(70);
    running.wait_event("the moment", |event| {
        left -= 1;
        left == 0 || event.get("outcome").is_some()
    });
    running.signal(Signal::SIGKILL);
    let killed = running.finish();
    let shown = whole_events(&killed.stdout);
    let Some(exec) = shown.iter().find_map(|event| event["exec"].as_str()) else { return };

    let journal = whole_events(&std::fs::read(home.journal(exec)).expect("the journal"));
    let kept: HashMap<u64, &Value> =
        journal.iter().filter_map(|record| Some((record["seq"].as_u64()?, record))).collect();
    for event in &shown {
        if let Some(seq) = event["seq"].as_u64() {
            let record = kept.get(&seq).unwrap_or_else(|| panic!("seed {seed}: {seq} is lost"));
            assert_eq!(record["type"], event["type"], "seed {seed}");
        }
    }
    let verify = || Loon::new(&home, repo.path()).args(["sessions", "verify", exec]).run();
    let verified = verify();
    let told = verified.text() + &verified.stderr;
    assert_eq!(verified.code, Some(0), "seed {seed}: {told}");

    let resumed =
        Loon::exec(&home, repo.path(), ["--resume", exec, "--mode", "bypass", "go on"]).run();
    let end = resumed.terminal();
    assert_eq!(end["outcome"], "completed", "seed {seed}: {end}");
    assert_eq!(verify().code, Some(0), "seed {seed}");

    let counts = marks(&repo);
    assert!(counts.values().all(|count| *count == 1), "seed {seed}: {counts:?}");
    for call in calls(&home, exec) {
        let command = call["arguments"]["command"].as_str().unwrap_or_default();
        let mark = command.split_whitespace().nth(1).unwrap_or_default();
        let ran = counts.contains_key(mark);
        match call["status"].as_str() {
            Some("done") => assert!(ran, "seed {seed}: {mark} is done and did not run"),
            Some("cancelled") => assert!(!ran, "seed {seed}: {mark} is not begun and ran"),
            Some("unknown") => {}
            other => panic!("seed {seed}: {mark} is left {other:?}"),
        }
    }
}

/// The final states of the calls of a session.
fn calls(home: &Home, exec: &str) -> Vec<Value> {
    let mut last: Vec<Value> = Vec::new();
    for record in home.records(exec) {
        let item = &record["item"];
        if item["kind"] == "tool_call" {
            last.retain(|former| former["id"] != item["id"]);
            last.push(item.clone());
        }
    }
    last
}

/// The events in bytes whose last line may be torn.
fn whole_events(bytes: &[u8]) -> Vec<Value> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .map(|line| serde_json::from_slice(line).expect("whole lines are JSON"))
        .collect()
}

#[test]
fn sudden_death_loses_nothing_and_repeats_nothing() {
    for seed in 0..kills() {
        kill_once(seed, Wire::Chat);
    }
}

#[test]
fn sudden_death_on_another_wire_is_no_different() {
    for seed in 1_000_000..1_000_000 + kills() {
        kill_once(seed, Wire::Messages);
    }
}

#[test]
fn a_call_that_was_running_is_unknown_afterwards_and_not_made_again() {
    let server = ModelServer::by_step([
        ask(bash("echo once >> log.txt; echo $$ > pid; echo up; exec sleep 300")),
        text("I will look first."),
    ]);
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    running.wait_event("output", |event| event["type"] == "item.delta" && event["of"] == "output");
    running.signal(Signal::SIGKILL);
    let killed = running.finish();
    assert_eq!(killed.signal, Some(9));
    // Nobody could end it: the process that started it is gone.
    let orphan = repo.read("pid").trim().parse().map(Pid::from_raw).expect("a process id");
    let _ = kill(orphan, Signal::SIGKILL);

    let resumed = Loon::exec(&home, repo.path(), ["--continue", "--mode", "bypass", "go on"]).run();
    assert_eq!(resumed.terminal()["message"], "I will look first.");
    assert_eq!(marks(&repo)["once"], 1);
    let unknown = resumed.items("tool_call").pop().expect("the call");
    assert_eq!(unknown["status"], "unknown");
    let noted = &resumed.of_type("execution.resumed")[0];
    assert_eq!(noted["unknown"], json!(["t1/s0/c0"]));
    let told = server.last_request().last_answer();
    assert!(told.contains("unknown"), "{told}");
    let turn = &resumed.of_type("turn.finished")[0];
    assert_eq!((&turn["turn"], &turn["status"]), (&json!(1), &json!("interrupted")));
}

#[test]
fn large_results_are_kept_whole_outside_the_lines() {
    let server = ModelServer::by_step([
        ask(("read", json!({"path": "big.txt"}))),
        text("ok"),
        text("again"),
    ]);
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    let big = "one line of a long file\n".repeat(9000);
    repo.write("big.txt", &big);
    let first = Loon::exec(&home, repo.path(), ["go"]).run();
    let told = server.last_request().last_answer();
    let journal = std::fs::read_to_string(home.journal(&first.exec())).expect("the journal");
    assert!(journal.lines().all(|line| line.len() <= 70_000));
    let resumed = Loon::exec(&home, repo.path(), ["--continue", "again"]).run();
    assert_eq!(resumed.terminal()["message"], "again");
    assert_eq!(server.last_request().tool_answers()[0].text, told);
    let verified = Loon::new(&home, repo.path()).args(["sessions", "verify", "--all"]).run();
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
}

#[test]
fn a_session_whose_journal_was_changed_says_so_when_it_goes_on() {
    let server = ModelServer::answering(|_| text("fine"));
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    let first = Loon::exec(&home, repo.path(), ["one"]).run();
    let exec = first.exec();
    let journal = home.journal(&exec);
    let lines = std::fs::read_to_string(&journal).expect("the journal");
    #[expect(clippy::disallowed_methods, reason = "a journal that was tampered with")]
    std::fs::write(&journal, lines.replacen("\"one\"", "\"two\"", 1)).expect("written");
    let again = Loon::exec(&home, repo.path(), ["--resume", &exec, "go on"]).run();
    let told = again.events();
    let notices = told.iter().filter(|event| event["type"] == "notice");
    let words: Vec<&str> = notices.filter_map(|event| event["message"].as_str()).collect();
    assert!(words.iter().any(|words| words.contains("is damaged at line")), "{words:?}");
    let replay = Loon::new(&home, repo.path()).args(["replay", &exec]).run();
    assert_eq!(replay.code, Some(1), "what was sent is not what the journal says");
}
