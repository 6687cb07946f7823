//! Tools as data: what the model is told of one and what a call gives back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tool does to the world. Decides plan mode, parallelism and the default permission, here
/// and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// Looks at files.
    Reads,
    /// Changes files.
    Writes,
    /// Starts programs.
    Executes,
    /// Talks to a network.
    Network,
    /// Asks a server that somebody else wrote (MCP). Whatever the server says of a tool, it may do
    /// anything.
    Remote,
    /// Keeps the session's own books (plan, notes, tasks).
    Session,
}

impl ToolClass {
    /// Calls of this class may run beside each other and are not journaled before they run.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::Reads | Self::Network)
    }

    /// Plan mode keeps tools of this class.
    pub fn allowed_in_plan_mode(self) -> bool {
        matches!(self, Self::Reads | Self::Session | Self::Network)
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name, `^[a-zA-Z0-9_-]{1,64}$`.
    pub name: String,
    /// Short: what it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, an object schema.
    pub parameters: Value,
    /// What it does to the world.
    pub class: ToolClass,
}

/// What a tool call gave back, in the words the model reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// Text for the model: valid UTF-8 without control characters other than tab and newline.
    pub text: String,
    /// The call failed; `text` says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl ToolResult {
    /// A successful result.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    /// A failed one.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}
