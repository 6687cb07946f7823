//! Commands: everything a front end can ask of the runtime. `loon exec --input jsonl` reads them
//! one JSON object a line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Bounds;
use crate::id::{ApprovalId, ExecutionId, ItemId, TurnNumber};
use crate::permission::{Mode, PermissionRule};
use crate::session::SessionAccess;

/// How long a decision holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call only.
    Once,
    /// Until the session's process ends.
    Session,
    /// Written to the project's local settings.
    Project,
}

/// What a front end asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    /// Begin a turn with these words. While a turn runs, they wait for its end.
    Prompt {
        /// The user's words.
        text: String,
    },
    /// Give these words to the running turn at its next step. Without one, begin a turn.
    Steer {
        /// The user's words.
        text: String,
    },
    /// Begin a turn with the text of a custom command. Answered by `command.refused` if there is none
    /// of that name.
    Custom {
        /// Its name, without the slash.
        name: String,
        /// What was written behind the name.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        arguments: String,
        /// Give the text to the running turn at its next step.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steer: bool,
    },
    /// Take back the prompts that wait; their texts come back as `queue.returned`.
    Unqueue,
    /// Stop the running turn now.
    Interrupt,
    /// Let the running step end, its calls included, then stop the turn.
    StopAfterStep,
    /// Let the call run.
    Approve {
        /// The request.
        approval: ApprovalId,
        /// How long the decision holds.
        scope: ApprovalScope,
        /// The rule to keep, as shown or as edited; the longer scopes need one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<PermissionRule>,
    },
    /// Do not let the call run.
    Deny {
        /// The request.
        approval: ApprovalId,
        /// Words for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Set these bounds for the session and its children. Each must be above what is used. Answered
    /// by `budget.changed`, or by a notice that says why not.
    RaiseBudget(Bounds),
    /// Raise nothing: refuse whoever waits at a bound, which ends the turn as stopped.
    RefuseBudget,
    /// Change the permission mode.
    SetMode {
        /// The new mode.
        mode: Mode,
    },
    /// Change the model.
    SetModel {
        /// `provider/model`.
        model: String,
    },
    /// Leave plan mode for the mode that was in force before it.
    LeavePlan,
    /// Take a user message and everything after it out of the conversation. The text comes back as
    /// `session.rewound`.
    Rewind {
        /// A user message.
        to: ItemId,
        /// Take back the changes that calls made to files since then. Changes made by hand stay, and
        /// what commands did is not taken back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        files: bool,
    },
    /// Say what taking back files would do, as `rewind.previewed`.
    PreviewRewind {
        /// A user message.
        to: ItemId,
    },
    /// Take back the file changes of the newest call that made some.
    Undo {
        /// Take back the newest undo instead.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        redo: bool,
    },
    /// Set or take away the goal of the session.
    SetGoal {
        /// The goal; absent takes it away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
    },
    /// Switch Ultra Loop on or off for the session: whether what the model claims to have completed is
    /// reviewed. Holds for the running turn too, and for later resumes.
    SetUltraLoop {
        /// Whether it is on from now on.
        on: bool,
    },
    /// Send how far each child of this process has come, as `subagent.progressed`.
    ListSubagents,
    /// Give these words to a child at its next step. Answered by a notice if it has ended.
    SteerSubagent {
        /// Its short name.
        id: String,
        /// The user's words.
        text: String,
    },
    /// End a child when its present step has ended. Answered by a notice if it has ended before.
    StopSubagent {
        /// Its short name.
        id: String,
    },
    /// Send the transcript of a child as it is and as it grows, as `subagent.shown`, until another
    /// one is watched.
    WatchSubagent {
        /// Its short name; absent watches none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Replace the older part of the conversation by a summary, now or at the running turn's next
    /// step. Ends in `context.compacted` or `compaction.failed`.
    Compact {
        /// What the summary should give most room.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
    },
    /// Estimate the context as it stands, as `context.estimated`.
    MeasureContext,
    /// Send the items before this one, newest last, as `history.page`.
    History {
        /// Items older than this.
        before: ItemId,
        /// At most this many.
        limit: u32,
    },
    /// Send the newest sessions, newest first, as `sessions.listed`.
    ListSessions {
        /// Those of every folder, not of this one alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        all: bool,
    },
    /// Search the words of all sessions: what people, models and tools said. Answered by
    /// `sessions.found`.
    SearchSessions {
        /// Words that must all occur in one item.
        query: String,
        /// In sessions of every folder, not of this one alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        all: bool,
    },
    /// Begin a new session that has the records of this one, and go on in it. Answered by
    /// `session.opened`.
    Fork {
        /// Up to the end of this turn; absent up to now. Not while a turn runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<TurnNumber>,
    },
    /// Leave this session and continue another. Answered by `session.opened`, or by `session.held` if
    /// another process works in that one.
    OpenSession {
        /// The session; absent begins a new one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exec: Option<ExecutionId>,
        /// How.
        #[serde(default, skip_serializing_if = "is_write")]
        access: SessionAccess,
    },
    /// A prompt is likely to come: get ready for it, if that saves time. Leaves no trace.
    Warm,
    /// Send the models that settings name, as `models.listed`.
    ListModels,
    /// Send the custom commands as they are now, as `commands.listed`.
    ListCommands,
    /// Send the skills as they are now, as `skills.listed`.
    ListSkills,
    /// Send what guidance is in force for a path and why, as `guidance.listed`.
    ListGuidance {
        /// A path, relative to the session's folder or absolute; absent asks for all there is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Send the MCP servers and how they are, as `mcp.listed`.
    ListMcp,
    /// End the session's process in good order. The session itself stays.
    Close,
    /// A signal asks the process to end: stop the turn, then close with outcome `terminated`.
    Terminate,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_write(access: &SessionAccess) -> bool {
    *access == SessionAccess::Write
}
