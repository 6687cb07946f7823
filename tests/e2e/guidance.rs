//! Guidance: in every request where it is general, with the first touch where it is not, and always
//! before anything is changed under it.

use loon_testkit::{Finished, Home, Input, Loon, ModelServer, Repo, Wire, calls, text};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, edit, patch, read, write};

const HEAD: &str = "[Instructions of this repository for src/ (src/AGENTS.md), from now on:]";

fn repository() -> Repo {
    Repo::new(&[
        ("AGENTS.md", "Root words.\n"),
        ("src/AGENTS.md", "Tabs in src.\n"),
        ("src/a.txt", "one\ntwo\n"),
        ("src/b.rs", "fn b() {}\n"),
        ("other/c.txt", "see\n"),
        (".loon/rules/rust.md", "---\npaths: [src/**/*.rs]\n---\nRust rule.\n"),
        (".loon/rules/all.md", "General rule.\n"),
    ])
}

/// The calls of a run as they ended.
fn ended(finished: &Finished) -> Vec<Value> {
    let mut calls = finished.items("tool_call");
    calls.retain(|call| call["status"] != "waiting");
    // Calls that only look end in any order.
    calls.sort_by_key(|call| call["id"].as_str().expect("an id").to_owned());
    calls
}

/// The files that each call brought.
fn brought(finished: &Finished) -> Vec<Vec<String>> {
    let files = |call: &Value| {
        let guidance = call["guidance"].as_array().cloned().unwrap_or_default();
        guidance.iter().map(|file| file["path"].as_str().expect("a path").to_owned()).collect()
    };
    ended(finished).iter().map(files).collect()
}

fn statuses(finished: &Finished) -> Vec<String> {
    ended(finished).iter().map(|call| call["status"].as_str().expect("one").to_owned()).collect()
}

fn run(home: &Home, repo: &Repo, arguments: &[&str]) -> Finished {
    let finished = Loon::exec(home, repo.path(), arguments.iter().copied()).run();
    assert_eq!(finished.code, Some(0), "{}", finished.text());
    finished
}

#[test]
fn h140_h141_general_guidance_is_read_anew_for_each_request() {
    let server = ModelServer::by_step([
        ask(bash("printf 'New root.' > AGENTS.md; printf 'New rule.' > .loon/rules/all.md")),
        ask(bash("printf 'New root.' > AGENTS.md")),
        text("done"),
    ]);
    let home = Home::with_server(&server, Wire::Chat);
    let repo = repository();
    repo.write(
        home.path().join("config/loon/AGENTS.md").to_str().expect("a path"),
        "The user's words.",
    );
    run(&home, &repo, &["--mode", "bypass", "go"]);
    let before = server.requests()[0].system();
    let user = format!("{}/config/loon/AGENTS.md says:\nThe user's words.", home.path().display());
    let (first, rest) = before.split_once(&user).expect("the user's own");
    assert!(first.ends_with("The user's own "), "{first}");
    assert!(rest.contains("The project's AGENTS.md says:\nRoot words.\n\n"));
    assert!(rest.contains("The project's .loon/rules/all.md says:\nGeneral rule."));
    assert!(!before.contains("Tabs in src") && !before.contains("Rust rule"));
    let after = server.last_request().system();
    assert!(after.contains("AGENTS.md says:\nNew root.") && after.contains("says:\nNew rule."));
    assert!(!after.contains("Root words") && !after.contains("General rule"));
}

#[test]
fn h142_the_first_result_that_touches_a_folder_brings_its_guidance_once() {
    for wire in [Wire::Chat, Wire::Messages, Wire::Responses] {
        let server = ModelServer::by_step([
            calls([read("src/a.txt"), read("src/b.rs"), read("other/c.txt")]),
            ask(("grep", json!({"pattern": "one", "path": "src"}))),
            ask(bash("cat src/b.rs")),
            text("done"),
            ask(read("src/b.rs")),
            text("again"),
        ]);
        let home = Home::with_server(&server, wire);
        let repo = repository();
        let finished = run(&home, &repo, &["go"]);
        assert_eq!(
            brought(&finished),
            [vec!["src/AGENTS.md"], vec![".loon/rules/rust.md"], vec![], vec![], vec![]]
        );
        let answers = server.requests()[1].tool_answers();
        let end = format!("\n\n{HEAD}\nTabs in src.\n[End of src/AGENTS.md]");
        assert!(answers[0].text.ends_with(&end), "{}", answers[0].text);
        let rule = "[Instructions of this repository for paths like src/**/*.rs \
                    (.loon/rules/rust.md), from now on:]\nRust rule.\n[End of .loon/rules/rust.md]";
        assert!(answers[1].text.ends_with(rule), "{}", answers[1].text);
        assert!(!answers[1].text.contains("Tabs in src") && !answers[2].text.contains("[Instr"));

        // A resumed session knows what it gave, and what it gave is what the journal says.
        let exec = finished.exec();
        let resumed = run(&home, &repo, &["--resume", &exec, "on"]);
        assert_eq!(brought(&resumed), [vec![""; 0]]);
        assert_eq!(server.last_request().tool_answers()[0].text, answers[0].text);
        let replayed = Loon::new(&home, repo.path()).args(["replay", exec.as_str()]).run();
        assert_eq!(replayed.code, Some(0), "{}", replayed.text());
    }
}

