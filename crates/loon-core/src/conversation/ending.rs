//! What a cancel from outside leaves of a conversation: whoever wrote it could end nothing any more.

use loon_api::event::ExecutionCancelled;
use loon_api::{EffectKey, ItemBody, ToolCallStatus, ToolResult};

use super::{Conversation, UNKNOWN_OUTCOME, effect_of};

const STOPPED: &str = "The session was cancelled before this call ended.";

/// What is known of the end of an execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ending {
    /// Effects whose end is unknown.
    cut_off: Vec<EffectKey>,
    /// How it was cancelled, if it was.
    cancelled: Option<ExecutionCancelled>,
}

impl Ending {
    pub(super) fn note_unknown(&mut self, key: &EffectKey) {
        self.cut_off.push(key.clone());
    }
}

impl Conversation {
    /// Nothing follows: calls that were under way are over, whatever became of them.
    pub(super) fn end(&mut self, cancelled: &ExecutionCancelled) {
        self.ending.cancelled = Some(cancelled.clone());
        self.open_turn = None;
        self.queued.clear();
        for item in &mut self.items {
            let ItemBody::ToolCall(call) = &mut item.body else { continue };
            if call.status.is_final() {
                continue;
            }
            let is_unknown =
                effect_of(&item.id).is_some_and(|key| self.ending.cut_off.contains(&key));
            let (status, words) = if is_unknown {
                (ToolCallStatus::Unknown, UNKNOWN_OUTCOME)
            } else {
                (ToolCallStatus::Cancelled, STOPPED)
            };
            call.status = status;
            call.result = Some(ToolResult::error(words));
        }
    }

    /// How the session was cancelled, if it was.
    pub fn cancelled(&self) -> Option<&ExecutionCancelled> {
        self.ending.cancelled.as_ref()
    }
}
