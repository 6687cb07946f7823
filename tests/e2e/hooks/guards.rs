//! Hooks before calls and prompts: what they read, how they say no, and what is a no by itself.

use loon_testkit::{Home, Loon, ModelServer, call, calls, text};
use serde_json::json;

use super::{go, hook, hook_ends, last_call, more_of, notices, seen, setup};
use crate::headless::is_alive;
use crate::scripts::{ask, bash, write};

fn touching() -> ModelServer {
    ModelServer::by_step([ask(bash("touch ran")), text("done")])
}

#[test]
fn h189_h190_h191_a_command_reads_the_event_on_standard_input_in_the_workspace() {
    let server = touching();
    let (home, repo) = setup(&server, &hook("PreToolUse", "cat > seen.json; pwd > where"));
    let finished = go(&home, &repo);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(repo.has("ran"));
    let read = seen(&repo, "seen.json");
    assert_eq!(read["hook_event_name"], "PreToolUse");
    assert_eq!(read["session_id"], finished.exec());
    assert_eq!(read["cwd"], repo.path().display().to_string());
    assert_eq!(
        (&read["tool_name"], &read["tool_input"]["command"]),
        (&json!("bash"), &json!("touch ran"))
    );
    assert_eq!(read["data"]["tool_input"], read["tool_input"]);
    assert_eq!(repo.read("where").trim(), repo.path().display().to_string());
    let end = &hook_ends(&finished)[0];
    assert_eq!(
        (&end["key"], &end["status"]),
        (&json!("t1/s0/c0/hook/PreToolUse/0"), &json!("completed"))
    );
}

#[test]
fn h192_a_matcher_chooses_tools_by_their_exact_names() {
    let server = ModelServer::by_step([calls([bash("true"), write("new.txt", "x")]), text("done")]);
    let all = more_of("PreToolUse", "echo all >> fired", "matcher = \"*\"");
    let two = more_of("PreToolUse", "echo two >> fired", "matcher = \"write|edit\"");
    let none = more_of("PreToolUse", "echo none >> fired", "matcher = \"bas\"");
    let (home, repo) = setup(&server, &[all, two, none].concat());
    assert_eq!(go(&home, &repo).code, Some(0));
    assert_eq!(repo.read("fired"), "all\nall\ntwo\n");
}

#[test]
fn h195_exit_status_2_blocks_a_call_with_standard_error_as_reason() {
    let server = touching();
    let line = r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'; echo "Not that file." >&2; exit 2"#;
    let (home, repo) = setup(&server, &hook("PreToolUse", line));
    let finished = go(&home, &repo);
    assert!(!repo.has("ran"));
    let call = last_call(&finished);
    assert_eq!(call["status"], "denied");
    let told = server.last_request().last_answer();
    assert!(told.contains("Not that file.") && told.contains("PreToolUse hook"), "{told}");
    assert_eq!(hook_ends(&finished)[0]["output"]["reason"], "Not that file.");
}

#[test]
fn h195_exit_status_2_keeps_a_prompt_from_the_model() {
    let server = ModelServer::by_step([text("never")]);
    let (home, repo) = setup(
        &server,
        &hook("UserPromptSubmit", "cat > seen.json; echo 'It names a customer.' >&2; exit 2"),
    );
    let finished = go(&home, &repo);
    assert_eq!((finished.code, server.requests().len()), (Some(3), 0));
    assert_eq!(seen(&repo, "seen.json")["prompt"], "go");
    assert!(finished.items("user_message").is_empty());
    let blocked = &finished.of_type("prompt.blocked")[0];
    assert_eq!((&blocked["text"], &blocked["steer"]), (&json!("go"), &json!(false)));
    assert!(finished.terminal()["error"]["message"].to_string().contains("It names a customer."));
    // Later prompts go without it.
    home.set_settings(
        &std::fs::read_to_string(home.settings_path())
            .expect("settings")
            .replace("exit 2", "exit 0"),
    );
    let exec = finished.exec();
    let more = Loon::exec(&home, repo.path(), ["--resume", &exec, "and now"]).run();
    assert_eq!(more.code, Some(0), "{}", more.stderr);
    let words = server.last_request().user_texts().join("\n");
    assert!(words.contains("and now") && !words.lines().any(|line| line == "go"), "{words}");
}

#[test]
fn words_for_a_running_turn_are_judged_too_and_the_turn_goes_on() {
    let latch = loon_testkit::Latch::new();
    let server = ModelServer::by_step([ask(bash("true")).hold(&latch), text("done")]);
    let (home, repo) = setup(&server, &hook("UserPromptSubmit", "grep -q Ann && exit 2; exit 0"));
    let arguments = ["--mode", "bypass", "--input", "jsonl"];
    let mut running =
        Loon::exec(&home, repo.path(), arguments).input(loon_testkit::Input::Open).start();
    running.write_line(json!({"type": "prompt", "text": "go"}));
    latch.wait_reached(1);
    running.write_line(json!({"type": "steer", "text": "tell Ann"}));
    running.wait_type("prompt.queued");
    latch.release();
    running.close_input();
    let finished = running.finish();
    assert_eq!(finished.terminal()["outcome"], "completed", "{}", finished.stderr);
    assert_eq!(finished.of_type("prompt.blocked")[0]["steer"], true);
    assert!(!server.last_request().user_texts().join("\n").contains("tell Ann"));
}

