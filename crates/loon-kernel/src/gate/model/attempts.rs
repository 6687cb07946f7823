//! The attempts at one model: repeated where that is safe, each under the circuit of its provider.

use std::time::Duration;

use loon_api::event::{CircuitChanged, EffectRetried, EffectStatus};
use loon_api::{Answer, BoxFuture, Cost, ErrorCode, ErrorInfo, ModelError, TurnNumber, Usage};
use tokio_util::sync::CancellationToken;

use super::{Meter, estimate};
use crate::clock::in_words;
use crate::clock::millis;
use crate::error::KernelError;
use crate::gate::run::{Limits, Ran, followed, progress_channel};
use crate::gate::{Gate, ModelEffect, Stop};
use crate::port::{Admitted, EffectContext, Follow, Progress};
use crate::recorder::Recorder;
use crate::route::Member;
use crate::supervision::{CallEnd, CircuitPolicy, Permit};

/// How the attempts at a model came to their end.
pub(super) enum Attempts {
    Answered(Answer),
    Failed(EffectStatus, ErrorInfo),
}

/// Passes progress on, notices whether there was any, and tells the circuit of the first.
struct Noticed<'a> {
    follow: &'a mut dyn Follow,
    recorder: &'a Recorder,
    turn: TurnNumber,
    permit: &'a mut Permit,
    told: Told,
}

/// What was told of an answer on its way.
#[derive(Clone, Copy, Default)]
struct Told {
    any: bool,
    /// Bytes of text, reasoning and arguments.
    bytes: u64,
}

impl Follow for Noticed<'_> {
    fn take(&mut self, progress: Progress) -> BoxFuture<'_, ()> {
        self.told.bytes += progress.bytes();
        if std::mem::replace(&mut self.told.any, true) {
            return self.follow.take(progress);
        }
        Box::pin(async {
            if let Some(change) = self.permit.alive() {
                self.recorder.pass(Some(self.turn), change).await;
            }
            self.follow.take(progress).await;
        })
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        self.follow.end()
    }
}

impl Gate {
    /// Sends the request to `member` until it is answered, fails for good or is stopped. With
    /// `has_heir` another member can be asked at once, so no server's wait is worth waiting for.
    pub(super) async fn attempts(
        &self,
        effect: &mut ModelEffect<'_>,
        member: &Member,
        mut permit: Permit,
        has_heir: bool,
        limits: &Limits<'_>,
        meter: &mut Meter,
    ) -> Result<Attempts, KernelError> {
        let target = member.target();
        let most = member.retries.unwrap_or(usize::MAX);
        let mut delays = self.retry.delays.iter().take(most);
        effect.follow.asks(member.name());
        loop {
            let (ran, told) = self.attempt(effect, member, &mut permit, limits).await;
            meter.streamed = told.any;
            let told_so_far = Some(told.bytes);
            let error = match ran {
                Ran::Returned(Ok(answer)) => {
                    let bytes = told.bytes.max(estimate::bytes_of(&answer));
                    self.count(effect, member, meter, answer.usage, Some(bytes));
                    self.tell_circuit(effect.turn, permit.end(CallEnd::Success)).await;
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
                    self.count(effect, member, meter, usage, told_so_far);
                    return Ok(Attempts::Failed(stop.status, stop.error));
                }
                Ran::Panicked(words) => {
                    self.count(effect, member, meter, Usage::default(), told_so_far);
                    let message = format!("the model's adapter failed: {words}");
                    let error = ErrorInfo::new(ErrorCode::Internal, message);
                    return Ok(Attempts::Failed(EffectStatus::Failed, error));
                }
            };
            meter.streamed |= error.streamed;
            meter.failed += 1;
            let worked = told_so_far.filter(|_| meter.streamed);
            self.count(effect, member, meter, error.usage, worked);
            let failed = |error| Ok(Attempts::Failed(EffectStatus::Failed, error));
            let info = error.info();
            self.tell_circuit(effect.turn, permit.fail(&info)).await;
            if !error.is_retryable() || told.any {
                return failed(info);
            }
            let Some(&own) = delays.next() else { return failed(info) };
            let delay = own.max(error.retry_after.unwrap_or_default());
            if has_heir && (info.code == ErrorCode::RateLimited || delay > own) {
                return failed(info);
            }
            if delay > self.retry.longest_wait {
                return failed(waits_too_long(&error, delay));
            }
            if let Some(open) = self.circuits.refusal(&target) {
                return failed(open.after(Some(info)));
            }
            let stopped = |stop: Stop| Ok(Attempts::Failed(stop.status, stop.error));
            let own = meter.resources();
            if let Err(stop) = self.admit_beside(limits.cancel, true, &own).await {
                return stopped(stop);
            }
            // From here on the request counts.
            self.note_retry(effect, meter.failed, &error, delay).await?;
            if let Some(stop) = self.wait(delay, limits).await {
                return stopped(stop);
            }
            // Others may have spent the rest meanwhile.
            if let Err(stop) = self.admit_beside(limits.cancel, false, &own).await {
                return stopped(stop);
            }
            permit = match self.circuits.enter(&target, &CircuitPolicy::default()) {
                Ok((permit, change)) => {
                    self.tell_circuit(effect.turn, change).await;
                    permit
                }
                // Other requests opened it meanwhile.
                Err(open) => return failed(open.after(Some(info))),
            };
        }
    }

