//! Streams of chat servers, whole and odd.

use loon_kernel::port::Progress;

use crate::testing::{decode_events, shown};
use crate::wire::Format;

fn chat(events: &[&str]) -> String {
    shown(&decode_events(Format::Chat, events))
}

/// The data of an event with this delta.
fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#)
}

fn end(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

/// A stream of these `tool_calls` members.
fn call_stream(fragments: &[&str]) -> String {
    let mut events: Vec<String> = fragments
        .iter()
        .map(|fragments| delta(&format!(r#"{{"tool_calls":{fragments}}}"#)))
        .collect();
    events.push(end("tool_calls"));
    events.push("[DONE]".into());
    chat(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn null_and_empty_members_are_normal_and_the_last_usage_counts() {
    assert_eq!(
        chat(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":null}}],"usage":null}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
            r#"{"choices":[{"index":0,"delta":null,"finish_reason":"stop","new_field":{"x":[1]}}]}"#,
            r#"{"choices":null,"usage":null}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_tokens_details":null}}"#,
            "[DONE]",
        ]),
        r#"text "hi" | End in 5 out 2"#
    );
    assert_eq!(
        chat(&[&delta(r#"{"content":"hi","tool_calls":[],"refusal":""}"#), &end("stop")]),
        r#"text "hi" | End"#
    );
    assert_eq!(
        chat(&[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":null,"function":null}]},"finish_reason":""}]}"#,
            &end("stop"),
        ]),
        "call  {} | ToolCalls"
    );
}

#[test]
fn mixed_fragments_belong_to_their_own_call() {
    let expected = r#"call read {"path":"a.txt"} | call grep {"pattern":"x"} | ToolCalls"#;
    assert_eq!(
        call_stream(&[
            r#"[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":""}}]"#,
            r#"[{"index":1,"id":"c2","type":"function","function":{"name":"grep","arguments":""}}]"#,
            r#"[{"index":1,"function":{"arguments":"{\"pat"}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"path\":"}},{"index":1,"function":{"arguments":"tern\":\"x\"}"}}]"#,
            r#"[{"index":0,"function":{"arguments":"\"a.txt\"}"}}]"#,
        ]),
        expected
    );
    assert_eq!(
        call_stream(&[
            r#"[{"id":"c1","function":{"name":"read","arguments":""}}]"#,
            r#"[{"function":{"arguments":"{\"path\":"}}]"#,
            r#"[{"function":{"arguments":"\"a.txt\"}"}}]"#,
            r#"[{"id":"c2","function":{"name":"grep","arguments":"{\"pat"}}]"#,
            r#"[{"function":{"arguments":"tern\":\"x\"}"}}]"#,
        ]),
        expected
    );
    // Every call under index 0.
    assert_eq!(
        call_stream(&[
            r#"[{"index":0,"id":"c1","function":{"name":"read","arguments":"{\"path\":\"a.txt\"}"}}]"#,
            r#"[{"index":0,"id":"c2","function":{"name":"grep","arguments":"{\"pattern\":"}}]"#,
            r#"[{"index":0,"id":"c2","function":{"name":"grep","arguments":"\"x\"}"}}]"#,
        ]),
        expected
    );
    // Neither index nor id.
    assert_eq!(
        call_stream(&[
            r#"[{"function":{"name":"read","arguments":{"path":"a.txt"}}},{"function":{"name":"grep","arguments":{"pattern":"x"}}}]"#,
        ]),
        expected
    );
}

#[test]
fn arguments_are_empty_an_object_or_text() {
    let call = |arguments: &str| {
        call_stream(&[&format!(
            r#"[{{"index":0,"id":"c1","function":{{"name":"f","arguments":{arguments}}}}}]"#
        )])
    };
    assert_eq!(call(r#""""#), "call f {} | ToolCalls");
    assert_eq!(call("null"), "call f {} | ToolCalls");
    assert_eq!(call(r#"{"a":1}"#), r#"call f {"a":1} | ToolCalls"#);
    assert_eq!(call(r#""{\"a\":""#), r#"call f "{\"a\":" | ToolCalls"#);
    assert_eq!(call(r#""[1]""#), r#"call f "[1]" | ToolCalls"#);
}

#[test]
fn reasoning_keeps_the_field_it_came_in() {
    let calls = r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]}"#;
    for field in ["reasoning_content", "reasoning"] {
        assert_eq!(
            chat(&[
                &delta(&format!(r#"{{"{field}":"think "}}"#)),
                &delta(&format!(r#"{{"{field}":"A"}}"#)),
                &delta(calls),
                &end("tool_calls"),
            ]),
            format!(
                r#"thinking "think A" {{"field":"{field}"}} | call read {{"path":"a"}} | ToolCalls"#
            )
        );
    }
    let both = delta(r#"{"reasoning":"same","reasoning_content":"same"}"#);
    assert_eq!(
        chat(&[&both, &end("stop")]),
        r#"thinking "same" {"field":"reasoning_content"} | End"#
    );
}

#[test]
fn stop_reasons_are_told_apart() {
    let stop = |reason: &str| chat(&[&delta(r#"{"content":"x"}"#), &end(reason)]);
    assert_eq!(stop("stop"), r#"text "x" | End"#);
    assert_eq!(stop("eos_token"), r#"text "x" | End"#);
    assert_eq!(stop("tool_calls"), r#"text "x" | End"#);
    assert_eq!(stop("length"), r#"text "x" | Length"#);
    assert_eq!(stop("content_filter"), r#"text "x" | Refused"#);
    assert_eq!(
        chat(&[&delta(r#"{"refusal":"I cannot."}"#), &end("stop")]),
        r#"text "I cannot." | Refused"#
    );
    let call = delta(
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"write","arguments":"{\"path\":\"a.txt\"}"}}]}"#,
    );
    assert_eq!(chat(&[&call, &end("stop")]), r#"call write {"path":"a.txt"} | ToolCalls"#);
    assert_eq!(chat(&[&call, &end("length")]), r#"call write {"path":"a.txt"} | Length"#);
}

#[test]
fn an_error_inside_a_stream_is_that_error() {
    let busy = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    assert_eq!(
        chat(&[r#"{"id":"x","choices":[],"error":{"code":502,"message":"upstream limit"}}"#]),
        "Overloaded: upstream limit"
    );
    assert_eq!(chat(&[busy]), "Overloaded: busy");
    assert_eq!(chat(&[&delta(r#"{"content":"Hel"}"#), busy]), "Overloaded, streamed: busy");
    assert_eq!(
        chat(&[r#"{"error":{"type":"invalid_request_error","message":"bad schema"}}"#]),
        "Invalid: bad schema"
    );
    assert_eq!(
        chat(&[r#"{"object":"error","message":"too big","type":"BadRequestError","code":400}"#]),
        "Invalid: too big"
    );
    let named =
        b"event: error\ndata: {\"code\":\"server_is_overloaded\",\"message\":\"later\"}\n\n";
    assert_eq!(shown(&crate::testing::decode_whole(Format::Chat, named)), "Overloaded: later");
    let field = b"error: {\"code\":500,\"message\":\"slot gone\",\"type\":\"server_error\"}\n\n";
    assert_eq!(shown(&crate::testing::decode_whole(Format::Chat, field)), "Overloaded: slot gone");
    // An error member that says nothing is none.
    assert_eq!(
        chat(&[
            &delta(r#"{"content":"x"}"#).replace("{\"choices", r#"{"error":null,"choices"#),
            &end("stop")
        ]),
        r#"text "x" | End"#
    );
}

#[test]
fn an_error_keeps_the_usage_that_was_reported_before_it() {
    let outcome = decode_events(
        Format::Chat,
        &[r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#, "{"],
    );
    let error = outcome.answer.unwrap_err();
    assert_eq!((error.usage.input_tokens, error.streamed), (Some(5), false));
}

#[test]
fn an_empty_answer_is_for_the_caller_to_judge() {
    assert_eq!(chat(&[&end("stop"), "[DONE]"]), "End");
    assert_eq!(
        chat(&[&delta(r#"{"reasoning":"hm"}"#), &end("stop")]),
        r#"thinking "hm" {"field":"reasoning"} | End"#
    );
}

#[test]
fn other_choices_are_other_answers() {
    let other = r#"{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"}]}"#;
    assert_eq!(chat(&[&delta(r#"{"content":"x"}"#), other, &end("stop")]), r#"text "x" | End"#);
}

#[test]
fn counts_come_under_several_names() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_cache_hit_tokens":6,"cache_creation_input_tokens":2,"completion_tokens_details":{"reasoning_tokens":3}}}"#;
    assert_eq!(
        chat(&[&end("stop"), usage, "[DONE]"]),
        "End in 10 cached 6 written 2 out 4 reasoning 3"
    );
    let zero = r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#;
    assert_eq!(chat(&[&end("stop"), zero, "[DONE]"]), "End");
}

#[test]
fn progress_comes_in_the_order_of_the_stream() {
    let outcome = decode_events(
        Format::Chat,
        &[
            &delta(r#"{"reasoning":"a"}"#),
            &delta(r#"{"content":"b"}"#),
            &delta(r#"{"tool_calls":[{"index":4,"id":"c","function":{"name":"f"}}]}"#),
            &delta(r#"{"tool_calls":[{"index":4,"function":{"arguments":"{}"}}]}"#),
            &delta(r#"{"content":"c"}"#),
            &end("stop"),
        ],
    );
    assert_eq!(
        outcome.told,
        [
            Progress::Thinking("a".into()),
            Progress::Text("b".into()),
            Progress::Arguments { index: 0, name: Some("f".into()), fragment: "{}".into() },
            Progress::Text("c".into()),
        ]
    );
}
