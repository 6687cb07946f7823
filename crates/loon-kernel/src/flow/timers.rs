//! Timers of flows that nobody runs: found in the journals, and tended while a process runs.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use loon_api::{AgentEvent, At, ExecutionId, ExecutionKind};
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::runner::{FlowRunner, RunError};
use crate::execution::read_state;
use crate::placement::Settled;
use crate::store::{JournalStore, StoreError};

/// When an execution that came to rest goes on by itself.
type Rested = (At, ExecutionId);

/// The timers of executions at rest, kept while somebody tends them.
#[derive(Default)]
pub(super) struct Tended {
    timers: Mutex<Option<BTreeSet<Rested>>>,
    added: Notify,
}

impl Tended {
    fn timers(&self) -> MutexGuard<'_, Option<BTreeSet<Rested>>> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, due: At, exec: ExecutionId) {
        if let Some(timers) = self.timers().as_mut() {
            timers.insert((due, exec));
            self.added.notify_one();
        }
    }

    /// Takes the first timer out if it is due.
    fn pop(&self, now: At) -> Option<ExecutionId> {
        let mut timers = self.timers();
        let timers = timers.as_mut()?;
        timers.first().filter(|(due, _)| *due <= now)?;
        timers.pop_first().map(|(_, exec)| exec)
    }

    fn next(&self) -> Option<At> {
        self.timers().as_ref()?.first().map(|(due, _)| *due)
    }
}

impl FlowRunner {
    /// When the flows of the store that are not over have their next timers. Journals that cannot be
    /// read are passed over: `loon sessions verify --all` names them.
    pub fn timers(&self) -> Result<Vec<(At, ExecutionId)>, StoreError> {
        timers_of(self.store.as_ref())
    }

    /// Resumes every flow whose timer is due: at once those that came due while no process ran, and
    /// later ones as they do, also of executions that come to rest meanwhile. `told` hears how each
    /// came to rest. Comes back when `stop` fires; what runs then is dropped, and goes on another time.
    pub async fn tend(
        &self,
        stop: &CancellationToken,
        mut told: impl FnMut(ExecutionId, Result<Settled, RunError>),
    ) -> Result<(), StoreError> {
        // Those that come to rest from here on are not missed while the journals are read.
        self.tended.timers().get_or_insert_default();
        let store = Arc::clone(&self.store);
        let found = match spawn_blocking(move || timers_of(store.as_ref())).await {
            Ok(found) => found?,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime ends.
            Err(_) => return Ok(()),
        };
        self.tended.timers().get_or_insert_default().extend(found);
        let mut running = FuturesUnordered::new();
        loop {
            let now = self.clock.now();
            while let Some(exec) = self.tended.pop(now) {
                running.push(async move {
                    let unheard = mpsc::channel(1).0;
                    (exec, self.resume(exec, unheard).await)
                });
            }
            let next = async {
                match self.tended.next() {
                    Some(due) => self.clock.sleep(due.since(now)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    *self.tended.timers() = None;
                    return Ok(());
                }
                () = self.tended.added.notified() => {}
                Some((exec, settled)) = running.next() => told(exec, settled),
                () = next => {}
            }
        }
    }
}

fn timers_of(store: &dyn JournalStore) -> Result<Vec<Rested>, StoreError> {
    let mut found = Vec::new();
    for exec in store.list()? {
        let first = store.read(exec).ok().and_then(|mut records| records.next());
        let Some(Ok(first)) = first else { continue };
        let is_flow = matches!(&first.event, AgentEvent::ExecutionStarted(started)
            if started.kind == ExecutionKind::Flow);
        if !is_flow {
            continue;
        }
        let Ok(state) = read_state(store, exec) else { continue };
        if state.cancelled.is_none() {
            found.extend(state.flow.next_due().map(|due| (due, exec)));
        }
    }
    found.sort_unstable();
    Ok(found)
}
