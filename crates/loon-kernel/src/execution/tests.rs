//! Beginning, opening again, ending.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{
    ApprovalRequested, Decision, EffectKind, EffectStarted, EffectStatus, TurnStarted,
};
use loon_api::{
    AgentEvent, Approval, ApprovalId, At, EffectKey, Envelope, ErrorCode, ExecutionId,
    ExecutionKind, ItemId, Mode,
};
use tokio::sync::mpsc;

use super::{CancelMode, Cancelled, Execution, SETTLE, StartOptions, cancel_by_id};
use crate::clock::ManualClock;
use crate::secrets::Redactor;
use crate::store::{FileStore, JournalStore, MemoryStore};

mod after_step;
mod cancellation;
mod deadlines;

struct Fixture {
    store: Arc<dyn JournalStore>,
    clock: ManualClock,
    events: mpsc::Sender<Arc<Envelope>>,
    reader: mpsc::Receiver<Arc<Envelope>>,
}

fn fixture(store: impl JournalStore + 'static) -> Fixture {
    let clock = ManualClock::new(At::from_unix_ms(1_796_040_000_000));
    let (events, reader) = mpsc::channel(64);
    Fixture { store: Arc::new(store), clock, events, reader }
}

impl Fixture {
    async fn start(&self, deadline: Option<Duration>) -> Execution {
        let options = StartOptions {
            exec: None,
            kind: ExecutionKind::Session,
            cwd: "/w".to_owned(),
            parent: None,
            deadline,
        };
        let (store, clock) = (Arc::clone(&self.store), Arc::new(self.clock.clone()));
        Execution::start(store, clock, Redactor::default(), options, self.events.clone())
            .await
            .unwrap()
    }

    async fn resume(&self, of: &Execution) -> Result<Execution, crate::KernelError> {
        let (store, clock) = (Arc::clone(&self.store), Arc::new(self.clock.clone()));
        Execution::resume(
            store,
            clock,
            Redactor::default(),
            of.exec(),
            self.events.clone(),
            &mut |_| {},
        )
        .await
    }

    fn records(&self, of: &Execution) -> Vec<Envelope> {
        self.store.read(of.exec()).unwrap().map(Result::unwrap).collect()
    }
}

fn cancelled(
    fixture: &Fixture,
    exec: ExecutionId,
    mode: CancelMode,
    reason: Option<String>,
) -> Cancelled {
    cancel_by_id(fixture.store.as_ref(), &fixture.clock, &Redactor::default(), exec, mode, reason)
        .unwrap()
}

async fn begin_turn(execution: &Execution) {
    let started = TurnStarted { model: "lab/m".to_owned(), mode: Mode::Default, branch: None };
    execution.recorder().record(Some(1), started).await.unwrap();
}

fn begun(key: &str) -> AgentEvent {
    let event = EffectStarted {
        key: EffectKey::new(key),
        kind: EffectKind::Tool,
        target: "t".to_owned(),
        item: None,
        timeout_ms: None,
        request: None,
    };
    event.into()
}

fn kinds(records: &[Envelope]) -> Vec<&str> {
    records.iter().map(|record| record.event.kind()).collect()
}

#[tokio::test]
async fn an_execution_begins_with_its_record() {
    let mut fixture = fixture(MemoryStore::default());
    let execution = fixture.start(Some(Duration::from_secs(9))).await;
    let published = fixture.reader.recv().await.unwrap();
    let AgentEvent::ExecutionStarted(event) = &published.event else { panic!("{published:?}") };
    assert_eq!((event.cwd.as_str(), event.deadline_ms), ("/w", Some(9000)));
    assert_eq!(fixture.records(&execution), [(*published).clone()]);
    assert_eq!(execution.remaining(), Some(Duration::from_secs(9)));
}

