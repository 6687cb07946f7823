//! How executions, turns and streams are described.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ExecutionId;
use crate::time::At;

/// What sort of work an execution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionKind {
    /// A conversation with a person or a program.
    Session,
    /// A child of another execution.
    Subagent,
    /// Code whose steps are recorded, so that it goes on where it stood.
    Flow,
}

/// How many tools a model is told of from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolSet {
    /// All of them.
    #[default]
    Full,
    /// A few, for small local models; the others are found by `tool_search`.
    Lean,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The model answered and wanted nothing more.
    Completed,
    /// An error ended it.
    Failed,
    /// A person or a signal stopped it.
    Interrupted,
    /// Stopped before completion: denied, budget, turn limit.
    Stopped,
    /// A deadline passed.
    DeadlineExceeded,
}

/// How a stream ended; matches the exit status of `loon exec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// 0: the work was done.
    Completed,
    /// 1: an error ended it.
    Failed,
    /// 2: the command line or a setting is wrong.
    Usage,
    /// 3: stopped before completion (denied, budget, turn limit, nothing to run).
    Stopped,
    /// 124: a deadline passed.
    DeadlineExceeded,
    /// 130: interrupted.
    Interrupted,
    /// 143: terminated by a signal or cancelled from another process.
    Terminated,
}

impl Outcome {
    /// The exit status that goes with it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Stopped => 3,
            Self::DeadlineExceeded => 124,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<TurnStatus> for Outcome {
    fn from(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Completed => Self::Completed,
            TurnStatus::Failed => Self::Failed,
            TurnStatus::Interrupted => Self::Interrupted,
            TurnStatus::Stopped => Self::Stopped,
            TurnStatus::DeadlineExceeded => Self::DeadlineExceeded,
        }
    }
}

/// A session as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// Its id.
    pub exec: ExecutionId,
    /// First words of its first prompt.
    pub title: String,
    /// Folder it works in.
    pub cwd: String,
    /// When it began.
    pub created: At,
    /// When its last record was written.
    pub updated: At,
    /// Turns so far.
    pub turns: u32,
    /// Model of its last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A process writes it right now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
}
