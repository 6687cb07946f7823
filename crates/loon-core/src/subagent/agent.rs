//! One child as its parent knows it while it works.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::SubagentFinished;
use loon_api::{
    AgentEvent, Clock, Command, Effort, Envelope, ExecutionId, ItemBody, SubagentState,
    SubagentSummary, ToolCallStatus,
};
use loon_kernel::{ExecutionState, JournalStore, Resources};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::liveness::QUIET;

/// One child.
pub(crate) struct Agent {
    /// Its short name.
    pub(super) id: String,
    /// Name of its profile.
    pub(super) profile: String,
    /// Its own execution.
    pub(super) exec: ExecutionId,
    /// `provider/model`.
    pub(super) model: String,
    /// What its profile asks of the model.
    pub(super) effort: Option<Effort>,
    /// The parent does not wait for it.
    pub(super) background: bool,
    /// Its line; closed once it takes nothing more.
    pub(super) commands: mpsc::Sender<Command>,
    /// Tells how long it has been quiet.
    pub(super) clock: Arc<dyn Clock>,
    /// Stops it at once.
    pub(super) cancel: CancellationToken,
    /// How far it has come.
    pub(super) progress: watch::Sender<Progress>,
}

/// How far a child has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The fold of its records.
    state: ExecutionState,
    /// The last call it made, one line.
    pub(super) call: String,
    /// Its last words.
    pub(super) words: Option<String>,
    /// When it last did something, by the steady clock: its own time may be set otherwise than ours.
    pub(super) heard: Duration,
    /// Its silence was reported, and it was not heard of since.
    pub(super) stalled: bool,
    /// It was asked to stop at its next step.
    pub(super) stopping: bool,
    /// How it ended, once it did.
    pub(super) end: Option<SubagentFinished>,
}

impl Progress {
    /// A child that begins at this moment of the steady clock.
    pub(super) fn begin(heard: Duration) -> Self {
        Self { heard, ..Self::default() }
    }

    /// How far a child of an earlier process came, as far as its journal can be read.
    pub(super) fn of_journal(store: &dyn JournalStore, exec: ExecutionId) -> Self {
        let mut progress = Self::default();
        let records = store.read(exec).into_iter().flatten();
        records.map_while(Result::ok).for_each(|record| progress.apply(&record));
        progress
    }

    /// It waits for a person's decision.
    pub(super) fn is_asking(&self) -> bool {
        !self.state.asking.is_empty()
    }

    /// Where it stands.
    pub(super) fn state(&self) -> SubagentState {
        match self {
            Self { end: Some(_), .. } => SubagentState::Ended,
            Self { stopping: true, .. } => SubagentState::Stopping,
            Self { stalled: true, .. } => SubagentState::Stalled,
            _ if self.is_asking() => SubagentState::Asking,
            _ => SubagentState::Running,
        }
    }

    /// What it used so far, effects that have no end included as far as they are known.
    pub(super) fn used(&self) -> Resources {
        self.state.settled_resources()
    }

    /// Takes in one event of the child.
    fn apply(&mut self, envelope: &Envelope) {
        self.state.apply(envelope);
        match &envelope.event {
            AgentEvent::ItemStarted(started) => {
                if let ItemBody::ToolCall(call) = &started.item.body
                    && call.status == ToolCallStatus::Running
                {
                    let space = if call.title.is_empty() { "" } else { " " };
                    let call = format!("{}{space}{}", call.tool, call.title);
                    self.call = call.replace(char::is_control, " ");
                }
            }
            AgentEvent::ItemCompleted(completed) => {
                if let ItemBody::AssistantMessage { text, .. } = &completed.item.body {
                    self.words = Some(text.clone());
                }
            }
            _ => {}
        }
    }
}

impl Agent {
    pub(super) fn has_ended(&self) -> bool {
        self.progress.borrow().end.is_some()
    }

    /// Takes in one event of the child. True if its silence had been reported before.
    pub(super) fn note(&self, envelope: &Envelope) -> bool {
        let mut was_stalled = false;
        self.progress.send_modify(|progress| {
            progress.heard = self.clock.steady();
            was_stalled = std::mem::take(&mut progress.stalled);
            progress.apply(envelope);
        });
        was_stalled
    }

    /// How long it may still be silent; nothing if its silence means nothing, or was reported.
    pub(super) fn until_stalled(&self) -> Option<Duration> {
        let progress = self.progress.borrow();
        let is_due = progress.end.is_none() && !progress.stalled && !progress.is_asking();
        is_due.then(|| QUIET.saturating_sub(self.quiet(&progress)))
    }

    /// How far it has come, for front ends.
    pub(super) fn summary(&self) -> SubagentSummary {
        let progress = self.progress.borrow();
        let used = progress.used();
        let quiet = u64::try_from(self.quiet(&progress).as_millis()).unwrap_or(u64::MAX);
        SubagentSummary {
            id: self.id.clone(),
            agent: self.profile.clone(),
            child: self.exec,
            state: progress.state(),
            status: progress.end.as_ref().map(|end| end.status),
            model: self.model.clone(),
            effort: self.effort,
            background: self.background,
            steps: used.requests,
            tokens: used.tokens,
            cost: used.cost,
            call: progress.call.clone(),
            quiet_ms: progress.stalled.then_some(quiet),
        }
    }

    /// How long nothing was heard of it.
    pub(super) fn quiet(&self, progress: &Progress) -> Duration {
        self.clock.steady().saturating_sub(progress.heard)
    }

    /// Waits for its end.
    pub(super) async fn ended(&self) -> Option<SubagentFinished> {
        let mut progress = self.progress.subscribe();
        // The sender lives in `self`, so an error cannot come up.
        progress.wait_for(|progress| progress.end.is_some()).await.ok()?.end.clone()
    }
}
