//! Dispatching to a child process, and cancelling over the seam.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use loon_api::{AgentEvent, ExecutionKind};
use loon_exec::Spawner;
use serde_json::json;

use super::*;
use crate::clock::SystemClock;
use crate::execution::{Execution, StartOptions};
use crate::store::MemoryStore;

fn dispatch() -> Dispatch {
    Dispatch {
        execution_id: ExecutionId::generate(),
        flow: "prompt".to_owned(),
        version: 1,
        input: json!({"prompt": "go"}),
        deadline_ms: None,
    }
}

/// A child made of a shell line; counts how often it was started.
fn child(line: &str) -> (ChildDispatcher, Arc<AtomicUsize>) {
    let (line, starts) = (line.to_owned(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&starts);
    let dispatcher = ChildDispatcher::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        Spawner::default().bash(&line, Path::new("/"))
    });
    (dispatcher, starts)
}

const SETTLES: &str = r#"read -r run; echo '{"v":1,"at":"2026-11-30T12:00:00.000Z","exec":"0196f000-0000-7000-8000-000000000001","type":"notice","level":"info","message":"hello"}'; echo '{"settled":{"status":"completed","output":7}}'; sleep 1000"#;

#[tokio::test]
async fn a_child_tells_its_events_and_how_it_settled_and_is_gone() {
    let (dispatcher, _) = child(SETTLES);
    let (sender, mut events) = mpsc::channel(8);
    let settled = dispatcher.dispatch(dispatch(), sender).await.unwrap();
    assert_eq!(settled, Settled::Completed { output: json!(7) });
    let event = events.recv().await.unwrap();
    assert!(matches!(&event.event, AgentEvent::Notice(notice) if notice.message == "hello"));
    assert!(events.recv().await.is_none());
}

#[tokio::test]
async fn k066_k068_a_child_started_ahead_is_used_once_and_a_dead_one_is_replaced() {
    let (dispatcher, starts) = child(SETTLES);
    dispatcher.warm().await;
    dispatcher.warm().await;
    assert_eq!(starts.load(Ordering::SeqCst), 1);
    for expected in [1, 2] {
        dispatcher.dispatch(dispatch(), mpsc::channel(8).0).await.unwrap();
        assert_eq!(starts.load(Ordering::SeqCst), expected);
    }
    let (failing, starts) = child("exit 3");
    failing.warm().await;
    while !failing.ready_has_ended() {
        tokio::task::yield_now().await;
    }
    failing.dispatch(dispatch(), mpsc::channel(8).0).await.unwrap_err();
    assert_eq!(starts.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_child_that_ends_without_a_word_is_lost_and_its_errors_are_told() {
    let (dispatcher, _) = child("read -r run; echo no such thing >&2; exit 3");
    let error = dispatcher.dispatch(dispatch(), mpsc::channel(8).0).await.unwrap_err();
    let DispatchError::Lost { reason, .. } = &error else { panic!("{error}") };
    assert_eq!(reason, "it ended before its work: no such thing");
    assert_eq!(error.info().code, ErrorCode::OutcomeUnknown);
}

#[tokio::test]
async fn k055_k059_a_cancel_reaches_the_child_and_settles_as_a_result() {
    let line = r#"read -r run; read -r cancel; case "$cancel" in *enough*) echo '{"cancelled":true}'; echo '{"settled":{"status":"cancelled","reason":"enough"}}';; esac"#;
    let (dispatcher, _) = child(line);
    let dispatcher = Arc::new(dispatcher);
    let dispatch = dispatch();
    let exec = dispatch.execution_id;
    assert!(!dispatcher.cancel(exec, None).await, "nothing runs yet");
    let running = tokio::spawn({
        let dispatcher = Arc::clone(&dispatcher);
        async move { dispatcher.dispatch(dispatch, mpsc::channel(8).0).await }
    });
    while !dispatcher.runs(exec) {
        tokio::task::yield_now().await;
    }
    let again = Dispatch { execution_id: exec, ..super::tests::dispatch() };
    let second = dispatcher.dispatch(again, mpsc::channel(8).0).await.unwrap();
    assert!(matches!(second, Settled::Failed { error } if error.code == ErrorCode::Conflict));
    assert!(dispatcher.cancel(exec, Some("enough".to_owned())).await);
    let settled = running.await.unwrap().unwrap();
    assert_eq!(settled, Settled::Cancelled { reason: Some("enough".to_owned()) });
    assert!(!dispatcher.cancel(exec, None).await);
}

/// A place that nobody reaches.
struct Unreachable;

impl Dispatcher for Unreachable {
    fn dispatch(
        &self,
        _: Dispatch,
        _: mpsc::Sender<Arc<Envelope>>,
    ) -> BoxFuture<'_, Result<Settled, DispatchError>> {
        let (target, reason) = ("far".to_owned(), "no route".to_owned());
        Box::pin(async move { Err(DispatchError::Unreachable { target, reason }) })
    }

    fn cancel(&self, _: ExecutionId, _: Option<String>) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }
}

#[tokio::test]
async fn k057_k058_a_zombie_that_nobody_reaches_is_fenced_out_in_the_shared_store() {
    let store: Arc<dyn JournalStore> = Arc::new(MemoryStore::default());
    let options = StartOptions {
        exec: None,
        kind: ExecutionKind::Flow,
        cwd: "/w".to_owned(),
        parent: None,
        deadline: None,
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let events = mpsc::channel(8).0;
    let redactor = crate::Redactor::default();
    let zombie =
        Execution::start(Arc::clone(&store), Arc::clone(&clock), redactor.clone(), options, events)
            .await
            .unwrap();
    let exec = zombie.exec();
    let reason = Some("dead node".to_owned());
    assert!(cancel(&Unreachable, &store, &clock, &redactor, exec, reason).await.unwrap());
    let decided = loon_api::event::DecisionRecorded {
        key: loon_api::EffectKey::new("late"),
        value: json!(1),
    };
    let late = zombie.recorder().record(None, decided).await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::Fenced);
    let kinds: Vec<String> =
        store.read(exec).unwrap().map(|record| record.unwrap().event.kind().to_owned()).collect();
    assert_eq!(kinds, ["execution.started", "execution.cancelled"]);
    assert!(!cancel(&Unreachable, &store, &clock, &redactor, exec, None).await.unwrap());
    // One that nobody knows is no error either.
    let nobody = ExecutionId::generate();
    assert!(!cancel(&Unreachable, &store, &clock, &redactor, nobody, None).await.unwrap());
}

#[test]
fn messages_read_back_and_nonsense_is_named() {
    let settled = FromWorker::Settled(Settled::Suspended { due: None });
    assert_eq!(settled.line().unwrap(), br#"{"settled":{"status":"suspended"}}"#);
    for message in [settled, FromWorker::Cancelled(true)] {
        assert_eq!(FromWorker::parse(&message.line().unwrap()), Ok(message));
    }
    assert!(FromWorker::parse(b"{\"settled\":1}").is_err());
    assert!(FromWorker::parse(b"\xff").is_err());
}
