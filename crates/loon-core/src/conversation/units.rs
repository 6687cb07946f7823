//! The conversation in units that stay together: an answer with all its calls and their results, or
//! one message.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use loon_api::{Item, ItemBody};

use super::Conversation;
use super::messages::{result_of, step_of};
use super::shorten::{value_without_middles, without_middle};

impl Conversation {
    /// The units of what is sent as it is: those since the newest compaction and those it kept.
    pub(crate) fn units(&self) -> Vec<Range<usize>> {
        let start = self.newest_compaction().map_or(0, |compacted| self.first_kept(&compacted));
        let mut units: Vec<Range<usize>> = Vec::new();
        for index in start..self.items.len() {
            match units.last_mut() {
                Some(unit) if self.stays_with(index, unit) => unit.end = index + 1,
                _ => units.push(index..index + 1),
            }
        }
        units
    }

    /// The item belongs to the same answer as the unit before it, or speaks of its last call.
    fn stays_with(&self, index: usize, unit: &Range<usize>) -> bool {
        let (item, first) = (&self.items[index], &self.items[unit.start]);
        match (&item.body, step_of(item)) {
            (ItemBody::Notice { about_call: true, .. }, _) => step_of(first).is_some(),
            (_, Some(step)) => item.turn == first.turn && step_of(first) == Some(step),
            (_, None) => false,
        }
    }

    /// A unit as text for whoever summarises it, each piece cut at `limit` bytes; empty if it says
    /// nothing.
    pub(crate) fn unit_text(&self, unit: Range<usize>, limit: usize) -> String {
        let mut text = String::new();
        for item in &self.items[unit] {
            append(&mut text, item, limit);
        }
        text
    }
}

fn append(text: &mut String, item: &Item, limit: usize) {
    let cut = |words: &str| -> String {
        let cut: Cow<'_, str> = without_middle(words.trim_end(), limit);
        cut.into_owned()
    };
    let _ = match &item.body {
        ItemBody::UserMessage { text: words, .. } => writeln!(text, "[user]\n{}\n", cut(words)),
        ItemBody::AssistantMessage { text: words, .. } if words.trim().is_empty() => Ok(()),
        ItemBody::AssistantMessage { text: words, .. } => {
            writeln!(text, "[assistant]\n{}\n", cut(words))
        }
        ItemBody::Notice { text: words, .. } => writeln!(text, "[notice]\n{}\n", cut(words)),
        ItemBody::ToolCall(call) => {
            let arguments = value_without_middles(&call.arguments, limit);
            let by = if call.by_user { " by the user" } else { "" };
            let result = cut(&result_of(call).text);
            writeln!(text, "[call{by}] {} {arguments}\n[result]\n{result}\n", call.tool)
        }
        // What was thought but not said led to what was said and done.
        ItemBody::Thinking(_) | ItemBody::Compaction(_) => Ok(()),
    };
}
