//! Programs of the settings as tools.

use loon_testkit::{Home, Loon, ModelServer, Repo, Wire, call, text};
use serde_json::json;

const PROGRAM: &str = r#"
import json, os, sys
print("hello", file=sys.stderr)
open("started", "a").write("x")
for line in sys.stdin:
    call = json.loads(line)
    n = call["input"]["n"]
    if n > 9:
        print(json.dumps({"id": call["id"], "error": "too many"}), flush=True)
    else:
        print(json.dumps({"id": call["id"], "ok": "stars " + "*" * n}), flush=True)
"#;

fn setup(server: &ModelServer, more: &str) -> (Home, Repo) {
    let home = Home::with_server_and(
        server,
        Wire::Chat,
        "",
        &format!(
            "[tools.stars]\ncommand = [\"python3\", \"stars.py\"]\ndescription = \"Draws stars.\"\n\
             parameters = '''{{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{{\"n\":{{\"type\":\"integer\"}}}}}}'''\n{more}"
        ),
    );
    (home, Repo::new(&[("stars.py", PROGRAM)]))
}

#[test]
fn k067_a_program_of_the_settings_is_a_tool_and_starts_once() {
    let server = ModelServer::by_step([
        call("stars", json!({"n": 3})),
        call("stars", json!({"n": 10})),
        call("stars", json!({"n": "many"})),
        text("done"),
    ]);
    let (home, repo) = setup(&server, "warm = true\n");
    let run = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let answers: Vec<String> = run
        .items("tool_call")
        .iter()
        .filter_map(|item| Some(item["result"]["text"].as_str()?.to_owned()))
        .collect();
    assert_eq!(answers[..2], ["stars ***", "too many"]);
    assert!(answers[2].contains("do not fit"), "{answers:?}");
    assert_eq!(repo.read("started"), "x");
    let offered = &server.requests()[0].body["tools"];
    let stars =
        offered.as_array().expect("tools").iter().find(|tool| tool["function"]["name"] == "stars");
    assert_eq!(stars.expect("the tool")["function"]["description"], "Draws stars.");
}

#[test]
fn a_program_of_the_settings_is_judged_like_a_command() {
    let server = ModelServer::by_step([call("stars", json!({"n": 3})), text("done")]);
    let rule = "[[permissions.deny_rules]]\ntool = \"stars\"\n";
    let (home, repo) = setup(&server, &format!("warm = true\n{rule}"));
    let run = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
    assert_eq!(run.items("tool_call").last().expect("a call")["status"], "denied");
    assert!(!repo.path().join("started").exists(), "a denied program was started ahead");
    // Without a rule somebody must say yes, and nobody is there.
    let server = ModelServer::by_step([call("stars", json!({"n": 3})), text("done")]);
    let (home, repo) = setup(&server, "");
    let run = Loon::exec(&home, repo.path(), ["go"]).run();
    assert_eq!(run.items("tool_call").last().expect("a call")["status"], "denied");
    assert!(!repo.path().join("started").exists());
}
