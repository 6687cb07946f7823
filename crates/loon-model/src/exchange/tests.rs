//! Recorded answers of real servers and gateways, in reads of every size.

use proptest::prelude::*;

use super::*;
use crate::testing::{Outcome, decode, decode_whole, recording, shown};

/// Recordings and what they are.
const RECORDED: &[(&str, &str)] = &[
    ("chat-text", r#"text "Hello! How can I assist you today?" | End in 35 cached 0 out 10"#),
    ("chat-without-usage", r#"text "Hello! How can I" | Length"#),
    ("chat-length", r#"text "1, " | Length in 36 cached 24 out 3"#),
    (
        "chat-reasoning",
        r#"thinking "Adding three and four.\n" {"field":"reasoning_content"} | text "7" | End in 66 cached 0 out 10"#,
    ),
    ("chat-call", r#"call read_file {"path":"README.md"} | ToolCalls in 232 cached 117 out 22"#),
    (
        "chat-call-by-choice",
        r#"call read_file {"path":"README.md"} | ToolCalls in 178 cached 18 out 22"#,
    ),
    (
        "chat-call-by-name",
        r#"call read_file {"path":"README.md"} | ToolCalls in 232 cached 231 out 22"#,
    ),
    (
        "chat-after-result",
        r#"call read_file {"path":"README.md"} | ToolCalls in 224 cached 117 out 22"#,
    ),
    (
        "chat-two-calls",
        r#"call read_file {"path":"read.txt"} | call read_file {"path":"b.txt"} | ToolCalls in 233 cached 219 out 39"#,
    ),
    ("chat-json", r#"text "{\"city\": \"New York\", \"n\": 100}" | End"#),
    (
        "chat-null-usage",
        r#"text "gpt-5 mock reply: I saw 'Say hello in five words.'." | End in 6 out 12"#,
    ),
    ("chat-usage-beside-choice", r#"text "Hello from litellm mock." | End in 8 out 7 reasoning 0"#),
    ("chat-whole", r#"text "Hello! How can I assist you today?" | End in 35 cached 34 out 10"#),
    (
        "chat-whole-call",
        r#"call read_file {"path":"README.md"} | ToolCalls in 232 cached 231 out 22"#,
    ),
    ("chat-whole-length", r#"text "I'm sorry," | Length in 30 cached 24 out 4"#),
    ("chat-whole-orphan-result", r#"text "```json\n{\n" | Length in 39 cached 22 out 4"#),
    ("chat-whole-odd-role", r#"text "Hello! How can" | Length in 24 cached 22 out 4"#),
    (
        "chat-cut",
        "Protocol, streamed: the answer ended without its end mark (no finish reason came)",
    ),
    (
        "chat-truncated",
        "Protocol, streamed: the answer ended without its end mark (no finish reason came)",
    ),
    (
        "chat-malformed",
        "Protocol, streamed: the server sent something that is not its format: EOF while parsing a string at line 1 column 115",
    ),
    ("anthropic-text", r#"text "Hello, world!" | End in 22 cached 3 out 5"#),
    (
        "anthropic-interleaved-blocks",
        r#"thinking "Adding three and four.\n" {"signature":""} | text "7" | End in 66 cached 0 out 10"#,
    ),
    (
        "anthropic-call-without-input",
        r#"call read_file {"path":"README.md"} | ToolCalls in 167 cached 166 out 30"#,
    ),
    (
        "anthropic-late-usage",
        r#"call read_file {"path":"README.md"} | ToolCalls in 167 cached 0 written 0 out 22"#,
    ),
    ("anthropic-ping", r#"text "Simulated success from claude-sonnet-5." | End in 6 out 9"#),
    ("anthropic-whole-cached", r#"text "Hello! How can I" | Length in 30 cached 0 out 5"#),
    (
        "anthropic-whole",
        r#"text "I'm sorry, but as an AI language model, I don't have the ability to access or modify your personal data. However, I can certainly help you with any questions or tasks you have." | End in 24 cached 22 out 41"#,
    ),
    ("anthropic-whole-gateway", r#"text "Hello from litellm mock." | End in 2095 out 503"#),
    ("anthropic-cut", "Protocol: the answer ended without its end mark (no message_stop came)"),
    (
        "anthropic-truncated",
        "Protocol: the answer ended without its end mark (no message_stop came)",
    ),
    (
        "anthropic-no-message",
        "Protocol: the answer ended without its end mark (no message_stop came)",
    ),
    (
        "anthropic-malformed",
        "Protocol: the server sent something that is not its format: EOF while parsing a string at line 1 column 45",
    ),
    ("responses-text", r#"text "Hello! How can I assist you today?" | End in 35 cached 24 out 10"#),
    (
        "responses-interleaved-items",
        r#"thinking "Adding three and four.\n" {"id":"rs_vngANij6TajSnvueQNQRskElzCAczPvM","summary":[],"type":"reasoning","content":[{"text":"Adding three and four.\n","type":"reasoning_text"}],"encrypted_content":""} | text "7" | End in 66 cached 65 out 10"#,
    ),
    (
        "responses-call",
        r#"call read_file {"path":"README.md"} | ToolCalls in 167 cached 18 out 30"#,
    ),
    (
        "responses-with-done",
        r#"text "Hello! How can I assist you today?" | End in 32 cached 18 out 10"#,
    ),
    (
        "responses-text-indexed",
        r#"text "gpt-5 mock reply: I saw 'Say hello in five words.'." | End in 6 cached 0 out 12 reasoning 0"#,
    ),
    (
        "responses-cut",
        "Protocol: the answer ended without its end mark (no response.completed came)",
    ),
    (
        "responses-truncated",
        "Protocol: the answer ended without its end mark (no response.completed came)",
    ),
    (
        "responses-malformed",
        "Protocol: the server sent something that is not its format: EOF while parsing a string at line 1 column 102",
    ),
];

fn format_of(name: &str) -> Format {
    match name.split('-').next() {
        Some("chat") => Format::Chat,
        Some("anthropic") => Format::Anthropic,
        Some("responses") => Format::Responses,
        _ => panic!("{name}"),
    }
}

#[test]
fn recorded_answers_are_decoded_right() {
    for (name, expected) in RECORDED {
        let recording = recording(name);
        assert_eq!(recording.status, 200, "{name}");
        assert_eq!(shown(&decode_whole(format_of(name), &recording.body)), *expected, "{name}");
    }
}

#[test]
fn a_full_window_ends_an_answer_in_its_middle() {
    let body = recording("chat-window-full-with-pings").body;
    let Outcome { answer, .. } = decode_whole(Format::Chat, &body);
    let answer = answer.unwrap();
    assert_eq!(answer.stop, loon_api::StopReason::Length);
    assert_eq!(answer.usage.input_tokens, Some(836));
    let [loon_api::AnswerPart::Text(text)] = &answer.parts[..] else { panic!() };
    assert!(text.starts_with("# Import necessary libraries\nimport numpyworm\n"), "{text}");
    assert!(text.ends_with("plt.figure(figsize=("), "{text}");
    assert_eq!(decode(Format::Chat, body.chunks(1)), decode_whole(Format::Chat, &body));
}

#[test]
fn reads_may_end_anywhere_in_a_recorded_answer() {
    for (name, _) in RECORDED {
        let (format, body) = (format_of(name), recording(name).body);
        let whole = decode_whole(format, &body);
        assert_eq!(decode(format, body.chunks(1)), whole, "{name}");
        // Every offset of the small ones; a prime apart in the others.
        let step = if body.len() < 1500 { 1 } else { 37 };
        for offset in (0..body.len()).step_by(step) {
            let (head, tail) = body.split_at(offset);
            assert_eq!(decode(format, [head, tail]), whole, "{name} at {offset}");
        }
    }
}

#[test]
fn a_cut_answer_is_never_an_answer() {
    for name in ["chat-text", "chat-two-calls", "anthropic-interleaved-blocks", "responses-call"] {
        let (format, body) = (format_of(name), recording(name).body);
        let text = String::from_utf8(body).unwrap();
        let end = match format {
            Format::Chat => text.find(r#""finish_reason":"stop""#),
            _ => None,
        };
        let end = end
            .or_else(|| text.find(r#""finish_reason":"tool_calls""#))
            .or_else(|| text.find(r#"{"type":"message_stop"}"#))
            .or_else(|| text.find(r#""type":"response.completed""#))
            .unwrap();
        for cut in (0..end).step_by(11) {
            let outcome = decode_whole(format, &text.as_bytes()[..cut]);
            let error = outcome.answer.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Protocol, "{name} at {cut}");
            assert_eq!(error.streamed, !outcome.told.is_empty(), "{name} at {cut}");
        }
    }
}

const WIDE: &str =
    "h\u{e9}llo \u{4f60}\u{597d} \u{1F469}\u{200d}\u{1F469}\u{200d}\u{1F467} \u{201c}q\u{201d}";

#[test]
fn a_character_may_come_in_several_reads() {
    let body = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{WIDE}\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n\
         data: [DONE]\n\n"
    );
    let body = body.as_bytes();
    let expected = format!("text {WIDE:?} | End");
    assert_eq!(shown(&decode(Format::Chat, body.chunks(1))), expected);
    for offset in 0..body.len() {
        let (head, tail) = body.split_at(offset);
        assert_eq!(shown(&decode(Format::Chat, [head, tail])), expected, "{offset}");
    }
    let inside = body.iter().position(|byte| *byte == 0xE4).unwrap() + 1;
    assert_eq!(
        shown(&decode_whole(Format::Chat, &body[..inside])),
        "Protocol: the stream ended inside an event"
    );
}

#[test]
fn the_stream_is_read_by_its_standard() {
    let body = b"\xef\xbb\xbf: hello\r\n\r\nevent: message\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"A\"}}]}\r\n\r\n\
        : still working\n\n:\n\n\
        data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"B\"}}]}\n\n\
        data: null\n\ndata:\n\n\
        id: 7\nretry: 10\nfoo: bar\ndata: {\"choices\":[{\"delta\":{\"content\":\"C\"},\"finish_reason\":\"stop\"}]}\r\n\r\r\
        data: [DONE]\n\n";
    let expected = r#"text "ABC" | End"#;
    assert_eq!(shown(&decode_whole(Format::Chat, body)), expected);
    assert_eq!(shown(&decode(Format::Chat, body.chunks(1))), expected);
    for offset in 0..body.len() {
        let (head, tail) = body.split_at(offset);
        assert_eq!(shown(&decode(Format::Chat, [head, tail])), expected, "{offset}");
    }
}

#[test]
fn what_is_no_stream_is_told_as_what_it_is() {
    let shown = |body: &str| shown(&decode_whole(Format::Chat, body.as_bytes()));
    assert_eq!(shown(r#"{"error":{"message":"quota"}}"#), "Invalid: quota");
    assert_eq!(shown(r#" [{"error":{"code":503,"message":"busy"}}]"#), "Overloaded: busy");
    assert_eq!(
        shown("<html><title>Log in</title></html>"),
        "Protocol: the server answered with a web page: Log in"
    );
    let latin = b"{\"choices\":[{\"message\":{\"content\":\"\xE9\"},\"finish_reason\":\"stop\"}]}";
    assert_eq!(
        crate::testing::shown(&decode_whole(Format::Chat, latin)),
        "Protocol: the answer is not valid UTF-8"
    );
    for nothing in ["", "\r\n\r\n", ": ping\n\n", "data: [DONE]\n\n", "{}", "hello\n"] {
        assert!(shown(nothing).starts_with("Protocol: the answer ended without"), "{nothing}");
    }
}

#[test]
fn an_answer_has_a_largest_size() {
    let body = vec![b' '; MAX_BODY_BYTES];
    assert_eq!(
        shown(&decode(Format::Chat, [&b"{"[..], &body])),
        "Protocol: the answer is larger than any answer may be"
    );
}

#[test]
fn pieces_of_one_read_are_told_in_one_message() {
    let mut intake = Intake::new(Format::Chat.decoder("lab/coder"));
    intake.feed(&recording("chat-text").body).unwrap();
    assert_eq!(
        intake.take_progress(),
        [Progress::Text("Hello! How can I assist you today?".into())]
    );
    let mut intake = Intake::new(Format::Chat.decoder("lab/coder"));
    intake.feed(&recording("chat-two-calls").body).unwrap();
    let call = |index, name: Option<&str>, fragment: &str| Progress::Arguments {
        index,
        name: name.map(str::to_owned),
        fragment: fragment.to_owned(),
    };
    assert_eq!(
        intake.take_progress(),
        [
            call(0, Some("read_file"), r#"{"path": "read.txt"}"#),
            call(1, Some("read_file"), r#"{"path": "b.txt"}"#),
        ]
    );
}

fn formats() -> impl Strategy<Value = Format> {
    prop::sample::select(vec![Format::Chat, Format::Responses, Format::Anthropic])
}

/// Pieces of streams of all formats, whole and broken.
fn events() -> impl Strategy<Value = Vec<&'static str>> {
    let pieces = vec![
        r#"{"choices":[{"delta":{"content":"a é"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"b"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"x","function":{"name":"f","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]}}]}"#,
        r#"{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}"#,
        r#"{"error":{"message":"no"}}"#,
        r#"{"type":"message_start","message":{"usage":{"input_tokens":18446744073709551615,"cache_read_input_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","name":"g"}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"partial_json":"[1"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","signature":"s"}}"#,
        r#"{"type":"content_block_delta","delta":{"signature":"t","text":"u"}}"#,
        r#"{"type":"message_stop"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"reasoning","id":"r"}}"#,
        r#"{"type":"response.output_text.delta","item_id":"r","delta":"x"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","name":"h"}}"#,
        r#"{"type":"response.completed","response":{"output":[],"usage":null}}"#,
        r#"{"type":"error","message":"x"}"#,
        "[DONE]",
        "null",
        "",
        "{",
        "5",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..12)
}

proptest! {
    #[test]
    fn sizes_of_reads_change_no_answer(
        format in formats(),
        events in events(),
        cut_at in any::<prop::sample::Index>(),
        size in 1usize..40,
    ) {
        let mut body = crate::testing::stream(&events).into_bytes();
        body.truncate(cut_at.index(body.len() * 2 + 1));
        prop_assert_eq!(decode(format, body.chunks(size)), decode_whole(format, &body));
    }

    #[test]
    fn any_bytes_are_an_answer_or_an_error(
        format in formats(),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let _ = decode_whole(format, &bytes);
        let framed = [b"data: {\"choices\":", &bytes[..], b"\n\n"].concat();
        let _ = decode_whole(format, &framed);
    }
}
