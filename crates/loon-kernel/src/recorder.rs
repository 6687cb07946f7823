//! The recorder: the one way in which records and passing events of an execution come about.
//!
//! A record goes to the journal, then into the fold, then to the reader of the stream, in the order
//! of its number even with concurrent callers. Secrets are masked first, so all three have the same
//! text; who goes on with an event goes on with what was recorded. What a dropped caller had written but not yet
//! published is published by the next call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use loon_api::event::ExecutionCancelled;
use loon_api::{AgentEvent, At, Clock, Envelope, ExecutionId, Seq, TurnNumber, VERSION};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::error::KernelError;
use crate::fold::ExecutionState;
use crate::secrets::Redactor;
use crate::store::{JournalWriter, StoreError};

/// A record is durable at latest this long after it was written.
const LAZY_SYNC: Duration = Duration::from_millis(200);

/// How long a reader that takes nothing is waited for once the execution is over.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// Makes records. Clones write the same journal.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

/// A recorder that keeps no journal open.
#[derive(Clone)]
pub(crate) struct WeakRecorder(Weak<Shared>);

impl WeakRecorder {
    pub(crate) fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    pub(crate) fn upgrade(&self) -> Option<Recorder> {
        self.0.upgrade().map(|shared| Recorder { shared })
    }
}

struct Shared {
    exec: ExecutionId,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    events: mpsc::Sender<Arc<Envelope>>,
    /// Fires when nothing more can be written.
    cancel: CancellationToken,
    /// Hears of another writer's fence and fires `cancel`.
    _listening: AbortOnDropHandle<()>,
    ledger: Mutex<Ledger>,
    /// Held while events go out, so that they keep their order.
    publishing: tokio::sync::Mutex<()>,
    /// Held while a sync runs: who waits for it finds its own records done as well. The number is
    /// that of the last durable record.
    syncing: tokio::sync::Mutex<Seq>,
}

struct Ledger {
    writer: Box<dyn JournalWriter>,
    state: ExecutionState,
    /// Written or passing, and not yet sent to the reader.
    outbox: VecDeque<Arc<Envelope>>,
    lazy_sync_waits: bool,
    lazy_sync: Option<JoinHandle<()>>,
    /// An instant of the execution's own time, and when that was by the steady clock.
    base: (At, Duration),
    /// The execution is over and its reader took nothing for a while: it is not waited for again.
    reader_given_up: bool,
}

/// An event without secrets, a record once it has its number.
struct Masked(Envelope);

