//! Replay: does the present code make of a session's records what was made of them then?
//!
//! A session's state is a fold of its journal, and its requests are built from that fold. So a replay
//! needs neither network nor tools: it folds the recorded answers and results again, builds each
//! request that followed, and compares it by its digest with the one that was sent. Receipts are
//! computed again and compared too. What the turn loop would *decide* anew is not replayed; for that a
//! session becomes a [`script`].

pub mod script;
#[cfg(test)]
mod tests;

use loon_api::event::EffectKind;
use loon_api::{AgentEvent, EffectKey, Envelope, ItemBody, Message, Receipt, Seq, TurnNumber};
use loon_kernel::gate::request_digest;
use serde::Serialize;

use crate::conversation::Conversation;

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Requests that were built again and are what they were.
    pub requests: u64,
    /// Requests without a digest, from before there was one: nothing to compare with.
    pub without_digest: u64,
    /// Receipts that came out the same.
    pub receipts: u64,
    /// The first difference; nothing after it was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Why it ended before the last record, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// Where the present code does something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Number of the record.
    pub seq: Seq,
    /// Its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnNumber>,
    /// What differs: a request by its key, a receipt, a call.
    pub what: String,
    /// As recorded.
    pub recorded: String,
    /// As it comes out now.
    pub now: String,
}

/// A replay under way.
#[derive(Default)]
pub struct Replay {
    conversation: Conversation,
    only: Option<TurnNumber>,
    found: Replayed,
}

impl Replay {
    /// A replay that compares everything, or one turn alone.
    pub fn new(only: Option<TurnNumber>) -> Self {
        Self { only, ..Self::default() }
    }

    /// Takes the next record. False once there is nothing more to compare.
    pub fn take(&mut self, envelope: &Envelope) -> bool {
        let seq = envelope.seq.unwrap_or_default();
        if let AgentEvent::Unknown { kind } = &envelope.event {
            self.found.ended = Some(format!(
                "record {seq} is of type {kind}, which this version does not know; what follows may \
                 hang on it"
            ));
            return false;
        }
        if self.only.is_none_or(|only| envelope.turn == Some(only)) {
            self.found.difference = self.compare(seq, envelope);
        }
        self.conversation.apply(envelope.turn, &envelope.event);
        self.found.difference.is_none()
    }

    /// What was found.
    pub fn finish(self) -> Replayed {
        self.found
    }

    fn compare(&mut self, seq: Seq, envelope: &Envelope) -> Option<Difference> {
        let differs = |what, recorded, now| {
            Some(Difference { seq, turn: envelope.turn, what, recorded, now })
        };
        match &envelope.event {
            // Summaries and reviews are asked for in words of their own; what they left shows in the
            // next request.
            AgentEvent::EffectStarted(started)
                if started.kind == EffectKind::Model && !started.key.is_aside() =>
            {
                let Some(recorded) = &started.request else {
                    self.found.without_digest += 1;
                    return None;
                };
                let messages = self.conversation.request_messages();
                let now = request_digest(&messages);
                if now != *recorded {
                    let now = format!("{now}, {}", in_words(&messages));
                    return differs(request_name(&started.key), recorded.clone(), now);
                }
                self.found.requests += 1;
            }
            AgentEvent::TurnFinished(finished) => {
                if let Some(item) = self.conversation.unfinished_calls().first() {
                    let ItemBody::ToolCall(call) = &item.body else { return None };
                    let what = format!("call {} ({})", item.id, call.tool);
                    return differs(what, "the turn ended".to_owned(), "it has no end".to_owned());
                }
                let recorded = finished.receipt.as_ref()?;
                let now = self.conversation.receipt();
                if now.as_ref() != Some(recorded) {
                    return differs(
                        "receipt".to_owned(),
                        written(Some(recorded)),
                        written(now.as_ref()),
                    );
                }
                self.found.receipts += 1;
            }
            _ => {}
        }
        None
    }
}

fn request_name(key: &EffectKey) -> String {
    format!("request {key}")
}

fn written(receipt: Option<&Receipt>) -> String {
    receipt.and_then(|receipt| serde_json::to_string(receipt).ok()).unwrap_or_else(|| "none".into())
}

/// What a request is, to look for the difference.
fn in_words(messages: &[Message]) -> String {
    let parts: usize = messages
        .iter()
        .map(|message| match message {
            Message::User(parts) => parts.len(),
            Message::Assistant(answer) => answer.parts.len(),
        })
        .sum();
    format!("{} messages with {parts} parts", messages.len())
}
