//! The state of an execution as a pure fold of its records.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::time::Duration;

use loon_api::event::{
    BudgetChanged, EffectFinished, EffectKind, EffectRerouted, EffectStatus, ExecutionStarted,
    SubagentFinished,
};
use loon_api::{
    AgentEvent, ApprovalId, At, Bounds, Cost, EffectKey, Envelope, ErrorCode, ErrorInfo,
    ExecutionId, ExecutionKind, Seq, TurnNumber, Usage,
};

use crate::clock::{in_words, millis};
use crate::flow::FlowState;
use crate::tree::Budget;

/// What all effects used together, those of ended children included. Everything is counted when an
/// effect ends, except requests, which count when they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Input and output tokens.
    pub tokens: u64,
    /// The same in detail.
    pub usage: Usage,
    /// Money.
    pub cost: Cost,
    /// Wall time of the effects in milliseconds, waiting for a person not included.
    pub ms: u64,
    /// Effects that ended other than by a denial.
    pub count: u64,
    /// Requests sent to models, repeated ones included.
    pub requests: u64,
    /// A bound of the budget is reached.
    pub exceeded: bool,
}

impl AddAssign<&Self> for Resources {
    fn add_assign(&mut self, other: &Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.usage += other.usage;
        self.cost += other.cost;
        self.ms = self.ms.saturating_add(other.ms);
        self.count = self.count.saturating_add(other.count);
        self.requests = self.requests.saturating_add(other.requests);
        self.exceeded |= other.exceeded;
    }
}

/// One effect as far as the journal knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EffectRecord {
    /// What it touches; absent if it was denied before it began.
    pub kind: Option<EffectKind>,
    /// The turn it belongs to.
    pub turn: Option<TurnNumber>,
    /// Its first record, if it began, and when that was.
    pub started: Option<(Seq, At)>,
    /// Its last record, if it ended.
    pub finished: Option<(Seq, EffectStatus)>,
    /// Why it ended without an answer.
    pub error: Option<ErrorInfo>,
    /// What its failed attempts used, until it ends; then what it used in all.
    pub usage: Usage,
    /// What the models cost that it left; once it ended, what it cost in all.
    pub cost: Cost,
    /// What the gate noted with its end.
    pub output: Option<serde_json::Value>,
    /// What it used at models that it left, as far as they reported.
    left: Usage,
}

impl EffectRecord {
    /// It began and has not ended.
    pub fn is_running(&self) -> bool {
        self.started.is_some() && self.finished.is_none()
    }

    /// What it cost if it ended now without a word: what a request that was cut off has used is not
    /// known, so neither is its price.
    pub(crate) fn cost_if_cut_off(&self) -> Cost {
        // What it cost at models that it left is known.
        let unpriced = self.cost.unpriced + u32::from(self.kind == Some(EffectKind::Model));
        Cost { unpriced, ..self.cost }
    }
}

/// The state of an execution after some of its records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionState {
    /// Number of the last record, 0 before the first.
    pub last_seq: Seq,
    /// When the last record was made.
    pub last_at: Option<At>,
    /// What sort of work.
    pub kind: Option<ExecutionKind>,
    /// Folder it works in.
    pub cwd: String,
    /// The execution that started it.
    pub parent: Option<ExecutionId>,
    /// When it began.
    pub started_at: Option<At>,
    /// How long it may be at work in all.
    pub deadline: Option<Duration>,
    /// The same as it was given last, which counts from the record of that.
    given: Option<Duration>,
    /// The turn under way.
    pub turn: Option<TurnNumber>,
    /// Effects by key.
    pub effects: BTreeMap<EffectKey, EffectRecord>,
    /// What they used.
    pub resources: Resources,
    /// It was cancelled, with the reason given.
    pub cancelled: Option<Option<String>>,
    /// Requests for a decision that are not answered, those of children included.
    pub asking: BTreeSet<ApprovalId>,
    /// Children at work by their names, which their requests begin with. True for one that works in
    /// the background.
    children: BTreeMap<String, bool>,
    /// The bounds of the budget, as last recorded.
    pub bounds: Bounds,
    /// Those of them that were set for this execution, beside the settings.
    pub raised: Bounds,
    /// Children whose use is in `resources`.
    pub counted_children: BTreeSet<ExecutionId>,
    /// A person is asked whether to raise a bound that is reached.
    asks_to_raise: bool,
    /// Where its flow stands, if it is one.
    pub flow: FlowState,
    running: u32,
    worked: Duration,
    working_since: Option<At>,
}

