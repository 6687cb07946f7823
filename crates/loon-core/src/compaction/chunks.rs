//! The transcript in pieces that each fit a summary request. Pieces end between units only.

use std::ops::Range;

use super::plan::Plan;
use crate::conversation::{Conversation, without_middle};
use crate::estimate::{self, SAFE_BYTES};

/// The shortest to which a piece of a unit is cut before the unit is cut as a whole, in bytes.
const SHORTEST: usize = 200;

/// The pieces to summarise, oldest first, none above `room` estimated tokens.
pub(super) fn transcript(conversation: &Conversation, plan: &Plan, room: u64) -> Vec<String> {
    let longest = usize::try_from(room * SAFE_BYTES).unwrap_or(usize::MAX);
    let earlier = without_middle(&plan.earlier, longest).into_owned();
    let units = plan.summarised.iter().map(|unit| fitting(conversation, unit, room, longest));
    packed(std::iter::once(earlier).chain(units), room)
}

/// A unit as text within `room`: its long pieces lose their middle, evenly.
fn fitting(conversation: &Conversation, unit: &Range<usize>, room: u64, longest: usize) -> String {
    let mut limit = longest;
    loop {
        let text = conversation.unit_text(unit.clone(), limit);
        if estimate::text(&text) <= room {
            return text;
        }
        if limit <= SHORTEST {
            return without_middle(&text, longest).into_owned();
        }
        limit /= 2;
    }
}

/// Partial handoffs in groups that each fit. Of two or more, at least two are in each group but the
/// last, so that folding comes to an end.
pub(super) fn groups(parts: &[String], room: u64) -> Vec<String> {
    let longest = usize::try_from(room * SAFE_BYTES / 2).unwrap_or(usize::MAX).saturating_sub(64);
    let parts = parts.iter().enumerate().map(|(index, part)| {
        format!("[part {}]\n{}\n\n", index + 1, without_middle(part.trim(), longest))
    });
    packed(parts, room)
}

fn packed(texts: impl IntoIterator<Item = String>, room: u64) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    let mut filled = 0;
    for text in texts {
        if text.is_empty() {
            continue;
        }
        // Rounding up once for each text is what the whole may be off.
        let tokens = estimate::text(&text) + 1;
        match chunks.last_mut() {
            Some(chunk) if filled + tokens <= room => {
                chunk.push_str(&text);
                filled += tokens;
            }
            _ => {
                chunks.push(text);
                filled = tokens;
            }
        }
    }
    chunks
}
