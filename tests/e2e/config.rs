//! Settings as a person changes them: on the command line, in files, and while a session runs.

use std::fs;
use std::path::Path;

use loon_testkit::{
    Finished, Home, Input, Latch, Loon, ModelServer, Repo, Running, Screen, Wire, key, text,
};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, read, small_repo, write};

fn loon(home: &Home, cwd: impl AsRef<Path>, arguments: &[&str]) -> Finished {
    Loon::new(home, cwd).args(arguments.iter().copied()).run()
}

/// What a command printed, if it did what it should.
fn said(home: &Home, cwd: impl AsRef<Path>, arguments: &[&str]) -> String {
    let finished = loon(home, cwd, arguments);
    assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
    finished.text()
}

fn settings(home: &Home) -> String {
    fs::read_to_string(home.settings_path()).expect("the settings")
}

fn wait_notice(running: &mut Running, words: &str) -> Value {
    running.wait_event(words, |event| {
        event["type"] == "notice"
            && event["message"].as_str().is_some_and(|message| message.contains(words))
    })
}

/// How each call ended.
fn statuses(finished: &Finished) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for item in finished.items("tool_call") {
        items.retain(|former| former["id"] != item["id"]);
        items.push(item);
    }
    items.iter().map(|item| item["status"].clone()).collect()
}

#[test]
fn a_setting_is_set_shown_shadowed_and_unset() {
    let (home, repo) = (Home::new(), small_repo());
    home.set_settings("# mine\n[session]\nmax_turns = 5 # few\n\n[future]\nx = 1\n");
    let cwd = repo.path();
    assert_eq!(said(&home, &cwd, &["config", "get", "session.max_turns"]), "5\n");
    let told = said(&home, &cwd, &["config", "set", "session.max_turns", "7"]);
    assert!(told.contains("is set in") && !told.contains("shadowed"), "{told}");
    assert_eq!(settings(&home), "# mine\n[session]\nmax_turns = 7 # few\n\n[future]\nx = 1\n");

    let told = said(&home, &cwd, &["config", "set", "--project", "session.max_turns", "8"]);
    assert!(told.contains("until the folder is trusted"), "{told}");
    assert_eq!(said(&home, &cwd, &["config", "get", "session.max_turns"]), "7\n");
    let told = said(&home, &cwd, &["trust"]);
    assert!(told.contains("session.max_turns has an effect now"), "{told}");
    said(&home, &cwd, &["config", "set", "--local", "session.max_turns", "9"]);
    assert_eq!(said(&home, &cwd, &["config", "get", "session.max_turns"]), "9\n");
    let told = said(&home, &cwd, &["config", "set", "--user", "session.max_turns", "6"]);
    assert!(told.contains("shadowed") && told.contains("config.local.toml:2:1"), "{told}");

    let list = said(&home, &cwd, &["config", "list", "--show-origin"]);
    let line = list.lines().find(|line| line.starts_with("session.max_turns")).expect("the line");
    assert!(line.starts_with("session.max_turns = 9  (") && line.ends_with(":2:1)"), "{line}");
    assert!(list.contains("no setting is called future; it has no effect"), "{list}");
    let plain = said(&home, &cwd, &["config", "list"]);
    assert!(plain.contains("\nsession.max_turns = 9\n"), "{plain}");

    let told = said(&home, &cwd, &["config", "unset", "--local", "session.max_turns"]);
    assert!(told.contains("It is 8, from ") && told.contains(".loon/config.toml:2:1"), "{told}");
    let wrong = loon(&home, &cwd, &["config", "set", "--project", "--local", "ui.mouse", "false"]);
    assert_eq!(wrong.code, Some(2));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let (home, repo) = (Home::new(), small_repo());
    home.set_settings("[ui]\nmouse = false\n");
    for (key, value, says) in [
        ("session.max_turns", "ten", "a whole number from 1 to 100000"),
        ("session.max_turns", "0", "a whole number from 1 to 100000"),
        ("session.modle", "x", "did you mean `session.model`"),
        ("session.mode", "wild", "`default`, `auto`, `bypass`, `plan`"),
        ("providers.lab.kind", "openai-chat", "a provider needs `base_url`"),
        ("providers", "x", "is a table"),
        ("schema_version", "1", "written by Loom alone"),
    ] {
        let finished = loon(&home, repo.path(), &["config", "set", key, value]);
        assert_eq!(finished.code, Some(2), "{key}: {}", finished.text());
        assert!(finished.stderr.contains(says), "{key}: {}", finished.stderr);
        assert_eq!(settings(&home), "[ui]\nmouse = false\n");
    }
}

