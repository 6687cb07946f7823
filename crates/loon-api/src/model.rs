//! Models as data: what one is, what it is asked, what it answers and how it fails.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{ErrorCode, ErrorInfo};
use crate::message::Message;
use crate::money::Usage;
use crate::tool::ToolSpec;

/// How hard a reasoning model should think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// As little as the model allows.
    Low,
    /// The provider's middle.
    Medium,
    /// As much as the model allows.
    High,
}

impl Effort {
    /// As settings name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Something that a model can or cannot do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ModelFeature {
    /// It calls tools.
    Tools,
    /// It reads pictures.
    Vision,
    /// It reasons before it answers, as hard as it is told.
    Reasoning,
    /// It can be held to a JSON Schema.
    StructuredOutput,
}

impl ModelFeature {
    /// As settings name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Vision => "vision",
            Self::Reasoning => "reasoning",
            Self::StructuredOutput => "structured_output",
        }
    }
}

/// What is known of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// `provider/model`, as settings name it.
    pub name: String,
    /// Most tokens of one request and its answer together; absent if unknown.
    pub context_tokens: Option<u64>,
    /// Most tokens of one answer.
    pub max_output_tokens: Option<u64>,
}

/// One request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// System text.
    pub system: String,
    /// The conversation so far; the last message is the user's or has call results.
    pub messages: Vec<Message>,
    /// Tools on offer, in a stable order.
    pub tools: Arc<[ToolSpec]>,
    /// Most tokens of the answer; absent leaves it to the server.
    pub max_output_tokens: Option<u64>,
    /// Reasoning effort; absent leaves it to the server.
    pub effort: Option<Effort>,
    /// JSON Schema that the answer must match, where the format can ask for it.
    pub output_schema: Option<Value>,
    /// Stable name of the conversation, for servers that cache by it.
    pub cache_key: String,
}

/// Reasoning that a provider showed, with what it wants back unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thinking {
    /// Readable text; may be empty for redacted reasoning.
    pub text: String,
    /// Name of the provider and model that made it (`provider/model`). Only that one gets it back.
    pub model: String,
    /// What the wire format needs returned byte for byte (a signature, an encrypted item, the name
    /// of the field it came in).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

/// A part of an answer as it came from the model.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerPart {
    /// Markdown text.
    Text(String),
    /// Reasoning.
    Thinking(Thinking),
    /// A tool call; `arguments` is a string value if the model wrote no valid JSON.
    Call {
        /// Name of the tool as the model wrote it.
        name: String,
        /// Its arguments.
        arguments: Value,
    },
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    End,
    /// The model wants tools run.
    ToolCalls,
    /// The output limit cut it. No call of such an answer runs.
    Length,
    /// A content filter or the model's policy ended it.
    Refused,
}

/// A complete answer: the stream reached its explicit end.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The parts in order. Never empty unless `stop` is `Refused` or `Length`.
    pub parts: Vec<AnswerPart>,
    /// Why it ended.
    pub stop: StopReason,
    /// What the provider reported.
    pub usage: Usage,
}

/// The closed set of ways a model request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// No capacity (503, 529, `overloaded_error`, `server_is_overloaded`, other 5xx).
    Overloaded,
    /// Too many requests (429).
    RateLimited,
    /// Too long for the window.
    ContextOverflow,
    /// Content refused.
    Refused,
    /// The server has no such model, or nothing at that address (404).
    NotFound,
    /// The request is wrong (other 4xx).
    Invalid,
    /// 401, 403, missing key.
    Auth,
    /// Cannot connect, connection lost, no byte within the idle limit.
    Network,
    /// The server spoke something else, or the stream ended without its end mark.
    Protocol,
}

/// A failed model request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// Which kind.
    pub kind: ModelErrorKind,
    /// The server's own words where it had any, without secrets.
    pub message: String,
    /// How long the server asked us to wait.
    pub retry_after: Option<Duration>,
    /// HTTP status, if there was one.
    pub status: Option<u16>,
    /// Some of the answer had arrived, so the request is final.
    pub streamed: bool,
    /// What was reported before the failure.
    pub usage: Usage,
}

impl ModelError {
    /// A failure before any of the answer arrived.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
            status: None,
            streamed: false,
            usage: Usage::default(),
        }
    }

    /// True if the same request may be sent again: a passing fault, and nothing of the answer had
    /// arrived.
    pub fn is_retryable(&self) -> bool {
        !self.streamed
            && matches!(
                self.kind,
                ModelErrorKind::Overloaded
                    | ModelErrorKind::RateLimited
                    | ModelErrorKind::Network
                    | ModelErrorKind::Protocol
            )
    }

    /// The error as events carry it.
    pub fn info(&self) -> ErrorInfo {
        let code = match self.kind {
            ModelErrorKind::Overloaded => ErrorCode::Overloaded,
            ModelErrorKind::RateLimited => ErrorCode::RateLimited,
            ModelErrorKind::ContextOverflow => ErrorCode::ContextOverflow,
            ModelErrorKind::Refused => ErrorCode::Refused,
            ModelErrorKind::NotFound => ErrorCode::NotFound,
            ModelErrorKind::Invalid => ErrorCode::Invalid,
            ModelErrorKind::Auth => ErrorCode::Auth,
            ModelErrorKind::Network => ErrorCode::Network,
            ModelErrorKind::Protocol => ErrorCode::Protocol,
        };
        ErrorInfo::new(code, self.message.clone())
    }
}
