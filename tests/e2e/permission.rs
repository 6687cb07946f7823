//! What may run without a human: the modes, the rules, and how a denial reads.

use loon_testkit::{Finished, Home, Loon, ModelServer, Reply, Repo, Wire, calls, text};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, read, small_repo, write};

struct Case {
    server: ModelServer,
    repo: Repo,
    finished: Finished,
}

/// One prompt in this mode under these permission settings.
fn run(mode: &str, rules: &str, calls: impl IntoIterator<Item = (&'static str, Value)>) -> Case {
    let replies: Vec<Reply> = calls.into_iter().map(ask).chain([text("done")]).collect();
    let server = ModelServer::by_step(replies);
    let repo = small_repo();
    let home = Home::with_server_and(&server, Wire::Chat, "", &format!("[permissions]\n{rules}"));
    let finished = Loon::exec(&home, repo.path(), ["--mode", mode, "go"]).run();
    Case { server, repo, finished }
}

fn statuses(case: &Case) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for item in case.finished.items("tool_call") {
        items.retain(|former| former["id"] != item["id"]);
        items.push(item);
    }
    items.iter().map(|item| item["status"].clone()).collect()
}

#[test]
fn what_would_ask_is_denied_and_the_model_and_the_reader_are_told() {
    let case = run("default", "", [bash("touch made.txt")]);
    assert!(!case.repo.has("made.txt"));
    assert_eq!(statuses(&case), ["denied"]);
    let end = case.finished.terminal();
    assert_eq!((&end["outcome"], &end["exit_code"]), (&json!("stopped"), &json!(3)), "{end}");
    assert_eq!(end["error"]["code"], "DENIED");
    let told = case.server.last_request().last_answer().to_lowercase();
    assert!(told.contains("denied") || told.contains("nobody"), "{told}");
    let resolved = case.finished.of_type("approval.resolved");
    assert_eq!(resolved[0]["decision"], "nobody_to_ask");
}

#[test]
fn work_that_goes_on_after_a_denial_can_complete() {
    let case = run("default", "", [bash("touch made.txt"), read("a.txt")]);
    assert_eq!(statuses(&case), ["denied", "done"]);
    assert_eq!(case.finished.code, Some(0));
}

#[test]
fn mode_default_reads_only_and_auto_writes_inside_the_folder() {
    let case = run("default", "", [write("new.txt", "x")]);
    assert_eq!(statuses(&case), ["denied"]);
    let case = run("auto", "", [write("new.txt", "x"), bash("touch other.txt")]);
    assert_eq!(statuses(&case), ["done", "denied"]);
    assert_eq!(case.repo.read("new.txt"), "x");
    let case = run("auto", "", [write("../outside.txt", "x")]);
    assert_eq!(statuses(&case), ["denied"]);
}

#[test]
fn a_link_out_of_the_folder_is_judged_by_where_it_leads() {
    let server = ModelServer::by_step([ask(write("way/out.txt", "x")), text("done")]);
    let (home, repo, outside) =
        (Home::with_server(&server, Wire::Chat), small_repo(), small_repo());
    outside.link(&repo.path().join("way"));
    let finished = Loon::exec(&home, repo.path(), ["--mode", "auto", "go"]).run();
    assert_eq!(finished.code, Some(3));
    assert!(!outside.has("out.txt"));
}

#[test]
fn a_deny_rule_holds_even_in_bypass_and_for_every_part_of_a_line() {
    let rules = "deny_rules = [{ tool = \"bash\", command_prefix = \"rm\" }]";
    let lines = [
        "rm a.txt",
        "true && rm a.txt",
        "echo $(rm a.txt)",
        "env X=1 rm a.txt",
        "sh -c 'rm a.txt'",
        "find . -name a.txt -exec rm {} \\;",
        "if true; then rm a.txt; fi",
    ];
    let case = run("bypass", rules, lines.map(bash));
    assert_eq!(statuses(&case), vec![json!("denied"); lines.len()]);
    assert!(case.repo.has("a.txt"));
    let told = case.server.last_request().tool_answers();
    assert!(told.iter().all(|answer| answer.text.contains("rm")), "{told:?}");
}

#[test]
fn an_allow_rule_lets_its_command_run_and_nothing_that_hides_behind_it() {
    let rules = "allow_rules = [{ tool = \"bash\", command_prefix = \"echo\" }]";
    let lines = ["echo hello", "echo hello; touch x", "echo $(touch y)", "echo hi > z"];
    let case = run("default", rules, lines.map(bash));
    assert_eq!(statuses(&case), ["done", "denied", "denied", "denied"]);
    assert!(!case.repo.has("x") && !case.repo.has("y") && !case.repo.has("z"));
}

#[test]
fn plan_mode_offers_and_runs_nothing_that_changes() {
    let case = run("plan", "", [write("new.txt", "x"), bash("touch y"), read("a.txt")]);
    let offered = case.server.requests()[0].tool_names();
    assert!(offered.contains(&"read".to_owned()) && offered.contains(&"grep".to_owned()));
    for tool in ["write", "edit", "apply_patch", "bash"] {
        assert!(!offered.contains(&tool.to_owned()), "{tool} is offered");
    }
    assert!(!case.repo.has("new.txt") && !case.repo.has("y"));
    assert_eq!(statuses(&case).last(), Some(&json!("done")));
}

