//! `loon hooks`.

use loon_testkit::{Finished, Home, Loon, ModelServer, Repo, text};
use serde_json::{Value, json};

use super::{go, hook, more_of, setup};
use crate::scripts::{ask, bash};

fn hooks(home: &Home, repo: &Repo, arguments: &[&str]) -> Finished {
    Loon::new(home, repo.path()).args(["hooks"]).args(arguments.iter().copied()).run()
}

#[test]
fn the_list_says_where_each_is_how_often_it_fired_and_what_came_of_it() {
    let server = ModelServer::by_step([ask(bash("true")), ask(bash("touch ran")), text("done")]);
    let guard = more_of(
        "PreToolUse",
        "grep -q touch && { echo no >&2; exit 2; }; exit 0",
        "matcher = \"bash\"",
    );
    let (home, repo) = setup(&server, &[guard, hook("PreCompact", "true")].concat());
    repo.write(".loon/config.toml", hook("Stop", "touch theirs"));
    go(&home, &repo);
    let listed = hooks(&home, &repo, &["list"]).text();
    assert!(listed.contains("PreToolUse on bash: grep -q touch"), "{listed}");
    assert!(listed.contains("fired 2 times") && listed.contains("blocked: no"), "{listed}");
    assert!(listed.contains("PreCompact: true") && listed.contains("never fired"), "{listed}");
    assert!(listed.contains("config.toml:"), "{listed}");
    assert!(listed.contains("hooks.Stop has no effect until the folder is trusted"), "{listed}");
    let lines = hooks(&home, &repo, &["list", "--json"]).text();
    let first: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&first["fired"], &first["last_result"]), (&json!(2), &json!("blocked: no")));
    assert_eq!((&first["event"], &first["timeout_secs"]), (&json!("PreToolUse"), &json!(30)));
    assert_eq!(lines.lines().count(), 2);
}

#[test]
fn a_test_runs_what_matches_and_says_what_was_understood() {
    let server = ModelServer::by_step([text("never")]);
    let guard = more_of(
        "PreToolUse",
        "cat > seen.json; echo 'Not there.' >&2; exit 2",
        "matcher = \"write\"",
    );
    let broken = more_of("PreToolUse", "exit 1", "matcher = \"edit\"");
    let (home, repo) = setup(&server, &[guard, broken, hook("Stop", "echo fine")].concat());
    let arguments = ["test", "PreToolUse", "--tool", "write", "--input", "{\"path\":\"x\"}"];
    let tested = hooks(&home, &repo, &arguments);
    assert_eq!(tested.code, Some(0), "{}", tested.stderr);
    assert!(tested.text().contains("blocks: Not there."), "{}", tested.text());
    assert!(!tested.text().contains("exit 1"));
    assert_eq!(super::seen(&repo, "seen.json")["tool_input"], json!({"path": "x"}));
    let tested = hooks(&home, &repo, &["test", "PreToolUse", "--tool", "edit"]);
    assert_eq!(tested.code, Some(1));
    assert!(tested.text().contains("failed, and so blocks: exit status 1"), "{}", tested.text());
    let tested = hooks(&home, &repo, &["test", "Stop"]);
    assert!(tested.text().contains("says: fine"), "{}", tested.text());
    assert!(hooks(&home, &repo, &["test", "SessionEnd"]).text().contains("No hook fires"));
    let wrong = hooks(&home, &repo, &["test", "Sometimes"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("UserPromptSubmit"), "{}", wrong.stderr);
    // Nothing of it is a session.
    assert!(home.journals().is_empty() && server.requests().is_empty());
}
