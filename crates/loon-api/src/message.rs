//! The conversation as a model request carries it. A call is only representable together with its
//! result, so no request can hold an orphan.

use serde::Serialize;
use serde_json::Value;

use crate::id::CallId;
use crate::model::Thinking;
use crate::tool::ToolResult;

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Message {
    /// From the user, or from the runtime on the user's side.
    User(Vec<UserPart>),
    /// From the model, with the results of the calls it made.
    Assistant(AssistantMessage),
}

/// A part of a user message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum UserPart {
    /// Plain text.
    Text(String),
    /// A picture.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: String,
        /// The file's bytes, base64.
        data: String,
    },
}

/// One answer of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AssistantMessage {
    /// The parts in the order they came.
    pub parts: Vec<AssistantPart>,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum AssistantPart {
    /// Markdown text.
    Text(String),
    /// Reasoning.
    Thinking(Thinking),
    /// A tool call with what it gave back.
    Call(AnsweredCall),
}

/// A tool call that has its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnsweredCall {
    /// Our id.
    pub id: CallId,
    /// Name of the tool.
    pub name: String,
    /// Arguments; a string if the model wrote no valid JSON.
    pub arguments: Value,
    /// What came back.
    pub result: ToolResult,
}
