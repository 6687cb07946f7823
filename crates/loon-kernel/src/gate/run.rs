//! Running one admitted effect under its cancel, timeout and deadline.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use loon_api::{At, BoxFuture, EffectKey};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::clock::in_words;
use crate::port::{Follow, Progress};

use super::{Gate, Stop};

/// How long a stopped run may take to return by itself.
const GRACE: Duration = Duration::from_millis(500);

/// How a run came to its end.
pub(super) enum Ran<T> {
    /// It returned by itself.
    Returned(T),
    /// It was stopped, and returned within the grace or was dropped.
    Stopped(Stop, Option<T>),
    /// It panicked, with these words.
    Panicked(String),
}

/// When and by whom a run is stopped.
pub(super) struct Limits<'a> {
    /// The caller's cancel.
    pub(super) cancel: &'a CancellationToken,
    /// When the effect first began and how long it may take.
    pub(super) timeout: Option<(At, Duration)>,
}

impl Gate {
    /// Runs `run`, which listens to `stop`, until it returns or `limits` end it.
    pub(super) async fn supervise<T>(
        &self,
        run: BoxFuture<'_, T>,
        stop: &CancellationToken,
        limits: &Limits<'_>,
    ) -> Ran<T> {
        let mut run = AssertUnwindSafe(run).catch_unwind();
        let reason = tokio::select! {
            biased;
            done = &mut run => return returned(done),
            reason = self.limit_reached(limits) => reason,
        };
        stop.cancel();
        let rest = tokio::select! {
            biased;
            done = &mut run => match done {
                Ok(value) => Some(value),
                Err(panic) => return Ran::Panicked(words_of(panic)),
            },
            () = self.execution.recorder().clock().sleep(GRACE) => None,
        };
        Ran::Stopped(reason, rest)
    }

    /// Completes when the effect must end.
    pub(super) async fn limit_reached(&self, limits: &Limits<'_>) -> Stop {
        let execution = &self.execution;
        tokio::select! {
            biased;
            () = limits.cancel.cancelled() => Stop::cancelled(),
            () = execution.cancel_token().cancelled() => Stop::cancelled(),
            stop = self.timed_out(limits.timeout) => stop,
            () = execution.deadline_passed() => self.past_deadline(),
        }
    }

    async fn timed_out(&self, timeout: Option<(At, Duration)>) -> Stop {
        let Some((began, timeout)) = timeout else { return std::future::pending().await };
        let recorder = self.execution.recorder();
        recorder.clock().sleep(timeout.saturating_sub(recorder.now().since(began))).await;
        Stop::timed_out(format!("the time limit of {} passed", in_words(timeout)))
    }

    /// When the effect first began, by its record; now, if it left none. Its time limit counts from
    /// there, however often it is performed.
    pub(super) fn first_began(&self, key: &EffectKey) -> At {
        let recorder = self.execution.recorder();
        let started = recorder.with_state(|state| state.effects.get(key).and_then(|it| it.started));
        started.map_or_else(|| recorder.now(), |(_, at)| at)
    }
}

/// Room for pieces of progress between a run and who follows it.
const PROGRESS_CAPACITY: usize = 64;

/// The way from a run to who follows it.
pub(super) fn progress_channel() -> (mpsc::Sender<Progress>, mpsc::Receiver<Progress>) {
    mpsc::channel(PROGRESS_CAPACITY)
}

/// Does `work` while what it tells is taken by `follow`. Comes back when both are done: whatever the
/// work told before its end was taken. A sender that outlives the work holds nobody up.
pub(super) async fn followed<T>(
    work: impl Future<Output = T>,
    mut arriving: mpsc::Receiver<Progress>,
    follow: &mut dyn Follow,
) -> T {
    let ended = Notify::new();
    let work = async {
        let done = work.await;
        ended.notify_one();
        done
    };
    let taking = async {
        loop {
            tokio::select! {
                biased;
                progress = arriving.recv() => match progress {
                    Some(progress) => follow.take(progress).await,
                    None => break,
                },
                () = ended.notified() => break,
            }
        }
        while let Ok(progress) = arriving.try_recv() {
            follow.take(progress).await;
        }
        follow.end().await;
    };
    futures_util::future::join(work, taking).await.0
}

fn returned<T>(done: Result<T, Box<dyn std::any::Any + Send>>) -> Ran<T> {
    match done {
        Ok(value) => Ran::Returned(value),
        Err(panic) => Ran::Panicked(words_of(panic)),
    }
}

fn words_of(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(words) => *words,
        Err(other) => other.downcast_ref::<&str>().map_or_else(String::new, |w| (*w).to_owned()),
    }
}
