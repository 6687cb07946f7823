//! Subagents as data: how a child of a session ended and what it left behind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubagentStatus {
    /// It did its task.
    Completed,
    /// It stopped before that: its step limit, a budget, a denial.
    Incomplete,
    /// An error ended it.
    Failed,
    /// It was stopped.
    Cancelled,
    /// The process ended while it worked, and nobody recorded how far it came.
    Unknown,
}

impl SubagentStatus {
    /// The status in words, for people and models.
    pub fn words(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "outcome unknown",
        }
    }
}

/// A Git worktree that a child leaves behind. Nobody but the user removes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeState {
    /// Absolute folder.
    pub path: String,
    /// It holds changes that are not committed; absent if that could not be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// Its commits that are on no branch; absent if that could not be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmerged: Option<u64>,
}