#[test]
fn h142_guidance_that_changed_comes_again() {
    let server = ModelServer::by_step([
        ask(read("src/a.txt")),
        ask(bash("printf 'Spaces now.' > src/AGENTS.md")),
        ask(read("src/a.txt")),
        text("done"),
    ]);
    let home = Home::with_server(&server, Wire::Chat);
    let repo = repository();
    let finished = run(&home, &repo, &["--mode", "bypass", "go"]);
    assert_eq!(brought(&finished), [vec!["src/AGENTS.md"], vec![], vec!["src/AGENTS.md"]]);
    assert!(server.last_request().last_answer().contains("\nSpaces now.\n[End"));
}

#[test]
fn h143_nothing_is_changed_under_guidance_that_the_model_had_not_seen() {
    let changes = [
        edit("src/a.txt", "two", "zwei"),
        write("src/new/file.txt", "new\n"),
        patch("*** Begin Patch\n*** Update File: src/a.txt\n@@\n-one\n+eins\n*** End Patch"),
        bash("echo more >> src/a.txt"),
        bash("cd src && sed -i s/one/eins/ a.txt"),
        ("delete_path", json!({"path": "src/a.txt"})),
        ("move_path", json!({"from": "other/c.txt", "to": "src/c.txt"})),
    ];
    for change in changes {
        let server = ModelServer::by_step([
            ask(change.clone()),
            // Some tools want to see a file before they change it.
            ask(read("src/a.txt")),
            ask(change.clone()),
            text("done"),
        ]);
        let home = Home::with_server(&server, Wire::Chat);
        let repo = repository();
        let before = repo.git(&["status", "--porcelain"]);
        let finished = run(&home, &repo, &["--mode", "bypass", "go"]);
        assert_eq!(statuses(&finished), ["failed", "done", "done"], "{change:?}");
        assert_eq!(brought(&finished), [vec!["src/AGENTS.md"], vec![], vec![]], "{change:?}");
        let held = &ended(&finished)[0];
        assert_eq!(held["error"]["code"], "CONFLICT", "{change:?}");
        assert!(held.get("changes").is_none(), "{change:?}");
        let answer = server.requests()[1].tool_answers()[0].text.clone();
        assert!(answer.starts_with("Not made yet: the project has instructions"), "{answer}");
        assert!(answer.ends_with(&format!("{HEAD}\nTabs in src.\n[End of src/AGENTS.md]")));
        // The held call never began: of two calls, one was an effect.
        let records = home.records(&finished.exec());
        let tools = records
            .iter()
            .filter(|record| record["type"] == "effect.started" && record["kind"] == "tool");
        assert_eq!(tools.count(), 1, "{change:?}");
        assert!(before.is_empty() && !repo.git(&["status", "--porcelain"]).is_empty());
    }
}

#[test]
fn h143_a_look_in_the_same_answer_is_too_late_for_a_change() {
    let server = ModelServer::by_step([
        calls([read("src/a.txt"), edit("src/a.txt", "two", "zwei"), write("other/d.txt", "new\n")]),
        ask(edit("src/a.txt", "two", "zwei")),
        text("done"),
    ]);
    let home = Home::with_server(&server, Wire::Chat);
    let repo = repository();
    let finished = run(&home, &repo, &["--mode", "bypass", "go"]);
    let calls = ended(&finished);
    let by = |id: &str| calls.iter().find(|call| call["id"] == id).expect("the call").clone();
    assert_eq!(by("1.0.c0")["guidance"][0]["text"], "Tabs in src.");
    let held = by("1.0.c1");
    assert_eq!(
        (&held["status"], &held["guidance"][0]["path"]),
        (&json!("failed"), &json!("src/AGENTS.md"))
    );
    assert!(held["guidance"][0].get("text").is_none());
    assert_eq!(
        (&by("1.0.c2")["status"], &by("1.1.c0")["status"]),
        (&json!("done"), &json!("done"))
    );
    let answers = server.requests()[1].tool_answers();
    assert!(answers[1].text.ends_with("[src/AGENTS.md: see another call of this answer]"));
    assert_eq!(repo.read("src/a.txt"), "one\nzwei\n");
}

