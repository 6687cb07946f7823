//! Supervised runs in virtual time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use loon_api::At;
use loon_api::event::CircuitState;
use proptest::prelude::*;

use super::*;
use crate::clock::ManualClock;

const WORKER: &str = "worker:http://127.0.0.1:1";

/// A run with outcomes to play, its clock, and what it told.
struct Bench {
    clock: ManualClock,
    circuits: Circuits,
    policy: SupervisionPolicy,
    cancel: CancellationToken,
    outcomes: RefCell<VecDeque<Result<&'static str, ErrorCode>>>,
    dispatched: Cell<u32>,
    told: RefCell<Vec<CircuitState>>,
}

impl Bench {
    fn new(outcomes: impl IntoIterator<Item = Result<&'static str, ErrorCode>>) -> Self {
        let clock = ManualClock::new(At::from_unix_ms(1_796_040_000_000));
        Self {
            circuits: Circuits::new(Arc::new(clock.clone())),
            clock,
            policy: SupervisionPolicy::default(),
            cancel: CancellationToken::new(),
            outcomes: RefCell::new(outcomes.into_iter().collect()),
            dispatched: Cell::new(0),
            told: RefCell::default(),
        }
    }

    async fn run(&self) -> Result<&'static str, ErrorInfo> {
        let tell = |change: CircuitChanged| self.told.borrow_mut().push(change.state);
        let dispatch = || {
            self.dispatched.set(self.dispatched.get() + 1);
            let outcome = self.outcomes.borrow_mut().pop_front().expect("one more dispatch");
            async move { outcome.map_err(|code| ErrorInfo::new(code, format!("{code:?}"))) }
        };
        supervised(&self.circuits, WORKER, &self.policy, &self.cancel, tell, dispatch).await
    }

    /// Runs it with these waits, and no others, let pass.
    async fn run_through(&self, waits: &[u64]) -> Result<&'static str, ErrorInfo> {
        let passing = async {
            for wait in waits {
                let wait = Duration::from_millis(*wait);
                self.clock.sleeper(wait).await;
                self.clock.advance(wait);
            }
        };
        futures_util::future::join(self.run(), passing).await.0
    }
}

fn code(result: Result<&'static str, ErrorInfo>) -> ErrorCode {
    result.expect_err("a failure").code
}

#[test]
fn k016_the_policy_has_the_values_of_the_guide() {
    let SupervisionPolicy { max_restarts, backoff, circuit } = SupervisionPolicy::default();
    let millis = |duration: Duration| duration.as_millis();
    let values = (max_restarts, millis(backoff), circuit.threshold, millis(circuit.cooldown));
    assert_eq!(values, (2, 200, 5, 30_000));
}

#[tokio::test]
async fn k015_a_fault_of_the_infrastructure_leads_to_a_restart() {
    let bench = Bench::new([Err(ErrorCode::Network), Ok("done")]);
    assert_eq!(bench.run_through(&[200]).await.unwrap(), "done");
    assert_eq!(bench.dispatched.get(), 2);
}

#[tokio::test]
async fn k018_at_most_max_restarts_follow_each_after_twice_the_wait() {
    let failures = [ErrorCode::Network, ErrorCode::Overloaded, ErrorCode::Protocol];
    let bench = Bench::new(failures.map(Err));
    assert_eq!(code(bench.run_through(&[200, 400]).await), ErrorCode::Protocol);
    assert_eq!(bench.dispatched.get(), 3);

    let mut bench = Bench::new([Err(ErrorCode::Network)]);
    bench.policy.max_restarts = 0;
    assert_eq!(code(bench.run().await), ErrorCode::Network);
    assert_eq!(bench.dispatched.get(), 1);
}

