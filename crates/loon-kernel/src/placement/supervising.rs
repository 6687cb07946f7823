//! A dispatcher that tries again where nothing was begun, and leaves a place alone that keeps failing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loon_api::{BoxFuture, Envelope, ErrorCode, ExecutionId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Dispatch, DispatchError, Dispatcher, Settled};
use crate::supervision::{Circuits, SupervisionPolicy, supervised};

/// Wraps a dispatcher. Only an execution that was not begun is dispatched again: one that may be running
/// still, or that came to rest in whatever way, is not.
pub struct SupervisingDispatcher {
    inner: Arc<dyn Dispatcher>,
    /// Names the place among those whose circuits are kept.
    target: String,
    circuits: Circuits,
    policy: SupervisionPolicy,
    cancels: Mutex<HashMap<ExecutionId, CancellationToken>>,
}

/// A dispatch under way, until the guard is dropped.
struct OnTable<'a> {
    dispatcher: &'a SupervisingDispatcher,
    exec: ExecutionId,
    cancel: CancellationToken,
}

impl Drop for OnTable<'_> {
    fn drop(&mut self) {
        self.dispatcher.cancels().remove(&self.exec);
    }
}

impl SupervisingDispatcher {
    /// Supervises `inner`, which `target` names (`worker:URL`).
    pub fn new(
        inner: Arc<dyn Dispatcher>,
        target: String,
        circuits: Circuits,
        policy: SupervisionPolicy,
    ) -> Self {
        Self { inner, target, circuits, policy, cancels: Mutex::default() }
    }

    fn cancels(&self) -> MutexGuard<'_, HashMap<ExecutionId, CancellationToken>> {
        self.cancels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a dispatch among those under way; nothing if it is there already.
    fn enter(&self, exec: ExecutionId) -> Option<OnTable<'_>> {
        let mut cancels = self.cancels();
        let Entry::Vacant(vacant) = cancels.entry(exec) else { return None };
        let cancel = vacant.insert(CancellationToken::new()).clone();
        Some(OnTable { dispatcher: self, exec, cancel })
    }

    async fn supervise(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
        cancel: &CancellationToken,
    ) -> Result<Settled, DispatchError> {
        let unreached = Mutex::new(None);
        let attempt = || async {
            match self.inner.dispatch(dispatch.clone(), events.clone()).await {
                Err(error @ DispatchError::Unreachable { .. }) => {
                    let info = error.info();
                    *unreached.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    Err(info)
                }
                // Whatever else comes is the end of it.
                rest => Ok(rest),
            }
        };
        // Who dispatches hears of the place by the error alone.
        let tell = |_| {};
        let tried =
            supervised(&self.circuits, &self.target, &self.policy, cancel, tell, attempt).await;
        tried.unwrap_or_else(|error| {
            let last = unreached.into_inner().unwrap_or_else(PoisonError::into_inner);
            Err(match last {
                Some(last) if error.code != ErrorCode::CircuitOpen => last,
                _ => DispatchError::LeftAlone { error },
            })
        })
    }
}

impl Dispatcher for SupervisingDispatcher {
    fn dispatch(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> BoxFuture<'_, Result<Settled, DispatchError>> {
        Box::pin(async move {
            let exec = dispatch.execution_id;
            let Some(entry) = self.enter(exec) else { return Ok(Settled::under_way(exec)) };
            self.supervise(dispatch, events, &entry.cancel).await
        })
    }

    fn cancel(&self, exec: ExecutionId, reason: Option<String>) -> BoxFuture<'_, bool> {
        // No further restart, whether the place hears of it or not.
        if let Some(cancel) = self.cancels().get(&exec) {
            cancel.cancel();
        }
        self.inner.cancel(exec, reason)
    }

    fn warm(&self) -> BoxFuture<'_, ()> {
        self.inner.warm()
    }
}

#[cfg(test)]
mod tests;
