//! The server over plain TCP: what a client reads, byte for byte, and what is recorded.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::ModelServer;
use crate::latch::Latch;
use crate::reply::{call, calls, hang_up, plain_json, raw, status, text, thinking};
use crate::wire::Wire;

fn body(wire: Wire) -> Value {
    match wire {
        Wire::Responses => json!({"model": "m", "stream": true, "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]}]}),
        _ => json!({"model": "m", "stream": true, "max_tokens": 5,
            "stream_options": {"include_usage": true},
            "messages": [{"role": "user", "content": "go"}]}),
    }
}

fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "/v1/chat/completions",
        Wire::Responses => "/v1/responses",
        Wire::Messages => "/v1/messages",
    }
}

fn send(server: &ModelServer, wire: Wire, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: x\r\nanthropic-version: 2023-06-01\r\ncontent-length: {}\r\n\r\n",
        path(wire),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// Reads to the end of the connection, which the client half closes after its request.
fn read(stream: TcpStream) -> String {
    String::from_utf8(read_bytes(stream)).unwrap()
}

fn read_bytes(mut stream: TcpStream) -> Vec<u8> {
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// The JSON of every `data:` line, over chunk borders.
fn datas(response: &str) -> Vec<Value> {
    response
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

#[test]
fn chat_streams_text_calls_and_usage_to_its_end_mark() {
    let server = ModelServer::queue([calls([
        ("read", json!({"path": "a.txt"})),
        ("grep", json!({"pattern": "x"})),
    ])
    .usage(40, 8, 7)]);
    let response = read(send(&server, Wire::Chat, &body(Wire::Chat)));
    assert!(response.starts_with("HTTP/1.1 200"));
    assert!(response.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{response}");
    let datas = datas(&response);
    let arguments = |index: u64| -> String {
        datas
            .iter()
            .filter_map(|data| data["choices"][0]["delta"]["tool_calls"].as_array().cloned())
            .flatten()
            .filter(|call| call["index"] == index)
            .filter_map(|call| call["function"]["arguments"].as_str().map(str::to_owned))
            .collect()
    };
    assert_eq!(arguments(0), r#"{"path":"a.txt"}"#);
    assert_eq!(arguments(1), r#"{"pattern":"x"}"#);
    let last = datas.last().unwrap();
    assert_eq!(last["usage"]["prompt_tokens"], 40);
    assert_eq!(last["usage"]["prompt_tokens_details"]["cached_tokens"], 8);
    let finish = &datas[datas.len() - 2]["choices"][0]["finish_reason"];
    assert_eq!(finish, "tool_calls");
}

#[test]
fn messages_streams_blocks_in_order_with_signature_and_stop_reason() {
    let script = thinking("hm").text("so").call("read", &json!({"path": "a"})).usage(40, 8, 7);
    let server = ModelServer::queue([script]);
    let response = read(send(&server, Wire::Messages, &body(Wire::Messages)));
    let kinds: Vec<String> = datas(&response)
        .iter()
        .map(|data| {
            let inner = data["content_block"]["type"].as_str().or(data["delta"]["type"].as_str());
            format!("{} {}", data["type"].as_str().unwrap(), inner.unwrap_or("-"))
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "message_start -",
            "ping -",
            "content_block_start thinking",
            "content_block_delta thinking_delta",
            "content_block_delta signature_delta",
            "content_block_stop -",
            "content_block_start text",
            "content_block_delta text_delta",
            "content_block_stop -",
            "content_block_start tool_use",
            "content_block_delta input_json_delta",
            "content_block_delta input_json_delta",
            "content_block_stop -",
            "message_delta -",
            "message_stop -",
        ]
    );
    let start = &datas(&response)[0]["message"]["usage"];
    assert_eq!(
        (&start["input_tokens"], &start["cache_read_input_tokens"]),
        (&json!(32), &json!(8))
    );
    let datas = datas(&response);
    assert_eq!(datas[datas.len() - 2]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn responses_completes_with_all_items_and_rising_sequence_numbers() {
    let script = thinking("hm").text("so").call("read", &json!({"path": "a"}));
    let server = ModelServer::queue([script]);
    let response = read(send(&server, Wire::Responses, &body(Wire::Responses)));
    let datas = datas(&response);
    let numbers: Vec<u64> =
        datas.iter().map(|data| data["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    let last = datas.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    let kinds: Vec<&Value> =
        last["response"]["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(last["response"]["output"][1]["content"][0]["text"], "so");
}

#[test]
fn a_cut_answer_has_no_last_chunk_and_a_short_one_no_end_mark() {
    let server = ModelServer::queue([text("half").cut(), text("half").end_early()]);
    let cut = read(send(&server, Wire::Chat, &body(Wire::Chat)));
    assert!(cut.contains("half") && !cut.ends_with("0\r\n\r\n"), "{cut}");
    let short = read(send(&server, Wire::Chat, &body(Wire::Chat)));
    assert!(short.ends_with("0\r\n\r\n") && !short.contains("[DONE]"), "{short}");
}

#[test]
fn errors_come_as_status_as_event_as_document_or_as_nothing() {
    let server = ModelServer::queue([
        status(429).retry_after("3").message("slow down"),
        text("Hel").error_event("overloaded_error", "busy"),
        plain_json("hello"),
        hang_up(),
    ]);
    let limited = read(send(&server, Wire::Chat, &body(Wire::Chat)));
    assert!(limited.starts_with("HTTP/1.1 429"), "{limited}");
    assert!(limited.contains("retry-after: 3\r\n") && limited.contains("slow down"), "{limited}");
    let failed = read(send(&server, Wire::Messages, &body(Wire::Messages)));
    assert_eq!(datas(&failed).last().unwrap()["error"]["type"], "overloaded_error");
    let plain = read(send(&server, Wire::Chat, &body(Wire::Chat)));
    assert!(plain.contains("content-type: application/json"), "{plain}");
    assert!(plain.contains(r#""content":"hello""#), "{plain}");
    assert_eq!(read(send(&server, Wire::Chat, &body(Wire::Chat))), "");
}

#[test]
fn raw_chunks_and_dripped_bytes_are_separate_writes() {
    let server = ModelServer::queue([
        raw([&b"data: \xe2"[..], b"\x82\xac\n\n"]),
        text("before").drip().text("é"),
    ]);
    let response = read_bytes(send(&server, Wire::Chat, &body(Wire::Chat)));
    let framed = b"\r\n\r\n7\r\ndata: \xe2\r\n4\r\n\x82\xac\n\n\r\n0\r\n\r\n";
    assert!(response.ends_with(framed), "{}", String::from_utf8_lossy(&response));
    let response = read_bytes(send(&server, Wire::Chat, &body(Wire::Chat)));
    let alone = b"\r\n1\r\n\xc3\r\n1\r\n\xa9\r\n";
    assert!(
        response.windows(alone.len()).any(|window| window == alone),
        "{}",
        String::from_utf8_lossy(&response)
    );
}

#[test]
fn a_held_answer_waits_for_its_latch_and_a_leaving_client_is_seen() {
    let latch = Latch::new();
    let server = ModelServer::queue([text("one").hold(&latch).text("two"), text("x").stall()]);
    let stream = send(&server, Wire::Chat, &body(Wire::Chat));
    latch.wait_reached(1);
    latch.release();
    let mut text = String::new();
    let mut stream = stream;
    let mut buffer = [0; 4096];
    while !text.ends_with("0\r\n\r\n") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    assert!(text.find("one") < text.find("two"));
    drop(send(&server, Wire::Chat, &body(Wire::Chat)));
    server.wait_abandoned(1);
}

#[test]
fn requests_are_recorded_and_answers_chosen_by_step() {
    let server = ModelServer::by_step([call("read", json!({"path": "a"})), text("done")]);
    let mut asked = body(Wire::Chat);
    read(send(&server, Wire::Chat, &asked));
    let messages = asked["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}));
    messages.push(json!({"role": "tool", "tool_call_id": "c1", "content": "1 line"}));
    let second = read(send(&server, Wire::Chat, &asked));
    assert!(second.contains("done"));
    let requests = server.wait_for_requests(2);
    assert_eq!((requests[0].order, requests[1].connection), (0, 1));
    assert_eq!(requests[1].last_answer(), "1 line");
    assert_eq!(requests[1].user_texts(), ["go"]);
    assert_eq!(requests[1].header("host"), Some("x"));
}

#[test]
fn a_broken_rule_is_answered_with_400_and_kept() {
    let server = ModelServer::queue([]);
    let bad = json!({"model": "m", "messages": [{"role": "assistant", "content": "a"}]});
    let response = read(send(&server, Wire::Chat, &bad));
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    let empty = read(send(&server, Wire::Chat, &body(Wire::Chat)));
    assert!(empty.contains("no answer for it"), "{empty}");
    assert_eq!(
        server.take_faults(),
        [
            "request 0: the conversation does not begin with the user",
            "request 0: the conversation ends with the model's own words",
            "request 1: the script has no answer for it",
        ]
    );
}
