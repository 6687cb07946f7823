//! Responses requests.

use serde_json::{Value, json};

use super::*;
use crate::testing::{
    MODEL, assert_body, assistant, conversation, request, rounds, said, thought, user,
};

fn target(model: &str, is_openai: bool) -> Target {
    Target {
        name: MODEL.into(),
        model: model.into(),
        is_openai,
        max_output_tokens: None,
        effort: None,
    }
}

fn body(request: &ModelRequest, target: &Target) -> Value {
    serde_json::from_slice(&encode(request, target).unwrap()).unwrap()
}

#[test]
fn a_whole_request() {
    let item =
        json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA=="});
    let mut request = request(conversation(MODEL, item));
    request.effort = Some(Effort::Medium);
    request.max_output_tokens = Some(500);
    request.output_schema = Some(json!({"type": "object"}));
    assert_body("request-responses", &encode(&request, &target("coder", true)).unwrap());
}

#[test]
fn older_models_hear_nothing_of_reasoning() {
    let mut request = request(vec![user("Hi")]);
    request.effort = Some(Effort::Low);
    let old = body(&request, &target("gpt-4.1-mini", true));
    assert!(old.get("include").is_none() && old.get("reasoning").is_none());
    let local = body(&request, &target("gpt-4.1-mini", false));
    assert_eq!(local["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(local["reasoning"], json!({"effort": "low", "summary": "auto"}));
}

#[test]
fn a_request_without_an_effort_takes_the_models() {
    let target = Target { effort: Some(Effort::High), ..target("coder", false) };
    let mut request = request(vec![user("Hi")]);
    assert_eq!(body(&request, &target)["reasoning"]["effort"], "high");
    request.effort = Some(Effort::Low);
    assert_eq!(body(&request, &target)["reasoning"]["effort"], "low");
    let old = Target { model: "gpt-4.1".into(), is_openai: true, ..target };
    assert!(body(&request, &old).get("reasoning").is_none());
}

#[test]
fn only_reasoning_that_holds_itself_goes_back() {
    let items = |item: Value| {
        let messages =
            vec![user("a"), assistant(vec![thought(MODEL, "hm", item), said("Hi.")]), user("b")];
        body(&request(messages), &target("coder", false))["input"].as_array().unwrap().len()
    };
    assert_eq!(items(json!({"type": "reasoning", "encrypted_content": "x"})), 4);
    assert_eq!(
        items(
            json!({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}], "encrypted_content": ""})
        ),
        4
    );
    assert_eq!(
        items(json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null})),
        3
    );
    assert_eq!(items(json!({"signature": "x"})), 3);
}

#[test]
fn a_request_begins_with_the_bytes_of_the_one_before() {
    let bytes = |count| {
        let body = encode(&request(rounds(count)), &target("coder", true)).unwrap();
        String::from_utf8(body).unwrap()
    };
    for count in 0..3 {
        let (before, after) = (bytes(count), bytes(count + 1));
        assert!(after.starts_with(before.strip_suffix("]}").unwrap()), "{before}\n{after}");
    }
}
