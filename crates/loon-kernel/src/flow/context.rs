//! What a flow's code works with: steps, decisions, sleeps and waits, each recorded once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loon_api::event::{DecisionRecorded, EffectStatus, ExecutionSuspended, TimerFired, TimerSet};
use loon_api::{EffectKey, ErrorCode, ErrorInfo, ExecutionId};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::replay::{Divergence, Turns, Wait};
use super::state::{Operation, OperationKind, Woken};
use super::{Flow, FlowError};
use crate::execution::Execution;
use crate::gate::{Gate, StepEffect, StepOutput};
use crate::port::Admitted;

/// The world of a flow. Its code must take everything that may differ between two runs from here;
/// then it can be run again, and goes on where it stood. Parts may run beside each other (`join`),
/// but which of two came first must not decide what follows.
pub struct FlowContext {
    flow: Arc<dyn Flow>,
    execution: Execution,
    gate: Gate,
    turns: Turns,
    /// A signal was recorded.
    signalled: Notify,
    /// How often each signal was waited for.
    waits: Mutex<BTreeMap<(String, String), u32>>,
}

impl FlowContext {
    pub(super) fn new(flow: Arc<dyn Flow>, execution: Execution, gate: Gate) -> Self {
        let recorded = execution.recorder().with_state(|state| state.flow.operations.clone());
        Self {
            flow,
            execution,
            gate,
            turns: Turns::new(recorded),
            signalled: Notify::new(),
            waits: Mutex::default(),
        }
    }

    /// The execution.
    pub fn exec(&self) -> ExecutionId {
        self.execution.exec()
    }

