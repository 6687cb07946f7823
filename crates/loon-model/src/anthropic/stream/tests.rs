//! Streams of Messages servers, whole and odd.

use crate::testing::{decode_events, decode_whole, shown};
use crate::wire::Format;

fn anthropic(events: &[&str]) -> String {
    shown(&decode_events(Format::Anthropic, events))
}

const STOP: &str = r#"{"type":"message_stop"}"#;

fn end(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":7}}}}"#
    )
}

#[test]
fn mixed_pieces_belong_to_their_own_block() {
    assert_eq!(
        anthropic(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"read","input":{}}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c2","name":"grep","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"pat"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"tern\":\"x\"}"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"a.txt\"}"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Look"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            &end("tool_use"),
            STOP,
        ]),
        r#"text "Look" | call read {"path":"a.txt"} | call grep {"pattern":"x"} | ToolCalls out 7"#
    );
}

#[test]
fn thinking_keeps_its_signature_and_redacted_thinking_its_data() {
    assert_eq!(
        anthropic(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB+/=="}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"T"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"wo"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"AB=="}}"#,
            &end("end_turn"),
            STOP,
        ]),
        r#"thinking "hm" {"signature":"EqAB=="} | thinking "" {"redacted":"EmwKAhgB+/=="} | text "Two" | End out 7"#
    );
}

#[test]
fn arguments_may_come_with_the_opening() {
    assert_eq!(
        anthropic(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"a":1}}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"g","input":null}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s","name":"search","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
            &end("tool_use"),
            STOP,
        ]),
        r#"call f {"a":1} | call g {} | ToolCalls out 7"#
    );
}

#[test]
fn input_tokens_count_what_the_server_counts_apart() {
    assert_eq!(
        anthropic(&[
            r#"{"type":"message_start","message":{"usage":{"input_tokens":1,"cache_read_input_tokens":20,"cache_creation_input_tokens":300,"output_tokens":1}}}"#,
            &end("end_turn"),
            STOP,
        ]),
        "End in 321 cached 20 written 300 out 7"
    );
}

#[test]
fn stop_reasons_are_told_apart() {
    let stop = |reason: &str| anthropic(&[&end(reason), STOP]);
    assert_eq!(stop("end_turn"), "End out 7");
    assert_eq!(stop("stop_sequence"), "End out 7");
    assert_eq!(stop("tool_use"), "End out 7");
    assert_eq!(stop("max_tokens"), "Length out 7");
    assert_eq!(stop("model_context_window_exceeded"), "Length out 7");
    assert_eq!(stop("refusal"), "Refused out 7");
    assert_eq!(stop("content_filter"), "Refused out 7");
    assert_eq!(
        anthropic(&[&end("end_turn")]),
        "Protocol: the answer ended without its end mark (no message_stop came)"
    );
}

#[test]
fn failures_inside_a_stream_are_that_error() {
    let busy = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let text =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hel"}}"#;
    assert_eq!(anthropic(&[busy]), "Overloaded: Overloaded");
    assert_eq!(anthropic(&[text, busy]), "Overloaded, streamed: Overloaded");
    assert_eq!(
        anthropic(&[
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#
        ]),
        "ContextOverflow: prompt is too long: 210000 tokens > 200000 maximum"
    );
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    assert_eq!(shown(&decode_whole(Format::Anthropic, body.as_bytes())), "RateLimited: slow down");
}

#[test]
fn a_whole_message_in_place_of_a_stream_is_read() {
    let body = r#"{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"a","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":6}}"#;
    assert_eq!(
        shown(&decode_whole(Format::Anthropic, body.as_bytes())),
        r#"thinking "hm" {"signature":"s"} | text "Hi" | call f {"a":1} | ToolCalls in 5 out 6"#
    );
}
