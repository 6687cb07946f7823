//! How executions, turns and streams are described.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{ExecutionId, ItemId, TurnNumber};
use crate::money::Cost;
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
#[expect(clippy::struct_excessive_bools, reason = "a session can be all of it at once")]
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
    /// Branch of its last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What it cost so far; a fork counts from where it began.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub cost: Cost,
    /// The execution that started it; absent for sessions of people and programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ExecutionId>,
    /// The session whose first records it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ExecutionId>,
    /// A process works in it right now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// That process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its last turn has not ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// It was cancelled and cannot be continued.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Lists leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// Its journal is not as it was written, or cannot be read to the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

fn is_nothing(cost: &Cost) -> bool {
    *cost == Cost::default()
}

impl SessionSummary {
    /// A session of which nothing but its id is known.
    pub fn begun(exec: ExecutionId, created: At) -> Self {
        Self {
            exec,
            title: String::new(),
            cwd: String::new(),
            created,
            updated: created,
            turns: 0,
            model: None,
            branch: None,
            cost: Cost::default(),
            parent: None,
            forked_from: None,
            live: false,
            pid: None,
            unfinished: false,
            cancelled: false,
            archived: false,
            damaged: false,
        }
    }

    /// Where it stands, in one word.
    pub fn state(&self) -> &'static str {
        match self {
            Self { damaged: true, .. } => "damaged",
            Self { cancelled: true, .. } => "cancelled",
            Self { live: true, .. } => "live",
            Self { archived: true, .. } => "archived",
            Self { unfinished: true, .. } => "unfinished",
            _ => "open",
        }
    }
}

/// One place that a search over all sessions found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionHit {
    /// The session.
    pub exec: ExecutionId,
    /// The item.
    pub item: ItemId,
    /// Its turn.
    pub turn: TurnNumber,
    /// Whose words: `user`, `assistant`, `tool` or `notice`.
    pub kind: String,
    /// The words that were found with some around them, on one line.
    pub snippet: String,
    /// First words of the session's first prompt.
    pub title: String,
    /// Folder it works in.
    pub cwd: String,
    /// When its last record was written.
    pub updated: At,
    /// Lists leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// The execution that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ExecutionId>,
}

/// The process that writes a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionHolder {
    /// Its process id, if it left one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Who it is, in words that may stand in a sentence.
    pub words: String,
}

/// How a session is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionAccess {
    /// To work in it. Refused while another process does.
    #[default]
    Write,
    /// To see what another process does in it.
    Watch,
    /// To work in it; a process that does so can write nothing more.
    TakeOver,
}
