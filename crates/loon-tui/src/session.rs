//! What the screen knows of the session besides its transcript: a fold of events.

use loon_api::event::{EffectKind, SessionState};
use loon_api::{AgentEvent, Cost, ItemBody, Mode, WorkingRecord};

/// A prompt that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    /// The words.
    pub(crate) text: String,
    /// For the running turn.
    pub(crate) steer: bool,
}

/// Speed of the last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    /// Output tokens.
    pub(crate) tokens: u64,
    /// Milliseconds since the request was sent.
    pub(crate) ms: u64,
    /// Counted from characters.
    pub(crate) estimated: bool,
}

/// A running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// When it began, in milliseconds of the screen's clock.
    pub(crate) since: u64,
    /// The user asked to stop it.
    pub(crate) stopping: bool,
}

/// A request that will be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// When, in milliseconds of the screen's clock.
    pub(crate) at: u64,
    /// Why.
    pub(crate) reason: String,
}

/// The session as far as it is shown.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Folder.
    pub(crate) cwd: String,
    /// `provider/model`.
    pub(crate) model: Option<String>,
    /// Branch.
    pub(crate) branch: Option<String>,
    /// Permission mode.
    pub(crate) mode: Mode,
    /// Money so far.
    pub(crate) cost: Cost,
    /// Tokens of the next request and the window.
    pub(crate) context: Option<(u64, Option<u64>)>,
    /// Speed.
    pub(crate) meter: Option<Meter>,
    /// The running turn.
    pub(crate) turn: Option<Turn>,
    /// A retry that waits.
    pub(crate) retry: Option<Retry>,
    /// Prompts that wait.
    pub(crate) queued: Vec<Queued>,
    /// Checklist, tasks, notes and goal.
    pub(crate) record: WorkingRecord,
}

impl Session {
    /// A session as its front end finds it.
    pub(crate) fn opened(state: &SessionState) -> Self {
        Self {
            cwd: state.cwd.clone(),
            model: state.model.clone(),
            branch: state.branch.clone(),
            mode: state.mode,
            cost: state.cost,
            queued: state
                .queued
                .iter()
                .map(|text| Queued { text: text.clone(), steer: false })
                .collect(),
            record: state.record.clone(),
            ..Self::default()
        }
    }

    /// Takes in one event, at `now` milliseconds of the screen's clock.
    pub(crate) fn apply(&mut self, event: &AgentEvent, now: u64) {
        match event {
            AgentEvent::TurnStarted(turn) => {
                self.turn = Some(Turn { since: now, stopping: false });
                self.model = Some(turn.model.clone());
                self.mode = turn.mode;
                self.branch.clone_from(&turn.branch);
            }
            AgentEvent::RecordChanged(changed) => self.record.apply(&changed.change),
            AgentEvent::SessionRewound(rewound) => self.record.clone_from(&rewound.record),
            AgentEvent::ItemCompleted(completed) => {
                if let ItemBody::ToolCall(call) = &completed.item.body {
                    call.record.iter().for_each(|change| self.record.apply(change));
                }
            }
            AgentEvent::TurnFinished(_) => {
                self.turn = None;
                self.retry = None;
            }
            AgentEvent::EffectStarted(effect) if effect.kind == EffectKind::Model => {
                self.meter = None;
                self.retry = None;
            }
            AgentEvent::EffectRetried(retry) => {
                self.meter = None;
                self.retry =
                    Some(Retry { at: now + retry.delay_ms, reason: retry.error.message.clone() });
            }
            AgentEvent::EffectFinished(effect) => {
                self.cost += effect.cost;
                self.retry = None;
            }
            AgentEvent::PromptQueued(prompt) => {
                self.queued.push(Queued { text: prompt.text.clone(), steer: prompt.steer });
            }
            AgentEvent::QueueReturned(returned) => {
                for text in &returned.texts {
                    self.forget_queued(text);
                }
            }
            AgentEvent::ModeChanged(change) => self.mode = change.mode,
            AgentEvent::ModelChanged(change) => self.model = Some(change.model.clone()),
            AgentEvent::MeterUpdated(meter) => {
                self.retry = None;
                self.meter =
                    Some(Meter { tokens: meter.tokens, ms: meter.ms, estimated: meter.estimated });
            }
            AgentEvent::ContextEstimated(context) => {
                self.context = Some((context.tokens, context.capacity));
            }
            _ => {}
        }
    }

    /// A prompt no longer waits.
    pub(crate) fn forget_queued(&mut self, text: &str) {
        if let Some(at) = self.queued.iter().position(|queued| queued.text == text) {
            self.queued.remove(at);
        }
    }
}