#[test]
fn settings_of_a_folder_nobody_trusts_cannot_allow_but_can_deny() {
    let server =
        ModelServer::by_step([ask(bash("touch made.txt")), ask(read("b.txt")), text("done")]);
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    repo.write(
        ".loon/config.toml",
        "[session]\nmode = \"bypass\"\n[permissions]\n\
         allow_rules = [{ tool = \"bash\" }]\n\
         deny_rules = [{ tool = \"read\", path_prefix = \"b.txt\" }]\n",
    );
    let finished = Loon::exec(&home, repo.path(), ["go"]).run();
    assert!(!repo.has("made.txt"));
    let denied =
        finished.items("tool_call").iter().filter(|item| item["status"] == "denied").count();
    assert_eq!(denied, 2, "{}", finished.text());
}

#[test]
fn settings_that_do_not_load_stop_the_run_and_drop_no_deny_rule() {
    let server = ModelServer::queue([]);
    let home = Home::with_server_and(
        &server,
        Wire::Chat,
        "",
        "[permissions]\ndeny_rules = [{ tol = \"bash\" }]",
    );
    let finished = Loon::exec(&home, small_repo().path(), ["go"]).run();
    assert_eq!(finished.code, Some(2), "{}", finished.text());
}

#[test]
fn explain_names_the_decision_the_rule_and_its_place_for_each_part() {
    let server = ModelServer::queue([]);
    let rules = "[permissions]\nask_rules = [\n  { tool = \"bash\", command_prefix = \"git push\" },\n]\n\
                 deny_rules = [\n  { tool = \"bash\", command_prefix = \"rm -rf\" },\n]\n";
    let home = Home::with_server_and(&server, Wire::Chat, "", rules);
    let finished = Loon::new(&home, small_repo().path())
        .args(["permissions", "explain", "git push && rm -rf x"])
        .run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let told = finished.text();
    let line = |text: &str| told.lines().position(|line| line.contains(text));
    assert!(line("git push").is_some() && line("rm -rf x").is_some(), "{told}");
    assert!(told.contains("ask") && told.contains("deny"), "{told}");
    let settings = std::fs::read_to_string(home.settings_path()).expect("the settings");
    let at = |text: &str| settings.lines().position(|line| line.contains(text)).map(|at| at + 1);
    for rule in ["\"git push\"", "\"rm -rf\""] {
        let place = format!("config.toml:{}", at(rule).expect("the rule"));
        assert!(told.contains(&place), "{place} is not in {told}");
    }
}

#[test]
fn settings_do_not_go_with_the_folder_they_lie_in() {
    let server = ModelServer::by_step([
        ask(("delete_path", json!({"path": ".loon", "recursive": true}))),
        ask(("move_path", json!({"from": ".loon", "to": "mine"}))),
        ask(("copy_path", json!({"from": "other", "to": ".loon"}))),
        ask(bash("ln -s other .loon")),
        ask(("read_many", json!({"paths": ["b.txt"]}))),
        ask(("delete_path", json!({"path": "other", "recursive": true}))),
        text("done"),
    ]);
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    repo.write("other/kept.txt", "k");
    repo.write(
        ".loon/config.toml",
        "[permissions]\ndeny_rules = [{ tool = \"read\", path_prefix = \"b.txt\" },\n\
         { tool = \"write\", path_prefix = \"other/kept.txt\" }]\n",
    );
    let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
    assert_eq!(finished.code, Some(3), "{}", finished.text());
    assert!(repo.has(".loon/config.toml") && repo.has("other/kept.txt"));
    let calls = finished.items("tool_call");
    let denied = calls.iter().filter(|item| item["status"] == "denied").count();
    assert_eq!(denied, 6, "{}", finished.text());
}

#[test]
fn what_a_rule_denies_is_not_found_by_searches_either() {
    let server = ModelServer::by_step([
        calls([
            ("grep", json!({"pattern": "word"})),
            ("glob", json!({"pattern": "*.txt"})),
            ("tree", json!({})),
            ("find_symbol", json!({"name": "word"})),
        ]),
        text("done"),
    ]);
    let (home, repo) = chat_setup(&server);
    repo.write("secret/a.txt", "the word\n");
    repo.write("secret/code.py", "def word(): pass\n");
    repo.write("open/b.txt", "the word\n");
    repo.write("open/code.py", "def word(): pass\n");
    let rule = "[[permissions.deny_rules]]\ntool = \"read\"\npath_prefix = \"secret\"\n";
    repo.write(".loon/config.toml", rule);
    let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "look"]).run();
    assert_eq!(finished.code, Some(0));
    let done: Vec<Value> =
        finished.items("tool_call").into_iter().filter(|item| item["status"] == "done").collect();
    assert_eq!(done.len(), 4);
    for item in done {
        let told = item["result"]["text"].as_str().expect("a result");
        assert!(told.contains("open") && !told.contains("secret/"), "{told}");
        assert!(told.ends_with("[left out by permission rules: secret]"), "{told}");
    }
}
