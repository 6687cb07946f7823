//! What a person asks of the children: to list them, to steer or stop one, to watch one at work.

use std::sync::Arc;

use loon_api::event::SubagentShown;
use loon_api::{Cost, ErrorCode, ErrorInfo, ExecutionId, Item, SubagentState, SubagentSummary};

use super::Subagents;
use crate::conversation::{Conversation, KnownChild};
use crate::session::{OPENING_ITEMS, Session};

/// What the journal of a stopped child says of it.
const REASON: &str = "The user ended it.";

impl Session {
    /// Tells how far each child has come, in the order in which they began.
    pub(crate) async fn list_subagents(&self) {
        let Some(children) = &self.children else { return };
        for known in self.conversation.children() {
            let running = children.subagents().find(&known.started.id);
            let agent = match running.filter(|agent| agent.exec == known.started.child) {
                Some(agent) => agent.summary(),
                None => summary_of(known),
            };
            self.recorder.pass(self.turn_number(), agent.progressed()).await;
        }
    }

    /// Gives a child the user's words.
    pub(crate) async fn steer_subagent(&self, id: &str, text: &str) {
        let Some(children) = &self.children else { return };
        if let Err(problem) = children.subagents().steer(id, text) {
            self.warn(ErrorInfo::new(ErrorCode::Invalid, problem)).await;
        }
    }

    /// Ends a child at its next step.
    pub(crate) async fn stop_subagent(&self, id: &str) {
        let Some(children) = &self.children else { return };
        let subagents = Arc::clone(children.subagents());
        match subagents.ask_to_stop(id, REASON).await {
            Ok(agent) => {
                self.recorder.pass(self.turn_number(), agent.summary().progressed()).await;
            }
            Err(problem) => self.warn(ErrorInfo::new(ErrorCode::Invalid, problem)).await,
        }
    }

    /// Shows what a child has done, and from now on what it does, instead of the one that was watched.
    pub(crate) async fn watch_subagent(&self, id: Option<&str>) {
        let Some(children) = &self.children else { return };
        let subagents = children.subagents();
        let known = self.conversation.children();
        let child = id.and_then(|id| known.iter().rev().find(|child| child.started.id == id));
        // Before its journal is read, so that nothing is missed in between. What comes twice is the
        // same.
        subagents.watch(child.map(|child| child.started.child));
        let Some(id) = id else { return };
        let Some(child) = child else {
            let problem = format!("There is no agent {id:?}.");
            return self.warn(ErrorInfo::new(ErrorCode::NotFound, problem)).await;
        };
        match self.items_of_child(child.started.child).await {
            Ok(items) => {
                let shown = SubagentShown { id: id.to_owned(), items };
                self.recorder.pass(self.turn_number(), shown).await;
            }
            Err(problem) => self.warn(ErrorInfo::new(ErrorCode::Io, problem)).await,
        }
    }

    async fn items_of_child(&self, child: ExecutionId) -> Result<Vec<Item>, String> {
        let store = Arc::clone(&self.deps.store);
        let read = move || -> Result<Vec<Item>, String> {
            let mut conversation = Conversation::newest(OPENING_ITEMS);
            for record in store.read(child).map_err(|error| error.to_string())? {
                let record = record.map_err(|error| error.to_string())?;
                conversation.apply(record.turn, &record.event);
            }
            Ok(conversation.page(None, OPENING_ITEMS).0)
        };
        let read = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string());
        read.and_then(|read| read)
            .map_err(|error| format!("The agent's journal cannot be read: {error}"))
    }
}

impl Subagents {
    /// Passes on what this child does, and no other.
    fn watch(&self, child: Option<ExecutionId>) {
        let _ = self.watched.send_replace(child);
    }
}

/// A child of an earlier process, or one whose end is not recorded yet.
fn summary_of(known: &KnownChild) -> SubagentSummary {
    let (started, finished) = (&known.started, known.finished.as_ref());
    SubagentSummary {
        id: started.id.clone(),
        agent: started.agent.clone(),
        child: started.child,
        state: SubagentState::Ended,
        status: finished.map(|finished| finished.status),
        model: started.model.clone(),
        effort: started.effort,
        background: started.background,
        steps: finished.map_or(0, |finished| finished.steps.into()),
        tokens: finished.map_or(0, |finished| finished.usage.total()),
        cost: finished.map_or_else(Cost::default, |finished| finished.cost),
        call: String::new(),
        quiet_ms: None,
    }
}
