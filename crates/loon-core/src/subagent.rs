//! Subagents: children of a session that work on tasks of their own, each with an execution, a
//! journal and a conversation of its own, behind a gate of its own.
//!
//! Tools start children and ask about them; the owner of the parent session hears of them through
//! one channel and is the only one who records anything in the parent's journal.

mod agent;
mod background_kill;
mod background_list;
mod background_message;
mod background_spawn;
mod child;
mod delegate;
mod lineage;
mod liveness;
mod owner;
mod person;
mod report;
mod start;
mod worktree;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loon_api::event::{SubagentFinished, SubagentStarted};
use loon_api::{AgentEvent, Command, ExecutionId};
use loon_kernel::{Execution, Tool, native_tool};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::agent::Agent;
pub(crate) use self::lineage::{Lineage, Parentage};
pub(crate) use self::owner::{Children, next_news};
pub use self::worktree::Worktrees;
use crate::approval::ApprovalDesk;
use crate::authority::PermissionAuthority;
use crate::budget::SharedBudget;
use crate::conversation::KnownChild;
use crate::deps::Dependencies;

/// Most children that work in the background at once.
const RUNNING: usize = 10;

/// News of children that may wait for the owner.
const NEWS_CAPACITY: usize = 64;

/// What the owner of a session hears of its children.
pub(crate) enum News {
    /// One begins.
    Started(Box<SubagentStarted>),
    /// One asks a human, or was answered. Recorded, so that the time a human takes to decide is nobody's
    /// time at work, and a question that outlives its process is taken back.
    Asks(Box<AgentEvent>),
    /// How far one has come, what a watched one does, or that it met a failing target. Passed on, not
    /// recorded: the record is in its own journal.
    Passes(Box<AgentEvent>),
    /// Nothing was heard of one for long.
    Stalled(Arc<Agent>),
    /// One ended.
    Finished(Box<SubagentFinished>),
}

/// The children of one session. Shared by the tools that start them and ask about them.
pub(crate) struct Subagents {
    /// What later children are made from.
    deps: Mutex<Dependencies>,
    parent: Execution,
    authority: Arc<PermissionAuthority>,
    desk: Arc<ApprovalDesk>,
    news: mpsc::Sender<News>,
    /// The parent's budget, which they share.
    budget: SharedBudget,
    /// Stops all children. Fires with the parent's execution, and when this value is dropped.
    cancel: CancellationToken,
    _stop: DropGuard,
    /// The locks are held for a look or a change of one entry.
    table: Mutex<Table>,
    /// `provider/model` of the parent.
    model: Mutex<Option<String>>,
    /// The child whose transcript is shown.
    watched: watch::Sender<Option<ExecutionId>>,
}

struct Table {
    /// The last number given out in a short name, also by an earlier process.
    given: u32,
    agents: Vec<Arc<Agent>>,
    /// Children of earlier processes.
    past: Vec<SubagentFinished>,
}

impl Subagents {
    fn new(
        deps: &Dependencies,
        parent: &Execution,
        authority: &Arc<PermissionAuthority>,
        desk: &Arc<ApprovalDesk>,
        budget: &SharedBudget,
        known: &[KnownChild],
    ) -> (Arc<Self>, mpsc::Receiver<News>) {
        let (news, receiver) = mpsc::channel(NEWS_CAPACITY);
        let cancel = parent.cancel_token().child_token();
        let numbers =
            known.iter().filter_map(|child| child.started.id.strip_prefix('a')?.parse().ok());
        let given = numbers.max().unwrap_or(0);
        let past = known.iter().filter_map(|child| child.finished.clone()).collect();
        let subagents = Self {
            deps: Mutex::new(deps.clone()),
            parent: parent.clone(),
            authority: Arc::clone(authority),
            desk: Arc::clone(desk),
            news,
            budget: budget.clone(),
            _stop: cancel.clone().drop_guard(),
            cancel,
            table: Mutex::new(Table { given, agents: Vec::new(), past }),
            model: Mutex::default(),
            watched: watch::Sender::new(None),
        };
        (Arc::new(subagents), receiver)
    }

    /// The tools over these children.
    fn tools(self: &Arc<Self>) -> [Arc<dyn Tool>; 5] {
        [
            native_tool(delegate::Delegate(Arc::clone(self))),
            native_tool(background_spawn::BackgroundSpawn(Arc::clone(self))),
            native_tool(background_list::BackgroundList(Arc::clone(self))),
            native_tool(background_message::BackgroundMessage(Arc::clone(self))),
            native_tool(background_kill::BackgroundKill(Arc::clone(self))),
        ]
    }

    /// Children whose profile names no model use this one.
    fn use_model(&self, name: Option<String>) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }

    fn parent_model(&self) -> Option<String> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a child that begins now is made from.
    fn deps(&self) -> MutexGuard<'_, Dependencies> {
        self.deps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The child that still runs under this name. The error is what the model reads.
    fn running(&self, id: &str) -> Result<Arc<Agent>, String> {
        let table = self.table();
        let past = table.past.iter().any(|finished| finished.id == id);
        match table.agents.iter().find(|agent| agent.id == id) {
            Some(agent) if !agent.has_ended() => Ok(Arc::clone(agent)),
            None if !past => {
                let known: Vec<&str> = table.agents.iter().map(|agent| agent.id.as_str()).collect();
                Err(match known.as_slice() {
                    [] => format!("There is no agent {id:?}; none was started."),
                    known => format!("There is no agent {id:?}; there are {}.", known.join(", ")),
                })
            }
            Some(_) | None => Err(format!(
                "Agent {id} has finished; nothing reaches it any more. Start another one."
            )),
        }
    }

    /// The newest child of this process under this name.
    fn find(&self, id: &str) -> Option<Arc<Agent>> {
        self.table().agents.iter().rev().find(|agent| agent.id == id).cloned()
    }

    /// Gives a running child words that it reads at its next step. The error says why it cannot be
    /// reached.
    fn steer(&self, id: &str, text: &str) -> Result<(), String> {
        let agent = self.running(id)?;
        if text.trim().is_empty() {
            return Err("The message is empty.".to_owned());
        }
        let steer = Command::Steer { text: text.to_owned() };
        agent.commands.try_send(steer).map_err(|error| match error {
            TrySendError::Full(_) => {
                format!("Agent {id} has not read its earlier messages yet. Wait.")
            }
            TrySendError::Closed(_) => {
                format!("Agent {id} is just finishing; nothing reaches it any more.")
            }
        })
    }

    /// Leaves word for a running child, which looks for it at each step and at its end.
    async fn ask_to_stop(&self, id: &str, reason: &'static str) -> Result<Arc<Agent>, String> {
        let agent = self.running(id)?;
        let (store, exec) = (Arc::clone(&self.deps().store), agent.exec);
        let asked =
            tokio::task::spawn_blocking(move || store.ask_to_stop(exec, Some(reason))).await;
        asked
            .map_err(|error| error.to_string())
            .and_then(|asked| asked.map_err(|error| error.to_string()))
            .map_err(|error| format!("Agent {id} could not be asked to stop: {error}."))?;
        agent.progress.send_modify(|progress| progress.stopping = true);
        Ok(agent)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session a child leaves behind can be looked at under this name.
fn session_words(exec: ExecutionId) -> String {
    format!("session {exec}")
}