#[test]
fn a_blocked_prompt_is_the_draft_again_on_the_screen() {
    let server = ModelServer::by_step([text("never")]);
    let (home, repo) =
        setup(&server, &hook("UserPromptSubmit", "echo 'A name is in it.' >&2; exit 2"));
    let mut screen = loon_testkit::Screen::start(&home, repo.path(), &[], (100, 30));
    screen.wait_for("● ready");
    screen.paste("write to Ann");
    screen.wait_for("write to Ann");
    screen.press(loon_testkit::key::ENTER);
    screen.wait_for("A name is in it.");
    screen.wait_for("write to Ann");
    screen.press(loon_testkit::key::CTRL_C);
    screen.press(loon_testkit::key::CTRL_C);
    screen.press(loon_testkit::key::CTRL_C);
    assert_eq!(screen.wait_exit(), Some(0));
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn h196_a_denial_as_json_brings_its_reason_and_context() {
    let server = touching();
    let answer = r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"Use make.","additionalContext":"The Makefile has it."}}"#;
    let (home, repo) =
        setup(&server, &hook("PreToolUse", &format!("echo looking; echo '{answer}'")));
    let finished = go(&home, &repo);
    assert!(!repo.has("ran") && last_call(&finished)["status"] == "denied");
    let told = server.last_request().last_answer();
    assert!(told.contains("Use make.") && told.contains("The Makefile has it."), "{told}");
}

#[test]
fn h199_a_guard_that_gives_no_answer_blocks() {
    let failures = [
        ("exit 1", "exit status 1"),
        ("kill -9 $$", "ended by signal 9"),
        ("no-such-program", "exit status 127"),
        ("echo '{\"decision\": \"blo'", "its JSON cannot be read"),
        ("head -c 10000000 /dev/zero | tr '\\0' x", "longer than 64 KiB"),
    ];
    for (line, why) in failures {
        let server = touching();
        let (home, repo) = setup(&server, &hook("PreToolUse", line));
        let finished = go(&home, &repo);
        assert!(!repo.has("ran"), "{line}");
        let told = server.last_request().last_answer();
        assert!(told.contains(why), "{line}: {told}");
        assert_eq!(hook_ends(&finished)[0]["status"], "failed", "{line}");
        // So does one that is asked about a prompt.
        let server = ModelServer::by_step([text("never")]);
        let (home, repo) = setup(&server, &hook("UserPromptSubmit", line));
        assert_eq!((go(&home, &repo).code, server.requests().len()), (Some(3), 0), "{line}");
    }
}

#[test]
fn h193_h199_a_guard_that_takes_too_long_blocks_and_is_ended_with_all_it_started() {
    let server = touching();
    let line = "sleep 1000 & echo $! > child; echo $$ > leader; wait";
    let (home, repo) = setup(&server, &more_of("PreToolUse", line, "timeout_secs = 1"));
    let finished = go(&home, &repo);
    assert!(!repo.has("ran") && last_call(&finished)["status"] == "denied");
    assert!(server.last_request().last_answer().contains("the time limit of 1 s passed"));
    for name in ["child", "leader"] {
        assert!(!is_alive(&repo.read(name)), "{name}");
    }
}

#[test]
fn h193_an_interrupt_ends_a_hook() {
    let server = touching();
    let (home, repo) = setup(&server, &hook("PreToolUse", "echo $$ > leader; sleep 1000"));
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    running.wait_event("a hook that runs", |event| event["kind"] == "hook");
    while !repo.has("leader") || repo.read("leader").trim().is_empty() {
        std::thread::yield_now();
    }
    running.signal(nix::sys::signal::Signal::SIGINT);
    let finished = running.finish();
    assert_eq!(finished.code, Some(130));
    assert!(!repo.has("ran"));
    assert!(!is_alive(&repo.read("leader")));
    assert_eq!(hook_ends(&finished)[0]["status"], "aborted");
}

#[test]
fn hooks_may_leave_their_input_unread_or_read_it_late() {
    let content = "x".repeat(100_000);
    let lines = [
        "exit 0",
        "cat > got.json",
        "head -c 10 > /dev/null; echo '{}'",
        "head -c 60000 /dev/zero | tr '\\0' x; cat > /dev/null",
        "sleep 100 & exit 0",
    ];
    for line in lines {
        let server = ModelServer::by_step([ask(write("new.txt", &content)), text("done")]);
        let (home, repo) = setup(&server, &more_of("PreToolUse", line, "timeout_secs = 20"));
        let finished = go(&home, &repo);
        assert_eq!(last_call(&finished)["status"], "done", "{line}: {}", finished.stderr);
        if line.contains("got.json") {
            assert_eq!(seen(&repo, "got.json")["tool_input"]["content"], content.as_str());
        }
    }
}

