//! MCP servers as a person sees them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpState {
    /// Switched off in the settings.
    Off,
    /// Not asked for yet.
    #[default]
    Idle,
    /// On its way.
    Starting,
    /// It answers.
    Ready,
    /// It was there and ended, or it never came about. The next call tries again.
    Failed,
}

impl McpState {
    /// The word that lists show.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Idle => "not started",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}

/// Something that a server offers and that cannot be used, or not as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpProblem {
    /// What the server calls it.
    pub tool: String,
    /// What is wrong with it.
    pub reason: String,
}

/// One server of the settings. Everything that it said itself is free of control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServer {
    /// Its name in the settings.
    pub name: String,
    /// How it is.
    pub state: McpState,
    /// The program with its arguments, or the URL; without secrets.
    pub target: String,
    /// What it calls itself, with its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<String>,
    /// The tools that it gave, by the names that models call them by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Tools that are left out, or had to be mended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<McpProblem>,
    /// Why it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The last it said on standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}
