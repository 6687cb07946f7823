//! Order, durability and what a dropped caller leaves behind.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loon_api::event::{Notice, NoticeLevel};
use loon_api::{AgentEvent, At, BoxFuture, Envelope, ErrorCode, ExecutionId};
use tokio::sync::mpsc;

use super::{LAZY_SYNC, Recorder};
use crate::clock::ManualClock;
use crate::fold::ExecutionState;
use crate::secrets::Redactor;
use crate::store::{JournalWriter, StoreError, SyncJob};

/// A writer that shows what was asked of it.
#[derive(Clone, Default)]
struct Probe {
    written: Arc<Mutex<Vec<Vec<u64>>>>,
    syncs: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
}

impl JournalWriter for Probe {
    fn append(&mut self, batch: &[Envelope]) -> Result<(), StoreError> {
        self.check()?;
        self.written.lock().unwrap().push(batch.iter().filter_map(|record| record.seq).collect());
        Ok(())
    }

    fn sync_job(&mut self) -> SyncJob {
        let syncs = Arc::clone(&self.syncs);
        Box::new(move || {
            syncs.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    }

    fn take_lease(&mut self) -> bool {
        true
    }

    fn taken_over(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::Fenced { exec: ExecutionId::generate() });
        }
        Ok(())
    }
}

fn recorder(places: usize) -> (Recorder, Probe, ManualClock, mpsc::Receiver<Arc<Envelope>>) {
    let probe = Probe::default();
    let clock = ManualClock::new(At::from_unix_ms(1_000));
    let (sender, events) = mpsc::channel(places);
    let recorder = Recorder::new(
        ExecutionId::generate(),
        Arc::new(clock.clone()),
        Redactor::default(),
        sender,
        Box::new(probe.clone()),
        ExecutionState::default(),
    );
    (recorder, probe, clock, events)
}

fn note(message: &str) -> AgentEvent {
    Notice { level: NoticeLevel::Info, message: message.to_owned(), hints: vec![] }.into()
}

fn seqs(events: &mut mpsc::Receiver<Arc<Envelope>>) -> Vec<Option<u64>> {
    std::iter::from_fn(|| events.try_recv().ok()).map(|event| event.seq).collect()
}

#[tokio::test]
async fn records_are_numbered_and_published_with_passing_events_in_between() {
    let (recorder, probe, _, mut events) = recorder(8);
    assert_eq!(recorder.record(None, note("a")).await.unwrap().seq, Some(1));
    recorder.pass(Some(3), note("b")).await;
    let both = recorder.record_all(Some(3), vec![note("c"), note("d")]).await.unwrap();
    assert_eq!(both.iter().map(|record| record.seq).collect::<Vec<_>>(), [Some(2), Some(3)]);
    assert_eq!(*probe.written.lock().unwrap(), [vec![1], vec![2, 3]]);
    assert_eq!(seqs(&mut events), [Some(1), None, Some(2), Some(3)]);
    assert_eq!(recorder.state().last_seq, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_callers_publish_in_order() {
    let (recorder, _, _, mut events) = recorder(1);
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let recorder = recorder.clone();
            tokio::spawn(async move {
                for _ in 0..50 {
                    recorder.record(None, note("n")).await.unwrap();
                }
            })
        })
        .collect();
    for expected in 1..=400 {
        assert_eq!(events.recv().await.unwrap().seq, Some(expected));
    }
    for caller in callers {
        caller.await.unwrap();
    }
}

#[tokio::test]
async fn what_a_dropped_caller_wrote_is_published_by_the_next() {
    let (recorder, _, _, mut events) = recorder(1);
    recorder.record(None, note("fills the channel")).await.unwrap();
    let mut stuck = Box::pin(recorder.record(None, note("waits for a place")));
    assert!(futures_util::poll!(&mut stuck).is_pending());
    drop(stuck);
    assert_eq!(seqs(&mut events), [Some(1)]);
    let third = recorder.record(None, note("next"));
    let (third, second) = tokio::join!(third, events.recv());
    assert_eq!((third.unwrap().seq, second.unwrap().seq), (Some(3), Some(2)));
    assert_eq!(seqs(&mut events), [Some(3)]);
}

#[tokio::test]
async fn a_reader_that_went_away_is_no_error() {
    let (recorder, probe, _, events) = recorder(1);
    drop(events);
    recorder.record_all(None, vec![note("a"), note("b")]).await.unwrap();
    recorder.pass(None, note("c")).await;
    assert_eq!(*probe.written.lock().unwrap(), [vec![1, 2]]);
}

#[tokio::test]
async fn a_sync_covers_all_before_it_and_is_not_repeated_for_nothing() {
    let (recorder, probe, _, _events) = recorder(8);
    recorder.make_durable().await.unwrap();
    assert_eq!(probe.syncs.load(Ordering::SeqCst), 0);
    recorder.record(None, note("a")).await.unwrap();
    recorder.record(None, note("b")).await.unwrap();
    let (one, two) = tokio::join!(recorder.make_durable(), recorder.make_durable());
    one.unwrap();
    two.unwrap();
    assert_eq!(probe.syncs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn records_become_durable_by_themselves_and_silence_wakes_nobody() {
    let (recorder, probe, clock, _events) = recorder(8);
    assert!(!clock.is_sleeper(LAZY_SYNC));
    recorder.record(None, note("a")).await.unwrap();
    clock.sleeper(LAZY_SYNC).await;
    clock.advance(Duration::from_millis(100));
    recorder.record(None, note("b")).await.unwrap();
    assert!(!clock.is_sleeper(LAZY_SYNC), "one flush is enough for both");
    clock.advance(Duration::from_millis(100));
    while probe.syncs.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    recorder.make_durable().await.unwrap();
    assert_eq!(probe.syncs.load(Ordering::SeqCst), 1);
    assert!(!clock.is_sleeper(LAZY_SYNC));
}

#[tokio::test]
async fn a_waiting_flush_does_not_keep_the_journal() {
    let (recorder, probe, clock, _events) = recorder(8);
    recorder.record(None, note("a")).await.unwrap();
    clock.sleeper(LAZY_SYNC).await;
    assert_eq!(Arc::strong_count(&probe.syncs), 2);
    drop(recorder);
    assert_eq!(Arc::strong_count(&probe.syncs), 1);
}

#[tokio::test]
async fn a_failed_write_leaves_no_trace_and_a_lost_fence_stops_the_execution() {
    let (recorder, probe, _, mut events) = recorder(8);
    recorder.record(None, note("a")).await.unwrap();
    probe.fails.store(true, Ordering::SeqCst);
    let error = recorder.record(None, note("b")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Fenced);
    assert!(recorder.cancel_token().is_cancelled());
    assert_eq!(recorder.state().last_seq, 1);
    assert_eq!(seqs(&mut events), [Some(1)]);
}
