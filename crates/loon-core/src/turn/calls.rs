//! The calls of one answer: made, repeated too often, or not made at all.

use std::sync::Arc;

use loon_api::event::ItemCompleted;
use loon_api::{
    EffectKey, ErrorCode, Item, ItemBody, ToolCallStatus, ToolResult, TurnNumber, TurnStatus,
};
use loon_kernel::{KernelError, ToolEffect};
use tokio_util::sync::CancellationToken;

use super::{StepResult, TurnEnd};
use crate::conversation::effect_of;
use crate::repeat::Repeat;
use crate::runtime::RuntimeError;
use crate::session::Session;
use crate::stream::OutputStream;

impl Session {
    /// Makes the calls of one answer: runs of read-only ones beside each other, the others in
    /// order.
    pub(super) async fn make_calls(
        &mut self,
        calls: Vec<Item>,
    ) -> Result<Option<Repeat>, RuntimeError> {
        self.running()?.last_step_denied = false;
        let mut repeat = None;
        let mut rest = calls.into_iter().peekable();
        while let Some(first) = rest.next() {
            let mut batch = vec![first];
            if self.is_read_only(&batch[0]) {
                while let Some(next) = rest.next_if(|item| self.is_read_only(item)) {
                    batch.push(next);
                }
            }
            let batch = self.brief(batch).await?;
            let turn = self.running()?;
            let (number, cancel) = (turn.number, turn.cancel.clone());
            let effects: Vec<_> = batch
                .into_iter()
                .map(|item| self.call_effect(number, item, cancel.clone()))
                .collect();
            let done = self.attend(futures_util::future::join_all(effects)).await?;
            for item in done {
                let item = item?;
                if matches!(&item.body, ItemBody::ToolCall(call) if call.status == ToolCallStatus::Denied)
                {
                    self.running()?.last_step_denied = true;
                }
                repeat = self.running()?.repeats.look_at(&item).or(repeat);
                self.take_items(number, vec![item]);
            }
        }
        self.add_words_of_hooks().await?;
        Ok(repeat)
    }

    /// A model that goes in circles hears of it, and is stopped if it does not listen.
    pub(super) async fn answer_repeat(
        &mut self,
        repeat: Option<Repeat>,
    ) -> Result<StepResult, RuntimeError> {
        match repeat {
            None => Ok(StepResult::Continue),
            Some(Repeat::Tell(words)) => {
                self.add_words(words, true).await?;
                Ok(StepResult::Continue)
            }
            Some(Repeat::End(words)) => {
                let end = TurnEnd::because(TurnStatus::Stopped, ErrorCode::RepeatedCall, words);
                Ok(StepResult::End(end))
            }
        }
    }

    /// One tool effect with its live output. Borrows nothing of the session, so that commands can
    /// be handled while it runs.
    fn call_effect(
        &self,
        turn: TurnNumber,
        item: Item,
        cancel: CancellationToken,
    ) -> impl Future<Output = Result<Item, KernelError>> + use<> {
        let gate = Arc::clone(&self.gate);
        let recorder = self.recorder.clone();
        let cwd = self.deps.options.cwd.display().to_string();
        let key = effect_of(&item.id).unwrap_or_else(|| EffectKey::new(item.id.as_str()));
        let unmasked = self.turn.as_ref().and_then(|turn| turn.unmasked.get(&item.id).cloned());
        async move {
            let mut output = OutputStream::new(recorder, turn, item.id.clone());
            let follow = &mut output;
            let effect =
                ToolEffect { turn, key, item, unmasked, by_user: false, cwd, follow, cancel };
            gate.tool(effect).await
        }
    }

    fn is_read_only(&self, item: &Item) -> bool {
        let ItemBody::ToolCall(call) = &item.body else { return false };
        let tool = self.tools.iter().find(|tool| tool.spec().name == call.tool);
        tool.is_some_and(|tool| tool.spec().class.is_read_only())
    }

    /// Ends calls that must not run.
    pub(super) async fn void_calls(
        &mut self,
        turn: TurnNumber,
        calls: Vec<Item>,
        text: &str,
    ) -> Result<(), RuntimeError> {
        for mut item in calls {
            if let ItemBody::ToolCall(call) = &mut item.body {
                call.status = ToolCallStatus::Cancelled;
                call.result = Some(ToolResult::error(text));
            }
            self.record(Some(turn), ItemCompleted { item }).await?;
        }
        Ok(())
    }
}
