//! `loon acp`: an editor drives sessions over the Agent Client Protocol.

mod client;
mod endings;

use loon_testkit::{Home, Latch, Loon, ModelServer, Wire, call, calls, text, thinking};
use serde_json::{Value, json};

use self::client::{Client, choose, prompt};
use crate::scripts::{ask, bash, chat_setup, edit, read, small_repo};

fn option_kinds(request: &Value) -> Vec<(&str, &str)> {
    let options = request["options"].as_array().expect("options").iter();
    options
        .map(|option| {
            let of = |name: &str| option[name].as_str().unwrap_or_default();
            (of("optionId"), of("kind"))
        })
        .collect()
}

#[test]
fn a_task_with_approvals_is_done() {
    let server = ModelServer::by_step([
        ask(read("a.txt")),
        ask(edit("a.txt", "two", "2")),
        ask(bash("echo ran > ran.txt; cat a.txt")),
        thinking("It is done.").text("All **done**."),
    ]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    client.person(|request| {
        let call = &request["toolCall"];
        match call["name"].as_str() {
            Some("edit") => {
                assert_eq!(call["kind"], "edit");
                assert_eq!(call["content"][0]["type"], "diff");
                assert_eq!(call["content"][0]["newText"], "one\n2\nthree\n");
                assert_eq!(option_kinds(request).last(), Some(&("reject_once", "reject_once")));
                choose("allow_once")
            }
            Some("bash") => {
                let shown = call["content"][0]["content"]["text"].as_str().expect("text");
                assert!(shown.contains("echo ran > ran.txt; cat a.txt"), "{shown}");
                choose("allow_once")
            }
            other => panic!("nobody has to allow {other:?}"),
        }
    });
    assert_eq!(client.prompt(&session, "replace two"), "end_turn");
    assert_eq!(repo.read("a.txt"), "one\n2\nthree\n");
    assert_eq!(repo.read("ran.txt"), "ran\n");
    assert_eq!(client.words(&session), "All **done**.");
    assert_eq!(client.texts(&session, "agent_thought_chunk"), "It is done.");
    assert_eq!(client.texts(&session, "user_message_chunk"), "", "the editor has its own words");

    let [read, edit, bash] = &client.calls(&session)[..] else { panic!("three calls") };
    let path = repo.path().join("a.txt");
    assert_eq!((&read["kind"], &read["status"]), (&json!("read"), &json!("completed")));
    assert_eq!(read["locations"][0]["path"], json!(path));
    assert_eq!((&edit["kind"], &edit["status"]), (&json!("edit"), &json!("completed")));
    assert_eq!(
        edit["content"],
        json!([{"type": "diff", "path": path, "oldText": "one\ntwo\nthree\n",
            "newText": "one\n2\nthree\n"}])
    );
    assert_eq!(edit["locations"], json!([{"path": path, "line": 1}]));
    assert_eq!((&bash["kind"], &bash["status"]), (&json!("execute"), &json!("completed")));
    let output = bash["content"][0]["content"]["text"].as_str().expect("output");
    assert!(output.contains("one\n2\nthree"), "{output}");
    let finished = client.leave();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
}

#[test]
fn initialize_tells_what_there_is_and_must_come_first() {
    let (home, repo) = (Home::new(), small_repo());
    let mut client = Client::start(&home, &[]);
    let early = client.refused("session/new", &json!({"cwd": repo.path(), "mcpServers": []}));
    assert_eq!(early["code"], -32600);
    // Of a version that is not there the newest one that is comes back.
    let told = client.request("initialize", &json!({"protocolVersion": 7}));
    assert_eq!(told["protocolVersion"], 1);
    assert_eq!(told["authMethods"], json!([]));
    assert_eq!(told["agentInfo"]["name"], "loon");
    let able = &told["agentCapabilities"];
    assert_eq!(
        (&able["loadSession"], &able["promptCapabilities"]["image"]),
        (&json!(true), &json!(false))
    );
    let none = client.refused("authenticate", &json!({"methodId": "key"}));
    assert!(none["message"].as_str().is_some_and(|told| told.contains("authenticate")), "{none}");
    // Without a model no session begins, and the person reads what to set.
    let no_model = client.refused("session/new", &json!({"cwd": repo.path(), "mcpServers": []}));
    assert!(no_model["message"].as_str().is_some_and(|told| told.contains("session.model")));
    assert!(home.journals().is_empty());
}

#[test]
fn a_rejected_call_is_not_made_and_the_model_hears_of_it() {
    let server = ModelServer::by_step([ask(bash("touch made.txt")), text("Then not.")]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    client.person(|_| choose("reject_once"));
    assert_eq!(client.prompt(&session, "make it"), "end_turn");
    assert!(!repo.has("made.txt"));
    assert_eq!(client.calls(&session)[0]["status"], "failed");
    assert!(server.last_request().last_answer().contains("said no"));
}

#[test]
fn what_is_allowed_for_the_session_or_the_project_is_not_asked_again() {
    for (option, is_kept) in [("allow_for_session", false), ("allow_always", true)] {
        let server = ModelServer::by_step([
            ask(bash("touch one.txt")),
            ask(bash("touch one.txt two.txt")),
            text("done"),
        ]);
        let (home, repo) = chat_setup(&server);
        // Only the settings of a trusted folder may allow something.
        assert_eq!(Loon::new(&home, repo.path()).args(["trust"]).run().code, Some(0));
        let mut client = Client::ready(&home, &[]);
        let session = client.new_session(repo.path());
        let mut asked = 0;
        client.person(move |request| {
            asked += 1;
            assert_eq!(asked, 1, "{request}");
            let told = request["options"].to_string();
            assert!(told.contains("touch"), "the rule is named: {told}");
            choose(option)
        });
        assert_eq!(client.prompt(&session, "make both"), "end_turn");
        assert!(repo.has("one.txt") && repo.has("two.txt"));
        assert_eq!(repo.has(".loon/config.local.toml"), is_kept);
    }
}

#[test]
fn the_mode_is_chosen_in_the_editor() {
    let server =
        ModelServer::by_step([ask(read("a.txt")), ask(edit("a.txt", "two", "2")), text("done")]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let opened = client.request("session/new", &json!({"cwd": repo.path(), "mcpServers": []}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(opened["modes"]["currentModeId"], "default");
    let modes: Vec<&Value> = opened["modes"]["availableModes"]
        .as_array()
        .expect("modes")
        .iter()
        .map(|mode| &mode["id"])
        .collect();
    assert_eq!(modes, ["default", "auto", "plan", "bypass"]);
    let set = |mode: &str| json!({"sessionId": session, "modeId": mode});
    let wrong = client.refused("session/set_mode", &set("yolo"));
    assert_eq!(wrong["code"], -32602);
    client.request("session/set_mode", &set("auto"));
    assert_eq!(client.prompt(&session, "replace two"), "end_turn");
    assert_eq!(repo.read("a.txt"), "one\n2\nthree\n");
    let told = client.updates(&session);
    let told = told.iter().find(|update| update["sessionUpdate"] == "current_mode_update");
    assert_eq!(told.map(|update| &update["currentModeId"]), Some(&json!("auto")));
}

#[test]
fn the_model_is_chosen_among_those_of_the_settings() {
    let server = ModelServer::answering(|_| text("ok"));
    let home = Home::with_server_and(&server, Wire::Chat, "[providers.lab.models.other]\n", "");
    let repo = small_repo();
    let mut client = Client::ready(&home, &["--mode", "plan"]);
    let opened = client.request("session/new", &json!({"cwd": repo.path(), "mcpServers": []}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(opened["configOptions"][0]["currentValue"], "plan");
    assert_eq!(opened["configOptions"][1]["currentValue"], "lab/coder");
    let set = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let chosen = client.request("session/set_config_option", &set("model", "lab/other"));
    assert_eq!(chosen["configOptions"][1]["currentValue"], "lab/other");
    let wrong = client.refused("session/set_config_option", &set("model", "lab/none"));
    assert!(wrong["message"].as_str().is_some_and(|told| told.contains("lab/none")));
    assert_eq!(client.prompt(&session, "go"), "end_turn");
    assert_eq!(server.last_request().body["model"], "other");
}

#[test]
fn the_plan_of_the_model_is_the_plan_of_the_editor() {
    let steps = json!({"plan": [{"step": "look", "status": "completed"},
        {"step": "fix", "status": "in_progress"}]});
    let server = ModelServer::by_step([call("update_plan", steps), text("ok")]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    client.prompt(&session, "plan it");
    let updates = client.updates(&session);
    let plan = updates.iter().find(|update| update["sessionUpdate"] == "plan").expect("a plan");
    let told: Vec<_> = plan["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| (&entry["content"], &entry["status"]))
        .collect();
    assert_eq!(
        told,
        [(&json!("look"), &json!("completed")), (&json!("fix"), &json!("in_progress"))]
    );
}

#[test]
fn files_of_the_editor_come_with_the_prompt() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    let uri = |name: &str| format!("file://{}", repo.path().join(name).display());
    let blocks = json!([
        {"type": "text", "text": "Compare "},
        {"type": "resource_link", "name": "b.txt", "uri": uri("b.txt")},
        {"type": "resource", "resource": {"uri": uri("a.txt"), "text": "one\nnot saved\n"}},
    ]);
    client.request("session/prompt", &json!({"sessionId": session, "prompt": blocks}));
    let told = server.last_request().user_texts().pop().expect("a prompt");
    assert!(told.starts_with(&format!("Compare `{}`", repo.path().join("b.txt").display())));
    assert!(told.contains("one\nnot saved\n"), "{told}");
    let picture = json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}]);
    let refused =
        client.refused("session/prompt", &json!({"sessionId": session, "prompt": picture}));
    assert!(refused["message"].as_str().is_some_and(|told| told.contains("Pictures")));
}

#[test]
fn commands_of_the_person_are_no_words_for_the_model() {
    let server =
        ModelServer::by_step([ask(read("a.txt")), ask(edit("a.txt", "two", "2")), text("done")]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &["--mode", "auto"]);
    let session = client.new_session(repo.path());
    let offered = client.update("available_commands_update", |_| true);
    assert!(offered["availableCommands"].to_string().contains("undo"), "{offered}");
    client.prompt(&session, "replace two");
    assert_eq!(repo.read("a.txt"), "one\n2\nthree\n");
    assert_eq!(client.prompt(&session, "/undo"), "end_turn");
    assert_eq!(repo.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(client.prompt(&session, "/goal ship it"), "end_turn");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn two_sessions_work_beside_each_other() {
    let latch = Latch::new();
    let held = latch.clone();
    let server = ModelServer::answering(move |request| {
        if request.user_texts() == ["slow"] {
            text("slow").hold(&held).text(" answer")
        } else {
            text("quick answer")
        }
    });
    let (home, one) = chat_setup(&server);
    let other = small_repo();
    let mut client = Client::ready(&home, &[]);
    let slow = client.new_session(one.path());
    let quick = client.new_session(other.path());
    let waiting = client.send("session/prompt", &prompt(&slow, "slow"));
    latch.wait_reached(1);
    assert_eq!(client.prompt(&quick, "quick"), "end_turn");
    let busy = client.refused("session/prompt", &prompt(&slow, "more"));
    assert!(busy["message"].as_str().is_some_and(|told| told.contains("works on a prompt")));
    latch.release();
    assert_eq!(client.answer(waiting)["result"]["stopReason"], "end_turn");
    assert_eq!(client.words(&slow), "slow answer");
    assert_eq!(client.words(&quick), "quick answer");
    assert_eq!(home.journals().len(), 2);
}

#[test]
fn a_session_is_listed_loaded_with_its_past_and_gone_on_with() {
    let server = ModelServer::by_step([
        ask(read("a.txt")),
        ask(edit("a.txt", "two", "2")),
        thinking("hm").text("first answer"),
        text("second answer"),
    ]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &["--mode", "auto"]);
    let session = client.new_session(repo.path());
    client.prompt(&session, "first prompt");
    client.leave();

    let mut client = Client::ready(&home, &[]);
    let listed = client.request("session/list", &json!({"cwd": repo.path()}));
    assert_eq!(listed["sessions"][0]["sessionId"], json!(session));
    assert_eq!(listed["sessions"][0]["title"], "first prompt");
    let elsewhere = client.request("session/list", &json!({"cwd": home.path()}));
    assert_eq!(elsewhere["sessions"], json!([]));

    let load = json!({"sessionId": session, "cwd": repo.path(), "mcpServers": []});
    let loaded = client.request("session/load", &load);
    assert_eq!(loaded["modes"]["currentModeId"], "auto");
    assert_eq!(client.texts(&session, "user_message_chunk"), "first prompt");
    assert_eq!(client.texts(&session, "agent_thought_chunk"), "hm");
    assert_eq!(client.words(&session), "first answer");
    let [_, edit] = &client.calls(&session)[..] else { panic!("two calls") };
    assert_eq!(edit["content"][0]["newText"], "one\n2\nthree\n");
    assert_eq!(client.prompt(&session, "second prompt"), "end_turn");
    assert_eq!(server.last_request().user_texts(), ["first prompt", "second prompt"]);

    // Who knows the past need not hear it again, and a session can be opened anew at any time.
    client.seen.clear();
    client.request("session/resume", &load);
    assert_eq!(client.words(&session), "");
    client.request("session/close", &json!({"sessionId": session}));
    let closed = client.refused("session/prompt", &prompt(&session, "third"));
    assert!(closed["message"].as_str().is_some_and(|told| told.contains("not open")), "{closed}");
    let gone = json!({"sessionId": "nothing", "cwd": repo.path(), "mcpServers": []});
    assert_eq!(client.refused("session/load", &gone)["code"], -32002);
}

#[test]
fn a_long_past_is_loaded_whole_and_in_order() {
    let turns = 6;
    let answers = (0..turns).flat_map(|turn| {
        // Two files by turns, so that no call is the same as the one before.
        let reads = (0..50).map(|number| read(if number % 2 == 0 { "a.txt" } else { "b.txt" }));
        [calls(reads), text(format!("answer {turn}, "))]
    });
    let server = ModelServer::by_step(answers);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    for turn in 0..turns {
        client.prompt(&session, &format!("prompt {turn}, "));
    }
    client.leave();
    let mut client = Client::ready(&home, &[]);
    let load = json!({"sessionId": session, "cwd": repo.path(), "mcpServers": []});
    client.request("session/load", &load);
    let all = |word: &str| -> String {
        let told: Vec<String> = (0..turns).map(|turn| format!("{word} {turn}, ")).collect();
        told.concat()
    };
    assert_eq!(client.texts(&session, "user_message_chunk"), all("prompt"));
    assert_eq!(client.words(&session), all("answer"));
    assert_eq!(client.calls(&session).len(), turns * 50);
}

#[test]
fn what_the_editor_wants_and_does_not_get_is_said() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let servers = json!([{"name": "tickets", "command": "/bin/false", "args": [], "env": []}]);
    let opened = client.request("session/new", &json!({"cwd": repo.path(), "mcpServers": servers}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    client.prompt(&session, "go");
    let words = client.words(&session);
    assert!(words.contains("**Loom:**") && words.contains("tickets"), "{words}");
}