impl Recorder {
    pub(crate) fn new(
        exec: ExecutionId,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        events: mpsc::Sender<Arc<Envelope>>,
        writer: Box<dyn JournalWriter>,
        state: ExecutionState,
    ) -> Self {
        let durable = state.last_seq;
        let cancel = CancellationToken::new();
        let listening = tokio::spawn({
            let (cancel, taken_over) = (cancel.clone(), writer.taken_over());
            async move {
                taken_over.await;
                cancel.cancel();
            }
        });
        let ledger = Ledger {
            writer,
            base: (later(clock.now(), &state), clock.steady()),
            state,
            outbox: VecDeque::new(),
            lazy_sync_waits: false,
            lazy_sync: None,
            reader_given_up: false,
        };
        let shared = Shared {
            exec,
            clock,
            redactor,
            events,
            cancel,
            _listening: AbortOnDropHandle::new(listening),
            ledger: Mutex::new(ledger),
            publishing: tokio::sync::Mutex::new(()),
            syncing: tokio::sync::Mutex::new(durable),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn downgrade(&self) -> WeakRecorder {
        WeakRecorder(Arc::downgrade(&self.shared))
    }

    /// The execution whose journal this is.
    pub fn exec(&self) -> ExecutionId {
        self.shared.exec
    }

    /// The present instant on the execution's own time, which records are dated by. It never goes back
    /// within a journal, and while the execution is at work it goes on evenly, whatever becomes of the
    /// system's time: what is between two such instants was truly spent.
    pub fn now(&self) -> At {
        self.shared.ledger().now(self.shared.clock.as_ref())
    }

    /// The clock that time is taken from.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Masks secrets in everything that passes.
    pub fn redactor(&self) -> &Redactor {
        &self.shared.redactor
    }

    /// Fires when the execution is cancelled or another process took it over.
    pub fn cancel_token(&self) -> &CancellationToken {
        &self.shared.cancel
    }

    /// Writes one record and publishes it. Gives what was recorded, to go on with.
    pub async fn record(
        &self,
        turn: Option<TurnNumber>,
        event: impl Into<AgentEvent>,
    ) -> Result<Arc<Envelope>, KernelError> {
        let mut recorded = self.record_all(turn, vec![event.into()]).await?;
        recorded.pop().ok_or_else(|| KernelError::Interrupted {
            exec: self.exec(),
            what: "a record".to_owned(),
        })
    }

    /// Writes records that belong together and publishes them. On an error none is written. Gives
    /// what was recorded.
    pub async fn record_all(
        &self,
        turn: Option<TurnNumber>,
        events: Vec<AgentEvent>,
    ) -> Result<Vec<Arc<Envelope>>, KernelError> {
        self.record_each(events.into_iter().map(|event| (turn, event)).collect()).await
    }

    /// The same with a turn of its own for each record.
    pub(crate) async fn record_each(
        &self,
        events: Vec<(Option<TurnNumber>, AgentEvent)>,
    ) -> Result<Vec<Arc<Envelope>>, KernelError> {
        let recorded = self.write(events)?;
        self.publish().await;
        Ok(recorded)
    }

    /// Tells the reader of something that leaves no record.
    pub async fn pass(&self, turn: Option<TurnNumber>, event: impl Into<AgentEvent>) {
        let Masked(envelope) = self.masked(self.now(), turn, event.into());
        self.shared.ledger().outbox.push_back(Arc::new(envelope));
        self.publish().await;
    }

    /// Comes back once everything written until now survives a loss of power.
    pub async fn make_durable(&self) -> Result<(), KernelError> {
        let wanted = self.shared.ledger().state.last_seq;
        let mut durable = self.shared.syncing.lock().await;
        if *durable >= wanted {
            return Ok(());
        }
        let (job, upto) = {
            let mut ledger = self.shared.ledger();
            (ledger.writer.sync_job(), ledger.state.last_seq)
        };
        let done = tokio::task::spawn_blocking(job).await.map_err(|error| {
            KernelError::Interrupted { exec: self.exec(), what: format!("sync: {error}") }
        })?;
        self.shared.notice_fence(done)?;
        *durable = upto;
        Ok(())
    }

    /// Makes everything durable and sees to it that no work in the background holds the journal: it
    /// is let go with the last clone.
    pub(crate) async fn come_to_rest(&self) -> Result<(), KernelError> {
        self.make_durable().await?;
        let lazy_sync = self.shared.ledger().lazy_sync.take();
        if let Some(lazy_sync) = lazy_sync {
            lazy_sync.abort();
            // That it was stopped is no error.
            let _ = lazy_sync.await;
        }
        Ok(())
    }

    /// The present state.
    pub fn state(&self) -> ExecutionState {
        self.shared.ledger().state.clone()
    }

    /// Looks at the present state without copying it.
    pub fn with_state<T>(&self, look: impl FnOnce(&ExecutionState) -> T) -> T {
        look(&self.shared.ledger().state)
    }

    /// Takes the lease if it was missing and is free. True if it is held.
    pub(crate) fn take_lease(&self) -> bool {
        self.shared.ledger().writer.take_lease()
    }

    /// Ends the execution with what `settle` makes of its state, and a record of the cancel. False if
    /// it was over before.
    pub(crate) async fn end(
        &self,
        reason: Option<String>,
        settle: impl FnOnce(&ExecutionState) -> Vec<(Option<TurnNumber>, AgentEvent)>,
    ) -> Result<bool, KernelError> {
        {
            let mut ledger = self.shared.ledger();
            if ledger.state.is_over() {
                return Ok(false);
            }
            let mut events = settle(&ledger.state);
            events.push((None, ExecutionCancelled { reason }.into()));
            let at = ledger.now(self.shared.clock.as_ref());
            let events =
                events.into_iter().map(|(turn, event)| self.masked(at, turn, event)).collect();
            self.append(&mut ledger, events)?;
        }
        self.publish().await;
        Ok(true)
    }

    fn write(
        &self,
        events: Vec<(Option<TurnNumber>, AgentEvent)>,
    ) -> Result<Vec<Arc<Envelope>>, KernelError> {
        // Their numbers come later: masking must not hold up other writers.
        let at = self.now();
        let events = events.into_iter().map(|(turn, event)| self.masked(at, turn, event)).collect();
        let mut ledger = self.shared.ledger();
        if let Some(reason) = &ledger.state.cancelled {
            return Err(KernelError::Cancelled { exec: self.exec(), reason: reason.clone() });
        }
        if ledger.state.is_over() {
            return Err(KernelError::Ended { exec: self.exec() });
        }
        self.append(&mut ledger, events)
    }

    fn append(
        &self,
        ledger: &mut Ledger,
        events: Vec<Masked>,
    ) -> Result<Vec<Arc<Envelope>>, KernelError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let at = ledger.now(self.shared.clock.as_ref());
        let batch: Vec<Envelope> = (ledger.state.last_seq + 1..)
            .zip(events)
            .map(|(seq, Masked(event))| Envelope { seq: Some(seq), at, ..event })
            .collect();
        let appended = ledger.writer.append(&batch);
        self.shared.notice_fence(appended)?;
        let recorded: Vec<Arc<Envelope>> = batch.into_iter().map(Arc::new).collect();
        for envelope in &recorded {
            ledger.state.apply(envelope);
            ledger.outbox.push_back(Arc::clone(envelope));
        }
        if !ledger.lazy_sync_waits {
            ledger.lazy_sync_waits = true;
            let later = sync_later(Arc::downgrade(&self.shared), Arc::clone(&self.shared.clock));
            ledger.lazy_sync = Some(tokio::spawn(later));
        }
        Ok(recorded)
    }

    /// The one place at which events are made.
    fn masked(&self, at: At, turn: Option<TurnNumber>, event: AgentEvent) -> Masked {
        let event = Envelope { v: VERSION, seq: None, at, exec: self.exec(), turn, event };
        Masked(self.shared.redactor.envelope(event))
    }

    async fn publish(&self) {
        let _order = self.shared.publishing.lock().await;
        while !self.shared.ledger().outbox.is_empty() {
            // A place first: an event leaves the outbox only when it can be sent, so that dropping
            // this future loses none.
            let Some(place) = self.place().await else {
                self.shared.ledger().outbox.clear();
                return;
            };
            if let Some(envelope) = self.shared.ledger().outbox.pop_front() {
                place.send(envelope);
            }
        }
    }

    /// Room for one event, once the reader has made some. Nothing if there is no reader, or if the
    /// execution is over and the reader takes nothing: a stalled reader must not keep an execution
    /// alive that another process took over.
    async fn place(&self) -> Option<mpsc::Permit<'_, Arc<Envelope>>> {
        if let Ok(place) = self.shared.events.try_reserve() {
            return Some(place);
        }
        if self.shared.ledger().reader_given_up {
            return None;
        }
        let patience = async {
            self.shared.cancel.cancelled().await;
            self.shared.clock.sleep(LAST_WAIT).await;
        };
        tokio::select! {
            biased;
            place = self.shared.events.reserve() => place.ok(),
            () = patience => {
                self.shared.ledger().reader_given_up = true;
                None
            }
        }
    }
}

