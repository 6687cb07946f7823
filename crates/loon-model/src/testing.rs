//! What the tests of this crate share: recorded answers, decoding without a connection, and a short
//! form of answers to compare.

pub(crate) mod server;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use loon_api::{
    Answer, AnswerPart, AnsweredCall, AssistantMessage, AssistantPart, CallId, Message, ModelError,
    ModelRequest, Thinking, ToolClass, ToolResult, ToolSpec, UserPart,
};
use loon_kernel::port::{EffectContext, Progress};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::exchange::Intake;
use crate::sse::Flow;
use crate::wire::Format;

/// The name under which tests ask for a model.
pub(crate) const MODEL: &str = "lab/coder";

/// An HTTP answer as it was recorded.
pub(crate) struct Recording {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Reads `tests/data/NAME.http`.
pub(crate) fn recording(name: &str) -> Recording {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.http"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let end = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let (first, fields) = head.split_once("\r\n").unwrap();
    let mut headers = HeaderMap::new();
    for field in fields.lines() {
        let (name, value) = field.split_once(':').unwrap();
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value.trim()).unwrap(),
        );
    }
    Recording {
        status: first.split(' ').nth(1).unwrap().parse().unwrap(),
        headers,
        body: bytes[end + 4..].to_vec(),
    }
}

/// What came of a body: the answer, and the progress on the way, pieces of one part joined.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) answer: Result<Answer, ModelError>,
    pub(crate) told: Vec<Progress>,
}

/// Decodes a body that comes in these pieces.
pub(crate) fn decode<'a>(format: Format, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut intake = Intake::new(format.decoder(MODEL));
    let mut told = Vec::new();
    let mut flow = Ok(Flow::More);
    for piece in pieces {
        flow = intake.feed(piece);
        told.extend(intake.take_progress());
        if !matches!(flow, Ok(Flow::More)) {
            break;
        }
    }
    let answer = flow.and_then(|_| intake.close());
    told.extend(intake.take_progress());
    let answer = answer.map_err(|fault| intake.complete(fault.into()));
    Outcome { answer, told: joined(told) }
}

/// Decodes a body that comes at once.
pub(crate) fn decode_whole(format: Format, body: &[u8]) -> Outcome {
    decode(format, [body])
}

/// Decodes events given as the data of each.
pub(crate) fn decode_events(format: Format, events: &[&str]) -> Outcome {
    decode_whole(format, stream(events).as_bytes())
}

/// A stream of events given as the data of each.
pub(crate) fn stream(events: &[&str]) -> String {
    events.iter().fold(String::new(), |mut body, data| {
        let _ = write!(body, "data: {data}\n\n");
        body
    })
}

/// Joins neighbours that are pieces of one part, so that reads of other sizes tell the same.
fn joined(told: Vec<Progress>) -> Vec<Progress> {
    let mut joined: Vec<Progress> = Vec::new();
    for next in told {
        match (joined.last_mut(), &next) {
            (Some(Progress::Text(text)), Progress::Text(more))
            | (Some(Progress::Thinking(text)), Progress::Thinking(more)) => text.push_str(more),
            (
                Some(Progress::Arguments { index, fragment, .. }),
                Progress::Arguments { index: same, name: None, fragment: more },
            ) if index == same => fragment.push_str(more),
            _ => joined.push(next),
        }
    }
    joined
}

/// The outcome in one line: parts, stop reason and usage, or the error.
pub(crate) fn shown(outcome: &Outcome) -> String {
    match &outcome.answer {
        Ok(answer) => {
            let mut line = String::new();
            for part in &answer.parts {
                let _ = match part {
                    AnswerPart::Text(text) => write!(line, "text {text:?} | "),
                    AnswerPart::Thinking(Thinking { text, opaque, .. }) => {
                        let opaque = opaque.as_ref().map_or(String::new(), Value::to_string);
                        write!(line, "thinking {text:?} {opaque} | ")
                    }
                    AnswerPart::Call { name, arguments } => {
                        write!(line, "call {name} {arguments} | ")
                    }
                };
            }
            let usage = &answer.usage;
            let counts = [
                ("in", usage.input_tokens),
                ("cached", usage.cached_tokens),
                ("written", usage.cache_write_tokens),
                ("out", usage.output_tokens),
                ("reasoning", usage.reasoning_tokens),
            ];
            let _ = write!(line, "{:?}", answer.stop);
            for (name, count) in counts {
                if let Some(count) = count {
                    let _ = write!(line, " {name} {count}");
                }
            }
            line
        }
        Err(error) => {
            let streamed = if error.streamed { ", streamed" } else { "" };
            format!("{:?}{streamed}: {}", error.kind, error.message)
        }
    }
}

