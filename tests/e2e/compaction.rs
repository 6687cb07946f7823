//! Compaction from outside: what is asked of the server, what is told, what a resume sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loon_testkit::{
    Finished, Home, Input, Loon, ModelServer, Reply, Repo, Request, Screen, Wire, key, status, text,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::scripts::{ask, read};

/// About 2,600 tokens.
const LONG: usize = 9_000;

fn is_summary(request: &Request) -> bool {
    request.system().starts_with("You write the handoff")
}

/// A home whose model has this window, with few tools, so that the window is the conversation's.
fn home(server: &ModelServer, wire: Wire, window: Option<u64>) -> Home {
    let home = Home::with_server_and(server, wire, "", "");
    set_window(&home, server, wire, window);
    home
}

fn set_window(home: &Home, server: &ModelServer, wire: Wire, window: Option<u64>) {
    let window = window.map(|tokens| format!("context_tokens = {tokens}")).unwrap_or_default();
    home.set_settings(&format!(
        "[providers.lab]\nkind = \"{}\"\nbase_url = \"{}\"\napi_key_env = \"LAB_KEY\"\n\
         [providers.lab.models.coder]\n{window}\n[session]\nmodel = \"lab/coder\"\ntools = \"lean\"\n",
        wire.kind(),
        server.base_url(),
    ));
}

fn long(name: &str) -> String {
    format!("{name} {}", "x".repeat(LONG))
}

/// Long prompts in one session, each answered with a word. Gives the session.
fn long_session(home: &Home, repo: &Repo, names: &[&str]) -> String {
    let mut exec = String::new();
    for name in names {
        let prompt = long(name);
        let arguments: Vec<&str> =
            if exec.is_empty() { vec![&prompt] } else { vec!["--resume", &exec, &prompt] };
        let finished = Loon::exec(home, repo.path(), arguments).run();
        assert_eq!(finished.code, Some(0), "{}", finished.text());
        exec = finished.exec();
    }
    exec
}

fn split(server: &ModelServer) -> (Vec<Request>, Vec<Request>) {
    server.requests().into_iter().partition(is_summary)
}

fn said(request: &Request) -> String {
    request.user_texts().join("\n")
}

fn compactions(finished: &Finished) -> Vec<Value> {
    let events = finished.of_type("context.compacted");
    events.into_iter().map(|event| event["compaction"].clone()).collect()
}

#[test]
fn a_turn_that_reads_more_than_the_window_holds_goes_on_over_every_wire_format() {
    for wire in [Wire::Chat, Wire::Messages, Wire::Responses] {
        let (mut asked, mut summarised) = (0, None);
        let server = ModelServer::answering(move |request| {
            if is_summary(request) {
                summarised.get_or_insert(asked);
                return text("Read so far; the port is 4711.").without_usage();
            }
            asked += 1;
            // One more file after the compaction, then the end.
            if summarised.is_some_and(|before| asked > before + 1) {
                return text("done").without_usage();
            }
            ask(read(&format!("f{}.txt", (asked - 1) % 6))).without_usage()
        });
        let home = home(&server, wire, Some(12_000));
        let file = "some words on a line of text\n".repeat(300);
        let files: Vec<String> = (0..6).map(|number| format!("f{number}.txt")).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|name| (name.as_str(), file.as_str())).collect();
        let repo = Repo::new(&files);
        let finished = Loon::exec(&home, repo.path(), ["read them all"]).run();
        assert_eq!(finished.terminal()["outcome"], "completed", "{}", finished.text());
        let made = compactions(&finished);
        assert!(!made.is_empty() && made.iter().all(|made| made["automatic"] == json!(true)));
        assert!(made[0]["tokens_after"].as_u64() < made[0]["tokens_before"].as_u64());
        assert!(!finished.of_type("compaction.progress").is_empty());
        let (summaries, sent) = split(&server);
        for summary in &summaries {
            assert_eq!(summary.tool_names(), Vec::<String>::new());
            let bytes = said(summary).len() + summary.system().len();
            assert!(bytes < 6_000 * 7 / 2, "{bytes} bytes in half a window");
        }
        let last = sent.last().expect("requests");
        assert!(said(last).contains("the port is 4711") && said(last).contains("read them all"));
        // The file it read last is there as it was read.
        assert!(last.last_answer().contains("some words on a line of text"));
        assert!(last.tool_answers().len() < sent.len() - 1);
        let parts = &finished.of_type("context.estimated")[0]["parts"];
        assert!(parts["system"].as_u64() > Some(300) && parts["tools"].as_u64() > Some(300));

        // A resume sends the same beginning.
        let exec = finished.exec();
        let more = Loon::exec(&home, repo.path(), ["--resume", &exec, "and more"]).run();
        assert_eq!(more.terminal()["outcome"], "completed", "{}", more.text());
        assert_eq!(compactions(&more).len(), 0);
        let resumed = server.last_request();
        assert!(said(&resumed).starts_with(&said(last)), "{}", wire.kind());
        assert_eq!(resumed.tool_answers(), last.tool_answers());
        if wire == Wire::Chat {
            // The messages format moves its marks for the cache.
            assert!(resumed.messages().starts_with(last.messages()));
        }
        // The journal and the transcript have everything.
        let shown = Loon::new(&home, repo.path()).args(["sessions", "show", &exec]).run();
        assert!(shown.text().contains("compacted: about") && shown.text().contains("f0.txt"));
        let verified = Loon::new(&home, repo.path()).args(["sessions", "verify", &exec]).run();
        assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    }
}