    /// The gate, for requests to models and calls of tools. Their keys make them as durable as steps;
    /// their place in the order is not checked.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Fires when the flow is cancelled.
    pub fn cancel_token(&self) -> &CancellationToken {
        self.execution.cancel_token()
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Wakes the waits for signals, so that they look again.
    pub(super) fn signalled(&self) {
        self.signalled.notify_waiters();
    }

    /// Does `work` under `key`, once: admitted, bounded, metered and recorded by the gate. A key that
    /// ended gives what was recorded, a failure too, and never runs again; one that was begun and
    /// whose end nobody recorded fails as unknown. Repeating is up to the flow, under another key.
    ///
    /// # Errors
    ///
    /// [`FlowError::Step`] says how it ended. Anything else means that the flow cannot go on.
    pub async fn perform<W, F, T>(
        &self,
        key: &str,
        target: &str,
        timeout: Option<Duration>,
        work: W,
    ) -> Result<Value, FlowError>
    where
        W: FnOnce(Admitted, CancellationToken) -> F,
        F: Future<Output = Result<T, ErrorInfo>> + Send,
        T: Into<StepOutput>,
    {
        let _busy = self.turns.busy();
        let key = EffectKey::new(key);
        let refused = self.execution.recorder().with_state(|state| {
            state.effects.get(&key).is_some_and(|known| known.started.is_none())
        });
        if !refused {
            // A step that was refused before it began has no place in the order.
            self.take(&key, OperationKind::Step(target.to_owned())).await?;
        }
        let effect = StepEffect {
            key: key.clone(),
            target: target.to_owned(),
            timeout,
            cancel: CancellationToken::new(),
        };
        let step = self.gate.step(effect, |admitted, cancel| {
            let work = work(admitted, cancel);
            async move { work.await.map(Into::into) }
        });
        match step.await {
            Ok(output) => Ok(output.value),
            Err(failure) => Err(FlowError::Step { key, failure: Box::new(failure) }),
        }
    }

    /// Decides something that the recorded past does not determine, once; a replay gets the recorded
    /// value.
    pub async fn decide(
        &self,
        key: &str,
        decide: impl FnOnce() -> Value + Send,
    ) -> Result<Value, FlowError> {
        let _busy = self.turns.busy();
        let key = EffectKey::new(key);
        self.take(&key, OperationKind::Decision).await?;
        let recorder = self.execution.recorder();
        if let Some(value) = recorder.with_state(|state| state.flow.decisions.get(&key).cloned()) {
            return Ok(value);
        }
        let value = decide();
        recorder.record(None, DecisionRecorded { key, value: value.clone() }).await?;
        Ok(value)
    }

    /// Sleeps. The time is kept in the journal: it goes by while no process runs the flow, and a flow
    /// that is resumed after it goes on at once.
    pub async fn sleep(&self, key: &str, duration: Duration) -> Result<(), FlowError> {
        let _busy = self.turns.busy();
        let key = EffectKey::new(key);
        self.take(&key, OperationKind::Sleep).await?;
        let recorder = self.execution.recorder();
        loop {
            let now = recorder.clock().now();
            match recorder.with_state(|state| state.flow.timers.get(&key).copied()) {
                None => {
                    let due = now.plus(duration);
                    recorder.record(None, TimerSet { key: key.clone(), due }).await?;
                    recorder.make_durable().await?;
                }
                Some(timer) if timer.fired => return Ok(()),
                Some(timer) if timer.due <= now => {
                    recorder.record(None, TimerFired { key: key.clone() }).await?;
                }
                Some(timer) => {
                    let sleep = recorder.clock().sleep(timer.due.since(now));
                    self.turns.wait(Wait::Time, sleep).await;
                }
            }
        }
    }

    /// Waits for the signal `on` with this correlation, which [`super::FlowRunner::signal`] brings, at
    /// most for `timeout`. While nothing else is at work, the process lets the execution go.
    pub async fn suspend(
        &self,
        on: &str,
        correlation: &str,
        timeout: Option<Duration>,
    ) -> Result<Woken, FlowError> {
        let _busy = self.turns.busy();
        if self.flow.signal_schema(on).is_none() {
            let message = format!("the flow {} has no schema of a signal {on}", self.flow.name());
            return Err(ErrorInfo::new(ErrorCode::Invalid, message).into());
        }
        let key = self.wait_key(on, correlation);
        self.take(&key, OperationKind::Suspension).await?;
        let recorder = self.execution.recorder();
        loop {
            let signalled = self.signalled.notified();
            tokio::pin!(signalled);
            signalled.as_mut().enable();
            let now = recorder.clock().now();
            let known = recorder.with_state(|state| {
                state.flow.suspension(&key).map(|wait| (wait.due, wait.woken.clone()))
            });
            let due = match known {
                None => {
                    let suspended = ExecutionSuspended {
                        key: key.clone(),
                        on: on.to_owned(),
                        correlation: correlation.to_owned(),
                        due: timeout.map(|timeout| now.plus(timeout)),
                    };
                    recorder.record(None, suspended).await?;
                    recorder.make_durable().await?;
                    continue;
                }
                Some((_, Some(woken))) => return Ok(woken),
                Some((due, None)) => due,
            };
            if due.is_some_and(|due| due <= now) {
                recorder.record(None, TimerFired { key: key.clone() }).await?;
                continue;
            }
            let over = async {
                match due {
                    Some(due) => recorder.clock().sleep(due.since(now)).await,
                    None => std::future::pending().await,
                }
            };
            let woken = async {
                tokio::select! {
                    () = signalled => {}
                    () = over => {}
                }
            };
            self.turns.wait(Wait::Signal, woken).await;
        }
    }

    async fn take(&self, key: &EffectKey, kind: OperationKind) -> Result<(), FlowError> {
        self.turns.take(&Operation { key: key.clone(), kind }).await.map_err(FlowError::Diverged)
    }

    /// The name of the next wait for this signal.
    fn wait_key(&self, on: &str, correlation: &str) -> EffectKey {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waits.entry((on.to_owned(), correlation.to_owned())).or_default();
        *count += 1;
        EffectKey::new(format!("wait/{on:?}/{correlation:?}/{count}"))
    }
}

/// The end of a replay that met something else than was recorded.
pub(super) fn diverged(cx: &FlowContext) -> Option<Divergence> {
    cx.turns.diverged()
}

impl FlowError {
    /// A step was begun by a former process, and whether it had its effect is not known.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Step { failure, .. } if failure.status == EffectStatus::Unknown)
    }
}