/// A context whose progress goes into the receiver.
pub(crate) fn context() -> (EffectContext, mpsc::Receiver<Progress>) {
    let (progress, told) = mpsc::channel(1024);
    (
        EffectContext {
            hidden: [].into(),
            key: loon_api::EffectKey::model(1, 0),
            subjects: Arc::new([]),
            cancel: CancellationToken::new(),
            progress,
        },
        told,
    )
}

/// A request with one tool.
pub(crate) fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system: "You are terse.".into(),
        messages,
        tools: Arc::new([ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            parameters: serde_json::json!({
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            }),
            class: ToolClass::Reads,
        }]),
        max_output_tokens: None,
        effort: None,
        output_schema: None,
        cache_key: "session-1".into(),
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::User(vec![UserPart::Text(text.into())])
}

pub(crate) fn assistant(parts: Vec<AssistantPart>) -> Message {
    Message::Assistant(AssistantMessage { parts })
}

pub(crate) fn said(text: &str) -> AssistantPart {
    AssistantPart::Text(text.into())
}

pub(crate) fn thought(model: &str, text: &str, opaque: Value) -> AssistantPart {
    AssistantPart::Thinking(Thinking {
        text: text.into(),
        model: model.into(),
        opaque: Some(opaque),
    })
}

/// The `index`-th call of a step, with its result.
pub(crate) fn called(index: u32, arguments: Value, result: ToolResult) -> AssistantPart {
    AssistantPart::Call(AnsweredCall {
        id: CallId::of(1, 0, index),
        name: "read".into(),
        arguments,
        result,
    })
}

/// A conversation with everything that a request can hold: pictures, reasoning of the model `own`
/// (with `opaque`) and of another one, calls beside each other, a failed call, arguments that were
/// no JSON, an answer without words, user messages in a row.
pub(crate) fn conversation(own: &str, opaque: Value) -> Vec<Message> {
    vec![
        Message::User(vec![
            UserPart::Text("Look at this.".into()),
            UserPart::Image { media_type: "image/png".into(), data: "iVBORw==".into() },
        ]),
        assistant(vec![
            thought(own, "Two files.", opaque.clone()),
            said("Reading."),
            called(0, serde_json::json!({"path": "b.txt", "a": 1}), ToolResult::ok("one\ntwo")),
            called(1, serde_json::json!({"path": "no"}), ToolResult::error("no such file")),
        ]),
        assistant(vec![called(
            2,
            Value::String("{\"path\":".into()),
            ToolResult::error("no JSON"),
        )]),
        user("And now?"),
        assistant(vec![
            thought(
                "other/model",
                "Foreign.",
                serde_json::json!({"signature": "x", "field": "reasoning"}),
            ),
            said("Done."),
        ]),
        user("One more."),
        assistant(vec![thought(own, "Cut here.", opaque), said(" \n")]),
        user(" "),
        user("Go on."),
    ]
}

/// Compares a request body with `tests/data/NAME.json`, which holds it with indentation.
pub(crate) fn assert_body(name: &str, body: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.json"));
    let value: Value = serde_json::from_slice(body).unwrap();
    let actual = serde_json::to_string_pretty(&value).unwrap() + "\n";
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(actual == expected, "{} should be:\n{actual}", path.display());
}

/// A conversation of `rounds` tool rounds.
pub(crate) fn rounds(rounds: u32) -> Vec<Message> {
    let mut messages = vec![user("Count.")];
    messages.extend((0..rounds).map(|round| {
        let arguments = serde_json::json!({"path": format!("{round}.txt")});
        assistant(vec![said("Next."), called(round, arguments, ToolResult::ok(round.to_string()))])
    }));
    messages
}
