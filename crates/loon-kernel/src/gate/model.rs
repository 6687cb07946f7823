//! Model requests: repeated where that is safe, metered in every case.

use std::time::Duration;

use loon_api::event::{
    EffectFinished, EffectKind, EffectRetried, EffectStarted, EffectStatus, ItemCompleted,
};
use loon_api::{
    AgentEvent, Answer, At, BoxFuture, Cost, ErrorCode, ErrorInfo, Item, ModelError, StopReason,
    Usage,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::admission::in_words;
use super::run::{Limits, Ran, followed, progress_channel};
use super::{EffectFailure, Gate, ModelEffect, ModelOutcome, Stop};
use crate::clock::millis;
use crate::error::KernelError;
use crate::port::{Admitted, EffectContext, Follow, Progress};

/// What is noted with the end of a request, so that it can be given back later.
#[derive(Serialize, Deserialize)]
pub(super) struct ModelNote {
    /// Why the answer ended.
    pub(super) stop: StopReason,
    /// How many records right before the end hold its items.
    pub(super) items: u64,
}

/// What the attempts of one request add up to.
#[derive(Default)]
struct Meter {
    usage: Usage,
    cost: Cost,
    streamed: bool,
}

/// Notices whether there was any progress.
struct Noticed<'a> {
    follow: &'a mut dyn Follow,
    any: bool,
}

impl Follow for Noticed<'_> {
    fn take(&mut self, progress: Progress) -> BoxFuture<'_, ()> {
        self.any = true;
        self.follow.take(progress)
    }
}

/// How the attempts came to their end.
enum Attempts {
    Answered(Answer),
    Failed(EffectStatus, ErrorInfo),
}

impl Gate {
    /// Performs a model request. Its items, made by `items` from the answer, are recorded together
    /// with its end.
    pub async fn model(
        &self,
        mut effect: ModelEffect<'_>,
        items: impl FnOnce(&Answer) -> Vec<Item>,
    ) -> Result<ModelOutcome, EffectFailure> {
        let recorder = self.execution.recorder();
        let known = recorder.with_state(|state| state.effects.get(&effect.key).cloned());
        if let Some(known) = known {
            return self.replay_model(&effect.key, &known).await;
        }
        let _in_flight = self.execution.enter();
        let began = recorder.clock().now();
        let mut meter = Meter::default();
        if let Err(refusal) = self.admit(&effect.cancel, true) {
            return Err(self.fail(&effect, began, meter, refusal.status, refusal.error).await);
        }
        let started = EffectStarted {
            key: effect.key.clone(),
            kind: EffectKind::Model,
            target: effect.model.info().name.clone(),
            item: None,
            timeout_ms: effect.timeout.map(millis),
        };
        recorder.record(Some(effect.turn), started).await.map_err(|error| unrecorded(&error))?;
        let answer = match self.attempt_all(&mut effect, began, &mut meter).await {
            Ok(Attempts::Answered(answer)) => answer,
            Ok(Attempts::Failed(status, error)) => {
                return Err(self.fail(&effect, began, meter, status, error).await);
            }
            Err(error) => return Err(unrecorded(&error)),
        };
        let items = items(&answer);
        let note = ModelNote { stop: answer.stop, items: items.len() as u64 };
        let mut records: Vec<AgentEvent> =
            items.iter().map(|item| ItemCompleted { item: item.clone() }.into()).collect();
        let mut end = self.end_of(&effect, began, &meter, EffectStatus::Completed, None);
        end.output = serde_json::to_value(note).ok();
        records.push(end.into());
        recorder.record_all(Some(effect.turn), records).await.map_err(|error| EffectFailure {
            usage: meter.usage,
            cost: meter.cost,
            ..unrecorded(&error)
        })?;
        Ok(ModelOutcome { items, stop: answer.stop, usage: meter.usage, cost: meter.cost })
    }