#[test]
fn a_secret_is_never_printed() {
    let (home, repo) = (Home::new(), small_repo());
    home.set_settings(
        "[providers.lab]\nkind = \"anthropic\"\nbase_url = \"http://me:hush@127.0.0.1:1/v1\"\n\
         headers = { a = \"hush\" }\n",
    );
    let set = said(&home, repo.path(), &["config", "set", "providers.lab.api_key", "hush"]);
    let mut shown = set;
    for arguments in
        [&["config", "list", "--show-origin"][..], &["config", "get", "providers"], &["doctor"]]
    {
        let finished = loon(&home, repo.path(), arguments);
        shown.push_str(&finished.text());
        shown.push_str(&finished.stderr);
    }
    assert!(!shown.contains("hush") && shown.contains("********"), "{shown}");
    assert!(settings(&home).contains("api_key = \"hush\""));
}

#[test]
fn variables_are_stronger_than_files_and_weaker_than_options() {
    let (home, repo) = (Home::new(), small_repo());
    home.set_settings("[session]\ntools = \"full\"\nmax_turns = 3\n");
    let get = |variable: (&str, &str), key: &str| {
        let loon = Loon::new(&home, repo.path()).env(variable.0, variable.1);
        loon.args(["config", "get", key]).run().text()
    };
    assert_eq!(get(("LOON_SESSION_TOOLS", "lean"), "session.tools"), "lean\n");
    assert_eq!(get(("LOON_SESSION_TOOLS", ""), "session.tools"), "full\n");
    let listed = Loon::new(&home, repo.path())
        .env("LOON_SESSION_MAX_TURNS", "4")
        .env("LOON_SESSION_MODLE", "x")
        .args(["config", "list", "--show-origin"])
        .run()
        .text();
    assert!(listed.contains("session.max_turns = 4  (LOON_SESSION_MAX_TURNS)"), "{listed}");
    assert!(listed.contains("did you mean LOON_SESSION_MODEL?"), "{listed}");

    let server = ModelServer::by_step([ask(read("a.txt")), text("done")]);
    let home = Home::with_server(&server, Wire::Chat);
    let run = |arguments: &[&str]| {
        let loon = Loon::exec(&home, repo.path(), arguments.iter().copied());
        loon.env("LOON_SESSION_MAX_TURNS", "1").run()
    };
    let end = run(&["go"]).terminal();
    assert_eq!(end["error"]["code"], "TURN_LIMIT", "{end}");
    assert_eq!(run(&["--set", "session.max_turns=2", "go"]).code, Some(0));
    assert_eq!(run(&["--max-turns", "2", "--tools", "lean", "go"]).code, Some(0));
    assert_eq!(run(&["--tools", "few", "go"]).code, Some(2));
}

#[test]
fn a_secret_variable_reaches_no_tool() {
    let server = ModelServer::by_step([ask(bash("env")), text("done")]);
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    let loon = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]);
    let finished = loon.env("LOON_PROVIDERS__LAB__API_KEY", "very-hush").run();
    assert_eq!(finished.code, Some(0), "{}", finished.text());
    let seen = server.last_request().last_answer();
    assert!(seen.contains("HOME=") && !seen.contains("very-hush"), "{seen}");
}

#[test]
fn a_wrong_value_is_told_and_the_rest_works() {
    let server = ModelServer::by_step([text("done")]);
    let home = Home::with_server_and(
        &server,
        Wire::Chat,
        "",
        "max_turns = \"ten\"\nmodle = \"a\"\n[providers.x]\nkind = 5\n",
    );
    let finished = Loon::exec(&home, small_repo().path(), ["go"]).run();
    assert_eq!(finished.code, Some(0), "{}", finished.text());
    let notices: Vec<String> =
        finished.of_type("notice").iter().map(|notice| notice["message"].to_string()).collect();
    for words in [
        "session.max_turns is \\\"ten\\\", and takes a whole number from 1 to 100000",
        "session.modle; did you mean `model`?",
        "providers.x.kind is 5, and takes one of `openai-chat`",
    ] {
        let found = notices.iter().find(|notice| notice.contains(words));
        let found = found.unwrap_or_else(|| panic!("{words}: {notices:?}"));
        assert!(found.contains("config.toml:"), "{found}");
    }
}

