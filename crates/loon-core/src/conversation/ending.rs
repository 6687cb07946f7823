//! What a cancel from outside leaves of a conversation: whoever wrote it could end nothing any more.

use loon_api::{EffectKey, ItemBody, ToolCallStatus, ToolResult};

use super::{Conversation, UNKNOWN_OUTCOME, effect_of};

const STOPPED: &str = "The session was cancelled before this call ended.";

/// What is known of the end of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ending {
    /// Effects whose end is unknown.
    cut_off: Vec<EffectKey>,
    /// It was cancelled, with the reason given.
    cancelled: Option<Option<String>>,
}

impl Ending {
    pub(super) fn note_unknown(&mut self, key: &EffectKey) {
        self.cut_off.push(key.clone());
    }
}

impl Conversation {
    /// Nothing follows: calls that were under way are over, whatever became of them.
    pub(super) fn end(&mut self, reason: Option<&String>) {
        self.ending.cancelled = Some(reason.cloned());
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

    /// The session was cancelled, with the reason given.
    pub fn cancelled(&self) -> Option<Option<&str>> {
        self.ending.cancelled.as_ref().map(Option::as_deref)
    }
}
