//! What is dispatched again, and what never is.

use std::collections::VecDeque;
use std::time::Duration;

use loon_api::At;
use serde_json::json;
use tokio::sync::Notify;

use super::*;
use crate::clock::ManualClock;
use crate::supervision::CircuitPolicy;

/// A place that answers as it is told, and counts how often it was asked.
#[derive(Default)]
struct Place {
    answers: Mutex<VecDeque<Result<Settled, DispatchError>>>,
    asked: Mutex<u32>,
    told: Mutex<Vec<ExecutionId>>,
    heard: Notify,
}

impl Dispatcher for Place {
    fn dispatch(
        &self,
        _: Dispatch,
        _: mpsc::Sender<Arc<Envelope>>,
    ) -> BoxFuture<'_, Result<Settled, DispatchError>> {
        *self.asked.lock().unwrap() += 1;
        self.heard.notify_one();
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Err(unreached()));
        Box::pin(std::future::ready(answer))
    }

    fn cancel(&self, exec: ExecutionId, _: Option<String>) -> BoxFuture<'_, bool> {
        self.told.lock().unwrap().push(exec);
        Box::pin(std::future::ready(false))
    }
}

fn unreached() -> DispatchError {
    DispatchError::Unreachable { target: "w".to_owned(), reason: "refused".to_owned() }
}

fn lost() -> DispatchError {
    DispatchError::Lost { target: "w".to_owned(), reason: "reset".to_owned() }
}

fn done() -> Settled {
    Settled::Completed { output: json!("done") }
}

fn cancelled() -> Settled {
    Settled::Cancelled { reason: Some("enough".to_owned()) }
}

struct Bench {
    place: Arc<Place>,
    clock: ManualClock,
    supervising: Arc<SupervisingDispatcher>,
}

fn bench(answers: impl IntoIterator<Item = Result<Settled, DispatchError>>) -> Bench {
    let place =
        Arc::new(Place { answers: Mutex::new(answers.into_iter().collect()), ..Place::default() });
    let clock = ManualClock::new(At::from_unix_ms(1_000));
    let circuit = CircuitPolicy { threshold: 5, cooldown: Duration::from_secs(30) };
    let policy =
        SupervisionPolicy { max_restarts: 2, backoff: Duration::from_millis(200), circuit };
    let supervising = Arc::new(SupervisingDispatcher::new(
        Arc::<Place>::clone(&place),
        "worker:w".to_owned(),
        Circuits::new(Arc::new(clock.clone())),
        policy,
    ));
    Bench { place, clock, supervising }
}

fn dispatch() -> Dispatch {
    Dispatch {
        execution_id: ExecutionId::generate(),
        flow: "prompt".to_owned(),
        version: 1,
        input: json!({}),
        deadline_ms: None,
    }
}

impl Bench {
    /// Dispatches one execution and lets each wait pass.
    async fn run(&self, waits: &[u64]) -> Result<Settled, DispatchError> {
        let (supervising, dispatch) = (Arc::clone(&self.supervising), dispatch());
        let run =
            tokio::spawn(async move { supervising.dispatch(dispatch, mpsc::channel(1).0).await });
        for wait in waits {
            self.clock.sleeper(Duration::from_millis(*wait)).await;
            self.clock.advance(Duration::from_millis(*wait));
        }
        run.await.unwrap()
    }

    fn asked(&self) -> u32 {
        *self.place.asked.lock().unwrap()
    }
}

#[tokio::test]
async fn k015_k018_what_was_not_begun_is_dispatched_again_with_doubling_waits() {
    let bench = bench([Err(unreached()), Err(unreached()), Ok(done())]);
    assert_eq!(bench.run(&[200, 400]).await, Ok(done()));
    assert_eq!(bench.asked(), 3);
    let bench = super::tests::bench([]);
    assert_eq!(bench.run(&[200, 400]).await, Err(unreached()));
    assert_eq!(bench.asked(), 3, "one dispatch and two restarts");
}

#[tokio::test]
async fn k016_k017_a_place_that_keeps_failing_is_left_alone_for_a_while() {
    let bench = bench([]);
    bench.run(&[200, 400]).await.unwrap_err();
    // The fifth failure in a row opens the circuit, and no restart follows it.
    assert_eq!(bench.run(&[200]).await, Err(unreached()));
    let asked = bench.asked();
    assert_eq!(asked, 5);
    assert_eq!(bench.run(&[]).await.unwrap_err().info().code, ErrorCode::CircuitOpen);
    assert_eq!(bench.asked(), asked, "nobody was asked");
    bench.clock.advance(Duration::from_secs(30));
    bench.place.answers.lock().unwrap().push_back(Ok(done()));
    assert_eq!(bench.run(&[]).await, Ok(done()));
}

#[tokio::test]
async fn k059_what_was_begun_is_never_dispatched_again() {
    for rest in [Ok(cancelled()), Err(lost())] {
        let bench = bench([rest.clone(), Ok(done())]);
        assert_eq!(bench.run(&[]).await, rest);
        assert_eq!(bench.asked(), 1);
    }
}

#[tokio::test]
async fn a_second_dispatch_of_one_under_way_is_refused_and_takes_nothing_from_the_first() {
    let bench = bench([]);
    let dispatch = dispatch();
    let (exec, again) = (dispatch.execution_id, dispatch.clone());
    let supervising = Arc::clone(&bench.supervising);
    let run = tokio::spawn(async move { supervising.dispatch(dispatch, mpsc::channel(1).0).await });
    bench.place.heard.notified().await;
    bench.clock.sleeper(Duration::from_millis(200)).await;
    let second = bench.supervising.dispatch(again, mpsc::channel(1).0).await.unwrap();
    assert!(matches!(second, Settled::Failed { error } if error.code == ErrorCode::Conflict));
    // The first still hears of its cancel, and leaves nothing behind when it is dropped.
    assert!(bench.supervising.cancels().contains_key(&exec));
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    assert!(bench.supervising.cancels().is_empty());
}

#[tokio::test]
async fn k055_a_cancel_is_forwarded_and_no_restart_follows_it() {
    let bench = bench([]);
    let dispatch = dispatch();
    let exec = dispatch.execution_id;
    let supervising = Arc::clone(&bench.supervising);
    let run = tokio::spawn(async move { supervising.dispatch(dispatch, mpsc::channel(1).0).await });
    bench.place.heard.notified().await;
    bench.clock.sleeper(Duration::from_millis(200)).await;
    assert!(!bench.supervising.cancel(exec, None).await);
    assert_eq!(run.await.unwrap(), Err(unreached()));
    assert_eq!((bench.asked(), bench.place.told.lock().unwrap().as_slice()), (1, &[exec][..]));
}