#[tokio::test]
async fn resuming_replays_everything_and_settles_what_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = fixture(FileStore::new(dir.path()));
    let first = fixture.start(None).await;
    let recorder = first.recorder();
    let turn = TurnStarted { model: "p/m".to_owned(), mode: Mode::Auto, branch: None };
    recorder.record(Some(1), turn).await.unwrap();
    let approval = Approval {
        id: ApprovalId::new("q"),
        item: ItemId::call(1, 0, 0),
        tool: "t".to_owned(),
        arguments: serde_json::json!({}),
        detail: String::new(),
        reasons: vec![],
        cwd: "/w".to_owned(),
        always: None,
    };
    recorder.record(Some(1), ApprovalRequested { approval }).await.unwrap();
    recorder.record(Some(1), begun("a")).await.unwrap();
    fixture.clock.advance(Duration::from_secs(4));
    recorder.record(Some(1), begun("b")).await.unwrap();
    let (exec, written) = (first.exec(), fixture.records(&first));
    drop(first);

    let mut seen = Vec::new();
    let mut each = |record: &Envelope| seen.push(record.clone());
    let (store, clock) = (Arc::clone(&fixture.store), Arc::new(fixture.clock.clone()));
    let events = fixture.events.clone();
    let second = Execution::resume(store, clock, Redactor::default(), exec, events, &mut each)
        .await
        .unwrap();
    assert_eq!(seen, written);
    let new = &fixture.records(&second)[written.len()..];
    let AgentEvent::ExecutionResumed(resumed) = &new[0].event else { panic!("{new:?}") };
    assert_eq!(resumed.unknown, [EffectKey::new("a"), EffectKey::new("b")]);
    let AgentEvent::ApprovalResolved(withdrawn) = &new[1].event else { panic!("{new:?}") };
    assert_eq!(withdrawn.decision, Decision::Withdrawn);
    let ends: Vec<_> = new[2..]
        .iter()
        .map(|record| match &record.event {
            AgentEvent::EffectFinished(end) => (end.key.as_str(), end.status, end.ms, record.turn),
            other => panic!("{other:?}"),
        })
        .collect();
    let unknown = EffectStatus::Unknown;
    assert_eq!(ends, [("a", unknown, 4000, Some(1)), ("b", unknown, 0, Some(1))]);
    assert_eq!(second.state().running_effects(), []);
    assert!(second.state().asking.is_empty());
    drop(second);

    let third = fixture.store.open(exec).unwrap();
    drop(third);
    let mut folded = crate::fold::ExecutionState::default();
    fixture.store.read(exec).unwrap().for_each(|record| folded.apply(&record.unwrap()));
    assert_eq!(folded.running_effects(), []);
}

#[tokio::test]
async fn a_cancel_is_the_last_record_and_happens_once() {
    let fixture = fixture(MemoryStore::default());
    let execution = fixture.start(None).await;
    assert!(execution.cancel(Some("enough".to_owned())).await.unwrap());
    assert!(execution.cancel_token().is_cancelled());
    assert!(!execution.cancel(None).await.unwrap());
    let error = execution.recorder().record(None, begun("late")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Cancelled);
    assert_eq!(kinds(&fixture.records(&execution)), ["execution.started", "execution.cancelled"]);
    assert_eq!(execution.state().cancelled, Some(Some("enough".to_owned())));
    assert!(fixture.store.verify(execution.exec()).unwrap().ended);

    let again = execution.clone();
    drop(execution);
    let exec = again.exec();
    assert_eq!(cancelled(&fixture, exec, CancelMode::Now, None), Cancelled::Before);
    assert_eq!(fixture.records(&again).len(), 2);
}

#[tokio::test]
async fn a_cancelled_execution_is_not_resumed_and_gets_no_record() {
    let fixture = fixture(MemoryStore::default());
    let execution = fixture.start(None).await;
    execution.cancel(Some("enough".to_owned())).await.unwrap();
    let of = execution.exec();
    drop(execution);
    let (store, clock) = (Arc::clone(&fixture.store), Arc::new(fixture.clock.clone()));
    let resumed = Execution::resume(
        store,
        clock,
        Redactor::default(),
        of,
        fixture.events.clone(),
        &mut |_| {},
    )
    .await;
    assert_eq!(resumed.err().unwrap().code(), ErrorCode::Cancelled);
    assert_eq!(fixture.store.read(of).unwrap().count(), 2);
}

