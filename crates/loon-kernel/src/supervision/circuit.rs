//! Circuit breakers, one for each target of this process.
//!
//! Closed, calls pass. After so many failures in a row the circuit opens, and calls fail at once
//! until the cooldown has passed. Then it is half open: one call at a time is let through as a
//! trial, whose outcome closes the circuit or opens it again. Failures of calls that overlap are one
//! observation of the same fault and count once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loon_api::event::{CircuitChanged, CircuitState};
use loon_api::{At, Clock, ErrorCode, ErrorInfo};

/// When a target is left alone, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitPolicy {
    /// Failures in a row after which it is; never fewer than one.
    pub threshold: u32,
    /// Time until it is tried again.
    pub cooldown: Duration,
}

impl Default for CircuitPolicy {
    fn default() -> Self {
        Self { threshold: 5, cooldown: Duration::from_secs(30) }
    }
}

/// How a call ended, as far as it tells something about its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The target did what it was asked for.
    Success,
    /// The infrastructure failed: no connection, no capacity, no sense in the answer.
    Failure,
    /// The target answered, and said no.
    Neutral,
}

/// The circuits of a process, by target. Clones are the same circuits.
#[derive(Clone)]
pub struct Circuits {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    circuits: Mutex<BTreeMap<String, Circuit>>,
}

/// The circuit of one target.
struct Circuit {
    place: Place,
    /// What the last failure said.
    cause: Option<String>,
    /// Grows with each failure that counts and each change of place, so that a call knows whether it
    /// began before.
    tally: u64,
}

#[derive(Clone, Copy)]
enum Place {
    Closed {
        failures: u32,
    },
    /// `due` on the steady clock, `until` as it is told.
    Open {
        due: Duration,
        until: At,
    },
    HalfOpen {
        trying: bool,
    },
}

/// The circuit is open: the call must not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", self.plainly(), self.because())]
pub struct CircuitOpen {
    /// Which target.
    pub target: String,
    /// What its last failure said, if that is known.
    pub cause: Option<String>,
    /// Time until the next try is possible; absent while a trial is under way.
    pub wait: Option<Duration>,
}

impl CircuitOpen {
    /// The error as events carry it.
    pub fn info(&self) -> ErrorInfo {
        ErrorInfo::new(ErrorCode::CircuitOpen, self.to_string()).hint(self.next_try())
    }

    /// The error of a run that ends here: its own last one, if it had any.
    pub fn after(&self, former: Option<ErrorInfo>) -> ErrorInfo {
        match former {
            Some(error) => error.hint(format!("{}; {}", self.plainly(), self.next_try())),
            None => self.info(),
        }
    }

    fn plainly(&self) -> String {
        format!("{} failed too often in a row and is left alone for now", self.target)
    }

    fn because(&self) -> String {
        self.cause.as_ref().map_or_else(String::new, |cause| format!("; its last error: {cause}"))
    }

    fn next_try(&self) -> String {
        match self.wait {
            Some(wait) => {
                let seconds = wait.as_millis().div_ceil(1000);
                format!("the next try is possible in {seconds} s")
            }
            None => "a trial is under way; try again once it has ended".to_owned(),
        }
    }
}

