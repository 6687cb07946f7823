//! Steps of flows, and hooks: work that is done once, recorded before and after.

use std::time::Duration;

use loon_api::event::{EffectFinished, EffectKind, EffectStarted, EffectStatus};
use loon_api::{At, Cost, EffectKey, ErrorCode, ErrorInfo, TurnNumber, Usage};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::model::unrecorded;
use super::replay::{no_outcome, under_way};
use super::run::{Limits, Ran};
use super::{EffectFailure, Gate, Stop};
use crate::clock::millis;
use crate::error::KernelError;
use crate::fold::EffectRecord;
use crate::port::Admitted;

/// A step to perform.
#[derive(Clone, Debug)]
pub struct StepEffect {
    /// Its durable name.
    pub key: EffectKey,
    /// What it touches, in a word for people.
    pub target: String,
    /// How long it may take; absent is without bound.
    pub timeout: Option<Duration>,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// What a step gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutput {
    /// The value that a replay gets again.
    pub value: Value,
    /// Tokens it used.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
}

impl From<Value> for StepOutput {
    fn from(value: Value) -> Self {
        Self { value, ..Self::default() }
    }
}

impl Gate {
    /// Performs a step. `work` gets proof that it was admitted, and a token that fires when it should
    /// end; half a second later it is dropped. A step that was begun by a former process and never
    /// ended fails as unknown: it may have had its effect, and is not begun again.
    pub async fn step<W, F>(&self, effect: StepEffect, work: W) -> Result<StepOutput, EffectFailure>
    where
        W: FnOnce(Admitted, CancellationToken) -> F,
        F: Future<Output = Result<StepOutput, ErrorInfo>> + Send,
    {
        self.perform_step(EffectKind::Step, None, effect, work).await
    }

    /// The same for a lifecycle hook, which uses up no budget.
    pub async fn hook<W, F>(
        &self,
        turn: Option<TurnNumber>,
        effect: StepEffect,
        work: W,
    ) -> Result<StepOutput, EffectFailure>
    where
        W: FnOnce(Admitted, CancellationToken) -> F,
        F: Future<Output = Result<StepOutput, ErrorInfo>> + Send,
    {
        self.perform_step(EffectKind::Hook, turn, effect, work).await
    }

    async fn perform_step<W, F>(
        &self,
        kind: EffectKind,
        turn: Option<TurnNumber>,
        effect: StepEffect,
        work: W,
    ) -> Result<StepOutput, EffectFailure>
    where
        W: FnOnce(Admitted, CancellationToken) -> F,
        F: Future<Output = Result<StepOutput, ErrorInfo>> + Send,
    {
        let recorder = self.execution.recorder();
        let known = recorder.with_state(|state| state.effects.get(&effect.key).cloned());
        if let Some(known) = known {
            return replay(&effect.key, known);
        }
        let _in_flight = self.execution.enter();
        let admitted = match kind {
            EffectKind::Hook => self.may_begin(&effect.cancel),
            _ => self.admit(&effect.cancel, false).await,
        };
        // Waiting for a person is no part of the step.
        let began = recorder.now();
        if let Err(refusal) = admitted {
            return self.end_step(turn, &effect, began, Err(refusal)).await;
        }
        let started = EffectStarted {
            key: effect.key.clone(),
            kind,
            target: effect.target.clone(),
            item: None,
            timeout_ms: effect.timeout.map(millis),
            request: None,
        };
        recorder.record(turn, started).await.map_err(|error| unrecorded(&error))?;
        recorder.make_durable().await.map_err(|error| unrecorded(&error))?;
        let stop = CancellationToken::new();
        let run = Box::pin(work(Admitted::new(effect.key.clone()), stop.clone()));
        let limits = Limits { cancel: &effect.cancel, timeout: effect.timeout.map(|t| (began, t)) };
        let ended = match self.supervise(run, &stop, &limits).await {
            Ran::Returned(Ok(output)) => Ok(output),
            Ran::Returned(Err(error)) => Err(Stop { status: EffectStatus::Failed, error }),
            // What it gave after it was told to end would say that it was done.
            Ran::Stopped(stop, _) => Err(stop),
            Ran::Panicked(words) => {
                let message = format!("{} broke down: {words}", effect.key);
                let error = ErrorInfo::new(ErrorCode::Internal, message);
                Err(Stop { status: EffectStatus::Failed, error })
            }
        };
        self.end_step(turn, &effect, began, ended).await
    }

    /// Records the end of a step and gives its outcome.
    async fn end_step(
        &self,
        turn: Option<TurnNumber>,
        effect: &StepEffect,
        began: At,
        ended: Result<StepOutput, Stop>,
    ) -> Result<StepOutput, EffectFailure> {
        let recorder = self.execution.recorder();
        let (status, error) = match &ended {
            Ok(_) => (EffectStatus::Completed, None),
            Err(stop) => (stop.status, Some(stop.error.clone())),
        };
        let output = ended.as_ref().ok();
        let end = EffectFinished {
            key: effect.key.clone(),
            status,
            error,
            ms: millis(recorder.now().since(began)),
            usage: output.map(|output| output.usage).unwrap_or_default(),
            cost: output.map(|output| output.cost).unwrap_or_default(),
            output: output.map(|output| output.value.clone()),
        };
        let recorded = recorder.record(turn, end).await;
        self.tree.tell().await;
        match (ended, recorded) {
            (Ok(output), Ok(_)) => Ok(output),
            (Err(Stop { status, error }), Ok(_)) => Err(failure(status, error)),
            // The cancel that stopped this step has settled it already.
            (
                Err(Stop { status: EffectStatus::Aborted, error }),
                Err(KernelError::Cancelled { .. }),
            ) => Err(failure(EffectStatus::Aborted, error)),
            (_, Err(error)) => Err(unrecorded(&error)),
        }
    }
}

fn failure(status: EffectStatus, error: ErrorInfo) -> EffectFailure {
    let (usage, cost) = (Usage::default(), Cost::default());
    EffectFailure { status, error, usage, cost, streamed: false, model: None }
}

#[expect(clippy::result_large_err, reason = "what the gate gives back")]
fn replay(key: &EffectKey, known: EffectRecord) -> Result<StepOutput, EffectFailure> {
    match known.finished {
        Some((_, EffectStatus::Completed)) => Ok(StepOutput {
            // JSON cannot tell a missing member from null.
            value: known.output.unwrap_or(Value::Null),
            usage: known.usage,
            cost: known.cost,
        }),
        Some((_, status)) => Err(failure(status, known.error.unwrap_or_else(|| no_outcome(key)))),
        None => Err(failure(EffectStatus::Failed, under_way(key))),
    }
}
