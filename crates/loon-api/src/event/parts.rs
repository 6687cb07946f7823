//! Types that only events are made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::item::Item;
use crate::money::{Cost, Usage};
use crate::permission::Mode;
use crate::record::WorkingRecord;
use crate::session::SessionHolder;

/// What an effect touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// A request to a model.
    Model,
    /// A tool call.
    Tool,
    /// A step of a flow.
    Step,
    /// A lifecycle hook.
    Hook,
}

/// How an effect ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectStatus {
    /// It ran and gave an answer (a tool's own failure is an answer too).
    Completed,
    /// It ran and gave none.
    Failed,
    /// It was not begun: quota, authority or a person said no.
    Denied,
    /// It was stopped on the way.
    Aborted,
    /// Its timeout or the execution's deadline passed.
    TimedOut,
    /// A former process began it and its end was never recorded.
    Unknown,
}

/// How a target that can fail is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// It is asked as usual.
    Closed,
    /// It failed too often in a row: nothing is sent to it.
    Open,
    /// One trial is sent to it; its outcome decides.
    HalfOpen,
}

/// What a delta adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// The text of an assistant message.
    Text,
    /// The text of a thinking item.
    Thinking,
    /// The arguments of a tool call, as raw JSON text.
    Arguments,
    /// The live output of a running tool.
    Output,
}

/// How an approval was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call may run.
    Approved,
    /// It must not.
    Denied,
    /// Nobody is there to ask, so it must not.
    NobodyToAsk,
    /// The turn ended first.
    Withdrawn,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is not as it should be.
    Warning,
}

/// Where a session stands when a front end opens it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionState {
    /// Folder it works in.
    pub cwd: String,
    /// `provider/model`; absent if none is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Permission mode.
    pub mode: Mode,
    /// Checked-out branch, if the folder is a Git worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// First words of its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It was there before.
    pub resumed: bool,
    /// The newest items, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    /// There are older items; ask with the `history` command.
    #[serde(default)]
    pub more: bool,
    /// Prompts that wait for the end of the running turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<String>,
    /// Tokens used so far.
    #[serde(default)]
    pub usage: Usage,
    /// Money spent so far.
    #[serde(default)]
    pub cost: Cost,
    /// Checklist, tasks, notes and goal.
    #[serde(default, skip_serializing_if = "WorkingRecord::is_empty")]
    pub record: WorkingRecord,
    /// Ultra Loop is on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ultra: bool,
    /// It is only watched: another process works in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<SessionHolder>,
}
