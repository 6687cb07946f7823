//! The wire formats: which one a request speaks, and how an answer is written in it.

mod chat;
mod messages;
mod responses;

use serde_json::{Value, json};

use crate::reply::{Answer, Step, Stop, Tokens};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/messages`.
    Messages,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Messages];

    /// The `kind` of a provider in settings.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
            Self::Messages => "anthropic",
        }
    }

    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        match path {
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/responses" => Some(Self::Responses),
            "/v1/messages" => Some(Self::Messages),
            _ => None,
        }
    }

    /// A writer of one answer. `serial` makes its ids unique on this server.
    pub(crate) fn writer(self, model: &str, serial: usize, with_usage: bool) -> Box<dyn Writer> {
        match self {
            Self::Chat => Box::new(chat::ChatWriter::new(model, serial, with_usage)),
            Self::Responses => Box::new(responses::ResponsesWriter::new(model, serial)),
            Self::Messages => Box::new(messages::MessagesWriter::new(model, serial)),
        }
    }

    /// The answer as one document.
    pub(crate) fn whole(self, answer: &Answer, model: &str, serial: usize) -> Value {
        match self {
            Self::Chat => chat::whole(answer, model, serial),
            Self::Responses => responses::whole(answer, model, serial),
            Self::Messages => messages::whole(answer, model, serial),
        }
    }

    /// An error document.
    pub(crate) fn error(self, status: u16, message: &str) -> Value {
        let kind = error_kind(status);
        match self {
            Self::Messages => json!({"type": "error", "error": {"type": kind, "message": message}}),
            Self::Chat | Self::Responses => {
                json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
            }
        }
    }
}

/// Writes an answer in pieces; each frame is one event of the stream.
pub(crate) trait Writer {
    fn open(&mut self, usage: Option<Tokens>) -> Vec<String>;
    fn thinking(&mut self, piece: &str) -> Vec<String>;
    fn text(&mut self, piece: &str) -> Vec<String>;
    fn call(&mut self, name: &str, arguments: &str) -> Vec<String>;
    fn error(&mut self, kind: &str, message: &str) -> Vec<String>;
    fn close(&mut self, stop: Stop, usage: Option<Tokens>) -> Vec<String>;
}

/// One event without a name.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// One event named by its `type`.
fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
}

/// Cuts words into deltas of a few characters, as models send them.
fn deltas(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(8).map(|chunk| chunk.iter().collect()).collect()
}

fn calls(answer: &Answer) -> impl Iterator<Item = (&str, &str)> {
    answer.steps.iter().filter_map(|step| match step {
        Step::Call { name, arguments } => Some((name.as_str(), arguments.as_str())),
        _ => None,
    })
}

fn all_text(answer: &Answer) -> String {
    let texts = answer.steps.iter().filter_map(|step| match step {
        Step::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn error_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}
