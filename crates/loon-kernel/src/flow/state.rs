//! Where a flow stands, as a fold of its records.

use std::collections::{BTreeMap, VecDeque};

use loon_api::event::{EffectKind, ExecutionSuspended, FlowStarted, SignalReceived};
use loon_api::{AgentEvent, At, EffectKey, ErrorInfo};
use serde_json::Value;

/// What a flow has recorded so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowState {
    /// What was started.
    pub started: Option<FlowStarted>,
    /// What its code has begun, in order.
    pub operations: Vec<Operation>,
    /// What it decided.
    pub decisions: BTreeMap<EffectKey, Value>,
    /// Its sleeps.
    pub timers: BTreeMap<EffectKey, Timer>,
    /// Its waits for signals, in order.
    pub suspensions: Vec<Suspension>,
    /// Signals that nobody has waited for yet, oldest first.
    pub waiting: VecDeque<SignalReceived>,
    /// How it ended.
    pub end: Option<FlowEnd>,
}

/// Something that a flow's code began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its durable name.
    pub key: EffectKey,
    /// What it does.
    pub kind: OperationKind,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Performs a step on this target.
    Step(String),
    /// Decides.
    Decision,
    /// Sleeps.
    Sleep,
    /// Waits for a signal.
    Suspension,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            OperationKind::Step(target) => write!(f, "the step {} on {target}", self.key),
            OperationKind::Decision => write!(f, "the decision {}", self.key),
            OperationKind::Sleep => write!(f, "the sleep {}", self.key),
            OperationKind::Suspension => write!(f, "the wait {}", self.key),
        }
    }
}

/// A sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// When it is over.
    pub due: At,
    /// The flow went on.
    pub fired: bool,
}

/// A wait for a signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspension {
    /// Its durable name.
    pub key: EffectKey,
    /// Name of the signal.
    pub on: String,
    /// Which of the signals of that name.
    pub correlation: String,
    /// When the wait ends without one.
    pub due: Option<At>,
    /// How it ended.
    pub woken: Option<Woken>,
}

/// How a wait for a signal ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Woken {
    /// The signal came with this payload.
    Signal(Value),
    /// The time was over first.
    TimedOut,
}

/// How a flow ended by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowEnd {
    /// With this output.
    Completed(Value),
    /// With this error.
    Failed(ErrorInfo),
}

impl FlowState {
    /// Takes in the next record.
    pub(crate) fn apply(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::FlowStarted(event) => self.started = Some(event.clone()),
            AgentEvent::EffectStarted(event) if event.kind == EffectKind::Step => {
                self.begin(&event.key, OperationKind::Step(event.target.clone()));
            }
            AgentEvent::DecisionRecorded(event) => {
                self.begin(&event.key, OperationKind::Decision);
                self.decisions.insert(event.key.clone(), event.value.clone());
            }
            AgentEvent::TimerSet(event) => {
                self.begin(&event.key, OperationKind::Sleep);
                let timer = Timer { due: event.due, fired: false };
                self.timers.insert(event.key.clone(), timer);
            }
            AgentEvent::TimerFired(event) => self.fire(&event.key),
            AgentEvent::ExecutionSuspended(event) => self.suspend(event),
            AgentEvent::SignalReceived(event) => self.receive(event),
            AgentEvent::ExecutionCompleted(event) => {
                self.end = Some(FlowEnd::Completed(event.output.clone()));
            }
            AgentEvent::ExecutionFailed(event) => {
                self.end = Some(FlowEnd::Failed(event.error.clone()));
            }
            _ => {}
        }
    }

    fn begin(&mut self, key: &EffectKey, kind: OperationKind) {
        self.operations.push(Operation { key: key.clone(), kind });
    }

    fn fire(&mut self, key: &EffectKey) {
        if let Some(timer) = self.timers.get_mut(key) {
            timer.fired = true;
        }
        if let Some(suspension) =
            self.suspensions.iter_mut().find(|it| it.key == *key && it.woken.is_none())
        {
            suspension.woken = Some(Woken::TimedOut);
        }
    }

    /// A signal that came before the wait for it ends the wait at once.
    fn suspend(&mut self, event: &ExecutionSuspended) {
        self.begin(&event.key, OperationKind::Suspension);
        let early = self
            .waiting
            .iter()
            .position(|signal| signal.on == event.on && signal.correlation == event.correlation);
        let signal = early.and_then(|index| self.waiting.remove(index));
        self.suspensions.push(Suspension {
            key: event.key.clone(),
            on: event.on.clone(),
            correlation: event.correlation.clone(),
            due: event.due,
            woken: signal.map(|signal| Woken::Signal(signal.payload)),
        });
    }

    fn receive(&mut self, event: &SignalReceived) {
        let waits = self.suspensions.iter_mut().find(|it| {
            it.woken.is_none() && it.on == event.on && it.correlation == event.correlation
        });
        match waits {
            Some(suspension) => suspension.woken = Some(Woken::Signal(event.payload.clone())),
            None => self.waiting.push_back(event.clone()),
        }
    }

    /// The wait with this name.
    pub(super) fn suspension(&self, key: &EffectKey) -> Option<&Suspension> {
        self.suspensions.iter().find(|it| it.key == *key)
    }

    /// When the next of its timers is due, whether the flow runs or not; absent without one, and
    /// after its end.
    pub fn next_due(&self) -> Option<At> {
        if self.end.is_some() {
            return None;
        }
        let sleeps = self.timers.values().filter(|timer| !timer.fired).map(|timer| timer.due);
        let waits = self.suspensions.iter().filter(|it| it.woken.is_none()).filter_map(|it| it.due);
        sleeps.chain(waits).min()
    }
}
