//! Messages requests.

use loon_api::ToolResult;
use serde_json::{Value, json};

use super::*;
use crate::testing::{
    MODEL, assert_body, assistant, called, conversation, request, rounds, thought, user,
};

fn target() -> Target {
    Target {
        name: MODEL.into(),
        model: "coder".into(),
        is_openai: false,
        max_output_tokens: None,
        effort: None,
    }
}

fn body(request: &ModelRequest) -> Value {
    serde_json::from_slice(&encode(request, &target()).unwrap()).unwrap()
}

#[test]
fn a_whole_request() {
    let mut request = request(conversation(MODEL, json!({"signature": "EqAB=="})));
    request.effort = Some(Effort::Medium);
    request.output_schema = Some(json!({"type": "object"}));
    assert_body("request-anthropic", &encode(&request, &target()).unwrap());
}

#[test]
fn redacted_thinking_goes_back_in_place() {
    let messages = vec![
        user("a"),
        assistant(vec![
            thought(MODEL, "hm", json!({"signature": ""})),
            thought(MODEL, "", json!({"redacted": "EmwK=="})),
            called(0, json!({}), ToolResult::ok("x")),
        ]),
    ];
    let body = body(&request(messages));
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "redacted_thinking", "data": "EmwK=="},
            {"type": "tool_use", "id": "c00100000", "name": "read", "input": {}},
        ])
    );
}

#[test]
fn the_thinking_budget_fits_the_answer() {
    let limits = |effort, stated| {
        let mut request = request(vec![user("a")]);
        request.effort = effort;
        request.max_output_tokens = stated;
        let body = body(&request);
        (body["max_tokens"].as_u64().unwrap(), body["thinking"]["budget_tokens"].as_u64())
    };
    assert_eq!(limits(None, None), (8192, None));
    assert_eq!(limits(None, Some(100)), (100, None));
    assert_eq!(limits(Some(Effort::Low), None), (8192 + 2048, Some(2048)));
    assert_eq!(limits(Some(Effort::High), None), (8192 + 24_576, Some(24_576)));
    assert_eq!(limits(Some(Effort::High), Some(16_384)), (16_384, Some(8192)));
    assert_eq!(limits(Some(Effort::High), Some(2000)), (2000, None));
}

#[test]
fn a_request_without_an_effort_takes_the_models() {
    let budget = |effort, of_model| {
        let mut request = request(vec![user("a")]);
        request.effort = effort;
        let target = Target { effort: of_model, ..target() };
        let body: Value = serde_json::from_slice(&encode(&request, &target).unwrap()).unwrap();
        body["thinking"]["budget_tokens"].as_u64()
    };
    assert_eq!(budget(None, Some(Effort::Medium)), Some(8192));
    assert_eq!(budget(Some(Effort::Low), Some(Effort::Medium)), Some(2048));
}

#[test]
fn thinking_waits_where_another_model_made_the_last_calls() {
    let thinks = |messages| {
        let mut request = request(messages);
        request.effort = Some(Effort::Low);
        body(&request).get("thinking").is_some()
    };
    let call = || called(0, json!({}), ToolResult::ok("x"));
    let signed = |model| thought(model, "hm", json!({"signature": "s"}));
    assert!(thinks(vec![user("a"), assistant(vec![signed(MODEL), call()])]));
    assert!(!thinks(vec![user("a"), assistant(vec![signed("lab/other"), call()])]));
    assert!(!thinks(vec![user("a"), assistant(vec![call()])]));
    assert!(thinks(vec![user("a"), assistant(vec![call()]), user("b")]));
}

#[test]
fn a_request_begins_with_the_one_before_save_for_cache_marks() {
    let bytes = |count| {
        let text = String::from_utf8(encode(&request(rounds(count)), &target()).unwrap()).unwrap();
        assert!(text.matches("cache_control").count() <= 4, "{text}");
        text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    for count in 0..4 {
        let (before, after) = (bytes(count), bytes(count + 1));
        assert!(after.starts_with(before.strip_suffix("]}").unwrap()), "{before}\n{after}");
    }
}
