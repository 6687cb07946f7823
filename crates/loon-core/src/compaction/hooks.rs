//! Hooks before and after a compaction.

use loon_api::{Compaction, ErrorCode, ErrorInfo, HookEvent};
use tokio_util::sync::CancellationToken;

use super::Why;
use crate::hooks::{Moment, Occurrence, Outcome, Trigger};
use crate::runtime::RuntimeError;
use crate::session::Session;

impl Why {
    pub(super) fn trigger(&self) -> Trigger {
        match self {
            Self::Asked(_) => Trigger::Manual,
            Self::Full | Self::Overflow(_) => Trigger::Auto,
        }
    }

    fn focus(&self) -> Option<&str> {
        match self {
            Self::Asked(focus) => focus.as_deref(),
            Self::Full | Self::Overflow(_) => None,
        }
    }
}

impl Session {
    /// Asks hooks whether the conversation may be compacted. Gives what matters: in the user's words
    /// and in theirs. The error is the hook's that says no.
    pub(super) async fn hooks_before_compaction(
        &mut self,
        why: &Why,
    ) -> Result<Result<Option<String>, ErrorInfo>, RuntimeError> {
        let focus = why.focus().map(str::to_owned);
        if !self.hooks.has(HookEvent::PreCompact) {
            return Ok(Ok(focus));
        }
        let occurrence = Occurrence::pre_compact(why.trigger(), why.focus());
        let outcome = self.fire_around_compaction(occurrence).await?;
        if self.compaction_is_cancelled() {
            let message = "The compaction was stopped.";
            return Ok(Err(ErrorInfo::new(ErrorCode::Cancelled, message)));
        }
        if let Some(reason) = outcome.block {
            return Ok(Err(ErrorInfo::new(ErrorCode::Denied, reason)));
        }
        self.warn_of_hooks(outcome.failures).await;
        let parts: Vec<String> = focus.into_iter().chain(outcome.context).collect();
        Ok(Ok((!parts.is_empty()).then(|| parts.join("\n\n"))))
    }

    /// Tells hooks of a compaction that is recorded.
    pub(super) async fn hooks_after_compaction(
        &mut self,
        trigger: Trigger,
        compaction: &Compaction,
    ) -> Result<(), RuntimeError> {
        if !self.hooks.has(HookEvent::PostCompact) {
            return Ok(());
        }
        let tokens = (compaction.tokens_before, compaction.tokens_after);
        let occurrence = Occurrence::post_compact(trigger, compaction.handoff.as_deref(), tokens);
        let outcome = self.fire_around_compaction(occurrence).await?;
        for words in outcome.context {
            self.hooks.tell(format!("{} hook:\n{words}", HookEvent::PostCompact), false);
        }
        self.warn_of_hooks(outcome.failures).await;
        if self.turn.is_some() {
            self.add_words_of_hooks().await?;
        }
        Ok(())
    }

    async fn fire_around_compaction(
        &mut self,
        occurrence: Occurrence,
    ) -> Result<Outcome, RuntimeError> {
        let moment = self.moment_between_turns("compaction");
        let turn = self.turn.as_ref();
        let cancel = turn.map(|turn| turn.cancel.clone()).or_else(|| self.context.cancel.clone());
        let moment = Moment {
            turn: turn.map(|turn| turn.number),
            cancel: cancel.unwrap_or_else(|| moment.cancel.clone()),
            ..moment
        };
        self.fire_hooks(moment, occurrence).await
    }

    fn compaction_is_cancelled(&self) -> bool {
        let turn = self.turn.as_ref().map(|turn| &turn.cancel);
        turn.or(self.context.cancel.as_ref()).is_some_and(CancellationToken::is_cancelled)
    }
}