impl Ledger {
    fn now(&mut self, clock: &dyn Clock) -> At {
        let steady = clock.steady();
        if !self.state.is_at_work() {
            self.base = (later(clock.now(), &self.state), steady);
        }
        let (at, since) = self.base;
        at.plus(steady.saturating_sub(since))
    }
}

/// `now`, or the time of the last record if that is later.
pub(crate) fn later(now: At, state: &ExecutionState) -> At {
    state.last_at.map_or(now, |last| now.max(last))
}

impl Shared {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notice_fence(&self, result: Result<(), StoreError>) -> Result<(), KernelError> {
        if matches!(result, Err(StoreError::Fenced { .. })) {
            self.cancel.cancel();
        }
        Ok(result?)
    }
}

/// Runs once after the first write that follows a sync, so that an idle execution wakes nobody. It
/// must not keep the journal's lease alive.
async fn sync_later(shared: Weak<Shared>, clock: Arc<dyn Clock>) {
    clock.sleep(LAZY_SYNC).await;
    let Some(shared) = shared.upgrade() else { return };
    shared.ledger().lazy_sync_waits = false;
    // A journal that failed to sync refuses the next append and the next sync, which have somebody
    // to tell.
    let _ = Recorder { shared }.make_durable().await;
}

#[cfg(test)]
mod tests;
