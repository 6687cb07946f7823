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
mod owner;
mod report;
mod start;
mod worktree;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loon_api::event::{SubagentFinished, SubagentStarted};
use loon_api::{AgentEvent, ExecutionId};
use loon_kernel::{Execution, Tool, native_tool};
use tokio::sync::mpsc;
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
    /// One met a failing target. Passed on, not recorded: the record is in its own journal.
    Passes(Box<AgentEvent>),
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

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session a child leaves behind can be looked at under this name.
fn session_words(exec: ExecutionId) -> String {
    format!("session {exec}")
}
