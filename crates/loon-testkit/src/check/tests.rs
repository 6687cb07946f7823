//! Each rule refuses what it is there for, and a good conversation passes.

use serde_json::{Value, json};

use super::faults;
use crate::wire::Wire;

fn of(wire: Wire, body: &Value) -> Vec<String> {
    let headers = vec![("anthropic-version".to_owned(), "2023-06-01".to_owned())];
    faults(wire, body.to_string().as_bytes(), &headers)
}

fn chat(messages: &Value) -> Vec<String> {
    of(Wire::Chat, &json!({"model": "m", "messages": messages}))
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}})
}

#[test]
fn good_conversations_pass_in_every_format() {
    let chat_messages = json!([
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": null, "tool_calls": [call("a", "{}"), call("b", "{}")]},
        {"role": "tool", "tool_call_id": "b", "content": "1"},
        {"role": "tool", "tool_call_id": "a", "content": "2"},
        {"role": "user", "content": "steer"},
    ]);
    assert_eq!(chat(&chat_messages), Vec::<String>::new());

    let responses = json!({"model": "m", "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "u"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "t"}]},
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ]});
    assert_eq!(of(Wire::Responses, &responses), Vec::<String>::new());

    let messages = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "tool_use", "id": "a", "name": "read", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "1"},
            {"type": "text", "text": "steer"},
        ]},
    ]});
    assert_eq!(of(Wire::Messages, &messages), Vec::<String>::new());
}

#[test]
fn calls_and_results_must_pair_up() {
    let user = json!({"role": "user", "content": "u"});
    let asked = json!({"role": "assistant", "tool_calls": [call("a", "{}")]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "1"});
    let other = json!({"role": "tool", "tool_call_id": "z", "content": "1"});
    assert_eq!(chat(&json!([user, asked, user])), ["entry 1: call \"a\" has 0 results"]);
    assert_eq!(chat(&json!([user, asked, result, result])), ["entry 1: call \"a\" has 2 results"]);
    assert_eq!(
        chat(&json!([user, asked, result, other])),
        ["entry 1: result \"z\" belongs to no call"]
    );
    assert_eq!(chat(&json!([user, result])), ["entry 1: tool results without calls before them"]);
    assert_eq!(
        chat(&json!([user, asked, result, asked, result])),
        ["entry 3: call id \"a\" is used twice"]
    );
}

#[test]
fn empty_blank_and_doubled_messages_are_refused() {
    let user = json!({"role": "user", "content": "u"});
    assert_eq!(chat(&json!([])), ["the conversation is empty"]);
    assert_eq!(chat(&json!([{"role": "user", "content": " "}])), ["entry 0: a blank text"]);
    assert_eq!(chat(&json!([user, user])), ["entry 1: two user messages in a row"]);
    assert_eq!(
        chat(&json!([user, {"role": "assistant", "content": null}, user])),
        ["entry 1: an empty assistant message"]
    );
    assert_eq!(
        chat(&json!([user, {"role": "assistant", "content": "a"}])),
        ["the conversation ends with the model's own words"]
    );
}

#[test]
fn broken_texts_and_arguments_are_refused() {
    let user = json!({"role": "user", "content": "u"});
    let asked = json!({"role": "assistant", "tool_calls": [call("a", "{\"x\"")]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "\u{1b}[31m"});
    assert_eq!(
        chat(&json!([user, asked, result])),
        [
            "entry 1: the arguments of read are no JSON object",
            "entry 2: the result of a holds '\\u{1b}'"
        ]
    );
    assert_eq!(
        faults(Wire::Chat, b"{\"model\":\"m\xff\"}", &[]),
        ["the body is not UTF-8: invalid utf-8 sequence of 1 bytes from index 11"]
    );
    let surrogate = faults(Wire::Chat, br#"{"model":"\ud800"}"#, &[]);
    assert!(surrogate[0].starts_with("the body is not JSON"), "{surrogate:?}");
    assert_eq!(chat(&json!([{"role": "user", "content": "a\u{0}"}])), ["a text holds U+0000"]);
}

#[test]
fn format_rules_are_held() {
    let lonely = json!({"model": "m", "input": [
        {"role": "user", "content": "u"},
        {"type": "reasoning", "id": "r", "summary": []},
    ]});
    assert_eq!(of(Wire::Responses, &lonely), ["reasoning item r without the item it belongs to"]);
    let unsigned = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "u"},
    ]});
    assert_eq!(of(Wire::Messages, &unsigned), ["a thinking block without signature"]);
    let twice = json!([{"type": "function", "function": {
        "name": "read", "description": "d", "parameters": {"type": "object"}}}]);
    let doubled = json!({"model": "m", "messages": [{"role": "user", "content": "u"}],
        "tools": [twice[0], twice[0]]});
    assert_eq!(of(Wire::Chat, &doubled), ["tool read is offered twice"]);
}