impl ExecutionState {
    /// Takes in the next record. Passing events change nothing.
    pub fn apply(&mut self, envelope: &Envelope) {
        let Some(seq) = envelope.seq else { return };
        self.last_seq = seq;
        self.last_at = Some(envelope.at);
        self.flow.apply(&envelope.event);
        match &envelope.event {
            AgentEvent::ExecutionStarted(event) => self.begin(event, envelope.at),
            AgentEvent::DeadlineSet(event) => {
                let more = Duration::from_millis(event.deadline_ms);
                self.deadline = Some(self.worked(envelope.at).saturating_add(more));
                self.given = Some(more);
            }
            AgentEvent::ExecutionCancelled(event) => self.cancelled = Some(event.reason.clone()),
            AgentEvent::TurnStarted(_) => {
                self.turn = envelope.turn;
                self.asks_to_raise = false;
            }
            AgentEvent::BudgetReached(_) => {
                self.resources.exceeded = true;
                self.asks_to_raise = true;
            }
            AgentEvent::BudgetChanged(event) => self.change_bounds(event),
            // With its process, the question is gone as well.
            AgentEvent::BudgetKept(_) | AgentEvent::ExecutionResumed(_) => {
                self.asks_to_raise = false;
            }
            AgentEvent::TurnFinished(_) => self.turn = None,
            AgentEvent::EffectStarted(event) => {
                let effect = self.effects.entry(event.key.clone()).or_default();
                effect.kind = Some(event.kind);
                effect.turn = envelope.turn;
                if effect.started.is_none() {
                    effect.started = Some((seq, envelope.at));
                    self.running += u32::from(effect.finished.is_none());
                }
                if event.kind == EffectKind::Model {
                    self.resources.requests += 1;
                }
            }
            AgentEvent::EffectRetried(event) => {
                let effect = self.effects.entry(event.key.clone()).or_default();
                effect.usage += event.usage;
                self.resources.requests += 1;
            }
            AgentEvent::EffectRerouted(event) => self.reroute(event),
            AgentEvent::EffectFinished(event) => self.finish(event, seq, envelope.turn),
            AgentEvent::ApprovalRequested(event) => {
                self.asking.insert(event.approval.id.clone());
            }
            AgentEvent::ApprovalResolved(event) => {
                self.asking.remove(&event.approval);
            }
            AgentEvent::SubagentStarted(event) => {
                self.children.insert(event.id.clone(), event.background);
            }
            AgentEvent::SubagentFinished(event) => self.take_child(event),
            AgentEvent::SessionForked(_) => self.begin_anew(),
            AgentEvent::FlowStarted(_)
            | AgentEvent::DecisionRecorded(_)
            | AgentEvent::TimerSet(_)
            | AgentEvent::TimerFired(_)
            | AgentEvent::ExecutionSuspended(_)
            | AgentEvent::SignalReceived(_)
            | AgentEvent::ExecutionCompleted(_)
            | AgentEvent::ExecutionFailed(_)
            | AgentEvent::ItemStarted(_)
            | AgentEvent::ItemDelta(_)
            | AgentEvent::ItemDropped(_)
            | AgentEvent::ItemCompleted(_)
            | AgentEvent::PromptQueued(_)
            | AgentEvent::QueueReturned(_)
            | AgentEvent::PromptBlocked(_)
            | AgentEvent::ModeChanged(_)
            | AgentEvent::ModelChanged(_)
            | AgentEvent::UltraLoopChanged(_)
            | AgentEvent::ReviewStarted(_)
            | AgentEvent::ReviewFinished(_)
            | AgentEvent::SubagentProgressed(_)
            | AgentEvent::SubagentShown(_)
            | AgentEvent::SessionRewound(_)
            | AgentEvent::RecordChanged(_)
            | AgentEvent::RewindPreviewed(_)
            | AgentEvent::SessionOpened(_)
            | AgentEvent::HistoryPage(_)
            | AgentEvent::SessionsListed(_)
            | AgentEvent::SessionsFound(_)
            | AgentEvent::SessionHeld(_)
            | AgentEvent::SessionReleased(_)
            | AgentEvent::ModelsListed(_)
            | AgentEvent::CommandsListed(_)
            | AgentEvent::CommandRefused(_)
            | AgentEvent::SkillsListed(_)
            | AgentEvent::GuidanceListed(_)
            | AgentEvent::McpListed(_)
            | AgentEvent::MeterUpdated(_)
            | AgentEvent::ResourcesUpdated(_)
            | AgentEvent::ContextEstimated(_)
            | AgentEvent::CircuitChanged(_)
            | AgentEvent::ContextCompacted(_)
            | AgentEvent::CompactionProgress(_)
            | AgentEvent::CompactionFailed(_)
            | AgentEvent::Notice(_)
            | AgentEvent::StreamFinished(_)
            | AgentEvent::Unknown { .. } => {}
        }
        self.run_deadline_clock(envelope.at);
    }

