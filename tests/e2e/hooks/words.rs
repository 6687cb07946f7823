//! Words of hooks for the model, and hooks after calls.

use loon_testkit::{Loon, ModelServer, call, calls, text};
use serde_json::json;

use super::{go, hook, hook_ends, last_call, notices, seen, setup};
use crate::scripts::{ask, bash, read, write};

#[test]
fn h198_words_at_the_start_and_with_a_prompt_reach_the_model() {
    let server = ModelServer::by_step([text("hello"), text("again")]);
    let hooks = [
        hook("SessionStart", "cat > start.json; echo Today is release day."),
        hook(
            "UserPromptSubmit",
            "echo '{\"hookSpecificOutput\":{\"additionalContext\":\"Branch main.\"}}'",
        ),
    ];
    let (home, repo) = setup(&server, &hooks.concat());
    let finished = go(&home, &repo);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let words = server.last_request().user_texts().join("\n");
    assert!(words.contains("Today is release day.") && words.contains("Branch main."), "{words}");
    assert_eq!(seen(&repo, "start.json")["source"], "startup");
    // A resume opens the session again.
    let exec = finished.exec();
    let more = Loon::exec(&home, repo.path(), ["--resume", &exec, "more"]).run();
    assert_eq!(more.code, Some(0), "{}", more.stderr);
    assert_eq!(seen(&repo, "start.json")["source"], "resume");
    assert_eq!(seen(&repo, "start.json")["session_id"], exec);
}

#[test]
fn h202_words_after_a_call_reach_the_model_with_its_result_and_never_the_output_raw() {
    let server = ModelServer::by_step([ask(write("new.txt", "x")), text("done")]);
    let line = "cat > seen.json; printf '\\033[31mTwo warnings.\\033[2J\\n'";
    let (home, repo) = setup(&server, &hook("PostToolUse", line));
    let run = Loon::new(&home, repo.path()).args(["exec", "--mode", "bypass", "go"]).run();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("Two warnings.") && !run.stderr.contains('\x1b'), "{}", run.stderr);
    assert_eq!(run.text().trim(), "done");
    let told = server.last_request().last_answer();
    assert!(told.contains("Two warnings.") && told.contains("write new.txt"), "{told}");
    let read = seen(&repo, "seen.json");
    assert_eq!(
        (&read["hook_event_name"], &read["tool_name"]),
        (&json!("PostToolUse"), &json!("write"))
    );
    assert!(read["tool_response"].as_str().is_some_and(|text| !text.is_empty()), "{read}");
}

#[test]
fn h200_a_post_hook_that_fails_or_objects_is_reported_and_undoes_nothing() {
    for (line, why) in
        [("echo broken >&2; exit 1", "exit status 1: broken"), ("echo bad >&2; exit 2", "bad")]
    {
        let server = ModelServer::by_step([ask(write("new.txt", "x")), text("done")]);
        let (home, repo) = setup(&server, &hook("PostToolUse", line));
        let finished = go(&home, &repo);
        assert_eq!((finished.code, repo.read("new.txt").as_str()), (Some(0), "x"));
        assert_eq!(last_call(&finished)["status"], "done");
        assert!(notices(&finished)[0].contains(why), "{:?}", notices(&finished));
        assert!(server.last_request().last_answer().contains(why));
    }
}

#[test]
fn h186_a_call_that_fails_has_an_event_of_its_own() {
    let server = ModelServer::by_step([ask(bash("echo oops; exit 3")), text("done")]);
    let hooks =
        ["PostToolUse", "PostToolUseFailure"].map(|event| hook(event, &format!("cat > {event}")));
    let (home, repo) = setup(&server, &hooks.concat());
    let finished = go(&home, &repo);
    assert_eq!(hook_ends(&finished).len(), 1);
    let read = seen(&repo, "PostToolUseFailure");
    assert_eq!((&read["exit_code"], &read["tool_name"]), (&json!(3), &json!("bash")));
    assert!(read["error"].to_string().contains("oops"), "{read}");
}

#[test]
fn words_about_calls_made_beside_each_other_name_them() {
    let server = ModelServer::by_step([calls([read("a.txt"), read("b.txt")]), text("done")]);
    let (home, repo) =
        setup(&server, &hook("PostToolUse", "grep -o '\"path\":\"[a-z.]*\"' | head -n 1"));
    let finished = go(&home, &repo);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let told = server.last_request().last_answer();
    for name in ["a.txt", "b.txt"] {
        assert!(
            told.contains(&format!("PostToolUse hook on read {name}:\n\"path\":\"{name}\"")),
            "{told}"
        );
    }
    // A replay asks what was asked.
    let replayed = Loon::new(&home, repo.path()).args(["replay", &finished.exec()]).run();
    assert_eq!(replayed.code, Some(0), "{}", replayed.text());
}

#[test]
fn hooks_fire_in_subagents_with_the_childs_session() {
    let server = ModelServer::answering(|request| {
        let is_child = request.system().contains("You work for another agent");
        match (is_child, request.answers()) {
            (false, 0) => call("delegate", json!({"agent": "general", "task": "look"})),
            (true, 0) => call("bash", json!({"command": "touch ran"})),
            _ => text("done"),
        }
    });
    let line = "cat >> seen.jsonl; echo >> seen.jsonl; grep -q touch seen.jsonl && exit 2; exit 0";
    let (home, repo) = setup(&server, &hook("PreToolUse", line));
    let finished = go(&home, &repo);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(!repo.has("ran"));
    let lines: Vec<serde_json::Value> = repo
        .read("seen.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("an input"))
        .collect();
    let child = &finished.of_type("subagent.started")[0]["child"];
    assert_eq!(
        (&lines[0]["session_id"], &lines[0]["agent"]),
        (&json!(finished.exec()), &json!(null))
    );
    assert_eq!((&lines[1]["session_id"], &lines[1]["agent"]), (child, &json!("general")));
    assert_eq!(lines[1]["tool_input"]["command"], "touch ran");
}