#[test]
fn a_process_killed_between_summaries_loses_none_that_was_paid_for() {
    let summaries = Arc::new(AtomicUsize::new(0));
    let server = ModelServer::answering(move |request| {
        if !is_summary(request) {
            return text("ok").without_usage();
        }
        match summaries.fetch_add(1, Ordering::SeqCst) {
            0 => text("part one"),
            1 => text("half of part two").stall(),
            number => text(format!("summary {number}")),
        }
    });
    let home = home(&server, Wire::Chat, None);
    let repo = Repo::new(&[("a.txt", "a")]);
    let exec = long_session(&home, &repo, &["first", "second", "third", "fourth"]);
    set_window(&home, &server, Wire::Chat, Some(9_000));
    let running = Loon::exec(&home, repo.path(), ["--resume", &exec, "go"]).start();
    server.wait_for_requests(6);
    running.signal(Signal::SIGKILL);
    running.finish();
    let again = Loon::exec(&home, repo.path(), ["--resume", &exec, "go on"]).run();
    assert_eq!(again.terminal()["outcome"], "completed", "{}", again.text());
    let (asked, sent) = split(&server);
    let first = asked.iter().filter(|request| said(request).contains("first xxx")).count();
    assert_eq!(first, 1, "the first summary was asked for {first} times");
    assert!(said(asked.last().expect("summaries")).contains("part one"));
    let last = said(sent.last().expect("requests"));
    assert!(last.contains("summary ") && last.contains("go on") && !last.contains("first xxx"));
    assert_eq!(compactions(&again).len(), 1);
}

#[test]
fn a_request_the_server_finds_too_long_is_compacted_and_sent_anew() {
    let refused = Arc::new(AtomicUsize::new(0));
    let server = ModelServer::answering(move |request| {
        if is_summary(request) {
            return text("the older part").without_usage();
        }
        let is_long = said(request).contains("first xxx") && said(request).contains("third");
        if is_long && refused.fetch_add(1, Ordering::SeqCst) == 0 {
            let words = "This model's maximum context length is 8192 tokens.";
            return status(400).message(words);
        }
        text("ok").without_usage()
    });
    let home = home(&server, Wire::Chat, None);
    let repo = Repo::new(&[("a.txt", "a")]);
    let exec = long_session(&home, &repo, &["first", "second"]);
    let third = Loon::exec(&home, repo.path(), ["--resume", &exec, "third"]).run();
    assert_eq!(third.terminal()["outcome"], "completed", "{}", third.text());
    assert_eq!(compactions(&third).len(), 1);
    let last = said(&server.last_request());
    assert!(last.contains("the older part") && !last.contains("first xxx"), "{last}");
}

#[test]
fn a_program_asks_for_a_compaction_and_is_told_how_it_went() {
    let answers = Arc::new(AtomicUsize::new(0));
    let server = ModelServer::answering(move |request| {
        if !is_summary(request) {
            return text("ok").without_usage();
        }
        match answers.fetch_add(1, Ordering::SeqCst) {
            0 => loon_testkit::thinking("I wonder"),
            _ => text("a good handoff"),
        }
    });
    let home = home(&server, Wire::Chat, Some(100_000));
    let repo = Repo::new(&[("a.txt", "a")]);
    let exec = long_session(&home, &repo, &["first", "second"]);
    let compact = json!({"type": "compact", "focus": "the parser"});
    for expected in ["compaction.failed", "context.compacted"] {
        let finished = Loon::exec(&home, repo.path(), ["--resume", &exec, "--input", "jsonl"])
            .input(Input::Bytes(format!("{compact}\n").into_bytes()))
            .run();
        assert_eq!(finished.of_type(expected).len(), 1, "{}", finished.text());
        if expected == "compaction.failed" {
            let error = &finished.of_type(expected)[0]["error"];
            let message = error["message"].as_str().expect("a message");
            assert!(message.contains("only reasoned"), "{message}");
            assert_eq!(finished.terminal()["outcome"], "failed");
        } else {
            assert_eq!(finished.terminal()["outcome"], "completed");
        }
        assert_eq!(finished.code, Some(i32::from(expected == "compaction.failed")));
    }
    assert!(said(&server.last_request()).contains("The user wants most room for this: the parser"));
}

#[test]
fn a_person_compacts_sees_the_cause_of_a_failure_and_what_fills_the_window() {
    let answers = Arc::new(AtomicUsize::new(0));
    let server = ModelServer::answering(move |request| -> Reply {
        if !is_summary(request) {
            return text("ok").without_usage();
        }
        match answers.fetch_add(1, Ordering::SeqCst) {
            0 => text("").without_usage(),
            1 => text("half a").stall(),
            _ => text("# Handoff\nThe port is 4711.").without_usage(),
        }
    });
    let home = home(&server, Wire::Chat, Some(100_000));
    let repo = Repo::new(&[("a.txt", "a")]);
    let exec = long_session(&home, &repo, &["first", "second", "third"]);
    let screen = Screen::start(&home, repo.path(), &["--resume", &exec], (110, 34));
    screen.wait_for("ready");
    let run = |words: &str| {
        screen.paste(words);
        screen.wait_for(words);
        screen.press(key::ENTER);
    };
    run("/compact");
    screen.wait_for("the model's answer was empty");
    run("/compact");
    screen.wait_for("compacting 1/1");
    screen.press(key::ESCAPE);
    screen.wait_for("The compaction was stopped");
    run("/compact the port");
    let shown = screen.wait_for("compacted: ~");
    assert!(!shown.contains("The port is 4711"), "it is folded: {shown}");
    run("/unfold");
    screen.wait_for("The port is 4711");
    run("/context");
    let shown = screen.wait_for("last compaction");
    for part in ["all ", "system", "tools", "handoff", "window", "compacts at", "100.0k", "80.0k"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert!(shown.contains("just now"), "{shown}");
}
