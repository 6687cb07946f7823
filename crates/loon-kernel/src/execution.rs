//! Executions: beginning one, opening one again, ending one.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{
    ApprovalResolved, DeadlineSet, Decision, EffectFinished, EffectStatus, ExecutionCancelled,
    ExecutionResumed, ExecutionStarted,
};
use loon_api::{
    AgentEvent, At, Clock, EffectKey, Envelope, ErrorCode, ErrorInfo, ExecutionId, ExecutionKind,
    TurnNumber, VERSION,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::blocking::off_runtime;
use crate::clock::millis;
use crate::error::KernelError;
use crate::fold::{EffectRecord, ExecutionState};
use crate::recorder::{Recorder, later};
use crate::secrets::Redactor;
use crate::store::{JournalStore, JournalWriter, StopRequest, StoreError};

mod lease;
mod state;

pub use state::end_of;
use state::refuse_over;
pub(crate) use state::{read_state, state_of};

/// How long a cancel waits for running effects to end by themselves before it settles them.
const SETTLE: Duration = Duration::from_millis(800);

/// How a new execution begins.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// Its id; absent makes one.
    pub exec: Option<ExecutionId>,
    /// What sort of work.
    pub kind: ExecutionKind,
    /// Absolute folder it works in.
    pub cwd: String,
    /// The execution that starts it.
    pub parent: Option<ExecutionId>,
    /// How long it may be at work.
    pub deadline: Option<Duration>,
}

/// How an execution goes on.
#[derive(Clone, Copy, Debug)]
pub struct ResumeOptions {
    /// Which.
    pub exec: ExecutionId,
    /// How it is opened.
    pub opening: Opening,
    /// A deadline in the place of the former one: so much time at work from now on.
    pub deadline: Option<Duration>,
}

/// How an execution is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Only if no other process is at work in it.
    IfFree,
    /// Although one may be, which can write nothing more.
    TakeOver,
}

/// A run of work that this process owns. Clones are the same execution; the journal is let go with
/// the last clone and the last recorder.
#[derive(Clone)]
pub struct Execution {
    recorder: Recorder,
    store: Arc<dyn JournalStore>,
    in_flight: Arc<watch::Sender<usize>>,
    repaired_bytes: Option<u64>,
}

