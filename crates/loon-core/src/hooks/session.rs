//! The hooks of one session: fired by its owner and around its calls, with what they have to tell kept
//! until the turn can take it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loon_api::{BoxFuture, Clock, ExecutionId, HookEvent};
use loon_kernel::{CallHooks, Gate, HookedCall, HooksSay, Redactor};
use tokio_util::sync::CancellationToken;

use super::fire::{Firing, Moment, Outcome};
use super::occurrence::{Occurrence, Place};
use super::{Hooks, Tried};
use crate::deps::Dependencies;
use crate::subagent::Lineage;

/// Words of hooks that wait for their place in the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The words.
    pub(crate) text: String,
    /// They speak of the calls just made.
    pub(crate) about_call: bool,
}

/// The hooks of one session. The locks are held for a look or a change.
pub(crate) struct SessionHooks {
    hooks: Hooks,
    redactor: Redactor,
    clock: Arc<dyn Clock>,
    place: Place,
    told: Mutex<Vec<Told>>,
    /// Stops those that run outside of a turn.
    cancel: Mutex<CancellationToken>,
}

impl SessionHooks {
    /// Those of the session `exec`.
    pub(crate) fn of(deps: &Dependencies, lineage: &Lineage, exec: ExecutionId) -> Self {
        let agent = match lineage {
            Lineage::Root => None,
            Lineage::Child(parent) => Some(parent.profile.name.clone()),
        };
        Self {
            hooks: deps.hooks.clone(),
            redactor: deps.redactor.clone(),
            clock: Arc::clone(&deps.clock),
            place: Place { session: exec, cwd: deps.options.cwd.clone(), agent },
            told: Mutex::default(),
            cancel: Mutex::default(),
        }
    }

    /// True if one is there for the event.
    pub(crate) fn has(&self, event: HookEvent) -> bool {
        self.hooks.has(event)
    }

    /// Fires the hooks for something that happened.
    pub(crate) async fn fire(
        &self,
        gate: &Gate,
        moment: &Moment,
        occurrence: &Occurrence,
    ) -> Outcome {
        let hooks = self.hooks.of(occurrence);
        if hooks.is_empty() {
            return Outcome::default();
        }
        let Self { redactor, place, clock, .. } = self;
        let firing = Firing { hooks: &self.hooks, redactor, place, clock: clock.as_ref(), gate };
        firing.fire(moment, occurrence, &hooks).await
    }

    /// Fires each of those hooks, whatever the others say. Gives what they read as well.
    pub(super) async fn try_each(
        &self,
        gate: &Gate,
        moment: &Moment,
        occurrence: &Occurrence,
    ) -> (String, Vec<Tried>) {
        let Self { redactor, place, clock, .. } = self;
        let firing = Firing { hooks: &self.hooks, redactor, place, clock: clock.as_ref(), gate };
        let input = occurrence.input(place, redactor);
        let mut tried = Vec::new();
        for (index, hook) in self.hooks.of(occurrence).into_iter().enumerate() {
            let performed = firing.perform(moment, index, &hook, hook.timeout, input.clone()).await;
            tried.push(Tried { answer: performed.map_err(|failed| failed.error), hook });
        }
        (String::from_utf8_lossy(&input).into_owned(), tried)
    }

    /// A token for hooks that run outside of a turn.
    pub(crate) fn begin(&self) -> CancellationToken {
        let cancel = CancellationToken::new();
        *self.cancel.lock().unwrap_or_else(PoisonError::into_inner) = cancel.clone();
        cancel
    }

    /// Stops what runs outside of a turn.
    pub(crate) fn stop(&self) {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// Keeps words for the transcript.
    pub(crate) fn tell(&self, text: String, about_call: bool) {
        self.told().push(Told { text, about_call });
    }

    /// The words that wait, oldest first.
    pub(crate) fn take_told(&self) -> Vec<Told> {
        std::mem::take(&mut *self.told())
    }

    fn told(&self) -> MutexGuard<'_, Vec<Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fire_around(&self, call: HookedCall<'_>, occurrence: &Occurrence) -> Outcome {
        let moment = Moment {
            turn: Some(call.turn),
            of: call.key.to_string(),
            cancel: call.cancel.clone(),
            within: None,
        };
        self.fire(call.gate, &moment, occurrence).await
    }

    /// Keeps what hooks say of a call. Several calls may have been made beside each other, so the words
    /// name it.
    fn tell_of_call(&self, call: HookedCall<'_>, event: HookEvent, outcome: &Outcome) {
        let space = if call.call.title.is_empty() { "" } else { " " };
        let name = format!("{}{space}{}", call.call.tool, call.call.title);
        if !outcome.context.is_empty() {
            let words = outcome.context.join("\n\n");
            self.tell(format!("{event} hook on {name}:\n{words}"), true);
        }
        for failure in &outcome.failures {
            self.tell(format!("{failure} It was about {name}."), true);
        }
    }
}

impl CallHooks for SessionHooks {
    fn before<'a>(&'a self, call: HookedCall<'a>) -> BoxFuture<'a, HooksSay> {
        Box::pin(async move {
            if !self.has(HookEvent::PreToolUse) {
                return HooksSay::Nothing;
            }
            let outcome = self.fire_around(call, &Occurrence::before_call(call.call)).await;
            self.tell_of_call(call, HookEvent::PreToolUse, &outcome);
            match (outcome.block, outcome.asks) {
                (Some(reason), _) => HooksSay::Deny(reason),
                (None, asks) if asks.is_empty() => HooksSay::Nothing,
                (None, asks) => HooksSay::Ask(asks),
            }
        })
    }

    fn after<'a>(&'a self, call: HookedCall<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let events = [HookEvent::PostToolUse, HookEvent::PostToolUseFailure];
            if events.into_iter().any(|event| self.has(event))
                && let Some(occurrence) = Occurrence::after_call(call.call)
            {
                let outcome = self.fire_around(call, &occurrence).await;
                self.tell_of_call(call, occurrence.event, &outcome);
            }
        })
    }
}
