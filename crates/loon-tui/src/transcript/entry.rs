//! What happens to one entry.

use loon_api::event::DeltaKind;
use loon_api::{Item, ItemBody, ToolCallStatus};

use super::{Body, Entry, Fold, Key, LIVE_LIMIT};
use crate::markdown::Markdown;

impl Entry {
    /// The entry of an item that is new here.
    pub(super) fn of(item: &Item, now: u64) -> Self {
        let body = match &item.body {
            ItemBody::UserMessage { text, steer } => {
                Body::User { text: text.clone(), steer: *steer }
            }
            ItemBody::AssistantMessage { text, incomplete } => {
                let mut markdown = Box::new(Markdown::default());
                markdown.push(text);
                Body::Assistant { markdown, incomplete: *incomplete }
            }
            ItemBody::Thinking(thinking) => {
                Body::Thinking { text: thinking.text.clone(), done: false }
            }
            ItemBody::ToolCall(call) => Body::Tool {
                call: Box::new(call.clone()),
                live: String::new(),
                arguments: 0,
                since: now,
            },
            ItemBody::Notice { text, .. } => Body::Notice { text: text.clone() },
            ItemBody::Compaction(left) => Body::Compaction { left: Box::new(left.clone()) },
        };
        Self { key: Key::Item(item.id.clone()), body, fold: Fold::Auto, laid: None, grown: false }
    }

    /// The item as it now stands; `done` if it is whole.
    pub(super) fn update(&mut self, item: &Item, now: u64, done: bool) {
        self.laid = None;
        match (&mut self.body, &item.body) {
            (
                Body::Assistant { markdown, incomplete },
                ItemBody::AssistantMessage { text, incomplete: cut },
            ) => {
                if done {
                    markdown.finish(text);
                }
                *incomplete = *cut;
            }
            (Body::Thinking { text, done: was_done }, ItemBody::Thinking(thinking)) => {
                if done {
                    text.clone_from(&thinking.text);
                    *was_done = true;
                }
            }
            (Body::Tool { call, live, since, .. }, ItemBody::ToolCall(new)) => {
                if call.status != new.status && new.status == ToolCallStatus::Running {
                    *since = now;
                }
                if new.status.is_final() {
                    live.clear();
                }
                **call = new.clone();
            }
            (body, _) => {
                let fold = self.fold;
                *body = Self::of(item, now).body;
                self.fold = fold;
            }
        }
    }

    /// More of the item.
    pub(super) fn extend(&mut self, of: DeltaKind, more: &str) {
        self.grown = true;
        match (&mut self.body, of) {
            (Body::Assistant { markdown, .. }, DeltaKind::Text) => markdown.push(more),
            (Body::Thinking { text, .. }, DeltaKind::Thinking) => text.push_str(more),
            (Body::Tool { arguments, .. }, DeltaKind::Arguments) => *arguments += more.len(),
            (Body::Tool { live, .. }, DeltaKind::Output) => {
                live.push_str(more);
                if live.len() > 2 * LIVE_LIMIT {
                    let from = live.ceil_char_boundary(live.len() - LIVE_LIMIT);
                    live.drain(..from);
                }
            }
            _ => {}
        }
    }

    /// It shows nothing (yet).
    pub(super) fn is_blank(&self) -> bool {
        match &self.body {
            Body::Assistant { markdown, incomplete } => {
                !incomplete && markdown.text().trim_start().is_empty()
            }
            Body::Thinking { text, .. } => text.trim_start().is_empty(),
            _ => false,
        }
    }

    /// Bytes of its text.
    pub(super) fn weight(&self) -> usize {
        let changes = match &self.body {
            Body::Tool { call, .. } => call.changes.iter().map(|change| change.diff.len()).sum(),
            _ => 0,
        };
        changes + self.text().map_or(0, str::len)
    }

    /// Its text, for the clipboard.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.body {
            Body::User { text, .. }
            | Body::Thinking { text, .. }
            | Body::Notice { text }
            | Body::Receipt { text } => Some(text),
            Body::Assistant { markdown, .. } => Some(markdown.text()),
            Body::Tool { call, live, .. } => {
                Some(call.result.as_ref().map_or(live.as_str(), |result| result.text.as_str()))
            }
            Body::Compaction { left } => left.handoff.as_deref(),
            Body::Message { message, .. } => Some(message),
            Body::Ended { error, .. } => error.as_ref().map(|error| error.message.as_str()),
        }
    }
}