#[test]
fn what_cannot_be_settings_stops_the_start_with_one_line() {
    let server = ModelServer::queue([]);
    let repo = small_repo();
    let refused = |home: &Home, says: &str| {
        let finished = Loon::exec(home, repo.path(), ["go"]).run();
        assert_eq!(finished.code, Some(2), "{}", finished.text());
        assert_eq!(finished.terminal()["outcome"], "usage");
        assert!(finished.stderr.contains(says), "{}", finished.stderr);
    };
    for (text, says) in [
        ("permissions = []\n", "config.toml:1:1: permissions must be a table"),
        ("[session]\nmode = \"Plan\"\n", "config.toml:2:1: session.mode is \"Plan\""),
        ("[session\n", "config.toml:1:"),
        ("a = \"\0\"\n", "config.toml:1:"),
    ] {
        let home = Home::new();
        home.set_settings(text);
        refused(&home, says);
    }
    let home = Home::with_server(&server, Wire::Chat);
    fs::remove_file(home.settings_path()).expect("the file");
    fs::create_dir(home.settings_path()).expect("a folder in its place");
    refused(&home, "a folder stands where the settings file belongs");
}

/// A run whose first answer is held back until the test has changed something.
struct Held {
    home: Home,
    repo: Repo,
    server: ModelServer,
    latch: Latch,
    running: Running,
}

/// Begins a run in mode `bypass` whose first answer writes a file by a shell line.
fn held(project: Option<&str>) -> Held {
    let latch = Latch::new();
    let (name, arguments) = bash("touch made.txt");
    let server = ModelServer::by_step([text("").hold(&latch).call(name, &arguments), text("done")]);
    let (home, repo) = chat_setup(&server);
    if let Some(text) = project {
        repo.write(".loon/config.toml", text);
    }
    let running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    latch.wait_reached(1);
    Held { home, repo, server, latch, running }
}

impl Held {
    fn add_settings(&self, text: &str) {
        self.home.set_settings(&format!("{}\n{text}", settings(&self.home)));
    }

    fn end(self) -> (Finished, Repo, ModelServer) {
        self.latch.release();
        (self.running.finish(), self.repo, self.server)
    }
}

const DENY: &str = "[[permissions.deny_rules]]\ntool = \"bash\"\ncommand_prefix = \"touch\"\n";

#[test]
fn a_rule_added_while_the_model_answers_holds_for_its_call() {
    let mut held = held(None);
    held.add_settings(DENY);
    wait_notice(&mut held.running, "The settings changed and hold now");
    let (finished, repo, _) = held.end();
    assert_eq!(statuses(&finished), ["denied"]);
    assert!(!repo.has("made.txt"));
}

