//! Firing: all hooks for one occurrence, one after another, each an effect of the gate.

use std::time::Duration;

use loon_api::event::EffectStatus;
use loon_api::{Clock, EffectKey, ErrorCode, ErrorInfo, HookDefinition, HookEvent, TurnNumber};
use loon_kernel::{EffectFailure, Gate, Redactor, StepEffect};
use tokio_util::sync::CancellationToken;

use super::answer::{HookAnswer, HookVerdict};
use super::occurrence::{Occurrence, Place};
use super::{Hooks, run};

/// Most characters of a hook's action in what is said of it.
const MOST_NAME: usize = 120;

/// Where in a session something happens.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// The turn, if one is under way.
    pub(crate) turn: Option<TurnNumber>,
    /// What the keys of the effects begin with; no two moments have the same.
    pub(crate) of: String,
    /// Stops the hooks.
    pub(crate) cancel: CancellationToken,
    /// How long they may take together.
    pub(crate) within: Option<Duration>,
}

/// What the hooks for an occurrence came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Why it should not go on, or for a turn that wants to end: why it should.
    pub(crate) block: Option<String>,
    /// Why a person should be asked.
    pub(crate) asks: Vec<String>,
    /// Words for the model.
    pub(crate) context: Vec<String>,
    /// Hooks that failed, a sentence each.
    pub(crate) failures: Vec<String>,
}

/// A hook that gave no answer.
pub(super) struct Failed {
    /// It was stopped by whoever stopped what it was asked about.
    stopped: bool,
    /// Why.
    pub(super) error: ErrorInfo,
}

impl From<EffectFailure> for Failed {
    fn from(failure: EffectFailure) -> Self {
        Self { stopped: failure.status == EffectStatus::Aborted, error: failure.error }
    }
}

/// What hooks are fired with.
pub(super) struct Firing<'a> {
    pub(super) hooks: &'a Hooks,
    pub(super) redactor: &'a Redactor,
    pub(super) place: &'a Place,
    pub(super) clock: &'a dyn Clock,
    pub(super) gate: &'a Gate,
}

impl Firing<'_> {
    /// Fires those hooks until one holds up what happens; where nothing can be held up any more, all
    /// of them.
    pub(super) async fn fire(
        &self,
        moment: &Moment,
        occurrence: &Occurrence,
        hooks: &[HookDefinition],
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let input = occurrence.input(self.place, self.redactor);
        let began = self.clock.steady();
        for (index, hook) in hooks.iter().enumerate() {
            let left = moment
                .within
                .map(|within| within.saturating_sub(self.clock.steady().saturating_sub(began)));
            if left.is_some_and(|left| left.is_zero()) {
                outcome.failures.push(format!("{} was not run: no time is left.", name_of(hook)));
                break;
            }
            let timeout = left.map_or(hook.timeout, |left| left.min(hook.timeout));
            match self.perform(moment, index, hook, timeout, input.clone()).await {
                Ok(answer) => outcome.take(hook, answer),
                Err(failed) => {
                    outcome.fail(hook, &failed.error);
                    if failed.stopped {
                        break;
                    }
                }
            }
            if outcome.block.is_some() && can_hold_up(hook.event) {
                break;
            }
        }
        outcome
    }

    /// Performs one hook and reads back what it said.
    pub(super) async fn perform(
        &self,
        moment: &Moment,
        index: usize,
        hook: &HookDefinition,
        timeout: Duration,
        input: Vec<u8>,
    ) -> Result<HookAnswer, Failed> {
        let effect = StepEffect {
            key: EffectKey::hook(&moment.of, hook.event, index),
            target: hook.target(),
            timeout: Some(timeout),
            cancel: moment.cancel.clone(),
        };
        let (hooks, cwd) = (self.hooks, &self.place.cwd);
        let performed = self
            .gate
            .hook(moment.turn, effect, |admitted, stop| {
                run::run(admitted, hooks, hook, cwd, input, stop)
            })
            .await;
        serde_json::from_value(performed?.value).map_err(|error| {
            let message = format!("its recorded answer cannot be read: {error}");
            Failed { stopped: false, error: ErrorInfo::new(ErrorCode::Internal, message) }
        })
    }
}

impl Outcome {
    fn take(&mut self, hook: &HookDefinition, answer: HookAnswer) {
        match answer.verdict {
            HookVerdict::Go => {}
            HookVerdict::Ask { reason } => {
                self.asks.push(format!("{} asks: {reason}", name_of(hook)).trim_end().to_owned());
            }
            HookVerdict::Block { reason } if can_hold_up(hook.event) => {
                self.block.get_or_insert(format!("{}: {reason}", name_of(hook)));
            }
            HookVerdict::Block { reason } if hook.event.is_about_tool() => {
                self.context.push(reason);
            }
            HookVerdict::Block { reason } => {
                let nothing =
                    format!("{} objects, and nothing hangs on it: {reason}", name_of(hook));
                self.failures.push(nothing);
            }
        }
        self.context.extend(answer.context);
    }

    fn fail(&mut self, hook: &HookDefinition, error: &ErrorInfo) {
        let words = format!("{} failed: {}", name_of(hook), error.message);
        let words = format!("{}.", words.trim_end_matches('.'));
        if hook.event.fails_closed() {
            self.block.get_or_insert(words);
        } else {
            self.failures.push(words);
        }
    }
}

/// What happens waits for the hooks.
fn can_hold_up(event: HookEvent) -> bool {
    matches!(
        event,
        HookEvent::UserPromptSubmit
            | HookEvent::PreToolUse
            | HookEvent::PreCompact
            | HookEvent::Stop
    )
}

/// A hook as a person knows it, in one line.
fn name_of(hook: &HookDefinition) -> String {
    let action = hook.action.to_string();
    let mut line: String =
        action.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST_NAME).collect();
    if action.chars().nth(MOST_NAME).is_some() {
        line.push('…');
    }
    format!("The {} hook `{line}`", hook.event)
}