#[tokio::test]
async fn k018_nothing_else_leads_to_a_restart() {
    for final_code in [
        ErrorCode::Cancelled,
        ErrorCode::QuotaExceeded,
        ErrorCode::Denied,
        ErrorCode::Invalid,
        ErrorCode::Refused,
        ErrorCode::ContextOverflow,
        ErrorCode::Auth,
        ErrorCode::RateLimited,
        ErrorCode::DeadlineExceeded,
        ErrorCode::Fenced,
        ErrorCode::Internal,
    ] {
        let bench = Bench::new([Err(final_code)]);
        assert_eq!(code(bench.run().await), final_code);
        assert_eq!(bench.dispatched.get(), 1, "{final_code:?}");
    }
}

#[tokio::test]
async fn k059_a_cancelled_result_is_the_end() {
    let bench = Bench::new([Ok("cancelled")]);
    bench.cancel.cancel();
    assert_eq!(bench.run().await.unwrap(), "cancelled");
    assert_eq!(bench.dispatched.get(), 1);

    // Also where the transport broke because of the cancel: no restart, and nothing to hold against
    // the target.
    for _ in 0..6 {
        let bench =
            Bench { circuits: bench.circuits.clone(), ..Bench::new([Err(ErrorCode::Network)]) };
        bench.cancel.cancel();
        assert_eq!(code(bench.run().await), ErrorCode::Network);
    }
    assert_eq!(bench.circuits.refusal(WORKER), None);
}

#[tokio::test]
async fn k059_a_cancel_ends_the_wait_before_a_restart() {
    let bench = Bench::new([Err(ErrorCode::Network)]);
    let cancelling = async {
        bench.clock.sleeper(Duration::from_millis(200)).await;
        bench.cancel.cancel();
    };
    let (result, ()) = futures_util::future::join(bench.run(), cancelling).await;
    assert_eq!(code(result), ErrorCode::Network);
    assert_eq!(bench.dispatched.get(), 1);
}

#[tokio::test]
async fn k017_an_open_circuit_ends_the_run_with_its_own_error_and_then_fails_fast() {
    use CircuitState::{Closed, HalfOpen, Open};
    let bench = Bench::new(vec![Err(ErrorCode::Network); 5]);
    assert_eq!(code(bench.run_through(&[200, 400]).await), ErrorCode::Network);
    let error = bench.run_through(&[200]).await.unwrap_err();
    assert_eq!((error.code, bench.dispatched.get()), (ErrorCode::Network, 5));
    assert!(error.hints[0].ends_with("the next try is possible in 30 s"), "{:?}", error.hints);
    assert_eq!(*bench.told.borrow(), [CircuitState::Open]);

    assert_eq!(code(bench.run().await), ErrorCode::CircuitOpen);
    assert_eq!(bench.dispatched.get(), 5, "nothing was dispatched");

    bench.clock.advance(Duration::from_secs(30));
    bench.outcomes.borrow_mut().push_back(Ok("done"));
    assert_eq!(bench.run().await.unwrap(), "done");
    assert_eq!(*bench.told.borrow(), [Open, HalfOpen, Closed]);
}

proptest! {
    /// However the dispatches end, the run ends at the first that is final, or after the restarts.
    #[test]
    fn k018_a_run_ends_where_the_first_final_outcome_is(
        outcomes in prop::collection::vec(
            prop_oneof![
                Just(Err(ErrorCode::Network)),
                Just(Err(ErrorCode::Overloaded)),
                Just(Err(ErrorCode::Denied)),
                Just(Ok("done")),
            ],
            5,
        ),
        max_restarts in 0_u32..4,
    ) {
        let mut bench = Bench::new(outcomes.clone());
        bench.policy.max_restarts = max_restarts;
        let passing = |outcome: &Result<&str, ErrorCode>| {
            matches!(outcome, Err(ErrorCode::Network | ErrorCode::Overloaded))
        };
        let restarts = outcomes.iter().take_while(|outcome| passing(outcome)).count();
        let restarts = restarts.min(max_restarts as usize);
        let waits: Vec<u64> = (0..restarts).map(|n| 200 << n).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let result = runtime.block_on(bench.run_through(&waits));
        prop_assert_eq!(result.map_err(|error| error.code), outcomes[restarts]);
        prop_assert_eq!(bench.dispatched.get() as usize, restarts + 1);
    }
}