    fn begin(&mut self, event: &ExecutionStarted, at: At) {
        self.kind = Some(event.kind);
        self.cwd.clone_from(&event.cwd);
        self.parent = event.parent;
        self.started_at = Some(at);
        self.deadline = event.deadline_ms.map(Duration::from_millis);
        self.given = self.deadline;
    }

    /// What was used, and how long was worked, before a fork counts for the session it came from. So
    /// does a turn or an effect that was under way there.
    fn begin_anew(&mut self) {
        self.resources = Resources::default();
        self.raised = Bounds::default();
        self.deadline = self.given;
        self.worked = Duration::ZERO;
        self.working_since = None;
        self.turn = None;
        self.asking.clear();
        self.children.clear();
        self.parent = None;
    }

    fn reroute(&mut self, event: &EffectRerouted) {
        let effect = self.effects.entry(event.key.clone()).or_default();
        if !effect.is_running() {
            // The turn went on elsewhere after the effect had ended.
            return;
        }
        effect.left += event.usage;
        effect.usage = effect.left;
        effect.cost += event.cost;
        // Nothing was sent to a target that is left alone.
        self.resources.requests += u64::from(event.error.code != ErrorCode::CircuitOpen);
    }

    fn finish(&mut self, event: &EffectFinished, seq: Seq, turn: Option<TurnNumber>) {
        let effect = self.effects.entry(event.key.clone()).or_default();
        if effect.finished.is_some() {
            return;
        }
        if effect.started.is_some() {
            self.running = self.running.saturating_sub(1);
        }
        effect.turn = turn;
        effect.finished = Some((seq, event.status));
        effect.error.clone_from(&event.error);
        effect.usage = event.usage;
        effect.cost = event.cost;
        effect.output.clone_from(&event.output);
        let total = &mut self.resources;
        total.tokens = total.tokens.saturating_add(event.usage.total());
        total.usage += event.usage;
        total.cost += event.cost;
        total.ms = total.ms.saturating_add(event.ms);
        total.count += u64::from(event.status != EffectStatus::Denied);
        total.exceeded |=
            event.error.as_ref().is_some_and(|error| error.code == ErrorCode::QuotaExceeded);
        self.look_at_bounds();
    }

    fn change_bounds(&mut self, event: &BudgetChanged) {
        self.bounds = event.bounds;
        self.raised = event.raised;
        self.asks_to_raise = false;
        self.resources.exceeded = false;
        self.look_at_bounds();
    }

    /// The effect that reaches a bound is the one that says so.
    fn look_at_bounds(&mut self) {
        let reached = Budget::from(self.bounds).reached(&self.resources, true);
        self.resources.exceeded |= reached.is_some();
    }