#[test]
fn h201_a_hook_that_allows_grants_nothing_over_a_denial_or_a_question() {
    let allow = r#"echo fired >> fired; echo '{"hookSpecificOutput":{"permissionDecision":"allow"},"decision":"approve"}'"#;
    let deny = "[[permissions.deny_rules]]\ntool = \"bash\"\ncommand_prefix = \"touch\"\n";
    let server = touching();
    let (home, repo) = setup(&server, &format!("{}{deny}", hook("PreToolUse", allow)));
    let finished = go(&home, &repo);
    assert_eq!(last_call(&finished)["status"], "denied");
    assert!(!repo.has("ran") && !repo.has("fired"), "a hook was run for a denied call");
    // Nor does it answer for the person who would have been asked.
    let server = touching();
    let (home, repo) = setup(&server, &hook("PreToolUse", allow));
    let finished = Loon::exec(&home, repo.path(), ["go"]).run();
    assert_eq!(last_call(&finished)["status"], "denied");
    assert!(!repo.has("ran") && repo.has("fired"));
    assert_eq!(finished.of_type("approval.resolved")[0]["decision"], "nobody_to_ask");
}

#[test]
fn a_hook_can_have_a_person_asked() {
    let server = touching();
    let answer = r#"{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"Is it Friday?"}}"#;
    let (home, repo) = setup(&server, &hook("PreToolUse", &format!("echo '{answer}'")));
    let finished = go(&home, &repo);
    let asked = &finished.of_type("approval.requested")[0]["approval"];
    assert!(asked["reasons"].to_string().contains("Is it Friday?"), "{asked}");
    assert!(!repo.has("ran"));
}

#[test]
fn hooks_of_a_project_nobody_trusts_run_nothing() {
    let server = touching();
    let (home, repo) =
        (Home::with_server(&server, loon_testkit::Wire::Chat), crate::scripts::small_repo());
    let line = "echo $HOOK >> fired";
    let all =
        ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]
            .map(|event| hook(event, line));
    repo.write(".loon/config.toml", all.concat());
    let finished = go(&home, &repo);
    assert_eq!(finished.code, Some(0));
    assert!(!repo.has("fired") && hook_ends(&finished).is_empty());
    assert!(
        Loon::new(&home, repo.path()).args(["trust"]).run().text().contains("hooks.PreToolUse")
    );
    let finished = go(&home, &repo);
    assert_eq!(hook_ends(&finished).len(), 6);
    assert!(repo.has("fired"));
}

#[test]
fn h185_hooks_are_read_when_they_are_needed() {
    let latch = loon_testkit::Latch::new();
    let server = ModelServer::by_step([ask(bash("touch ran")).hold(&latch), text("done")]);
    let (home, repo) = setup(&server, "");
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    latch.wait_reached(1);
    let settings = std::fs::read_to_string(home.settings_path()).expect("settings");
    home.set_settings(&format!("{settings}\n{}", hook("PreToolUse", "exit 2")));
    running.wait_event("the news", |event| event["message"].to_string().contains("hold now"));
    latch.release();
    let finished = running.finish();
    assert_eq!(last_call(&finished)["status"], "denied");
    assert!(!repo.has("ran"));
}

#[test]
fn what_a_hook_reads_has_masks_for_secrets() {
    let server = ModelServer::by_step([
        call("bash", json!({"command": "echo lab-secret > out"})),
        text("done"),
    ]);
    let hooks =
        ["PreToolUse", "PostToolUse"].map(|event| hook(event, &format!("cat > {event}.json")));
    let (home, repo) = setup(&server, &hooks.concat());
    let run = Loon::exec(&home, repo.path(), ["--mode", "bypass", "use lab-secret"]).run();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for name in ["PreToolUse.json", "PostToolUse.json"] {
        let read = repo.read(name);
        assert!(!read.contains("lab-secret") && read.contains("[secret: LAB_KEY]"), "{read}");
    }
    // What runs gets the real one.
    assert_eq!(repo.read("out"), "lab-secret\n");
}

#[test]
fn h198_plain_words_before_a_call_reach_the_model_with_its_result() {
    let server = touching();
    let (home, repo) = setup(&server, &hook("PreToolUse", "echo Remember the changelog."));
    let finished = go(&home, &repo);
    assert!(repo.has("ran"));
    let told = server.last_request().last_answer();
    assert!(told.contains("Remember the changelog."), "{told}");
    assert_eq!(notices(&finished).len(), 1);
}
