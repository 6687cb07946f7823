//! A job of several steps on each wire format: parallel reads, a real edit, a command, and an
//! answer, with what each format wants returned.

use loon_testkit::{Home, Loon, ModelServer, Request, Wire, calls, plain_json, text, thinking};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, edit, read, small_repo, write};

fn five_rounds() -> ModelServer {
    let look = thinking("Let me look first.").text("I will read both.");
    let (name_a, arguments_a) = read("a.txt");
    let (name_b, arguments_b) = read("b.txt");
    ModelServer::by_step([
        look.call(name_a, &arguments_a).call(name_b, &arguments_b).usage(100, 0, 10),
        ask(edit("a.txt", "two", "zwei")).usage(200, 100, 10),
        ask(write("c/new.txt", "fresh\n")).usage(300, 200, 10),
        ask(bash("cat a.txt c/new.txt")).usage(400, 300, 10),
        ask(read("a.txt")).usage(500, 400, 10),
        text("All done: €5.").usage(600, 500, 10),
    ])
}

fn run_five_rounds(wire: Wire) {
    let server = five_rounds();
    let (home, repo) = (Home::with_server(&server, wire), small_repo());
    let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "do five things"]).run();

    let end = finished.terminal();
    assert_eq!(end["outcome"], "completed", "{}", finished.text());
    assert_eq!(end["message"], "All done: €5.");
    assert_eq!(end["usage"]["input_tokens"], 2100);
    assert_eq!(end["usage"]["cached_tokens"], 1500);
    assert_eq!(end["usage"]["output_tokens"], 60);
    assert_eq!(repo.read("a.txt"), "one\nzwei\nthree\n");
    assert_eq!(repo.read("c/new.txt"), "fresh\n");

    let requests = server.requests();
    assert_eq!(requests.len(), 6);
    assert!(requests.iter().all(|request| request.wire == wire));
    let answers = requests[1].tool_answers();
    assert_eq!(answers.len(), 2);
    assert!(answers[0].text.contains("three") && answers[1].text.contains("beta"), "{answers:?}");
    assert!(
        requests[4].last_answer().contains("zwei\nthree\nfresh"),
        "{:?}",
        requests[4].last_answer()
    );
    assert_eq!(requests[5].user_texts(), ["do five things"]);
    assert!(requests[1].assistant_texts().contains(&"I will read both.".to_owned()));
    assert!(returned_reasoning(&requests[1]), "{}", requests[1].body);
    let key = if wire == Wire::Messages { "x-api-key" } else { "authorization" };
    assert!(requests[0].header(key).is_some_and(|value| value.contains("lab-secret")));

    let tools = finished.items("tool_call");
    let done: Vec<&Value> =
        tools.iter().filter(|item| item["status"] == "done").map(|item| &item["tool"]).collect();
    assert_eq!(done, ["read", "read", "edit", "write", "bash", "read"]);
    assert!(!finished.text().contains("lab-secret"));
}

/// What each format wants back within the tool loop, byte for byte.
fn returned_reasoning(request: &Request) -> bool {
    let holds = |member: &str, value: &str| {
        request.messages().iter().any(|message| {
            let blocks = message["content"].as_array().into_iter().flatten();
            message[member] == value || blocks.clone().any(|block| block[member] == value)
        })
    };
    match request.wire {
        Wire::Chat => holds("reasoning_content", "Let me look first."),
        Wire::Responses => holds("encrypted_content", "ZW5jcnlwdGVk0x0"),
        Wire::Messages => holds("signature", "c2lnbmF0dXJl0x0"),
    }
}

#[test]
fn five_rounds_over_chat_completions() {
    run_five_rounds(Wire::Chat);
}

#[test]
fn five_rounds_over_responses() {
    run_five_rounds(Wire::Responses);
}

#[test]
fn five_rounds_over_messages() {
    run_five_rounds(Wire::Messages);
}

#[test]
fn every_record_is_numbered_and_belongs_to_one_execution() {
    let server = five_rounds();
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
    let events = finished.events();
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let exec = finished.exec();
    assert!(events.iter().all(|event| event["exec"] == exec && event["v"].is_u64()));
    let records = home.records(&exec);
    let printed: Vec<&Value> = events.iter().filter(|event| event["seq"].is_u64()).collect();
    assert_eq!(records.len(), printed.len());
    for (record, event) in records.iter().zip(printed) {
        let mut stripped = record.clone();
        let map = stripped.as_object_mut().expect("a record is an object");
        map.retain(|name, _| name != "fence" && name != "prev");
        assert_eq!(&stripped, event);
    }
}

