//! Items: the visible things of a transcript. A later item with the same id replaces the earlier.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Compaction;
use crate::error::ErrorInfo;
use crate::guidance::Guidance;
use crate::id::{CallId, EffectKey, ItemId, TurnNumber};
use crate::model::Thinking;
use crate::receipt::ProgramRun;
use crate::record::RecordChange;
use crate::tool::ToolResult;

/// One thing in the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// Stable within the execution.
    pub id: ItemId,
    /// The turn it belongs to.
    pub turn: TurnNumber,
    /// What it is.
    #[serde(flatten)]
    pub body: ItemBody,
}

/// What an item is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ItemBody {
    /// Words of the user: a prompt, or a steering message while a turn runs.
    UserMessage {
        /// Exactly what was sent.
        text: String,
        /// Sent while the turn was running.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steer: bool,
    },
    /// Words of the model.
    AssistantMessage {
        /// Markdown.
        text: String,
        /// The stream broke or was stopped before its end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        incomplete: bool,
    },
    /// Reasoning the provider showed.
    Thinking(Thinking),
    /// A tool call and, once it ended, its result.
    ToolCall(ToolCallItem),
    /// Something the runtime tells the model and the user (an interruption, an unknown outcome).
    Notice {
        /// One or a few sentences.
        text: String,
        /// It speaks of the call before it, and reaches the model with that call's result.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        about_call: bool,
    },
    /// What a compaction left of everything above it.
    Compaction(Compaction),
}

/// Where a tool call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStatus {
    /// Asked for by the model, not begun.
    Waiting,
    /// Waits for a human decision.
    Asking,
    /// Under way.
    Running,
    /// Ended well.
    Done,
    /// Ended with an error.
    Failed,
    /// Not begun: a rule, a mode or a person said no.
    Denied,
    /// Stopped before its end.
    Cancelled,
    /// Begun, and its end was never recorded. Never replayed.
    Unknown,
}

impl ToolCallStatus {
    /// True once nothing more will happen to the call.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Asking | Self::Running)
    }
}

/// A tool call in the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallItem {
    /// Our id of the call.
    pub call: CallId,
    /// Name of the tool as the model wrote it.
    pub tool: String,
    /// Arguments as the model wrote them; a string if they were no JSON.
    pub arguments: Value,
    /// Where it stands.
    pub status: ToolCallStatus,
    /// What to show beside the name, one line (a path, a command, a pattern).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What to show at the right once it ended, one short phrase (`120 lines`, `exit 1`).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// What the model reads. Present once the call is final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// Files the call changed, in the order of the changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Files the call showed to the model, in whole or in part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<FileRead>,
    /// Changes it made to the working record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub record: Vec<RecordChange>,
    /// Guidance for what it touches, which the model reads with its result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<Guidance>,
    /// The user asked for it, not the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_user: bool,
    /// Exit status of the program, if the tool ran one that ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Commands it ran, in order, that ended or were ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ProgramRun>,
    /// Wall time in milliseconds, once it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Why it failed or was denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
}

impl ToolCallItem {
    /// A call that waits to be made.
    pub fn waiting(call: CallId, tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            call,
            tool: tool.into(),
            arguments,
            status: ToolCallStatus::Waiting,
            title: String::new(),
            summary: String::new(),
            result: None,
            changes: Vec::new(),
            reads: Vec::new(),
            record: Vec::new(),
            guidance: Vec::new(),
            by_user: false,
            exit_code: None,
            runs: Vec::new(),
            ms: None,
            error: None,
        }
    }
}

impl ToolCallItem {
    /// The guidance that the model reads with the result. A call that was not made because somebody
    /// said no brings none.
    pub fn guidance_given(&self) -> &[Guidance] {
        match self.status {
            ToolCallStatus::Denied | ToolCallStatus::Cancelled => &[],
            _ => &self.guidance,
        }
    }
}

impl FileChange {
    /// The path as it is on disk; the one shown may stand for characters that cannot be shown.
    pub fn real_path(&self) -> &str {
        self.exact.as_deref().unwrap_or(&self.path)
    }
}

/// One file that a call showed to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRead {
    /// Absolute path, links followed.
    pub path: String,
    /// SHA-256 of the whole file at that time, hexadecimal.
    pub sha256: String,
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    #[default]
    File,
    /// A folder with all that is in it.
    Folder,
    /// A symbolic link; its bytes are the path it names.
    Link,
}

impl EntryKind {
    /// True for a regular file.
    pub fn is_file(&self) -> bool {
        *self == Self::File
    }
}

/// One file, folder or link that a call changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Path as shown: relative to the workspace root if inside it, else absolute.
    pub path: String,
    /// SHA-256 of the bytes before, hexadecimal; absent if the file was not there. The bytes are
    /// kept under this name in the session's snapshot folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// SHA-256 of the bytes after; absent if the file is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Lines added.
    pub added: u32,
    /// Lines removed.
    pub removed: u32,
    /// Unified diff with three lines of context, cut at a bound that the text itself states.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// The call whose change this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<EffectKey>,
    /// What it is. The hashes of a folder are those of a listing of it.
    #[serde(default, skip_serializing_if = "EntryKind::is_file")]
    pub kind: EntryKind,
    /// Permission bits of what came or went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// It was moved here from this path. A folder that moved has no hashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// It was copied here, not written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
    /// Name in the session's trash folder: where it went, or where it came back from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Number of folders above it that were made for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub folders: u32,
    /// The path itself, if `path` shows some of its characters as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