    /// Sends the request until it is answered, fails for good or is stopped.
    async fn attempt_all(
        &self,
        effect: &mut ModelEffect<'_>,
        began: At,
        meter: &mut Meter,
    ) -> Result<Attempts, KernelError> {
        let cancel = effect.cancel.clone();
        let limits = Limits { cancel: &cancel, timeout: effect.timeout.map(|t| (began, t)) };
        let mut delays = self.retry.delays.iter();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (ran, told) = self.attempt(effect, &limits).await;
            meter.streamed = told;
            let error = match ran {
                Ran::Returned(Ok(answer)) => {
                    self.count(effect, meter, answer.usage, true);
                    return Ok(Attempts::Answered(answer));
                }
                Ran::Returned(Err(error)) => error,
                Ran::Stopped(stop, rest) => {
                    let (usage, streamed) = match rest {
                        Some(Ok(answer)) => (answer.usage, true),
                        Some(Err(error)) => (error.usage, error.streamed),
                        None => (Usage::default(), false),
                    };
                    meter.streamed |= streamed;
                    // The server may have worked on it without a word.
                    self.count(effect, meter, usage, true);
                    return Ok(Attempts::Failed(stop.status, stop.error));
                }
                Ran::Panicked(words) => {
                    self.count(effect, meter, Usage::default(), true);
                    let message = format!("the model's adapter failed: {words}");
                    let error = ErrorInfo::new(ErrorCode::Internal, message);
                    return Ok(Attempts::Failed(EffectStatus::Failed, error));
                }
            };
            meter.streamed |= error.streamed;
            self.count(effect, meter, error.usage, meter.streamed);
            let delay = match (error.is_retryable() && !told, delays.next()) {
                (true, Some(delay)) => (*delay).max(error.retry_after.unwrap_or_default()),
                (true, None) | (false, _) => {
                    return Ok(Attempts::Failed(EffectStatus::Failed, error.info()));
                }
            };
            if delay > self.retry.longest_wait {
                let error = waits_too_long(&error, delay);
                return Ok(Attempts::Failed(EffectStatus::Failed, error));
            }
            self.note_retry(effect, attempt, &error, delay).await?;
            if let Some(stop) = self.wait(delay, &limits).await {
                return Ok(Attempts::Failed(stop.status, stop.error));
            }
        }
    }

    /// Sends the request once. Also says whether any of the answer was told on the way.
    async fn attempt(
        &self,
        effect: &mut ModelEffect<'_>,
        limits: &Limits<'_>,
    ) -> (Ran<Result<Answer, ModelError>>, bool) {
        let stop = CancellationToken::new();
        let (progress, arriving) = progress_channel();
        let key = effect.key.clone();
        let cx = EffectContext {
            key,
            subjects: [].into(),
            hidden: [].into(),
            cancel: stop.clone(),
            progress,
        };
        let admitted = Admitted::new(effect.key.clone());
        let run = effect.model.run(admitted, effect.request, &cx);
        let mut follow = Noticed { follow: effect.follow, any: false };
        let ran = followed(self.supervise(run, &stop, limits), arriving, &mut follow).await;
        (ran, follow.any)
    }

    async fn note_retry(
        &self,
        effect: &ModelEffect<'_>,
        attempt: u32,
        error: &ModelError,
        delay: Duration,
    ) -> Result<(), KernelError> {
        let retried = EffectRetried {
            key: effect.key.clone(),
            attempt,
            error: error.info(),
            delay_ms: millis(delay),
            usage: error.usage,
        };
        self.execution.recorder().record(Some(effect.turn), retried).await?;
        Ok(())
    }

    async fn wait(&self, delay: Duration, limits: &Limits<'_>) -> Option<Stop> {
        tokio::select! {
            biased;
            stop = self.limit_reached(limits) => Some(stop),
            () = self.execution.recorder().clock().sleep(delay) => None,
        }
    }

    /// Adds one attempt to the meter. `used` says that it used tokens even if none were reported.
    fn count(&self, effect: &ModelEffect<'_>, meter: &mut Meter, usage: Usage, used: bool) {
        meter.usage += usage;
        if usage.is_unknown() && !used {
            return;
        }
        let known = (!usage.is_unknown()).then_some(usage);
        match known.and_then(|usage| self.pricing.price(&effect.model.info().name, &usage)) {
            Some(price) => meter.cost.usd += price,
            None => meter.cost.unpriced += 1,
        }
    }

    /// Records a failed end and makes the failure.
    async fn fail(
        &self,
        effect: &ModelEffect<'_>,
        began: At,
        meter: Meter,
        status: EffectStatus,
        error: ErrorInfo,
    ) -> EffectFailure {
        let end = self.end_of(effect, began, &meter, status, Some(error.clone()));
        let Meter { usage, cost, streamed, .. } = meter;
        let failure = EffectFailure { status, error, usage, cost, streamed };
        match self.execution.recorder().record(Some(effect.turn), end).await {
            Ok(_) => failure,
            // The cancel that stopped this effect has settled it already.
            Err(KernelError::Cancelled { .. }) if status == EffectStatus::Aborted => failure,
            Err(error) => {
                EffectFailure { usage: meter.usage, cost: meter.cost, ..unrecorded(&error) }
            }
        }
    }

    fn end_of(
        &self,
        effect: &ModelEffect<'_>,
        began: At,
        meter: &Meter,
        status: EffectStatus,
        error: Option<ErrorInfo>,
    ) -> EffectFinished {
        EffectFinished {
            key: effect.key.clone(),
            status,
            error,
            ms: millis(self.execution.recorder().clock().now().since(began)),
            usage: meter.usage,
            cost: meter.cost,
            output: None,
        }
    }
}

/// The failure of an effect whose records could not be written.
pub(super) fn unrecorded(error: &KernelError) -> EffectFailure {
    let status = match error {
        KernelError::Cancelled { .. } => EffectStatus::Aborted,
        KernelError::Store(_) | KernelError::Ended { .. } | KernelError::Interrupted { .. } => {
            EffectStatus::Failed
        }
    };
    EffectFailure {
        status,
        error: error.info(),
        usage: Usage::default(),
        cost: Cost::default(),
        streamed: false,
    }
}

fn waits_too_long(error: &ModelError, delay: Duration) -> ErrorInfo {
    let mut info = error.info();
    let wait = in_words(delay);
    info.message = format!("{} (the server asks to wait {wait})", info.message);
    info.hint(format!("try again in {wait}, or choose another model"))
}
