//! Hooks when a turn wants to end, or ends otherwise, and around compactions.

use loon_testkit::{Loon, ModelServer, Request, status, text};
use serde_json::json;

use super::{go, hook, hook_ends, notices, seen, setup};
use crate::scripts::{ask, bash};

#[test]
fn h195_exit_status_2_at_stop_makes_the_agent_go_on() {
    let server =
        ModelServer::by_step([text("I am done."), ask(bash("touch ready")), text("Now I am.")]);
    let line = "cat > stop.json; test -e ready || { echo 'Make the file ready.' >&2; exit 2; }";
    let (home, repo) = setup(&server, &hook("Stop", line));
    let finished = go(&home, &repo);
    assert_eq!(finished.terminal()["outcome"], "completed", "{}", finished.stderr);
    assert_eq!((server.requests().len(), repo.has("ready")), (3, true));
    let words = server.requests()[1].user_texts().join("\n");
    assert!(words.contains("Make the file ready."), "{words}");
    let read = seen(&repo, "stop.json");
    assert_eq!(read["stop_hook_active"], true);
    assert_eq!(read["last_assistant_message"], "Now I am.");
}

#[test]
fn h197_a_stop_hook_that_says_block_makes_the_agent_go_on_but_not_for_ever() {
    let server = ModelServer::answering(|_| text("I am done."));
    let (home, repo) = setup(
        &server,
        &hook("Stop", "echo '{\"decision\":\"block\",\"reason\":\"Tests still fail\"}'"),
    );
    let finished = go(&home, &repo);
    let end = finished.terminal();
    assert_eq!((&end["outcome"], finished.code), (&json!("stopped"), Some(3)));
    let why = end["error"]["message"].to_string();
    assert!(why.contains("3 times in a row") && why.contains("Tests still fail"), "{why}");
    assert_eq!((server.requests().len(), hook_ends(&finished).len()), (4, 4));
    assert_eq!(notices(&finished).len(), 3);
}

#[test]
fn a_stop_hook_that_fails_is_reported_and_the_agent_stops() {
    let server = ModelServer::by_step([text("done")]);
    let (home, repo) = setup(&server, &hook("Stop", "exit 1"));
    let finished = go(&home, &repo);
    assert_eq!(finished.terminal()["outcome"], "completed");
    assert!(notices(&finished)[0].contains("failed: exit status 1"), "{:?}", notices(&finished));
}

#[test]
fn h186_a_turn_that_fails_has_an_event_of_its_own() {
    let server = ModelServer::answering(|_| status(400).message("no such model"));
    let hooks = ["Stop", "StopFailure"].map(|event| hook(event, &format!("cat > {event}.json")));
    let (home, repo) = setup(&server, &hooks.concat());
    let finished = go(&home, &repo);
    assert_eq!(finished.terminal()["outcome"], "failed");
    assert!(!repo.has("Stop.json"));
    let read = seen(&repo, "StopFailure.json");
    assert_eq!(read["status"], "failed");
    assert!(read["error"].to_string().contains("no such model"), "{read}");
}

fn is_summary(request: &Request) -> bool {
    request.system().starts_with("You write the handoff")
}

/// A session of so many long prompts whose model has a window for about four. Gives the last run.
fn long_run(
    hooks: &str,
    prompts: usize,
) -> (loon_testkit::Home, loon_testkit::Repo, ModelServer, loon_testkit::Finished) {
    let server = ModelServer::answering(|request| {
        text(if is_summary(request) { "They want long texts." } else { "yes" }).without_usage()
    });
    let (home, repo) = setup(&server, "");
    let settings = format!(
        "[providers.lab]\nkind = \"openai-chat\"\nbase_url = \"{}\"\napi_key_env = \"LAB_KEY\"\n\
         [providers.lab.models.coder]\ncontext_tokens = 12000\n[session]\nmodel = \"lab/coder\"\n\
         tools = \"lean\"\n{hooks}",
        server.base_url()
    );
    home.set_settings(&settings);
    let mut exec = String::new();
    let mut last = None;
    for number in 0..prompts {
        let prompt = format!("{number} {}", "x".repeat(9_000));
        let resumed = ["--resume", exec.as_str(), prompt.as_str()];
        let finished = Loon::exec(
            &home,
            repo.path(),
            resumed.into_iter().skip(if exec.is_empty() { 2 } else { 0 }),
        )
        .run();
        exec = finished.exec();
        last = Some(finished);
    }
    (home, repo, server, last.expect("a run"))
}

#[test]
fn h186_words_before_a_compaction_say_what_matters_and_its_end_is_told() {
    let hooks = [
        hook("PreCompact", "cat > pre.json; echo Keep the port number."),
        hook("PostCompact", "cat > post.json"),
    ];
    let (_, repo, server, finished) = long_run(&hooks.concat(), 4);
    assert_eq!(finished.terminal()["outcome"], "completed", "{}", finished.stderr);
    let summaries: Vec<Request> = server.requests().into_iter().filter(is_summary).collect();
    let asked = summaries.first().expect("a summary");
    let words = format!("{}\n{}", asked.system(), asked.user_texts().join("\n"));
    assert!(words.contains("Keep the port number."), "{words}");
    assert_eq!(seen(&repo, "pre.json")["trigger"], "auto");
    let post = seen(&repo, "post.json");
    assert!(post["tokens_after"].as_u64() < post["tokens_before"].as_u64(), "{post}");
    assert_eq!(post["compact_summary"], "They want long texts.");
}

#[test]
fn h195_a_compaction_that_a_hook_blocks_is_not_made_and_its_reason_is_shown() {
    let (_, _, server, finished) =
        long_run(&hook("PreCompact", "echo 'Not in the middle of a release.' >&2; exit 2"), 5);
    assert!(server.requests().iter().all(|request| !is_summary(request)));
    let failed = finished.of_type("compaction.failed");
    assert!(failed[0]["error"]["message"].to_string().contains("Not in the middle of a release."));
    // There was no room left without it.
    let why = finished.terminal()["error"]["message"].to_string();
    assert!(why.contains("Not in the middle of a release."), "{why}");
}
