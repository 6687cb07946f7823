//! Circuits in virtual time.

use proptest::prelude::*;

use super::*;
use crate::clock::ManualClock;

const LAB: &str = "provider:lab";
const POLICY: CircuitPolicy = CircuitPolicy { threshold: 3, cooldown: Duration::from_secs(10) };

fn circuits() -> (ManualClock, Circuits) {
    let clock = ManualClock::new(At::from_unix_ms(1_796_040_000_000));
    (clock.clone(), Circuits::new(Arc::new(clock)))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Makes a call with this outcome. Tells how the circuit changed before and after it.
fn call(circuits: &Circuits, outcome: CallEnd) -> Vec<CircuitState> {
    let (permit, before) = circuits.enter(LAB, &POLICY).expect("the call passes");
    before.into_iter().chain(permit.end(outcome)).map(|change| change.state).collect()
}

fn fail(circuits: &Circuits, times: u32) {
    for _ in 0..times {
        call(circuits, CallEnd::Failure);
    }
}

fn refused(circuits: &Circuits) -> CircuitOpen {
    circuits.enter(LAB, &POLICY).map(drop).expect_err("the call is refused")
}

#[test]
fn k016_the_defaults_are_five_failures_and_thirty_seconds() {
    let (clock, circuits) = circuits();
    let policy = CircuitPolicy::default();
    for _ in 0..5 {
        circuits.enter(LAB, &policy).unwrap().0.end(CallEnd::Failure);
    }
    let wait = || circuits.refusal(LAB).and_then(|open| open.wait);
    assert_eq!(wait(), Some(seconds(30)));
    clock.advance(seconds(29));
    assert_eq!(wait(), Some(seconds(1)));
    clock.advance(seconds(1));
    assert_eq!(circuits.refusal(LAB), None);
}

#[test]
fn k017_a_circuit_opens_after_the_threshold_and_fails_fast_until_the_cooldown_passed() {
    let (clock, circuits) = circuits();
    assert_eq!(call(&circuits, CallEnd::Failure), []);
    assert_eq!(call(&circuits, CallEnd::Failure), []);
    let (permit, _) = circuits.enter(LAB, &POLICY).unwrap();
    let opened = permit.end(CallEnd::Failure).unwrap();
    let until = Some(clock.now().plus(seconds(10)));
    assert_eq!(opened, CircuitChanged { target: LAB.into(), state: CircuitState::Open, until });

    clock.advance(Duration::from_millis(8_500));
    let open = refused(&circuits);
    assert_eq!(
        open,
        CircuitOpen { target: LAB.into(), cause: None, wait: Some(Duration::from_millis(1500)) }
    );
    let info = open.info();
    assert_eq!(info.code, ErrorCode::CircuitOpen);
    assert_eq!(info.message, "provider:lab failed too often in a row and is left alone for now");
    assert_eq!(info.hints, ["the next try is possible in 2 s"]);
    // Other targets have circuits of their own.
    assert!(circuits.enter("provider:other", &POLICY).is_ok());
}

#[test]
fn k017_a_success_ends_the_row_and_an_answer_that_says_no_does_not_lengthen_it() {
    let (_, circuits) = circuits();
    fail(&circuits, 2);
    call(&circuits, CallEnd::Success);
    fail(&circuits, 2);
    call(&circuits, CallEnd::Neutral);
    assert_eq!(circuits.refusal(LAB), None);
    assert_eq!(call(&circuits, CallEnd::Failure), [CircuitState::Open]);
}

#[test]
fn k018_the_trial_after_the_cooldown_decides() {
    use CircuitState::{Closed, HalfOpen, Open};
    for (outcome, after) in
        [(CallEnd::Success, Closed), (CallEnd::Neutral, Closed), (CallEnd::Failure, Open)]
    {
        let (clock, circuits) = circuits();
        fail(&circuits, 3);
        clock.advance(seconds(10));
        assert_eq!(call(&circuits, outcome), [HalfOpen, after]);
        if after == Open {
            assert_eq!(refused(&circuits).wait, Some(seconds(10)));
        } else {
            fail(&circuits, 2);
            assert_eq!(circuits.refusal(LAB), None, "the row begins anew");
        }
    }
}

#[test]
fn a_clock_that_is_set_changes_nothing_about_the_cooldown() {
    for set in [1_000, 9_000_000_000_000] {
        let (clock, circuits) = circuits();
        fail(&circuits, 3);
        clock.set(At::from_unix_ms(set));
        clock.advance(seconds(4));
        assert_eq!(refused(&circuits).wait, Some(seconds(6)));
        clock.advance(seconds(6));
        assert_eq!(circuits.refusal(LAB), None);
    }
}

#[test]
fn k018_only_one_call_at_a_time_is_the_trial() {
    let (clock, circuits) = circuits();
    fail(&circuits, 3);
    clock.advance(seconds(10));
    let (trial, _) = circuits.enter(LAB, &POLICY).unwrap();
    let open = refused(&circuits);
    assert_eq!(open.wait, None);
    assert_eq!(open.info().hints, ["a trial is under way; try again once it has ended"]);
    // A trial that was stopped has shown nothing: the next call is one.
    drop(trial);
    let (trial, change) = circuits.enter(LAB, &POLICY).unwrap();
    assert_eq!(change, None, "it is half open already");
    refused(&circuits);
    assert_eq!(trial.end(CallEnd::Success).unwrap().state, CircuitState::Closed);
    assert!(circuits.enter(LAB, &POLICY).is_ok());
}

#[test]
fn k018_of_many_threads_one_gets_the_trial() {
    let (clock, circuits) = circuits();
    fail(&circuits, 3);
    clock.advance(seconds(10));
    let start = std::sync::Barrier::new(8);
    let passed: Vec<Option<Permit>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    circuits.enter(LAB, &POLICY).ok().map(|(permit, _)| permit)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(passed.iter().flatten().count(), 1);
}

#[test]
fn a_trial_that_begins_to_answer_closes_the_circuit_and_may_still_fail() {
    let (clock, circuits) = circuits();
    fail(&circuits, 3);
    clock.advance(seconds(10));
    let (mut trial, _) = circuits.enter(LAB, &POLICY).unwrap();
    assert_eq!(trial.alive().unwrap().state, CircuitState::Closed);
    assert_eq!(trial.alive(), None);
    assert_eq!(trial.end(CallEnd::Failure), None);
    assert_eq!(call(&circuits, CallEnd::Failure), []);
    assert_eq!(call(&circuits, CallEnd::Failure), [CircuitState::Open]);
}

#[test]
fn failures_that_overlap_are_one_observation() {
    let (_, circuits) = circuits();
    for _ in 0..2 {
        let permits: Vec<Permit> =
            (0..6).map(|_| circuits.enter(LAB, &POLICY).unwrap().0).collect();
        for permit in permits {
            assert_eq!(permit.end(CallEnd::Failure), None);
        }
    }
    assert_eq!(call(&circuits, CallEnd::Failure), [CircuitState::Open]);
}

#[test]
fn what_began_before_the_circuit_opened_does_not_close_it() {
    let (clock, circuits) = circuits();
    let (early, _) = circuits.enter(LAB, &POLICY).unwrap();
    fail(&circuits, 3);
    assert_eq!(early.end(CallEnd::Success), None);
    assert_eq!(refused(&circuits).wait, Some(seconds(10)));
    clock.advance(seconds(10));
    assert_eq!(circuits.refusal(LAB), None);
}

#[test]
fn a_target_that_changed_begins_anew_and_no_other_does() {
    let (_, circuits) = circuits();
    fail(&circuits, 3);
    circuits.forget("provider:la");
    circuits.forget("provider:lab2");
    refused(&circuits);
    circuits.forget(LAB);
    assert_eq!(circuits.refusal(LAB), None);
}

#[test]
fn an_open_circuit_names_the_last_failure() {
    let (clock, circuits) = circuits();
    let fail_with = |code, message: &str| {
        let (permit, _) = circuits.enter(LAB, &POLICY).unwrap();
        permit.fail(&ErrorInfo::new(code, message))
    };
    fail_with(ErrorCode::Overloaded, "busy");
    fail_with(ErrorCode::Network, "connection lost");
    fail_with(ErrorCode::Auth, "wrong key");
    assert_eq!(fail_with(ErrorCode::Cancelled, "stopped"), None);
    assert_eq!(circuits.refusal(LAB), None);
    assert!(fail_with(ErrorCode::Network, "no route to host").is_some());
    let plain = "provider:lab failed too often in a row and is left alone for now";
    let open = refused(&circuits);
    assert_eq!(open.info().message, format!("{plain}; its last error: no route to host"));
    // Beside that error it is not told twice.
    let after = open.after(Some(ErrorInfo::new(ErrorCode::Network, "no route to host")));
    assert_eq!(after.hints, [format!("{plain}; the next try is possible in 10 s")]);
    clock.advance(seconds(10));
    assert_eq!(fail_with(ErrorCode::Protocol, "no JSON").unwrap().state, CircuitState::Open);
    assert_eq!(refused(&circuits).cause.as_deref(), Some("no JSON"));
}

#[derive(Clone, Debug)]
enum Step {
    Call(CallEnd),
    /// A call that is stopped.
    Stopped,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Call(CallEnd::Failure)),
        2 => Just(Step::Call(CallEnd::Success)),
        1 => Just(Step::Call(CallEnd::Neutral)),
        1 => Just(Step::Stopped),
        2 => (0_u64..7).prop_map(Step::Wait),
    ]
}

