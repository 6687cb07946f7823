//! Events of sessions, their settings and their children.

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

use super::AgentEvent;
use super::define::{EventType, Field};
use super::parts::SessionState;
use crate::error::ErrorInfo;
use crate::id::{ExecutionId, ItemId};
use crate::model::Effort;
use crate::money::{Cost, Usage};
use crate::permission::Mode;
use crate::receipt::Receipt;
use crate::record::{RecordChange, WorkingRecord};
use crate::session::SessionHolder;
use crate::subagent::{SubagentStatus, SubagentSummary, WorktreeState};

event_types! {
    /// Record: the permission mode changed.
    ModeChanged = "mode.changed" {
        /// The new mode.
        mode: Mode,
    }
    /// Record: the model changed.
    ModelChanged = "model.changed" {
        /// `provider/model`.
        model: String,
    }
    /// Record: a user message and all after it left the conversation.
    SessionRewound = "session.rewound" {
        /// The user message.
        to: ItemId,
        /// Its exact text, for the draft.
        text: String,
        /// The working record as it stood before that message.
        #[serde(default)]
        record: WorkingRecord,
    }
    /// Record: this session begins with records of another one, those before this one. What they used
    /// counts there, not here.
    SessionForked = "session.forked" {
        /// The other session.
        from: ExecutionId,
        /// Number of records that both have.
        records: u64,
    }
    /// Record: the user changed the working record.
    RecordChanged = "record.changed" {
        /// How.
        change: RecordChange,
    }
    /// Record: a child of the session begins to work on a task.
    SubagentStarted = "subagent.started" {
        /// Its short name in this session.
        id: String,
        /// Name of its profile.
        agent: String,
        /// Its own execution.
        child: ExecutionId,
        /// What it was told.
        task: String,
        /// `provider/model`.
        model: String,
        /// How hard its model should think, where its profile says so.
        #[serde(default)]
        effort: Option<Effort>,
        /// It works beside the session, which does not wait for it.
        background: bool,
        /// The Git worktree it works in, if it has one of its own.
        #[serde(default)]
        worktree: Option<String>,
    }
    /// Passing: how far a child has come, with each of its effects; the answer to `list_subagents`.
    SubagentProgressed = "subagent.progressed" {
        /// It.
        agent: SubagentSummary,
    }
    /// Record: a child of the session ended.
    SubagentFinished = "subagent.finished" {
        /// Its short name in this session.
        id: String,
        /// Name of its profile.
        agent: String,
        /// Its own execution.
        child: ExecutionId,
        /// How it ended.
        status: SubagentStatus,
        /// Why, unless it completed.
        #[serde(default)]
        error: Option<ErrorInfo>,
        /// Its last words, cut at a bound that the text itself states.
        #[serde(default)]
        report: Option<String>,
        /// Model requests it made.
        steps: u32,
        /// Tokens it used.
        usage: Usage,
        /// Money it cost.
        cost: Cost,
        /// Wall time of its effects in milliseconds.
        #[serde(default)]
        ms: Option<u64>,
        /// Effects it had, without those that were denied.
        #[serde(default)]
        effects: Option<u64>,
        /// The Git worktree it leaves behind.
        #[serde(default)]
        worktree: Option<WorktreeState>,
        /// What all its turns did together.
        #[serde(default)]
        receipt: Option<Receipt>,
    }
    /// Passing: a front end's first event, and the answer to `open_session`.
    SessionOpened = "session.opened" {
        /// Where the session stands.
        session: SessionState,
    }
    /// Passing: a session cannot be opened to work in it, for another process does. For the session
    /// that is watched: another process works in it from now on.
    SessionHeld = "session.held" {
        /// The session.
        session: ExecutionId,
        /// Who has it.
        holder: SessionHolder,
        /// Who had it until then, if it was taken over.
        #[serde(default)]
        from: Option<SessionHolder>,
    }
    /// Passing: no process works in the watched session any more.
    SessionReleased = "session.released" {
        /// The session.
        session: ExecutionId,
        /// Why nobody can go on in it, if it has come to its end.
        #[serde(default)]
        over: Option<ErrorInfo>,
    }
}