#[test]
fn pieces_of_an_item_come_before_the_item() {
    let server = five_rounds();
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
    let mut whole = Vec::new();
    for event in finished.events() {
        match event["type"].as_str() {
            Some("item.completed") => whole.push(event["item"]["id"].clone()),
            Some("item.delta") if event["of"] != "output" => {
                assert!(!whole.contains(&event["item"]), "a late piece: {event}");
            }
            _ => {}
        }
    }
    assert!(whole.len() > 8);
}

#[test]
fn deltas_of_the_answer_add_up_to_its_item() {
    for wire in Wire::ALL {
        let server = ModelServer::queue([text("Ein längerer Satz, der in Stücken kommt.")]);
        let (home, repo) = (Home::with_server(&server, wire), small_repo());
        let finished = Loon::exec(&home, repo.path(), ["go"]).run();
        let deltas: String = finished
            .of_type("item.delta")
            .iter()
            .filter(|event| event["of"] == "text")
            .filter_map(|event| event["text"].as_str().map(str::to_owned))
            .collect();
        let item = &finished.items("assistant_message")[0];
        assert_eq!(item["text"], deltas.as_str(), "{wire:?}");
        assert_eq!(deltas, "Ein längerer Satz, der in Stücken kommt.");
    }
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    for wire in Wire::ALL {
        let server = ModelServer::queue([plain_json("Plain words.")]);
        let (home, repo) = (Home::with_server(&server, wire), small_repo());
        let end = Loon::exec(&home, repo.path(), ["go"]).run().terminal();
        assert_eq!(
            (&end["outcome"], &end["message"]),
            (&json!("completed"), &json!("Plain words."))
        );
    }
}

#[test]
fn bytes_that_come_one_by_one_make_the_same_answer() {
    for wire in Wire::ALL {
        let answer = thinking("h\u{e9}").drip().text("héllo 你好 👩‍👩‍👧 “q”");
        let server = ModelServer::queue([answer]);
        let (home, repo) = (Home::with_server(&server, wire), small_repo());
        let end = Loon::exec(&home, repo.path(), ["go"]).run().terminal();
        assert_eq!(end["message"], "héllo 你好 👩‍👩‍👧 “q”", "{wire:?}");
    }
}

#[test]
fn the_repository_s_guidance_reaches_the_model_and_is_read_anew_each_turn() {
    let server = ModelServer::by_step([text("one"), text("two")]);
    let (home, repo) = (Home::with_server(&server, Wire::Messages), small_repo());
    repo.write("AGENTS.md", "Use tabs here.\n");
    Loon::exec(&home, repo.path(), ["first"]).run().terminal();
    repo.write("AGENTS.md", "Use spaces here.\n");
    Loon::exec(&home, repo.path(), ["--continue", "second"]).run().terminal();
    let requests = server.requests();
    assert!(requests[0].system().contains("Use tabs here."));
    assert!(!requests[1].system().contains("Use tabs here."));
    assert!(requests[1].system().contains("Use spaces here."));
}

#[test]
fn calls_for_unknown_tools_and_with_wrong_arguments_come_back_as_errors() {
    for wire in Wire::ALL {
        let wrong = calls([("no_such_tool", json!({})), ("read", json!({"file": 7}))]);
        let broken = text("once more").call_raw("read", "{\"path\": \"a.t");
        let server = ModelServer::by_step([wrong, broken, text("sorry")]);
        let (home, repo) = (Home::with_server(&server, wire), small_repo());
        let end = Loon::exec(&home, repo.path(), ["go"]).run().terminal();
        assert_eq!(end["outcome"], "completed", "{wire:?}: {end}");
        let answers = server.last_request().tool_answers();
        assert_eq!(answers.len(), 3);
        assert!(answers[0].text.contains("no_such_tool"), "{answers:?}");
        assert!(answers[1].text.contains("path"), "{answers:?}");
        assert!(answers[2].text.contains("JSON"), "{answers:?}");
    }
}