impl Execution {
    /// Begins an execution and records that. `redactor` masks what it records and tells.
    pub async fn start(
        store: Arc<dyn JournalStore>,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        options: StartOptions,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> Result<Self, KernelError> {
        Self::start_with(store, clock, redactor, options, Vec::new(), events).await
    }

    /// The same with records that belong to its first one.
    pub(crate) async fn start_with(
        store: Arc<dyn JournalStore>,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        options: StartOptions,
        more: Vec<AgentEvent>,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> Result<Self, KernelError> {
        let exec = options.exec.unwrap_or_else(ExecutionId::generate);
        let writer = store.create(exec)?;
        let recorder =
            Recorder::new(exec, clock, redactor, events, writer, ExecutionState::default());
        let started = ExecutionStarted {
            kind: options.kind,
            cwd: options.cwd,
            parent: options.parent,
            deadline_ms: options.deadline.map(millis),
            loon: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let mut records = vec![started.into()];
        records.extend(more);
        recorder.record_all(None, records).await?;
        Ok(Self::new(recorder, store, None))
    }

    /// Opens an execution again. `each` sees every old record in order, as
    /// [`JournalStore::read_lean`] gives it. Effects that were begun and
    /// never ended are recorded as unknown; open requests for a decision are withdrawn. A cancelled
    /// execution is refused, and one whose deadline passed is cancelled at once.
    pub async fn resume(
        store: Arc<dyn JournalStore>,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        exec: ExecutionId,
        events: mpsc::Sender<Arc<Envelope>>,
        each: &mut (dyn FnMut(&Envelope) + Send),
    ) -> Result<Self, KernelError> {
        let options = ResumeOptions { exec, opening: Opening::IfFree, deadline: None };
        Self::resume_with(store, clock, redactor, options, events, each).await
    }

    /// The same as the options say.
    pub async fn resume_with(
        store: Arc<dyn JournalStore>,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        options: ResumeOptions,
        events: mpsc::Sender<Arc<Envelope>>,
        each: &mut (dyn FnMut(&Envelope) + Send),
    ) -> Result<Self, KernelError> {
        let ResumeOptions { exec, opening, deadline } = options;
        let opened = match opening {
            Opening::IfFree => store.open(exec)?,
            Opening::TakeOver => {
                // Before anything is taken: where it is refused, its writer goes on undisturbed.
                refuse_over(exec, &read_state(store.as_ref(), exec)?)?;
                store.take_over(exec)?
            }
        };
        let mut state = ExecutionState::default();
        for envelope in store.read_lean(exec, Box::new(|_| false))? {
            let envelope = envelope?;
            state.apply(&envelope);
            each(&envelope);
        }
        refuse_over(exec, &state)?;
        let now = later(clock.now(), &state);
        if let Some(StopRequest { reason }) = store.asked_to_stop(exec)? {
            let last = ExecutionCancelled { reason: reason.clone() };
            end(opened.writer, &state, now, exec, last, unknown(&state))?;
            return Err(KernelError::Cancelled { exec, reason });
        }
        if deadline.is_none() && state.remaining(now) == Some(Duration::ZERO) {
            let reason = state.past_deadline();
            let last = ExecutionCancelled { reason: Some(reason.clone()) };
            end(opened.writer, &state, now, exec, last, unknown(&state))?;
            return Err(KernelError::Expired { exec, reason });
        }
        let resumed = ExecutionResumed {
            unknown: state.running_effects(),
            repaired_bytes: opened.repaired_bytes,
        };
        let mut records = vec![(None, resumed.into())];
        records.extend(state.asking.iter().map(|approval| {
            let withdrawn = ApprovalResolved {
                approval: approval.clone(),
                decision: Decision::Withdrawn,
                reason: None,
                rule: None,
            };
            (state.turn, withdrawn.into())
        }));
        records.extend(unknown(&state));
        records.extend(deadline.map(|deadline| {
            let set = DeadlineSet { deadline_ms: millis(deadline) };
            (None, set.into())
        }));
        let recorder = Recorder::new(exec, clock, redactor, events, opened.writer, state);
        recorder.record_each(records).await?;
        if opening == Opening::TakeOver {
            lease::await_free(&recorder);
        }
        Ok(Self::new(recorder, store, opened.repaired_bytes))
    }

    pub(crate) fn new(
        recorder: Recorder,
        store: Arc<dyn JournalStore>,
        repaired_bytes: Option<u64>,
    ) -> Self {
        Self { recorder, store, in_flight: Arc::new(watch::Sender::new(0)), repaired_bytes }
    }

    /// Its id.
    pub fn exec(&self) -> ExecutionId {
        self.recorder.exec()
    }

    /// Bytes of a torn last line that were moved to a side file when it was opened.
    pub fn repaired_bytes(&self) -> Option<u64> {
        self.repaired_bytes
    }

    /// Makes its records.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Its present state.
    pub fn state(&self) -> ExecutionState {
        self.recorder.state()
    }

    /// Gives the execution a new deadline: so much time at work from now on.
    pub async fn set_deadline(&self, deadline: Duration) -> Result<(), KernelError> {
        let deadline_ms = millis(deadline);
        self.recorder.record(None, DeadlineSet { deadline_ms }).await?;
        Ok(())
    }

    /// What is left of its deadline; absent without one.
    pub fn remaining(&self) -> Option<Duration> {
        let now = self.recorder.now();
        self.recorder.with_state(|state| state.remaining(now))
    }

    /// True if it has a deadline that passed.
    pub fn is_expired(&self) -> bool {
        self.remaining() == Some(Duration::ZERO)
    }

    /// Completes when the deadline has passed. It stands still while a person is asked, so what is
    /// left is looked up again each time it seems to have run out.
    pub(crate) async fn deadline_passed(&self) {
        loop {
            match self.remaining() {
                None => std::future::pending().await,
                Some(Duration::ZERO) => return,
                Some(left) => self.recorder.clock().sleep(left).await,
            }
        }
    }

    /// Ends it if its deadline passed, and says so in the record. True if it ended.
    pub async fn stop_if_expired(&self) -> Result<bool, KernelError> {
        if !self.is_expired() {
            return Ok(false);
        }
        let reason = self.recorder.with_state(ExecutionState::past_deadline);
        self.cancel(Some(reason)).await
    }

    /// Fires when it is cancelled or another process took it over.
    pub fn cancel_token(&self) -> &CancellationToken {
        self.recorder.cancel_token()
    }

    /// Ends it: stops the running effects, gives them a moment to end by themselves, settles those
    /// that do not, and writes the record after which nothing follows. False if it was cancelled
    /// before.
    pub async fn cancel(&self, reason: Option<String>) -> Result<bool, KernelError> {
        self.cancel_token().cancel();
        let mut in_flight = self.in_flight.subscribe();
        tokio::select! {
            // The sender lives in `self`, so an error cannot come up.
            _ = in_flight.wait_for(|count| *count == 0) => {}
            () = self.recorder.clock().sleep(SETTLE) => {}
        }
        let now = self.recorder.now();
        let ended =
            self.recorder.end(reason, |state| settled(state, EffectStatus::Aborted, now)).await?;
        by_us_or_the_next(self.recorder.make_durable().await)?;
        Ok(ended)
    }

    /// True if somebody left word to end it at the next step boundary.
    pub fn is_asked_to_stop(&self) -> Result<bool, KernelError> {
        Ok(self.store.asked_to_stop(self.exec())?.is_some())
    }

    /// Ends it if somebody left word to do so at a step boundary, which is now. True if it ended.
    pub async fn stop_if_asked(&self) -> Result<bool, KernelError> {
        match self.store.asked_to_stop(self.exec())? {
            Some(StopRequest { reason }) => self.cancel(reason).await,
            None => Ok(false),
        }
    }

    /// The store its journal is in.
    pub(crate) fn store(&self) -> &Arc<dyn JournalStore> {
        &self.store
    }

    /// Counts an effect as under way until the guard is dropped.
    pub(crate) fn enter(&self) -> InFlight {
        self.in_flight.send_modify(|count| *count += 1);
        InFlight(Arc::clone(&self.in_flight))
    }
}

/// An effect under way.
pub(crate) struct InFlight(Arc<watch::Sender<usize>>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// When a cancel takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelMode {
    /// At once, whatever runs.
    Now,
    /// When the step that runs has ended, with all its calls.
    AfterStep,
}

/// What a cancel by id came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The execution is over.
    Now,
    /// It will be over after the step that runs.
    AfterStep,
    /// It was over before.
    Before,
}

/// Cancels an execution from any process, wherever it stands: takes a newer fence, so that its
/// present writer can write nothing more, and records the cancel. After the step, it leaves that to
/// the present writer, if a turn is under way there. `redactor` masks the reason.
pub fn cancel_by_id(
    store: &dyn JournalStore,
    clock: &dyn Clock,
    redactor: &Redactor,
    exec: ExecutionId,
    mode: CancelMode,
    reason: Option<String>,
) -> Result<Cancelled, KernelError> {
    let last = ExecutionCancelled { reason: reason.map(|reason| redactor.text(reason)) };
    let is_live = store.is_live(exec);
    let state = read_state(store, exec)?;
    if state.is_over() {
        return Ok(Cancelled::Before);
    }
    if mode == CancelMode::AfterStep && is_live && state.turn.is_some() {
        store.ask_to_stop(exec, last.reason.as_deref())?;
        // The turn may have ended before the word was there, and nobody looks for it then.
        let state = read_state(store, exec)?;
        if state.turn.is_some() || state.cancelled.is_some() {
            return Ok(Cancelled::AfterStep);
        }
    }
    loop {
        match take_and_end(store, clock, exec, is_live, last.clone()) {
            // Somebody took a newer fence meanwhile, perhaps to cancel it as well.
            Err(KernelError::Store(StoreError::Fenced { .. })) => {}
            done => return done,
        }
    }
}

fn take_and_end(
    store: &dyn JournalStore,
    clock: &dyn Clock,
    exec: ExecutionId,
    is_live: bool,
    last: ExecutionCancelled,
) -> Result<Cancelled, KernelError> {
    let writer = store.take_over_to_end(exec)?.writer;
    let state = read_state(store, exec)?;
    if state.is_over() {
        return Ok(Cancelled::Before);
    }
    let now = later(clock.now(), &state);
    // A live writer runs its effects until now, and is stopped by this cancel.
    let ends = if is_live { settled(&state, EffectStatus::Aborted, now) } else { unknown(&state) };
    end(writer, &state, now, exec, last, ends)?;
    Ok(Cancelled::Now)
}

/// [`cancel_by_id`], at once, off the threads of the runtime.
pub(crate) async fn cancel_now(
    store: &Arc<dyn JournalStore>,
    clock: &Arc<dyn Clock>,
    redactor: &Redactor,
    exec: ExecutionId,
    reason: Option<String>,
) -> Result<Cancelled, KernelError> {
    let (store, clock, redactor) = (Arc::clone(store), Arc::clone(clock), redactor.clone());
    off_runtime(exec, "cancelling", move || {
        cancel_by_id(store.as_ref(), clock.as_ref(), &redactor, exec, CancelMode::Now, reason)
    })
    .await
}

/// Writes the ends of effects that have none, and then the record after which nothing follows.
fn end(
    mut writer: Box<dyn JournalWriter>,
    state: &ExecutionState,
    at: At,
    exec: ExecutionId,
    last: ExecutionCancelled,
    mut events: Vec<(Option<TurnNumber>, AgentEvent)>,
) -> Result<(), KernelError> {
    events.push((None, last.into()));
    let batch: Vec<Envelope> = (state.last_seq + 1..)
        .zip(events)
        .map(|(seq, (turn, event))| Envelope { v: VERSION, seq: Some(seq), at, exec, turn, event })
        .collect();
    writer.append(&batch)?;
    by_us_or_the_next(writer.sync().map_err(KernelError::from))
}

/// Whoever took a newer fence meanwhile has made durable what was there.
fn by_us_or_the_next(synced: Result<(), KernelError>) -> Result<(), KernelError> {
    match synced {
        Ok(()) | Err(KernelError::Store(StoreError::Fenced { .. })) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The ends of effects that a former process began. They ran at least until its last record.
pub(crate) fn unknown(state: &ExecutionState) -> Vec<(Option<TurnNumber>, AgentEvent)> {
    state.last_at.map(|last| settled(state, EffectStatus::Unknown, last)).unwrap_or_default()
}

/// The ends of all effects that have none, as they stood at `until`.
fn settled(
    state: &ExecutionState,
    status: EffectStatus,
    until: At,
) -> Vec<(Option<TurnNumber>, AgentEvent)> {
    let running = state.effects.iter().filter(|(_, effect)| effect.is_running());
    running.map(|(key, effect)| (effect.turn, settle(key, effect, status, until).into())).collect()
}

fn settle(
    key: &EffectKey,
    effect: &EffectRecord,
    status: EffectStatus,
    until: At,
) -> EffectFinished {
    let error = if status == EffectStatus::Unknown {
        let message = format!("{key} was begun, and its end was never recorded");
        ErrorInfo::new(ErrorCode::OutcomeUnknown, message)
    } else {
        ErrorInfo::new(ErrorCode::Cancelled, format!("{key} was stopped by a cancel"))
    };
    let ms = effect.started.map_or(0, |(_, at)| millis(until.since(at)));
    EffectFinished {
        key: key.clone(),
        status,
        error: Some(error),
        ms,
        usage: effect.usage,
        cost: effect.cost_if_cut_off(),
        output: None,
    }
}

#[cfg(test)]
mod tests;
