//! Subagents as data: how a child of a session ended and what it left behind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::SubagentProgressed;
use crate::id::ExecutionId;
use crate::model::Effort;
use crate::money::Cost;

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
    /// The commit it began at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Its commits since then; absent if that could not be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// Files whose changes are not committed; absent if that could not be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_files: Option<u64>,
}

/// Where a child stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubagentState {
    /// It works.
    Running,
    /// Nothing was heard of it for minutes. It goes on until somebody ends it.
    Stalled,
    /// It waits for a person's decision.
    Asking,
    /// It was asked to stop and does so at its next step.
    Stopping,
    /// It has ended.
    Ended,
}

impl SubagentState {
    /// The state in a word or a few, for people and models.
    pub fn words(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stalled => "stalled",
            Self::Asking => "waits for a decision",
            Self::Stopping => "stops at its next step",
            Self::Ended => "ended",
        }
    }
}

/// How far a child has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubagentSummary {
    /// Its short name in the session.
    pub id: String,
    /// Name of its profile.
    pub agent: String,
    /// Its own execution.
    pub child: ExecutionId,
    /// Where it stands.
    pub state: SubagentState,
    /// How it ended, once it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SubagentStatus>,
    /// `provider/model`.
    pub model: String,
    /// How hard its model should think, where its profile says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The session does not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Model requests so far.
    pub steps: u64,
    /// Tokens so far.
    pub tokens: u64,
    /// Money so far.
    #[serde(default)]
    pub cost: Cost,
    /// The last call it made, one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Milliseconds for which nothing was heard of it, if it is stalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_ms: Option<u64>,
}

impl SubagentSummary {
    /// The event that tells it.
    pub fn progressed(self) -> SubagentProgressed {
        SubagentProgressed { agent: self }
    }
}
