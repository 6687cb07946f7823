//! How prompts, sessions and connections end, well or not.

use std::fs::File;
use std::io::Read as _;

use loon_testkit::{Home, Input, Latch, Loon, ModelServer, Wire, status, text};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use super::client::{Client, choose, prompt};
use crate::headless::is_alive;
use crate::scripts::{ask, bash, chat_setup, read, small_repo};

fn cancel(session: &str) -> Value {
    json!({"sessionId": session})
}

#[test]
fn a_cancel_ends_an_answer_that_is_on_its_way() {
    let server = ModelServer::queue([text("I begin").stall(), text("again")]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    let waiting = client.send("session/prompt", &prompt(&session, "go"));
    client.update("agent_message_chunk", |_| true);
    client.notify("session/cancel", &cancel(&session));
    assert_eq!(client.answer(waiting)["result"]["stopReason"], "cancelled");
    server.wait_abandoned(0);
    assert_eq!(client.prompt(&session, "once more"), "end_turn");
}

#[test]
fn a_cancel_ends_a_command_with_all_it_started() {
    let server = ModelServer::by_step([ask(bash("sleep 300 & echo $! > pid; echo up; wait"))]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &["--mode", "bypass"]);
    let session = client.new_session(repo.path());
    let waiting = client.send("session/prompt", &prompt(&session, "go"));
    let live = client.update("tool_call_update", |update| update["content"].is_array());
    assert!(live["content"].to_string().contains("up"), "{live}");
    client.notify("session/cancel", &cancel(&session));
    assert_eq!(client.answer(waiting)["result"]["stopReason"], "cancelled");
    assert!(!is_alive(&repo.read("pid")));
    assert_eq!(client.calls(&session)[0]["status"], "failed");
}

#[test]
fn a_cancel_takes_a_question_back() {
    let server = ModelServer::by_step([ask(bash("touch made.txt")), text("on")]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    let waiting = client.send("session/prompt", &prompt(&session, "go"));
    let asked =
        client.wait("a question", |message| message["method"] == "session/request_permission");
    client.notify("session/cancel", &cancel(&session));
    assert_eq!(client.answer(waiting)["result"]["stopReason"], "cancelled");
    // The answer comes too late and changes nothing.
    client.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": choose("allow_once")}));
    assert_eq!(client.prompt(&session, "go on"), "end_turn");
    assert!(!repo.has("made.txt"));
    assert!(!client.words(&session).contains("Loom"), "{}", client.words(&session));
}

#[test]
fn each_bound_ends_a_prompt_with_a_reason_and_words() {
    let server = ModelServer::answering(|_| ask(read("a.txt")));
    let (home, repo) = chat_setup(&server);
    for (setting, words) in [
        ("session.max_turns=2", "limit of 2 model requests"),
        ("budget.max_requests=2", "budget of 2 requests is spent"),
    ] {
        let mut client = Client::ready(&home, &["--set", setting]);
        let session = client.new_session(repo.path());
        assert_eq!(client.prompt(&session, "go"), "max_turn_requests");
        let told = client.words(&session);
        assert!(told.contains(words), "{told}");
        assert_eq!(told.matches(words).count(), 1, "{told}");
    }
}

#[test]
fn refusals_and_cut_answers_have_reasons_of_their_own() {
    let server = ModelServer::queue([text("no").refused(), text("too lo").length_stop()]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    assert_eq!(client.prompt(&session, "go"), "refusal");
    assert_eq!(client.prompt(&session, "go"), "max_tokens");
    assert!(client.words(&session).contains("output limit"), "{}", client.words(&session));
}

#[test]
fn a_failing_model_is_an_error_in_words() {
    let server = ModelServer::answering(|_| status(401).message("bad key"));
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    let error = client.refused("session/prompt", &prompt(&session, "go"));
    assert!(error["message"].as_str().is_some_and(|told| told.contains("bad key")), "{error}");
    assert_eq!(error["data"]["code"], "AUTH");
}

#[test]
fn what_is_no_message_is_refused_and_the_next_one_is_heard() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let mut client = Client::start(&home, &[]);
    let mut refused = |line: &str, code: i64| {
        client.write(&line);
        let answer = client.wait("an error", |message| message.get("error").is_some());
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        answer["id"].clone()
    };
    assert_eq!(refused("not json", -32700), Value::Null);
    assert_eq!(refused("[]", -32600), Value::Null);
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":"x"}"#, -32600), "x");
    assert_eq!(refused(r#"{"jsonrpc":"1.0","id":9,"method":"initialize"}"#, -32600), 9);
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":8,"method":"initialize"}"#, -32602), 8);
    client.request("initialize", &json!({"protocolVersion": 1}));
    client.notify("no/such/notification", &json!({}));
    client.notify("session/cancel", &json!({"sessionId": "nothing"}));
    assert_eq!(client.refused("no/such/method", &json!({}))["code"], -32601);
    assert_eq!(client.refused("session/new", &json!({"cwd": 1}))["code"], -32602);
    let relative = json!({"cwd": "src", "mcpServers": []});
    assert_eq!(client.refused("session/new", &relative)["code"], -32602);
    let missing = json!({"cwd": "/no/such/folder", "mcpServers": []});
    assert!(client.refused("session/new", &missing).to_string().contains("/no/such/folder"));
    // What was asked of a session that then could not be opened is answered too.
    let session = "01990000-0000-7000-8000-000000000000";
    let load = json!({"sessionId": session, "cwd": "/no/such/folder", "mcpServers": []});
    let load = client.send("session/load", &load);
    let early = client.send("session/prompt", &prompt(session, "go"));
    let mut codes = [(); 2].map(|()| {
        let answer = client.wait("an error", |message| message.get("error").is_some());
        (answer["id"].as_i64(), answer["error"]["code"].as_i64())
    });
    codes.sort_unstable();
    assert_eq!(codes, [(Some(load), Some(-32602)), (Some(early), Some(-32002))]);
    client.write(&json!({"jsonrpc": "2.0", "id": 4711, "result": {}}));
    let session = client.new_session(repo.path());
    assert_eq!(client.prompt(&session, "go"), "end_turn");
}

#[test]
fn an_editor_that_goes_leaves_sessions_that_can_be_gone_on_with() {
    let server = ModelServer::queue([text("I begin").stall(), text("and end")]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    client.send("session/prompt", &prompt(&session, "go"));
    client.update("agent_message_chunk", |_| true);
    let finished = client.leave();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    assert!(finished.text().contains("\"stopReason\"") || finished.text().contains("\"error\""));
    server.wait_abandoned(0);
    let on = Loon::exec(&home, repo.path(), ["--resume", &session, "go on"]).run();
    assert_eq!(on.code, Some(0), "{}", on.stderr);
    let verified = Loon::new(&home, repo.path()).args(["sessions", "verify", "--all"]).run();
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
}

#[test]
fn a_signal_ends_all_sessions() {
    let server = ModelServer::queue([text("I begin").stall(), text("and end")]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    client.send("session/prompt", &prompt(&session, "go"));
    client.update("agent_message_chunk", |_| true);
    client.process().signal(Signal::SIGTERM);
    let finished = client.finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(143), ""));
    let on = Loon::exec(&home, repo.path(), ["--resume", &session, "go on"]).run();
    assert_eq!(on.code, Some(0), "{}", on.stderr);
}

#[test]
fn a_session_that_is_over_says_so() {
    let server = ModelServer::queue([text("I begin").stall()]);
    let (home, repo) = chat_setup(&server);
    let mut client = Client::ready(&home, &[]);
    let session = client.new_session(repo.path());
    let waiting = client.send("session/prompt", &prompt(&session, "go"));
    client.update("agent_message_chunk", |_| true);
    let cancelled =
        Loon::new(&home, repo.path()).args(["cancel", &session, "--reason", "enough of it"]).run();
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    client.answer(waiting);
    let over = client.refused("session/prompt", &prompt(&session, "more"));
    let told = over["message"].as_str().unwrap_or_default();
    assert!(told.contains("not open") || told.contains("enough of it"), "{over}");
    let load = json!({"sessionId": session, "cwd": repo.path(), "mcpServers": []});
    let refused = client.refused("session/load", &load);
    assert!(refused.to_string().contains("enough of it"), "{refused}");
}

#[test]
fn a_session_in_use_elsewhere_is_not_opened() {
    let latch = Latch::new();
    let server = ModelServer::queue([text("I").hold(&latch).text(" work")]);
    let (home, repo) = chat_setup(&server);
    let mut first = Client::ready(&home, &[]);
    let session = first.new_session(repo.path());
    let waiting = first.send("session/prompt", &prompt(&session, "go"));
    latch.wait_reached(1);
    let mut second = Client::ready(&home, &[]);
    let load = json!({"sessionId": session, "cwd": repo.path(), "mcpServers": []});
    let refused = second.refused("session/load", &load);
    assert_eq!(refused["data"]["code"], "BUSY", "{refused}");
    latch.release();
    assert_eq!(first.answer(waiting)["result"]["stopReason"], "end_turn");
}

/// The model has more to say than the pipe and all queues on the way can hold, and nobody reads. A
/// signal is heard all the same, and the answer was not taken from the server to its end.
#[test]
fn an_editor_that_stops_reading_stops_the_work() {
    let words = "words ".repeat(4_000);
    let server = ModelServer::answering(move |_| {
        (0..2_000).fold(text("begin"), |reply, _| reply.text(words.clone()))
    });
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    let output = repo.path().join("output");
    mkfifo(&output, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe with a name");
    let mut running = Loon::new(&home, repo.path())
        .args(["acp"])
        .input(Input::Open)
        .redirect(&format!("> '{}'", output.display()))
        .start();
    let mut reader = File::open(&output).expect("the pipe");
    let mut read_until = |wanted: &str| {
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&seen).contains(wanted) {
            reader.read_exact(&mut byte).expect("more output");
            seen.push(byte[0]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    };
    running.write_line(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": 1}}));
    read_until("\n");
    running.write_line(json!({"jsonrpc": "2.0", "id": 2, "method": "session/new",
        "params": {"cwd": repo.path(), "mcpServers": []}}));
    let opened: Value = serde_json::from_str(&read_until("\n")).expect("the session");
    let session = opened["result"]["sessionId"].as_str().expect("an id").to_owned();
    let ask = prompt(&session, "go");
    running
        .write_line(json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": ask}));
    read_until("begin");
    running.signal(Signal::SIGTERM);
    let finished = running.finish();
    assert_eq!(finished.code, Some(143), "{}", finished.stderr);
    server.wait_abandoned(0);
}
