//! A word to stop that comes too late for the step it was meant for.

use std::sync::Mutex;

use futures_util::FutureExt;
use loon_api::event::TurnFinished;
use loon_api::{Cost, ExecutionId, Seq, TurnStatus, Usage};

use super::*;
use crate::store::{
    Changes, Holder, IsWhole, JournalWriter, Opened, Place, PlacedRecords, Records, Repaired,
    Stamp, StopRequest, StoreError, Verified,
};

/// A store in which the turn of `owner` ends right before the word to stop is left.
#[derive(Default)]
struct Late {
    inner: MemoryStore,
    owner: Mutex<Option<Execution>>,
}

impl JournalStore for Late {
    fn create(&self, exec: ExecutionId) -> Result<Box<dyn JournalWriter>, StoreError> {
        self.inner.create(exec)
    }
    fn open(&self, exec: ExecutionId) -> Result<Opened, StoreError> {
        self.inner.open(exec)
    }
    fn take_over(&self, exec: ExecutionId) -> Result<Opened, StoreError> {
        self.inner.take_over(exec)
    }
    fn read(&self, exec: ExecutionId) -> Result<Records, StoreError> {
        self.inner.read(exec)
    }
    fn read_lean(&self, exec: ExecutionId, is_whole: IsWhole) -> Result<Records, StoreError> {
        self.inner.read_lean(exec, is_whole)
    }
    fn read_from(&self, exec: ExecutionId, place: Place) -> Result<PlacedRecords, StoreError> {
        self.inner.read_from(exec, place)
    }
    fn stamp(&self, exec: ExecutionId) -> Option<Stamp> {
        self.inner.stamp(exec)
    }
    fn holder(&self, exec: ExecutionId) -> Option<Holder> {
        self.inner.holder(exec)
    }
    fn changes(&self, exec: ExecutionId) -> Result<Changes, StoreError> {
        self.inner.changes(exec)
    }
    fn fork(&self, from: ExecutionId, upto: Seq, now: At) -> Result<ExecutionId, StoreError> {
        self.inner.fork(from, upto, now)
    }
    fn list(&self) -> Result<Vec<ExecutionId>, StoreError> {
        self.inner.list()
    }
    fn verify(&self, exec: ExecutionId) -> Result<Verified, StoreError> {
        self.inner.verify(exec)
    }
    fn repair(&self, exec: ExecutionId) -> Result<Repaired, StoreError> {
        self.inner.repair(exec)
    }
    fn salvage(&self, exec: ExecutionId) -> Result<ExecutionId, StoreError> {
        self.inner.salvage(exec)
    }
    fn is_live(&self, exec: ExecutionId) -> bool {
        self.inner.is_live(exec)
    }
    fn ask_to_stop(&self, exec: ExecutionId, reason: Option<&str>) -> Result<(), StoreError> {
        let owner = self.owner.lock().unwrap().take().unwrap();
        let finished = TurnFinished {
            status: TurnStatus::Completed,
            error: None,
            steps: 1,
            usage: Usage::default(),
            cost: Cost::default(),
            models: vec![],
            receipt: None,
            review: None,
        };
        let recorded = owner.recorder().record(Some(1), finished).now_or_never();
        recorded.expect("there is room for the event").unwrap();
        self.inner.ask_to_stop(exec, reason)
    }
    fn asked_to_stop(&self, exec: ExecutionId) -> Result<Option<StopRequest>, StoreError> {
        self.inner.asked_to_stop(exec)
    }
}

#[tokio::test]
async fn k033_a_turn_that_ended_meanwhile_leaves_nothing_to_wait_for() {
    let store = Arc::new(Late::default());
    let (clock, (events, _reader)) =
        (ManualClock::new(At::from_unix_ms(1_796_040_000_000)), mpsc::channel(64));
    let port: Arc<dyn JournalStore> = Arc::<Late>::clone(&store);
    let fixture = Fixture { store: port, clock, events, reader: mpsc::channel(1).1 };
    let owner = fixture.start(None).await;
    begin_turn(&owner).await;
    *store.owner.lock().unwrap() = Some(owner.clone());
    let reason = Some("enough".to_owned());
    let cancelled = cancelled(&fixture, owner.exec(), CancelMode::AfterStep, reason);
    assert_eq!(cancelled, Cancelled::Now);
    assert_eq!(kinds(&fixture.records(&owner)).last(), Some(&"execution.cancelled"));
}
