//! What an answer means for its turn: calls to make, another request, or the end.

use loon_api::{ErrorCode, ErrorInfo, Item, ItemBody, StopReason, TurnNumber, TurnStatus};
use loon_kernel::ModelOutcome;

use super::{StepResult, TurnEnd};
use crate::runtime::RuntimeError;
use crate::session::Session;

/// Answers in a row that may be cut at the output limit, or be empty, before the turn ends.
const MAX_SPOILED_ANSWERS: u32 = 3;

impl Session {
    pub(super) async fn act_on(
        &mut self,
        outcome: &ModelOutcome,
    ) -> Result<StepResult, RuntimeError> {
        let turn = self.running()?;
        turn.asks_anew = false;
        let number = turn.number;
        let calls = waiting_calls(&outcome.items);
        match outcome.stop {
            StopReason::Length => return self.cut_answer(number, calls).await,
            StopReason::Refused => {
                self.void_calls(number, calls, "The answer was refused; this call was not made.")
                    .await?;
                let message = "The model's server refused to answer.";
                let end = TurnEnd::because(TurnStatus::Failed, ErrorCode::Refused, message);
                return Ok(StepResult::End(end));
            }
            StopReason::End | StopReason::ToolCalls => {}
        }
        if !calls.is_empty() {
            self.running()?.spoiled_answers = 0;
            let repeat = self.make_calls(calls).await?;
            return self.answer_repeat(repeat).await;
        }
        let words = words_of(&outcome.items);
        if words.is_empty() {
            return self.empty_answer(&outcome.items);
        }
        if self.has_steering() {
            return Ok(StepResult::Continue);
        }
        self.judge_answer(&words).await
    }

    /// The model is done: hold its answer to the schema, and say so if it only ended because the
    /// last thing it wanted was denied.
    async fn judge_answer(&mut self, words: &str) -> Result<StepResult, RuntimeError> {
        if let Some(schema) = &self.schema
            && let Err(problem) = schema.check(words)
        {
            if self.running()?.schema_retried {
                let message = format!("The answer does not match the output schema: {problem}");
                let end = TurnEnd::because(TurnStatus::Failed, ErrorCode::Invalid, message);
                return Ok(StepResult::End(end));
            }
            self.running()?.schema_retried = true;
            let text = format!(
                "Your answer does not match the required JSON Schema: {problem}. Answer again with \
                 nothing but JSON that matches it."
            );
            self.add_notice(text).await?;
            return Ok(StepResult::Continue);
        }
        if self.running()?.last_step_denied {
            let message = "The last call the model asked for was denied.";
            let end = TurnEnd::because(TurnStatus::Stopped, ErrorCode::Denied, message);
            return Ok(StepResult::End(end));
        }
        self.judge_claim(words).await
    }

    /// No call of an answer that was cut may run, even if it looks whole.
    async fn cut_answer(
        &mut self,
        number: TurnNumber,
        calls: Vec<Item>,
    ) -> Result<StepResult, RuntimeError> {
        let had_calls = !calls.is_empty();
        let text = "The answer was cut at the output limit, so this call was not made. Use smaller \
                    steps: write long files in several parts.";
        self.void_calls(number, calls, text).await?;
        let turn = self.running()?;
        turn.spoiled_answers += 1;
        if had_calls && turn.spoiled_answers < MAX_SPOILED_ANSWERS {
            return Ok(StepResult::Continue);
        }
        let error = ErrorInfo::new(
            ErrorCode::OutputLimit,
            "The model's answer was cut at the output limit.",
        )
        .hint("Ask for smaller steps, or raise the model's max_output_tokens.");
        Ok(StepResult::End(TurnEnd { status: TurnStatus::Stopped, error: Some(error) }))
    }

    fn empty_answer(&mut self, items: &[Item]) -> Result<StepResult, RuntimeError> {
        let turn = self.running()?;
        turn.spoiled_answers += 1;
        if turn.spoiled_answers < MAX_SPOILED_ANSWERS {
            return Ok(StepResult::Continue);
        }
        let message = if items.is_empty() {
            "The model gave an empty answer three times."
        } else {
            "The model only reasoned and gave no answer, three times."
        };
        let end = TurnEnd::because(TurnStatus::Failed, ErrorCode::Protocol, message);
        Ok(StepResult::End(end))
    }
}

fn waiting_calls(items: &[Item]) -> Vec<Item> {
    items.iter().filter(|item| matches!(item.body, ItemBody::ToolCall(_))).cloned().collect()
}

fn words_of(items: &[Item]) -> String {
    let texts: Vec<&str> = items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::AssistantMessage { text, .. } => Some(text.trim()),
            _ => None,
        })
        .collect();
    texts.join("\n\n")
}
