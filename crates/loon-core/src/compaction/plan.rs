//! Where a compaction cuts: which units are summarised, which are kept as they are, and what of them
//! is too long for any window.

use std::ops::Range;

use loon_api::{Compaction, ItemBody, ItemId};

use crate::conversation::{Conversation, Cuts, without_middle};
use crate::estimate;

/// The longest text of which something might be cut, in bytes.
const LONGEST: u64 = 1 << 22;
/// The shortest to which a text is cut, in bytes.
const SHORTEST: u64 = 256;

/// Room that the kept part may take, in estimated tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// For the newest units. The last one is kept whatever it takes.
    pub(crate) tail: u64,
    /// For that one, before its texts are cut; absent if nobody knows what would fit.
    pub(crate) newest: Option<u64>,
    /// The same for the user's newest messages.
    pub(crate) prompts: Option<u64>,
}

/// What a compaction is to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// What came before the units: an earlier handoff and messages it stood beside. Empty if nothing
    /// did.
    pub(crate) earlier: String,
    /// The units to summarise. Empty if only long texts are cut.
    pub(crate) summarised: Vec<Range<usize>>,
    /// The handoff that stays if nothing is summarised.
    pub(crate) handoff: Option<String>,
    /// The first item that stays as it is.
    pub(crate) kept_from: Option<ItemId>,
    /// Most bytes of a kept text.
    pub(crate) cut_texts: Option<u64>,
    /// Most bytes of the user's newest messages.
    pub(crate) cut_prompts: Option<u64>,
}

impl Plan {
    /// Plans for a conversation. Nothing to do gives nothing.
    pub(crate) fn of(conversation: &Conversation, room: Room) -> Option<Self> {
        let units = conversation.units();
        let end = conversation.items().len();
        let turn = conversation.prompted_turn(end);
        // The user's newest messages are sent whichever unit they stand in, and have room of their own.
        let is_prompt = |unit: &Range<usize>| {
            let item = &conversation.items()[unit.start];
            matches!(item.body, ItemBody::UserMessage { .. }) && Some(item.turn) == turn
        };
        let weight = |unit: &Range<usize>, texts: Option<u64>| {
            let cuts = Cuts { until: end, texts, prompts: None, turn };
            if is_prompt(unit) { 0 } else { conversation.weigh(unit.clone(), &cuts) }
        };
        let newest = units.last()?;
        let mut taken = weight(newest, None);
        let cut_texts = room
            .newest
            .filter(|longest| taken > *longest)
            .map(|longest| longest_that_fits(longest, |bytes| weight(newest, Some(bytes))));
        taken = taken.min(room.tail);
        let mut kept = units.len() - 1;
        while let Some(before) = kept.checked_sub(1) {
            taken += weight(&units[before], None);
            if taken > room.tail {
                break;
            }
            kept = before;
        }
        let prompts = conversation.prompts_of(turn, end);
        let prompts_of = |limit: u64| -> u64 {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            prompts.iter().map(|prompt| estimate::text(&without_middle(prompt, limit))).sum()
        };
        let cut_prompts = room
            .prompts
            .filter(|longest| prompts_of(u64::MAX) > *longest)
            .map(|longest| longest_that_fits(longest, prompts_of));
        let mut summarised = units[..kept].to_vec();
        if summarised.iter().all(is_prompt) {
            summarised.clear();
        }
        if summarised.is_empty() && cut_texts.is_none() && cut_prompts.is_none() {
            return None;
        }
        let former = conversation.newest_compaction();
        let handoff = former.as_ref().and_then(|former| former.left.handoff.clone());
        let earlier = former.map(|former| {
            let start = conversation.first_kept(&former);
            let prompted = conversation.prompted_turn(former.at);
            earlier_text(former.left, &conversation.prompts_of(prompted, start))
        });
        Some(Self {
            earlier: earlier.unwrap_or_default(),
            summarised,
            handoff,
            kept_from: units.get(kept).map(|unit| conversation.items()[unit.start].id.clone()),
            cut_texts,
            cut_prompts,
        })
    }
}

fn earlier_text(left: &Compaction, prompts: &[&str]) -> String {
    let handoff = left.handoff.iter().map(|handoff| format!("[earlier handoff]\n{handoff}\n\n"));
    let prompts = prompts.iter().map(|prompt| format!("[user]\n{prompt}\n\n"));
    handoff.chain(prompts).collect()
}

/// The longest limit, in bytes, under which `weight` stays within `room`.
fn longest_that_fits(room: u64, weight: impl Fn(u64) -> u64) -> u64 {
    let mut bytes = LONGEST;
    while bytes > SHORTEST && weight(bytes) > room {
        bytes /= 2;
    }
    bytes
}