#[tokio::test]
async fn a_cancel_settles_effects_that_do_not_end_by_themselves() {
    let fixture = fixture(MemoryStore::default());
    let execution = fixture.start(None).await;
    execution.recorder().record(Some(2), begun("stuck")).await.unwrap();
    let _under_way = execution.enter();
    let cancelling = {
        let execution = execution.clone();
        tokio::spawn(async move { execution.cancel(None).await })
    };
    fixture.clock.sleeper(SETTLE).await;
    assert!(execution.cancel_token().is_cancelled());
    fixture.clock.advance(SETTLE);
    assert!(cancelling.await.unwrap().unwrap());
    let records = fixture.records(&execution);
    let [.., end, last] = records.as_slice() else { panic!("{records:?}") };
    let AgentEvent::EffectFinished(event) = &end.event else { panic!("{end:?}") };
    assert_eq!((event.status, event.ms), (EffectStatus::Aborted, 800));
    assert_eq!(last.event.kind(), "execution.cancelled");
}

#[tokio::test]
async fn a_cancel_from_elsewhere_shuts_the_owner_out() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = fixture(FileStore::new(dir.path()));
    let owner = fixture.start(None).await;
    owner.recorder().record(Some(1), begun("a")).await.unwrap();
    let reason = Some("operator".to_owned());
    let exec = owner.exec();
    assert_eq!(cancelled(&fixture, exec, CancelMode::Now, reason), Cancelled::Now);
    let error = owner.recorder().record(Some(1), begun("b")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Fenced);
    assert!(owner.cancel_token().is_cancelled());
    let kinds_now =
        ["execution.started", "effect.started", "effect.finished", "execution.cancelled"];
    assert_eq!(kinds(&fixture.records(&owner)), kinds_now);
    assert!(fixture.store.verify(exec).unwrap().is_sound());
    assert_eq!(cancelled(&fixture, exec, CancelMode::Now, None), Cancelled::Before);
    drop(owner);
    assert!(fixture.store.verify(exec).unwrap().is_sound());
}

#[tokio::test]
async fn a_second_owner_is_refused() {
    let fixture = fixture(MemoryStore::default());
    let execution = fixture.start(None).await;
    let error = fixture.resume(&execution).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::Busy);
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
}

#[tokio::test]
async fn a_cancel_after_the_step_is_left_to_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    for fixture in [fixture(FileStore::new(dir.path())), fixture(MemoryStore::default())] {
        let owner = fixture.start(None).await;
        begin_turn(&owner).await;
        assert!(!owner.stop_if_asked().await.unwrap());
        let reason = Some("enough".to_owned());
        let found = cancelled(&fixture, owner.exec(), CancelMode::AfterStep, reason.clone());
        assert_eq!(found, Cancelled::AfterStep);
        owner.recorder().record(Some(1), begun("a")).await.unwrap();
        assert!(owner.is_asked_to_stop().unwrap());
        assert!(owner.stop_if_asked().await.unwrap());
        assert!(!owner.stop_if_asked().await.unwrap());
        let records = fixture.records(&owner);
        let AgentEvent::ExecutionCancelled(last) = &records.last().unwrap().event else {
            panic!("{records:?}")
        };
        assert_eq!(last.reason, reason);
        let again = cancelled(&fixture, owner.exec(), CancelMode::AfterStep, None);
        assert_eq!(again, Cancelled::Before);
    }
}

#[tokio::test]
async fn without_a_turn_there_is_no_step_to_wait_for() {
    let fixture = fixture(MemoryStore::default());
    let owner = fixture.start(None).await;
    let found = cancelled(&fixture, owner.exec(), CancelMode::AfterStep, None);
    assert_eq!(found, Cancelled::Now);
}

#[tokio::test]
async fn word_left_for_an_owner_that_died_holds() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = fixture(FileStore::new(dir.path()));
    let owner = fixture.start(None).await;
    begin_turn(&owner).await;
    let exec = owner.exec();
    cancelled(&fixture, exec, CancelMode::AfterStep, None);
    drop(owner);
    let (store, clock) = (Arc::clone(&fixture.store), Arc::new(fixture.clock.clone()));
    let events = fixture.events.clone();
    let error = Execution::resume(store, clock, Redactor::default(), exec, events, &mut |_| {})
        .await
        .err()
        .unwrap();
    assert_eq!(error.code(), ErrorCode::Cancelled);
    let last = fixture.store.read(exec).unwrap().last().unwrap().unwrap();
    assert_eq!(last.event.kind(), "execution.cancelled");
}
