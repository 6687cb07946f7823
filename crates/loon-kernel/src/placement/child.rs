//! Executions that run in a child process each, isolated from us and from each other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loon_api::{BoxFuture, Envelope, ExecutionId};
use loon_exec::{LineChild, Spawn, SpawnError};
use tokio::sync::{mpsc, oneshot};

use super::wire::{CancelRequest, FromWorker, MAX_LINE, ToWorker};
use super::{Dispatch, DispatchError, Dispatcher, Settled};

/// How errors call the place.
const TARGET: &str = "the worker process";

/// Makes the child, which must speak [`ToWorker`] and [`FromWorker`] on its standard streams.
type MakeChild = dyn Fn() -> Spawn + Send + Sync;

/// A cancel on its way to a child.
struct CancelCall {
    reason: Option<String>,
    reply: oneshot::Sender<bool>,
}

/// Runs each execution in a child process of its own, which ends with it. Dropping a dispatch kills
/// its child with everything that it started; the execution's journal tells how far it came.
pub struct ChildDispatcher {
    make: Box<MakeChild>,
    /// A child that was started ahead.
    ready: Mutex<Option<LineChild>>,
    live: Mutex<HashMap<ExecutionId, mpsc::Sender<CancelCall>>>,
}

/// Takes a dispatch off the table of those under way.
struct OnTable<'a>(&'a ChildDispatcher, ExecutionId);

impl Drop for OnTable<'_> {
    fn drop(&mut self) {
        self.0.live().remove(&self.1);
    }
}

impl ChildDispatcher {
    /// Children that `make` makes.
    pub fn new(make: impl Fn() -> Spawn + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), ready: Mutex::default(), live: Mutex::default() }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<ExecutionId, mpsc::Sender<CancelCall>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ready(&self) -> MutexGuard<'_, Option<LineChild>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the child that was started ahead has ended.
    #[cfg(test)]
    pub(super) fn ready_has_ended(&self) -> bool {
        self.ready().as_ref().is_some_and(LineChild::has_ended)
    }

    /// Whether it runs in a child of ours.
    #[cfg(test)]
    pub(super) fn runs(&self, exec: ExecutionId) -> bool {
        self.live().contains_key(&exec)
    }

    fn start(&self) -> Result<LineChild, SpawnError> {
        (self.make)().start_lines()
    }

    /// A child that has heard the request: the one started ahead if it is still there.
    async fn begin(&self, request: &[u8]) -> Result<LineChild, DispatchError> {
        let unreachable =
            |reason: String| DispatchError::Unreachable { target: TARGET.to_owned(), reason };
        let ready = self.ready().take().filter(|child| !child.has_ended());
        if let Some(child) = ready
            && child.send(request).await.is_ok()
        {
            return Ok(child);
        }
        let child = self.start().map_err(|error| unreachable(error.to_string()))?;
        child.send(request).await.map_err(|error| unreachable(error.to_string()))?;
        Ok(child)
    }

    async fn run(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> Result<Settled, DispatchError> {
        let exec = dispatch.execution_id;
        let (calls, mut cancels) = mpsc::channel(4);
        match self.live().entry(exec) {
            Entry::Vacant(vacant) => vacant.insert(calls),
            Entry::Occupied(_) => return Ok(Settled::under_way(exec)),
        };
        let _on_table = OnTable(self, exec);
        let unsendable = |error: serde_json::Error| DispatchError::Unreachable {
            target: TARGET.to_owned(),
            reason: error.to_string(),
        };
        let request = serde_json::to_vec(&ToWorker::Run(dispatch)).map_err(unsendable)?;
        let mut child = self.begin(&request).await?;
        let mut asked: Vec<oneshot::Sender<bool>> = Vec::new();
        let mut waiting: Option<Arc<Envelope>> = None;
        let settled = loop {
            tokio::select! {
                biased;
                Some(call) = cancels.recv() => {
                    let cancel = CancelRequest { execution_id: exec, reason: call.reason };
                    let line = serde_json::to_vec(&ToWorker::Cancel(cancel)).map_err(unsendable)?;
                    if child.send(&line).await.is_ok() {
                        asked.push(call.reply);
                    }
                }
                place = events.reserve(), if waiting.is_some() => {
                    // Without a reader the work goes on.
                    if let (Ok(place), Some(event)) = (place, waiting.take()) {
                        place.send(event);
                    }
                }
                line = child.next(MAX_LINE), if waiting.is_none() => {
                    let message = match line {
                        Ok(Some(line)) => FromWorker::parse(&line),
                        Ok(None) => break None,
                        Err(error) => Err(error.to_string()),
                    };
                    match message {
                        Ok(FromWorker::Event(event)) => waiting = Some(event),
                        Ok(FromWorker::Settled(settled)) => break Some(settled),
                        Ok(FromWorker::Cancelled(cancelled)) => {
                            answer(&mut asked, cancelled);
                        }
                        Err(reason) => return Err(lost(&child, reason).await),
                    }
                }
            }
        };
        match settled {
            Some(settled) => {
                let cancelled = matches!(settled, Settled::Cancelled { .. });
                answer(&mut asked, cancelled);
                child.end_input().await;
                child.stop().await;
                Ok(settled)
            }
            None => Err(lost(&child, "it ended before its work".to_owned()).await),
        }
    }
}

/// Answers those who cancelled; who asked may be gone.
fn answer(asked: &mut Vec<oneshot::Sender<bool>>, cancelled: bool) {
    for reply in asked.drain(..) {
        let _ = reply.send(cancelled);
    }
}

/// A child that cannot be understood any more is ended; what it did is in its journal.
async fn lost(child: &LineChild, reason: String) -> DispatchError {
    let said = child.stop().await.map(|ended| ended.errors).unwrap_or_default();
    let said = said.trim();
    let reason = if said.is_empty() { reason } else { format!("{reason}: {said}") };
    DispatchError::Lost { target: TARGET.to_owned(), reason }
}

impl Dispatcher for ChildDispatcher {
    fn dispatch(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> BoxFuture<'_, Result<Settled, DispatchError>> {
        Box::pin(self.run(dispatch, events))
    }

    fn cancel(&self, exec: ExecutionId, reason: Option<String>) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let Some(live) = self.live().get(&exec).cloned() else { return false };
            let (reply, answer) = oneshot::channel();
            live.send(CancelCall { reason, reply }).await.is_ok() && answer.await.unwrap_or(false)
        })
    }

    fn warm(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut ready = self.ready();
            if ready.as_ref().is_none_or(LineChild::has_ended) {
                *ready = self.start().ok();
            }
        })
    }
}
