//! Commands: everything a front end can ask of the runtime. `loon exec --input jsonl` reads them
//! one JSON object a line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{ApprovalId, ItemId};
use crate::permission::{Mode, PermissionRule};

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
    /// Send the items before this one, newest last, as `history.page`.
    History {
        /// Items older than this.
        before: ItemId,
        /// At most this many.
        limit: u32,
    },
    /// Send the sessions of this folder, newest first, as `sessions.listed`.
    ListSessions,
    /// Leave this session and continue another. Answered by `session.opened`.
    OpenSession {
        /// The session; absent begins a new one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exec: Option<crate::id::ExecutionId>,
    },
    /// A prompt is likely to come: get ready for it, if that saves time. Leaves no trace.
    Warm,
    /// Send the models that settings name, as `models.listed`.
    ListModels,
    /// End the session's process in good order. The session itself stays.
    Close,
    /// A signal asks the process to end: stop the turn, then close with outcome `terminated`.
    Terminate,
}
