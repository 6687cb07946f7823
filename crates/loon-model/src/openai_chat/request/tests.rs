//! Chat completions requests.

use loon_api::{Effort, ToolResult};
use serde_json::{Value, json};

use super::*;
use crate::testing::{
    MODEL, assert_body, assistant, called, conversation, request, rounds, said, thought, user,
};

fn target(is_openai: bool) -> Target {
    Target {
        name: MODEL.into(),
        model: "coder".into(),
        is_openai,
        max_output_tokens: None,
        effort: None,
    }
}

fn body(request: &ModelRequest, target: &Target) -> Value {
    serde_json::from_slice(&encode(request, target).unwrap()).unwrap()
}

#[test]
fn a_whole_request_for_a_compatible_server() {
    let mut request = request(conversation(MODEL, json!({"field": "reasoning_content"})));
    request.effort = Some(Effort::High);
    request.max_output_tokens = Some(500);
    request.output_schema = Some(json!({"type": "object"}));
    assert_body("request-chat", &encode(&request, &target(false)).unwrap());
}

#[test]
fn the_makers_server_gets_members_of_its_own() {
    let mut target = target(true);
    target.max_output_tokens = Some(64);
    let body = body(&request(vec![user("Hi")]), &target);
    assert_eq!(body["max_completion_tokens"], 64);
    assert_eq!(body["prompt_cache_key"], "session-1");
    assert!(body.get("max_tokens").is_none());
}

#[test]
fn a_request_without_an_effort_takes_the_models() {
    let target = Target { effort: Some(Effort::Medium), ..target(false) };
    let mut request = request(vec![user("Hi")]);
    assert_eq!(body(&request, &target)["reasoning_effort"], "medium");
    request.effort = Some(Effort::Low);
    assert_eq!(body(&request, &target)["reasoning_effort"], "low");
}

#[test]
fn what_is_not_asked_for_is_not_sent() {
    let mut request = request(vec![user("Hi")]);
    request.tools = [].into();
    request.system = String::new();
    assert_eq!(
        body(&request, &target(false)),
        json!({
            "model": "coder",
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": [{"role": "user", "content": "Hi"}],
        })
    );
}

#[test]
fn reasoning_goes_back_in_its_field_to_its_model_with_its_calls() {
    let messages = |field: &str| {
        vec![
            user("a"),
            assistant(vec![
                thought(MODEL, "think ", json!({"field": field})),
                thought(MODEL, "A", json!({"field": field})),
                called(0, json!({"path": "a"}), ToolResult::ok("x")),
            ]),
            assistant(vec![thought(MODEL, "B", json!({"field": field})), said("Done.")]),
            user("b"),
        ]
    };
    for (field, other) in [("reasoning_content", "reasoning"), ("reasoning", "reasoning_content")] {
        let body = body(&request(messages(field)), &target(false));
        assert_eq!(body["messages"][2][field], "think A");
        assert_eq!(body["messages"][2][other], Value::Null);
        assert!(body["messages"][4].get(field).is_none(), "a finished answer");
    }
    let mut other = target(false);
    other.name = "lab/other".into();
    assert!(!body(&request(messages("reasoning")), &other).to_string().contains("reasoning"));
}

#[test]
fn a_request_begins_with_the_bytes_of_the_one_before() {
    let bytes =
        |count| String::from_utf8(encode(&request(rounds(count)), &target(true)).unwrap()).unwrap();
    for count in 0..3 {
        let (before, after) = (bytes(count), bytes(count + 1));
        assert!(after.starts_with(before.strip_suffix("]}").unwrap()), "{before}\n{after}");
        assert_eq!(before, bytes(count));
    }
}
