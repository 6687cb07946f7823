//! Hooks at the two ends of a session.

use std::time::Duration;

use loon_api::{ErrorCode, ErrorInfo, HookEvent};

use super::{Leave, Session};
use crate::hooks::{Moment, Occurrence};
use crate::runtime::RuntimeError;

/// How long all hooks at the end of a session may take together.
const ENDING: Duration = Duration::from_secs(15);

impl Session {
    /// The session was opened. What hooks have to say waits for the first turn.
    pub(super) async fn fire_session_start(&mut self) -> Result<(), RuntimeError> {
        if !self.hooks.has(HookEvent::SessionStart) {
            return Ok(());
        }
        let moment = self.moment_between_turns("start");
        let occurrence = Occurrence::session_start(self.resumed, self.model.as_deref());
        let outcome = self.fire_hooks(moment, occurrence).await?;
        for words in outcome.context {
            self.hooks.tell(format!("{} hook:\n{words}", HookEvent::SessionStart), false);
        }
        self.warn_of_hooks(outcome.failures).await;
        Ok(())
    }

    /// The session is left in good order. A child that is stopped has no time for it.
    pub(super) async fn fire_session_end(&mut self) -> Result<(), RuntimeError> {
        let is_over = self.execution.cancel_token().is_cancelled();
        let reason = match self.leave {
            _ if is_over => return Ok(()),
            Some(Leave::Terminate) if self.lineage.is_child() => return Ok(()),
            Some(Leave::Terminate) => "terminate",
            Some(Leave::Open(_)) => "switch",
            Some(Leave::Close) | None => "close",
        };
        if !self.hooks.has(HookEvent::SessionEnd) {
            return Ok(());
        }
        let moment = Moment { within: Some(ENDING), ..self.moment_between_turns("end") };
        // Nothing is attended to any more: who asked to leave has nothing else to say.
        let outcome = self.hooks.fire(&self.gate, &moment, &Occurrence::session_end(reason)).await;
        self.warn_of_hooks(outcome.failures).await;
        Ok(())
    }

    /// A moment that no later one has the name of: each hook that fires leaves records.
    pub(crate) fn moment_between_turns(&self, what: &str) -> Moment {
        let seq = self.recorder.with_state(|state| state.last_seq);
        Moment { turn: None, of: format!("{what}{seq}"), cancel: self.hooks.begin(), within: None }
    }

    /// Tells a person of hooks that failed while no turn runs.
    pub(crate) async fn warn_of_hooks(&self, failures: Vec<String>) {
        for failure in failures {
            self.warn(ErrorInfo::new(ErrorCode::Conflict, failure)).await;
        }
    }
}