#[test]
fn a_projects_new_file_can_tighten_at_once_and_loosen_only_with_trust() {
    let mut held = held(None);
    held.repo.write(
        ".loon/config.toml",
        "[budget]\nmax_requests = 1\n[[permissions.allow_rules]]\ntool = \"*\"\n".to_owned() + DENY,
    );
    let told = wait_notice(&mut held.running, "have no effect until you run `loon trust`");
    assert!(
        told["message"].as_str().is_some_and(|words| words.starts_with("2 settings")),
        "{told}"
    );
    let (finished, repo, server) = held.end();
    assert_eq!(statuses(&finished), ["denied"]);
    assert!(!repo.has("made.txt"));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn trust_given_in_another_terminal_counts_at_once() {
    let mut held = held(Some("[budget]\nmax_requests = 1\n"));
    said(&held.home, held.repo.path(), &["trust"]);
    wait_notice(&mut held.running, "This folder is trusted now");
    let (finished, repo, server) = held.end();
    assert!(repo.has("made.txt"));
    assert_eq!(server.requests().len(), 1, "the budget holds");
    assert_eq!(finished.terminal()["error"]["code"], "QUOTA_EXCEEDED");
}

#[test]
fn a_broken_file_keeps_the_rules_that_held_and_mending_it_is_told() {
    let mut held = held(None);
    held.add_settings(DENY);
    wait_notice(&mut held.running, "The settings changed");
    let good = settings(&held.home);
    held.home.set_settings("[session\n");
    let told = wait_notice(&mut held.running, "The settings stay as they were");
    assert!(
        told["message"].as_str().is_some_and(|words| words.contains("config.toml:1:")),
        "{told}"
    );
    let broken = loon(&held.home, held.repo.path(), &["config", "get", "ui.mouse"]);
    assert_eq!(broken.code, Some(2));
    held.home.set_settings(&good);
    wait_notice(&mut held.running, "can be read again");
    held.home.set_settings("permissions = []\n");
    wait_notice(&mut held.running, "permissions must be a table");
    let (finished, repo, _) = held.end();
    assert_eq!(statuses(&finished), ["denied"]);
    assert!(!repo.has("made.txt"));
}

#[test]
fn limits_modes_and_timeouts_change_under_a_running_turn() {
    let latch = Latch::new();
    let (name, arguments) = write("made.txt", "x");
    let server = ModelServer::by_step([text("").hold(&latch).call(name, &arguments), text("done")]);
    let home = Home::with_server_and(&server, Wire::Chat, "", "mode = \"bypass\"\n");
    let repo = small_repo();
    let mut running = Loon::exec(&home, repo.path(), ["go"]).start();
    latch.wait_reached(1);
    home.set_settings(&format!("{}\ntool_timeout_secs = 77\nmax_turns = 1\n", settings(&home)));
    wait_notice(&mut running, "The settings changed");
    home.set_settings(&settings(&home).replace("bypass", "plan"));
    assert_eq!(running.wait_type("mode.changed")["mode"], "plan");
    home.set_settings(&settings(&home).replace("plan", "bypass"));
    assert_eq!(running.wait_type("mode.changed")["mode"], "bypass");
    latch.release();
    let finished = running.finish();
    assert_eq!(statuses(&finished), ["done"], "{}", finished.text());
    let begun = finished.of_type("effect.started");
    let call = begun.iter().find(|effect| effect["target"] == "write").expect("the call");
    assert_eq!(call["timeout_ms"], 77_000, "{call}");
    assert_eq!(finished.terminal()["error"]["code"], "TURN_LIMIT");
}

#[test]
fn a_server_and_a_price_that_change_hold_for_the_next_prompt() {
    let first = ModelServer::queue([text("from the first").usage(1000, 0, 10)]);
    let second = ModelServer::queue([text("from the second").usage(1_000_000, 0, 0)]);
    let (home, repo) = chat_setup(&first);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.write_line(json!({"type": "prompt", "text": "one"}));
    running.wait_type("turn.finished");
    home.set_settings(&format!(
        "{}\n[providers.lab.models.coder]\nprice = {{ input = \"2.50\", output = 0 }}\n",
        settings(&home).replace(&first.base_url(), &second.base_url())
    ));
    wait_notice(&mut running, "The settings changed");
    running.write_line(json!({"type": "prompt", "text": "two"}));
    let turn = running.wait_type("turn.finished");
    running.close_input();
    let finished = running.finish();
    assert_eq!(finished.code, Some(0));
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
    assert_eq!(turn["cost"]["usd"], "2.5", "{turn}");
}

#[test]
fn a_rule_kept_for_the_session_outlives_a_change_and_no_deny() {
    let lines = ["touch a", "touch b", "touch c"].map(bash);
    let server = ModelServer::by_step(lines.map(ask).into_iter().chain([text("done")]));
    let (home, repo) = chat_setup(&server);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.write_line(json!({"type": "prompt", "text": "go"}));
    let asked = running.wait_type("approval.requested");
    // The settings change while the question waits, then the answer comes.
    home.set_settings(&format!("{}\n[ui]\nmouse = false\n", settings(&home)));
    wait_notice(&mut running, "The settings changed");
    running.write_line(json!({
        "type": "approve", "approval": asked["approval"]["id"], "scope": "session",
        "rule": {"tool": "bash", "command_prefix": "touch"},
    }));
    running.wait_type("turn.finished");
    home.set_settings(&settings(&home).replace("mouse = false", "mouse = true"));
    wait_notice(&mut running, "The settings changed");
    running.close_input();
    let finished = running.finish();
    assert_eq!(statuses(&finished), ["done", "done", "done"], "{}", finished.text());
    assert_eq!(finished.of_type("approval.requested").len(), 1);
}

#[test]
fn a_trusted_folder_whose_settings_changed_is_told_of_until_it_is_trusted_anew() {
    let server = ModelServer::answering(|_| text("done"));
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    repo.write(".loon/config.toml", "[session]\nmax_turns = 5\n");
    let told = || {
        let finished = Loon::exec(&home, repo.path(), ["go"]).run();
        let notices = finished.of_type("notice");
        notices.iter().any(|notice| notice["message"].to_string().contains("since you trusted it"))
    };
    said(&home, repo.path(), &["trust"]);
    assert!(!told());
    said(&home, repo.path(), &["config", "set", "--project", "session.max_turns", "6"]);
    assert!(!told(), "a person's own change");
    repo.write(".loon/config.toml", "[session]\nmax_turns = 7\n");
    assert!(told());
    said(&home, repo.path(), &["trust"]);
    assert!(!told());
    said(&home, repo.path(), &["trust", "--revoke"]);
    assert_eq!(said(&home, repo.path(), &["config", "get", "session.max_turns"]), "500\n");
}

#[test]
fn the_screen_takes_new_looks_and_tells_of_a_broken_file() {
    let server = ModelServer::queue([]);
    let (home, repo) = chat_setup(&server);
    let mut screen = Screen::start(&home, repo.path(), &[], (80, 24));
    screen.wait_for("what should be done?");
    home.set_settings(&format!("{}\n[ui]\nplaceholder = \"other words\"\n", settings(&home)));
    screen.wait_for("other words");
    let good = settings(&home);
    home.set_settings("[ui\n");
    screen.wait_for("The settings stay as they were");
    home.set_settings(&good);
    screen.wait_for("can be read again");
    screen.press(key::CTRL_C);
    screen.press(key::CTRL_C);
    assert_eq!(screen.wait_exit(), Some(0));
}

#[test]
fn the_printed_schema_is_the_checked_in_one() {
    let (home, repo) = (Home::new(), small_repo());
    let printed = said(&home, repo.path(), &["config", "schema"]);
    let checked_in = include_str!("../../docs/reference/settings.schema.json");
    assert_eq!(printed.trim_end(), checked_in.trim_end());
}

#[test]
fn a_misspelt_setting_is_named_where_it_leaves_no_model() {
    let (home, repo) = (Home::new(), small_repo());
    home.set_settings("[session]\nmodle = \"lab/coder\"\n");
    let finished = Loon::exec(&home, repo.path(), ["go"]).run();
    assert_eq!(finished.code, Some(2));
    for words in ["No model is set up.", "config.toml:2:1", "did you mean `model`?"] {
        assert!(finished.stderr.contains(words), "{words}: {}", finished.stderr);
    }
}

#[test]
fn a_rule_that_cannot_be_kept_is_told_with_its_file() {
    let server = ModelServer::by_step([ask(bash("touch made.txt")), text("done")]);
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    said(&home, repo.path(), &["trust"]);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.write_line(json!({"type": "prompt", "text": "go"}));
    let asked = running.wait_event("the request", |event| event["type"] == "approval.requested");
    repo.write(".loon/config.local.toml", "[broken\n");
    running.write_line(json!({
        "type": "approve", "approval": asked["approval"]["id"], "scope": "project",
        "rule": asked["approval"]["always"],
    }));
    let told = wait_notice(&mut running, "The rule holds for this session only");
    assert!(told["message"].to_string().contains("config.local.toml was not changed"), "{told}");
    running.wait_event("the end of the turn", |event| event["type"] == "turn.finished");
    running.write_line(json!({"type": "close"}));
    running.finish();
    assert!(repo.has("made.txt"));
    assert_eq!(repo.read(".loon/config.local.toml"), "[broken\n");
}
