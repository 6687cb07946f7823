//! One child as its parent knows it while it works.

use loon_api::event::SubagentFinished;
use loon_api::{AgentEvent, At, Command, Envelope, ExecutionId, ItemBody, ToolCallStatus};
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
    /// Stops it at once.
    pub(super) cancel: CancellationToken,
    /// How far it has come.
    pub(super) progress: watch::Sender<Progress>,
}

/// How far a child has come.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// The fold of its records.
    state: ExecutionState,
    /// The last call it made, one line.
    pub(super) call: String,
    /// Its last words.
    pub(super) words: Option<String>,
    /// When it last did something.
    pub(super) at: At,
    /// It was asked to stop at its next step.
    pub(super) stopping: bool,
    /// How it ended, once it did.
    pub(super) end: Option<SubagentFinished>,
}

impl Progress {
    /// A child that begins now.
    pub(super) fn begin(at: At) -> Self {
        Self {
            state: ExecutionState::default(),
            call: String::new(),
            words: None,
            at,
            stopping: false,
            end: None,
        }
    }

    /// How far a child of an earlier process came, as far as its journal can be read.
    pub(super) fn of_journal(store: &dyn JournalStore, exec: ExecutionId, begun: At) -> Self {
        let mut progress = Self::begin(begun);
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
        self.at = envelope.at;
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
        self.progress.send_modify(|progress| progress.apply(envelope));
    }

    /// Waits for its end.
    pub(super) async fn ended(&self) -> Option<SubagentFinished> {
        let mut progress = self.progress.subscribe();
        // The sender lives in `self`, so an error cannot come up.
        progress.wait_for(|progress| progress.end.is_some()).await.ok()?.end.clone()
    }
}