impl Circuits {
    /// Circuits that are all closed.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { shared: Arc::new(Shared { clock, circuits: Mutex::default() }) }
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        self.shared.clock.as_ref()
    }

    /// Lets a call to `target` pass or not. Also says if that changed the circuit.
    pub fn enter(
        &self,
        target: &str,
        policy: &CircuitPolicy,
    ) -> Result<(Permit, Option<CircuitChanged>), CircuitOpen> {
        let now = self.shared.clock.steady();
        let mut circuits = self.lock();
        let circuit = circuits.entry(target.to_owned()).or_default();
        if let Some(refusal) = circuit.refusal(target, now) {
            return Err(refusal);
        }
        let (is_trial, change) = match circuit.place {
            Place::Closed { .. } => (false, None),
            Place::Open { .. } => {
                (true, Some(circuit.change(target, Place::HalfOpen { trying: true })))
            }
            Place::HalfOpen { .. } => {
                circuit.place = Place::HalfOpen { trying: true };
                (true, None)
            }
        };
        let permit = Permit {
            circuits: self.clone(),
            target: target.to_owned(),
            policy: *policy,
            seen: circuit.tally,
            is_trial,
        };
        Ok((permit, change))
    }

    /// Why a call to `target` would not pass now, if it would not.
    pub fn refusal(&self, target: &str) -> Option<CircuitOpen> {
        let now = self.shared.clock.steady();
        self.lock().get(target)?.refusal(target, now)
    }

    /// Forgets what is known of a target: it is another one now.
    pub fn forget(&self, target: &str) {
        self.lock().remove(target);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Circuit>> {
        self.shared.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Circuit {
    fn default() -> Self {
        Self { place: Place::Closed { failures: 0 }, cause: None, tally: 0 }
    }
}

impl Circuit {
    fn refusal(&self, target: &str, now: Duration) -> Option<CircuitOpen> {
        let wait = match self.place {
            Place::Closed { .. } | Place::HalfOpen { trying: false } => return None,
            Place::HalfOpen { trying: true } => None,
            Place::Open { due, .. } if now >= due => return None,
            Place::Open { due, .. } => Some(due.saturating_sub(now)),
        };
        Some(CircuitOpen { target: target.to_owned(), cause: self.cause.clone(), wait })
    }

    fn change(&mut self, target: &str, place: Place) -> CircuitChanged {
        self.place = place;
        self.tally += 1;
        let (state, until) = match place {
            Place::Closed { .. } => (CircuitState::Closed, None),
            Place::Open { until, .. } => (CircuitState::Open, Some(until)),
            Place::HalfOpen { .. } => (CircuitState::HalfOpen, None),
        };
        CircuitChanged { target: target.to_owned(), state, until }
    }
}

/// A call that was let through. Dropped without an outcome, it says nothing about its target.
pub struct Permit {
    circuits: Circuits,
    target: String,
    policy: CircuitPolicy,
    seen: u64,
    is_trial: bool,
}

impl Permit {
    /// The target begins to answer, which may take long: a trial has shown by now what it was to show.
    pub fn alive(&mut self) -> Option<CircuitChanged> {
        self.settle_trial(CallEnd::Success)
    }

    /// The call ended with this error, which is remembered if it says that the target failed.
    pub fn fail(self, error: &ErrorInfo) -> Option<CircuitChanged> {
        let outcome = CallEnd::of(error.code)?;
        if outcome == CallEnd::Failure
            && let Some(circuit) = self.circuits.lock().get_mut(&self.target)
        {
            circuit.cause = Some(error.message.clone());
        }
        self.end(outcome)
    }

    /// The call ended.
    pub fn end(mut self, outcome: CallEnd) -> Option<CircuitChanged> {
        if self.is_trial {
            return self.settle_trial(outcome);
        }
        let opened = self.policy.opened(self.circuits.clock());
        let mut circuits = self.circuits.lock();
        let circuit = circuits.get_mut(&self.target)?;
        let Place::Closed { failures } = &mut circuit.place else { return None };
        match outcome {
            CallEnd::Success => *failures = 0,
            CallEnd::Neutral => {}
            CallEnd::Failure if self.seen != circuit.tally => {}
            CallEnd::Failure => {
                *failures += 1;
                circuit.tally += 1;
                if *failures >= self.policy.threshold {
                    return Some(circuit.change(&self.target, opened));
                }
            }
        }
        None
    }

    /// An answer of any kind closes the circuit. Does nothing to a call that is no trial, or no
    /// longer.
    fn settle_trial(&mut self, outcome: CallEnd) -> Option<CircuitChanged> {
        if !std::mem::take(&mut self.is_trial) {
            return None;
        }
        let opened = self.policy.opened(self.circuits.clock());
        let mut circuits = self.circuits.lock();
        let circuit = circuits.get_mut(&self.target)?;
        let Place::HalfOpen { .. } = circuit.place else { return None };
        let place = match outcome {
            CallEnd::Success | CallEnd::Neutral => Place::Closed { failures: 0 },
            CallEnd::Failure => opened,
        };
        let change = circuit.change(&self.target, place);
        self.seen = circuit.tally;
        Some(change)
    }
}

impl CircuitPolicy {
    fn opened(&self, clock: &dyn Clock) -> Place {
        let due = clock.steady().saturating_add(self.cooldown);
        Place::Open { due, until: clock.now().plus(self.cooldown) }
    }
}

impl Drop for Permit {
    /// The next call may be the trial.
    fn drop(&mut self) {
        if self.is_trial
            && let Some(circuit) = self.circuits.lock().get_mut(&self.target)
            && let Place::HalfOpen { trying } = &mut circuit.place
        {
            *trying = false;
        }
    }
}

#[cfg(test)]
mod tests;
