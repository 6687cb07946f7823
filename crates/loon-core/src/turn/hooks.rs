//! Hooks in a turn: before words of the user reach the model, when the model says that it is done, and
//! when the turn ends otherwise.

use std::sync::Arc;

use loon_api::event::PromptBlocked;
use loon_api::{ErrorCode, HookEvent, ItemBody, ToolCallStatus, TurnStatus};

use super::TurnEnd;
use crate::hooks::{Moment, Occurrence, Outcome};
use crate::runtime::RuntimeError;
use crate::session::Session;

/// How often in a row hooks may keep an agent from stopping that does nothing in between.
const MOST_IN_A_ROW: u32 = 3;

/// How often hooks may keep the agent of one turn from stopping, whatever it does in between.
const MOST_IN_A_TURN: u32 = 20;

/// How often hooks kept the agent of a turn from stopping.
#[derive(Default)]
pub(super) struct KeptGoing {
    /// Times in a row without a call that ended well in between.
    in_a_row: u32,
    /// Times in all.
    in_all: u32,
    /// Calls that had ended well at the last of them.
    calls_done: usize,
}

impl Session {
    /// Puts the turn's prompt into the transcript, unless a hook keeps it from the model, which ends
    /// the turn.
    pub(super) async fn take_prompt(
        &mut self,
        prompt: String,
    ) -> Result<Option<TurnEnd>, RuntimeError> {
        let Some(reason) = self.take_user_message(prompt, false).await? else {
            self.add_words_of_hooks().await?;
            return Ok(None);
        };
        if self.running()?.cancel.is_cancelled() {
            return Ok(Some(TurnEnd::interrupted()));
        }
        Ok(Some(TurnEnd::because(TurnStatus::Stopped, ErrorCode::Denied, reason)))
    }

    /// Puts words of the user into the transcript, unless a hook keeps them from the model. Gives its
    /// reason then.
    pub(crate) async fn take_user_message(
        &mut self,
        text: String,
        steer: bool,
    ) -> Result<Option<String>, RuntimeError> {
        if !self.hooks.has(HookEvent::UserPromptSubmit) {
            self.add_user_message(text, steer).await?;
            return Ok(None);
        }
        let turn = self.running()?;
        let (number, index) = (turn.number, turn.judged_messages);
        turn.judged_messages += 1;
        let occurrence = Occurrence::prompt(&text, steer);
        let outcome = self.fire_in_turn(format!("t{number}/u{index}"), occurrence).await?;
        if let Some(reason) = outcome.block {
            let blocked = PromptBlocked { text, steer, reason: reason.clone() };
            self.record(Some(number), blocked).await?;
            self.add_notice(format!("A message of the user was not sent. {reason}")).await?;
            return Ok(Some(reason));
        }
        self.add_user_message(text, steer).await?;
        self.add_words_of(HookEvent::UserPromptSubmit, &outcome).await?;
        Ok(None)
    }

    /// The model says that it is done: gives nothing if a hook keeps it going.
    pub(super) async fn stop_or_go_on(
        &mut self,
        end: TurnEnd,
    ) -> Result<Option<TurnEnd>, RuntimeError> {
        if end.status != TurnStatus::Completed || !self.hooks.has(HookEvent::Stop) {
            return Ok(Some(end));
        }
        let turn = self.running()?;
        let (number, step, again) = (turn.number, turn.steps, turn.kept_going.in_a_row > 0);
        let message = self.conversation.items().iter().rev().find_map(|item| match &item.body {
            ItemBody::AssistantMessage { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let occurrence = Occurrence::stop(again, message);
        let outcome = self.fire_in_turn(format!("t{number}/s{step}"), occurrence).await?;
        // There is no next request that words for the model could reach, unless it goes on.
        for failure in &outcome.failures {
            self.add_notice(failure.clone()).await?;
        }
        if self.running()?.cancel.is_cancelled() {
            return Ok(Some(TurnEnd::interrupted()));
        }
        let Some(reason) = outcome.block else { return Ok(Some(end)) };
        let done = self.calls_done(number);
        let kept = &mut self.running()?.kept_going;
        kept.in_a_row = if done > kept.calls_done { 1 } else { kept.in_a_row + 1 };
        kept.in_all += 1;
        kept.calls_done = done;
        let too_often = if kept.in_a_row > MOST_IN_A_ROW {
            Some(format!("{MOST_IN_A_ROW} times in a row, and it did nothing more"))
        } else if kept.in_all > MOST_IN_A_TURN {
            Some(format!("{MOST_IN_A_TURN} times in this turn"))
        } else {
            None
        };
        if let Some(often) = too_often {
            let message = format!("Stop hooks kept the agent going {often}. {reason}");
            let end = TurnEnd::because(TurnStatus::Stopped, ErrorCode::Conflict, message);
            return Ok(Some(end));
        }
        let words = outcome.context.iter().fold(reason, |words, more| format!("{words}\n\n{more}"));
        self.add_notice(format!("You are not done yet. {words}")).await?;
        Ok(None)
    }

    /// The turn ends, and not because the model was done or somebody interrupted it.
    pub(super) async fn tell_stop_failure(&mut self, end: &TurnEnd) -> Result<(), RuntimeError> {
        // Nothing begins any more once the deadline has passed.
        let failed = matches!(end.status, TurnStatus::Failed | TurnStatus::Stopped);
        if !failed || !self.hooks.has(HookEvent::StopFailure) {
            return Ok(());
        }
        let number = self.running()?.number;
        let occurrence = Occurrence::stop_failure(end.status, end.error.as_ref());
        let outcome = self.fire_in_turn(format!("t{number}"), occurrence).await?;
        for failure in outcome.failures {
            self.add_notice(failure).await?;
        }
        Ok(())
    }

    /// Puts into the transcript what hooks had to tell of calls, or before the turn.
    pub(crate) async fn add_words_of_hooks(&mut self) -> Result<(), RuntimeError> {
        for told in self.hooks.take_told() {
            self.add_words(told.text, told.about_call).await?;
        }
        Ok(())
    }

    async fn add_words_of(
        &mut self,
        event: HookEvent,
        outcome: &Outcome,
    ) -> Result<(), RuntimeError> {
        for words in &outcome.context {
            self.add_notice(format!("{event} hook:\n{words}")).await?;
        }
        for failure in &outcome.failures {
            self.add_notice(failure.clone()).await?;
        }
        Ok(())
    }

    async fn fire_in_turn(
        &mut self,
        of: String,
        occurrence: Occurrence,
    ) -> Result<Outcome, RuntimeError> {
        let turn = self.running()?;
        let moment =
            Moment { turn: Some(turn.number), of, cancel: turn.cancel.clone(), within: None };
        self.fire_hooks(moment, occurrence).await
    }

    /// Fires hooks while commands keep being handled.
    pub(crate) async fn fire_hooks(
        &mut self,
        moment: Moment,
        occurrence: Occurrence,
    ) -> Result<Outcome, RuntimeError> {
        let (hooks, gate) = (Arc::clone(&self.hooks), Arc::clone(&self.gate));
        let firing = async move { hooks.fire(&gate, &moment, &occurrence).await };
        Box::pin(self.attend(firing)).await
    }

    fn calls_done(&self, turn: u32) -> usize {
        let of_turn = self.conversation.items().iter().rev().take_while(|item| item.turn == turn);
        of_turn
            .filter(|item| {
                matches!(&item.body, ItemBody::ToolCall(call) if call.status == ToolCallStatus::Done)
            })
            .count()
    }
}