    /// What a child used counts with what its parent did itself, once the child has ended.
    fn take_child(&mut self, event: &SubagentFinished) {
        self.children.remove(&event.id);
        // One that broke down took nothing back.
        self.asking.retain(|approval| child_of(approval) != Some(&event.id));
        let total = &mut self.resources;
        total.tokens = total.tokens.saturating_add(event.usage.total());
        total.usage += event.usage;
        total.cost += event.cost;
        total.ms = total.ms.saturating_add(event.ms.unwrap_or(0));
        total.count = total.count.saturating_add(event.effects.unwrap_or(0));
        total.requests = total.requests.saturating_add(event.steps.into());
        self.counted_children.insert(event.child);
        self.look_at_bounds();
    }

    /// The deadline runs while effects run, and through a turn as long as no person is waited for.
    /// A call that waits for a child that asks runs, but waits as well. While a person is waited for,
    /// the clock stands still unless something else goes on: another effect, or a child in the
    /// background that does not ask itself. What such a child asks holds up nothing here. While a
    /// person is asked to raise a bound, it stands still in any case.
    fn run_deadline_clock(&mut self, at: At) {
        let mut own = false;
        let mut asking: BTreeSet<&str> = BTreeSet::new();
        for approval in &self.asking {
            match child_of(approval).filter(|child| self.children.contains_key(*child)) {
                Some(child) => {
                    asking.insert(child);
                }
                None => own = true,
            }
        }
        let (mut waiting, mut beside) = (0, false);
        for (child, background) in &self.children {
            match (background, asking.contains(child.as_str())) {
                (false, true) => waiting += 1,
                (true, false) => beside = true,
                (false, false) | (true, true) => {}
            }
        }
        let waits = own || waiting > 0;
        let works = !self.asks_to_raise
            && (self.running > waiting || self.turn.is_some() && (!waits || beside));
        match (self.working_since, works) {
            (None, true) => self.working_since = Some(at),
            (Some(since), false) => {
                self.worked += at.since(since);
                self.working_since = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    /// What was used in all if the effects under way never tell of their end: what is known of them
    /// counts, and the price of a request is not known.
    pub fn settled_resources(&self) -> Resources {
        let mut used = self.resources.clone();
        let until = self.last_at;
        for effect in self.effects.values().filter(|effect| effect.is_running()) {
            let ran = effect.started.zip(until).map(|((_, at), until)| millis(until.since(at)));
            used += &Resources {
                tokens: effect.usage.total(),
                usage: effect.usage,
                cost: effect.cost_if_cut_off(),
                ms: ran.unwrap_or(0),
                count: 1,
                ..Resources::default()
            };
        }
        used
    }

    /// How long the execution has been at work until `now`: the time in turns and effects, without
    /// the time a person took to decide. For a flow it is the time since it began: what it waits for
    /// is part of its work.
    pub fn worked(&self, now: At) -> Duration {
        if self.kind == Some(ExecutionKind::Flow) {
            return self.started_at.map_or(Duration::ZERO, |began| now.since(began));
        }
        self.worked + self.working_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// What is left of the deadline at `now`; absent without a deadline.
    pub fn remaining(&self, now: At) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.worked(now)))
    }

    /// True if the deadline runs.
    pub(crate) fn is_at_work(&self) -> bool {
        self.working_since.is_some()
    }

    /// That its deadline passed, in words.
    pub(crate) fn past_deadline(&self) -> String {
        let given = self.given.map(|given| format!(" of {}", in_words(given)));
        format!("the deadline{} passed", given.unwrap_or_default())
    }

    /// Its last record is written: it was cancelled, or its flow came to an end.
    pub fn is_over(&self) -> bool {
        self.cancelled.is_some() || self.flow.end.is_some()
    }

    /// Keys of effects that began and have not ended.
    pub fn running_effects(&self) -> Vec<EffectKey> {
        self.effects
            .iter()
            .filter(|(_, effect)| effect.is_running())
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// The name that comes before the id of a request, which is a child's if a child has it.
fn child_of(approval: &ApprovalId) -> Option<&str> {
    approval.as_str().split_once('/').map(|(name, _)| name)
}

#[cfg(test)]
mod tests;