#[test]
fn guidance_that_a_compaction_left_out_comes_again_before_a_change() {
    let server = ModelServer::answering(move |request| {
        if request.system().starts_with("You write the handoff") {
            return text("Looked at src/a.txt.");
        }
        let said = request.user_texts().concat();
        if said.contains("change it") {
            let answered = request.tool_answers();
            let done = answered.iter().any(|answer| answer.text.contains("new.txt"));
            return if done { text("done") } else { ask(write("src/new.txt", "new\n")) };
        }
        if request.answers() == 0 { ask(read("src/a.txt")) } else { text("ok") }
    });
    let home = Home::with_server(&server, Wire::Chat);
    let repo = repository();
    let exec = run(&home, &repo, &["look"]).exec();
    for name in ["one", "two"] {
        let long = format!("{name} {}", "word ".repeat(2_000));
        run(&home, &repo, &["--resume", &exec, &long]);
    }
    let mut compacting = Loon::exec(&home, repo.path(), ["--resume", &exec, "--input", "jsonl"])
        .input(Input::Open)
        .start();
    compacting.wait_type("session.opened");
    compacting.write_line(json!({"type": "list_guidance", "path": "src/a.txt"}));
    let state = |listed: &Value| {
        let sources = listed["sources"].as_array().cloned().unwrap_or_default();
        let nested = sources.iter().find(|source| source["path"] == "src/AGENTS.md");
        nested.expect("the nested file")["state"].clone()
    };
    assert_eq!(state(&compacting.wait_type("guidance.listed")), "given");
    compacting.write_line(json!({"type": "compact"}));
    compacting.wait_type("context.compacted");
    compacting.write_line(json!({"type": "list_guidance", "path": "src/a.txt"}));
    assert_eq!(state(&compacting.wait_type("guidance.listed")), "due");
    compacting.close_input();
    compacting.finish();
    let finished = run(&home, &repo, &["--resume", &exec, "--mode", "bypass", "change it"]);
    assert_eq!(statuses(&finished), ["failed", "done"]);
    assert_eq!(brought(&finished), [vec!["src/AGENTS.md"], vec![]]);
}

#[test]
fn a_denied_call_brings_nothing_and_special_files_and_links_are_passed_over() {
    let server = ModelServer::by_step([
        ask(read("private/x.txt")),
        calls([read("src/a.txt"), read("out/y.txt"), read("pipe/z.txt")]),
        text("done"),
    ]);
    let rule = "[[permissions.deny_rules]]\ntool = \"read\"\npath_prefix = \"private\"";
    let home = Home::with_server_and(&server, Wire::Chat, "", rule);
    let repo = repository();
    for (path, content) in [
        ("private/AGENTS.md", "Hidden words."),
        ("private/x.txt", "x"),
        ("out/y.txt", "y"),
        ("pipe/z.txt", "z"),
        ("pipe/CLAUDE.md", "Plain \u{1b}[2J\u{202e}words.\r\n"),
    ] {
        repo.write(path, content);
    }
    repo.write(home.path().join("secret.md").to_str().expect("a path"), "Outside words.");
    std::os::unix::fs::symlink(home.path().join("secret.md"), repo.path().join("out/AGENTS.md"))
        .expect("a link");
    let fifo = repo.path().join("pipe/AGENTS.md");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let finished = run(&home, &repo, &["go"]);
    assert_eq!(statuses(&finished), ["denied", "done", "done", "done"]);
    assert_eq!(brought(&finished).concat(), ["src/AGENTS.md", "pipe/CLAUDE.md"]);
    let told: String =
        server.last_request().tool_answers().into_iter().map(|answer| answer.text).collect();
    assert!(!told.contains("Hidden words") && !told.contains("Outside words"));
    assert!(told.contains("\nPlain [2Jwords.\n[End of pipe/CLAUDE.md]"), "{told}");
}

#[test]
fn a_rule_that_cannot_be_read_is_told_with_its_line() {
    let server = ModelServer::by_step([text("done")]);
    let home = Home::with_server(&server, Wire::Chat);
    let repo = repository();
    repo.write(".loon/rules/open.md", "---\npaths: [src/**\n---\nNever seen.\n");
    let finished = run(&home, &repo, &["go"]);
    let notices = finished.of_type("notice");
    assert_eq!(notices[0]["message"], "Not used as guidance: 1 file.");
    assert_eq!(
        notices[0]["hints"][0],
        ".loon/rules/open.md: the list `paths` in line 2 has no end."
    );
    assert!(!server.last_request().system().contains("Never seen"));
}

#[test]
fn the_command_line_says_what_is_in_force_for_a_path_and_why() {
    let server = ModelServer::queue([]);
    let home = Home::with_server(&server, Wire::Chat);
    let repo = repository();
    let loon = |arguments: &[&str]| {
        let finished = Loon::new(&home, repo.path()).args(arguments.iter().copied()).run();
        assert_eq!(finished.code, Some(0), "{}", finished.text());
        finished.text()
    };
    let told = loon(&["guidance", "src/b.rs"]);
    let lines: Vec<String> =
        told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            "For src/b.rs:",
            "AGENTS.md in every request (the whole project, 12 bytes)",
            ".loon/rules/all.md in every request (the whole project, 14 bytes)",
            "src/AGENTS.md with the first touch (src/, 13 bytes)",
            ".loon/rules/rust.md with the first touch (paths like src/**/*.rs, 40 bytes)",
        ]
    );
    let json = loon(&["guidance", "other", "--json"]);
    let sources: Vec<Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let rule = sources.iter().find(|source| source["path"] == ".loon/rules/rust.md");
    assert_eq!(rule.expect("the rule")["state"], "elsewhere");
    assert!(!json.contains("src/AGENTS.md"));
}
