//! The order in which a replay hands out what was recorded.
//!
//! A flow's code runs again from its beginning. What it begins must be what it began before, in the
//! same order; what comes too early, from a part that runs beside others, waits for its turn. If all
//! parts wait and nobody can go on, or if something else than recorded comes, the code has changed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use loon_api::EffectKey;
use tokio::sync::Notify;

use super::state::{Operation, OperationKind};

/// A flow's code no longer does what its journal says it did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the code asks for {found}, and its journal says that {expected} came at that place")]
pub struct Divergence {
    /// What was recorded.
    pub expected: String,
    /// What the code does.
    pub found: String,
}

/// How many operations are in which condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// At work.
    pub(super) busy: usize,
    /// Waiting for their turn in a replay.
    pub(super) early: usize,
    /// Waiting for a signal.
    pub(super) parked: usize,
    /// Turns that were taken in all.
    pub(super) moves: u64,
}

/// What operations wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Turn,
    Signal,
    Time,
}

/// The turns of one replay, and what goes on beyond it.
pub(super) struct Turns {
    table: Mutex<Table>,
    moved: Notify,
}

#[derive(Default)]
struct Table {
    expected: VecDeque<Operation>,
    taken: BTreeMap<EffectKey, OperationKind>,
    /// What waited last for its turn.
    early: Option<Operation>,
    diverged: Option<Divergence>,
    counts: Counts,
}

/// An operation at work until it is dropped.
pub(super) struct Busy<'a>(&'a Turns);

/// An operation that waits until it is dropped.
struct Waiting<'a>(&'a Turns, Wait);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.table().counts.busy -= 1;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.table().count(self.1, false);
    }
}

impl Table {
    fn count(&mut self, wait: Wait, begins: bool) {
        let counts = &mut self.counts;
        let waiting = match wait {
            Wait::Turn => Some(&mut counts.early),
            Wait::Signal => Some(&mut counts.parked),
            Wait::Time => None,
        };
        if begins {
            counts.busy -= 1;
            if let Some(count) = waiting {
                *count += 1;
            }
        } else {
            counts.busy += 1;
            if let Some(count) = waiting {
                *count -= 1;
            }
        }
    }

    fn diverge(&mut self, expected: &Operation, found: &dyn std::fmt::Display) -> Divergence {
        let divergence = Divergence { expected: expected.to_string(), found: found.to_string() };
        self.diverged.get_or_insert(divergence).clone()
    }
}

impl Turns {
    /// The turns of a flow that began these operations before.
    pub(super) fn new(recorded: impl IntoIterator<Item = Operation>) -> Self {
        let table = Table { expected: recorded.into_iter().collect(), ..Table::default() };
        Self { table: Mutex::new(table), moved: Notify::new() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation as at work.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.table().counts.busy += 1;
        Busy(self)
    }

    /// Awaits `what` while the operation, which is counted as busy, counts as waiting.
    pub(super) async fn wait<T>(&self, wait: Wait, what: impl Future<Output = T>) -> T {
        self.table().count(wait, true);
        let _waiting = Waiting(self, wait);
        what.await
    }

    pub(super) fn counts(&self) -> Counts {
        self.table().counts
    }

    /// Waits for the turn of an operation that is counted as busy.
    pub(super) async fn take(&self, operation: &Operation) -> Result<(), Divergence> {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // Registered before the look, so that a turn taken in between is not missed.
            moved.as_mut().enable();
            if self.try_take(operation)? {
                return Ok(());
            }
            self.wait(Wait::Turn, moved).await;
        }
    }

    fn try_take(&self, operation: &Operation) -> Result<bool, Divergence> {
        let mut table = self.table();
        if let Some(kind) = table.taken.get(&operation.key) {
            // Asked for again in the same run: what was recorded is given again.
            let before = Operation { key: operation.key.clone(), kind: kind.clone() };
            return if before == *operation {
                Ok(true)
            } else {
                Err(table.diverge(&before, operation))
            };
        }
        match table.expected.front().cloned() {
            Some(next) if next == *operation => {
                table.expected.pop_front();
            }
            Some(next) if next.key == operation.key => return Err(table.diverge(&next, operation)),
            Some(_) => {
                table.early = Some(operation.clone());
                return Ok(false);
            }
            None => {}
        }
        table.taken.insert(operation.key.clone(), operation.kind.clone());
        table.counts.moves += 1;
        drop(table);
        self.moved.notify_waiters();
        Ok(true)
    }

    /// The divergence that was met.
    pub(super) fn diverged(&self) -> Option<Divergence> {
        self.table().diverged.clone()
    }

    /// Everything waits for its turn, and what should come next does not.
    pub(super) fn stuck(&self) -> Option<Divergence> {
        let mut table = self.table();
        let (expected, found) = (table.expected.front().cloned()?, table.early.clone()?);
        Some(table.diverge(&expected, &found))
    }

    /// The code has come to its end; what it began before must have come again.
    pub(super) fn finish(&self) -> Result<(), Divergence> {
        let mut table = self.table();
        if let Some(diverged) = &table.diverged {
            return Err(diverged.clone());
        }
        match table.expected.front().cloned() {
            Some(expected) => Err(table.diverge(&expected, &"its end")),
            None => Ok(()),
        }
    }
}
