//! Streams of Responses servers, whole and odd.

use crate::testing::{decode_events, decode_whole, shown};
use crate::wire::Format;

fn responses(events: &[&str]) -> String {
    shown(&decode_events(Format::Responses, events))
}

const COMPLETED: &str =
    r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;

#[test]
fn mixed_pieces_belong_to_their_own_item() {
    assert_eq!(
        responses(&[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","content":[]}}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"read","arguments":""}}"#,
            r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"f2","call_id":"c2","name":"grep","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"f2","delta":"{\"pat"}"#,
            r#"{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"Look"}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"f1","delta":"{\"path\":\"a.txt\"}"}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"f2","delta":"tern\":\"x\"}"}"#,
            r#"{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"ing."}"#,
            COMPLETED,
        ]),
        r#"text "Looking." | call read {"path":"a.txt"} | call grep {"pattern":"x"} | ToolCalls"#
    );
}

#[test]
fn a_finished_item_fills_in_what_never_came_in_pieces() {
    assert_eq!(
        responses(&[
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"gAAA=="}}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"Hi"}]}}"#,
            r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"f","name":"ls","arguments":""}}"#,
            COMPLETED,
        ]),
        r#"thinking "a\n\nb" {"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"gAAA=="} | text "Hi" | call ls {} | ToolCalls"#
    );
    // Only the last event holds anything.
    assert_eq!(
        responses(&[
            r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]},{"type":"web_search_call","id":"w"},{"type":"function_call","name":"ls","arguments":"{\"a\":1}"}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":1}}}}"#,
        ]),
        r#"text "Hi" | call ls {"a":1} | ToolCalls in 9 cached 4 out 3 reasoning 1"#
    );
}

#[test]
fn reasoning_items_are_kept_as_they_were() {
    let item = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAAAB+/é==","status":null,"x":[1.50,{"b":1,"a":2}]}"#;
    assert_eq!(
        responses(&[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One."}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Two."}"#,
            &format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#),
            COMPLETED,
        ]),
        format!(r#"thinking "One.\n\nTwo." {} | End"#, item.replace("1.50", "1.5"))
    );
}

#[test]
fn ends_are_told_apart() {
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"x"}"#;
    let end = |response: &str| {
        responses(&[text, &format!(r#"{{"type":"response.incomplete","response":{response}}}"#)])
    };
    assert_eq!(
        end(r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}"#),
        r#"text "x" | Length"#
    );
    assert_eq!(
        end(r#"{"incomplete_details":{"reason":"content_filter"},"output":[]}"#),
        r#"text "x" | Refused"#
    );
    assert_eq!(
        responses(&[
            r#"{"type":"response.refusal.delta","output_index":0,"delta":"I cannot."}"#,
            COMPLETED,
        ]),
        r#"text "I cannot." | Refused"#
    );
    // The name of the event counts, whatever the status inside.
    assert_eq!(
        responses(&[
            text,
            r#"{"type":"response.completed","response":{"status":"failed","usage":{"input_tokens":0,"output_tokens":0}}}"#
        ]),
        r#"text "x" | End"#
    );
    assert_eq!(
        responses(&[text, r#"{"type":"response.completed","response":{"status":"incomplete"}}"#]),
        r#"text "x" | Length"#
    );
    assert_eq!(
        responses(&[text, "[DONE]"]),
        "Protocol, streamed: the answer ended without its end mark (no response.completed came)"
    );
}

#[test]
fn failures_inside_a_stream_are_that_error() {
    let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_is_overloaded","message":"try later"},"usage":{"input_tokens":3}}}"#;
    assert_eq!(responses(&[failed]), "Overloaded: try later");
    let outcome = decode_events(Format::Responses, &[failed]);
    assert_eq!(outcome.answer.unwrap_err().usage.input_tokens, Some(3));
    assert_eq!(
        responses(&[
            r#"{"type":"error","code":"context_length_exceeded","message":"too long","param":"input"}"#
        ]),
        "ContextOverflow: too long"
    );
    assert_eq!(
        responses(&[
            r#"{"type":"response.output_text.delta","output_index":0,"delta":"x"}"#,
            r#"{"type":"error","error":{"type":"server_error","code":null,"message":"oops"}}"#,
        ]),
        "Overloaded, streamed: oops"
    );
    assert_eq!(responses(&[r#"{"error":{"message":"no"}}"#]), "Invalid: no");
}

#[test]
fn a_whole_response_in_place_of_a_stream_is_read() {
    let whole = |body: &str| shown(&decode_whole(Format::Responses, body.as_bytes()));
    assert_eq!(
        whole(
            r#"{"object":"response","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":1,"output_tokens":2}}"#
        ),
        r#"text "Hi" | End in 1 out 2"#
    );
    assert_eq!(
        whole(r#"{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}"#),
        "RateLimited: slow"
    );
}
