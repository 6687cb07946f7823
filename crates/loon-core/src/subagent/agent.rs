//! One child as its parent knows it while it works.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::SubagentFinished;
use loon_api::{AgentEvent, Clock, Command, Envelope, ExecutionId, ItemBody, ToolCallStatus};
use loon_kernel::{ExecutionState, JournalStore, Resources};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// One child.
pub(super) struct Agent {
    /// Its short name.
    pub(super) id: String,
    /// Name of its profile.
    pub(super) profile: String,
    /// Its own execution.
    pub(super) exec: ExecutionId,
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
    heard: Duration,
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

    /// Takes in one event of the child.
    pub(super) fn note(&self, envelope: &Envelope) {
        self.progress.send_modify(|progress| {
            progress.heard = self.clock.steady();
            progress.apply(envelope);
        });
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