    /// Sends the request once. Also says what of the answer was told on the way.
    async fn attempt(
        &self,
        effect: &mut ModelEffect<'_>,
        member: &Member,
        permit: &mut Permit,
        limits: &Limits<'_>,
    ) -> (Ran<Result<Answer, ModelError>>, Told) {
        let stop = CancellationToken::new();
        let (progress, arriving) = progress_channel();
        effect.follow.begin(self.execution.recorder().now());
        let key = effect.key.clone();
        let cx = EffectContext {
            key,
            subjects: [].into(),
            hidden: [].into(),
            cancel: stop.clone(),
            progress,
        };
        let admitted = Admitted::new(effect.key.clone());
        let run = member.model.run(admitted, effect.request, &cx);
        let mut follow = Noticed {
            follow: effect.follow,
            recorder: self.execution.recorder(),
            turn: effect.turn,
            permit,
            told: Told::default(),
        };
        let ran = followed(self.supervise(run, &stop, limits), arriving, &mut follow).await;
        (ran, follow.told)
    }

    /// Tells the reader of the stream that a circuit changed, if it did.
    pub(super) async fn tell_circuit(&self, turn: TurnNumber, change: Option<CircuitChanged>) {
        if let Some(change) = change {
            self.execution.recorder().pass(Some(turn), change).await;
        }
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

    /// Adds one attempt to the meter. `answered` is how many bytes of an answer came, if the server
    /// worked on the request: then it used tokens even if none were reported.
    fn count(
        &self,
        effect: &ModelEffect<'_>,
        member: &Member,
        meter: &mut Meter,
        mut usage: Usage,
        answered: Option<u64>,
    ) {
        let name = member.name();
        let mut cost = Cost::default();
        let known = (!usage.is_unknown()).then_some(usage);
        if known.is_some() || answered.is_some() {
            match known.and_then(|usage| self.pricing.price(name, &usage)) {
                Some(price) => cost.usd = price,
                None => {
                    cost.unpriced = 1;
                    meter.unpriced.insert(name.to_owned());
                }
            }
        }
        if let (None, Some(answered)) = (known, answered) {
            usage.estimated_tokens = Some(estimate::tokens(effect.request, answered));
            meter.uncounted.insert(name.to_owned());
        }
        meter.add(usage, cost);
    }
}

fn waits_too_long(error: &ModelError, delay: Duration) -> ErrorInfo {
    let mut info = error.info();
    let wait = in_words(delay);
    info.message = format!("{} (the server asks to wait {wait})", info.message);
    info.hint(format!("try again in {wait}, or choose another model"))
}
