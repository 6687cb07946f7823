//! Executions that share a budget: one and those it started.

use std::sync::{Arc, Mutex, PoisonError};

use loon_api::Money;

use crate::recorder::{Recorder, WeakRecorder};

/// Executions that share a budget. Clones are the same tree. A member counts while it is open; what
/// it used is in the records of the execution that started it from then on.
#[derive(Clone, Default)]
pub struct Tree {
    members: Arc<Mutex<Vec<WeakRecorder>>>,
}

/// What a tree used so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) usd: Money,
    pub(crate) tokens: u64,
    pub(crate) requests: u64,
}

impl Tree {
    /// Counts an execution from now on.
    pub(crate) fn join(&self, recorder: &Recorder) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(WeakRecorder::is_open);
        members.push(recorder.downgrade());
    }

    pub(crate) fn used(&self) -> Used {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut used = Used::default();
        for recorder in members.iter().filter_map(WeakRecorder::upgrade) {
            recorder.with_state(|state| {
                used.usd += state.resources.cost.usd;
                used.tokens = used.tokens.saturating_add(state.resources.tokens);
                used.requests = used.requests.saturating_add(state.resources.requests);
            });
        }
        used
    }
}