proptest! {
    /// A model that knows only the row of failures and when the circuit opened last.
    #[test]
    fn k017_calls_one_after_another_pass_as_the_model_says(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let (clock, circuits) = circuits();
        let (mut now, mut row, mut opened) = (0, 0, None::<u64>);
        for step in steps {
            let outcome = match step {
                Step::Wait(more) => {
                    clock.advance(seconds(more));
                    now += more;
                    continue;
                }
                Step::Call(outcome) => Some(outcome),
                Step::Stopped => None,
            };
            let passes = opened.is_none_or(|at| now >= at + 10);
            let entered = circuits.enter(LAB, &POLICY);
            prop_assert_eq!(entered.is_ok(), passes);
            let Ok((permit, _)) = entered else { continue };
            let Some(outcome) = outcome else { continue };
            let change = permit.end(outcome).map(|change| change.state);
            let expected = match (opened, outcome) {
                (None, CallEnd::Success) => { row = 0; None }
                (None, CallEnd::Neutral) => None,
                (None, CallEnd::Failure) => {
                    row += 1;
                    (row == 3).then(|| { opened = Some(now); CircuitState::Open })
                }
                (Some(_), CallEnd::Failure) => { opened = Some(now); Some(CircuitState::Open) }
                (Some(_), _) => { (row, opened) = (0, None); Some(CircuitState::Closed) }
            };
            prop_assert_eq!(change, expected);
        }
    }

    /// Whatever overlaps: while a trial runs no other call passes, and while the circuit is open none.
    #[test]
    fn k018_never_two_trials_and_no_call_before_the_cooldown(
        steps in prop::collection::vec((0_usize..4, step()), 0..80),
    ) {
        let (clock, circuits) = circuits();
        let mut calls: [Option<Permit>; 4] = Default::default();
        for (slot, step) in steps {
            match step {
                Step::Wait(more) => clock.advance(seconds(more)),
                Step::Stopped => calls[slot] = None,
                Step::Call(outcome) => match calls[slot].take() {
                    Some(permit) => { permit.end(outcome); }
                    None => {
                        let place = circuits.lock().get(LAB).map(|circuit| circuit.place);
                        let entered = circuits.enter(LAB, &POLICY);
                        if let Some(Place::Open { until, .. }) = place {
                            prop_assert_eq!(entered.is_ok(), clock.now() >= until);
                        }
                        calls[slot] = entered.ok().map(|(permit, _)| permit);
                    }
                },
            }
            let trials = calls.iter().flatten().filter(|permit| permit.is_trial).count();
            prop_assert!(trials <= 1);
        }
    }
}
