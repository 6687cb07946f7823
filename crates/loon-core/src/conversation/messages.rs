//! The conversation as a model is sent it.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use loon_api::{
    AnsweredCall, AssistantMessage, AssistantPart, Compaction, ContextParts, Guidance, Item,
    ItemBody, ItemId, Message, Thinking, ToolCallItem, ToolCallStatus, ToolResult, TurnNumber,
    UserPart, WorkingRecord,
};

use super::Conversation;
use super::shorten::{value_without_middles, without_middle};
use crate::estimate::{self, PER_CALL, PER_IMAGE, PER_MESSAGE};
use crate::shown_record::{ShownRecord, whole_text};

/// What the model reads of a call that was cut off with its process.
pub(crate) const UNKNOWN_OUTCOME: &str = "The process ended while this call was running. Whether \
                                          it took effect is unknown; check before you repeat it.";

/// What the model reads before a handoff.
const HANDOFF: &str = "The conversation before this point was compacted to save room. It came to \
                       this, in your own words:";

/// A conversation as it is sent, and what it is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Window {
    /// The messages.
    pub(crate) messages: Vec<Message>,
    /// Their size in estimated tokens.
    pub(crate) parts: ContextParts,
}

/// A compaction and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Compacted<'a> {
    /// Number of items it stands behind.
    pub(crate) at: usize,
    /// What it left.
    pub(crate) left: &'a Compaction,
    /// The working record as it stood then.
    pub(crate) record: Arc<WorkingRecord>,
}

/// How items before a compaction are sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cuts {
    /// Number of items it holds for.
    pub(crate) until: usize,
    /// Most bytes of a text.
    pub(crate) texts: Option<u64>,
    /// Most bytes of a message of the user in `turn`.
    pub(crate) prompts: Option<u64>,
    /// The turn whose messages of the user are not to be lost.
    pub(crate) turn: Option<TurnNumber>,
}

impl Conversation {
    /// The messages of the next request: the conversation, ended so that a model has something to
    /// answer.
    pub fn request_messages(&self) -> Vec<Message> {
        self.request_window().messages
    }

    /// The same with what they weigh.
    pub(crate) fn request_window(&self) -> Window {
        let mut window = self.window();
        let waits_for_answer = match window.messages.last() {
            Some(Message::User(_)) => true,
            Some(Message::Assistant(answer)) => {
                answer.parts.iter().any(|part| matches!(part, AssistantPart::Call(_)))
            }
            None => false,
        };
        if !waits_for_answer {
            let go_on = UserPart::Text("Go on.".to_owned());
            window.messages.push(Message::User(vec![go_on]));
        }
        window
    }

    /// The conversation as a model is sent it. A call without a recorded result gets one that says
    /// so: no request can hold an orphan. The working record as it stood when a turn began stands
    /// before the turn's first words, if it differs from what stood there last; it is the same text
    /// in all later requests, so that caches keep what follows it. What a compaction left stands in
    /// place of what it replaced.
    pub fn messages(&self) -> Vec<Message> {
        self.window().messages
    }

    pub(crate) fn window(&self) -> Window {
        self.window_after(self.newest_compaction().as_ref())
    }

    /// The window as it is after `compacted`, be that recorded or only thought of.
    pub(crate) fn window_after(&self, compacted: Option<&Compacted<'_>>) -> Window {
        let mut builder = Builder::default();
        let mut start = 0;
        let mut cuts = Cuts::default();
        if let Some(compacted) = compacted {
            start = self.first_kept(compacted);
            cuts = self.cuts_of(compacted);
            self.begin_with(&mut builder, compacted, start, &cuts);
        }
        self.add(&mut builder, start..self.items.len(), &cuts);
        builder.finish()
    }

    /// What these items weigh, sent in this way.
    pub(crate) fn weigh(&self, range: Range<usize>, cuts: &Cuts) -> u64 {
        let mut builder = Builder::default();
        self.add(&mut builder, range, cuts);
        builder.finish().parts.total()
    }

    /// The newest compaction that no rewind took back.
    pub(crate) fn newest_compaction(&self) -> Option<Compacted<'_>> {
        let at = self.compactions.last().and_then(|id| self.place.get(id).copied())?;
        let item = &self.items[at];
        match &item.body {
            ItemBody::Compaction(left) => {
                let record = self.records_before.get(&item.id).cloned().unwrap_or_default();
                Some(Compacted { at, left, record })
            }
            _ => None,
        }
    }

    /// Number of the first item that is sent as it is.
    pub(crate) fn first_kept(&self, compacted: &Compacted<'_>) -> usize {
        let kept = compacted.left.kept_from.as_ref().and_then(|id| self.place.get(id).copied());
        kept.unwrap_or(compacted.at).min(compacted.at)
    }

    fn cuts_of(&self, compacted: &Compacted<'_>) -> Cuts {
        Cuts {
            until: compacted.at,
            texts: compacted.left.cut_texts,
            prompts: compacted.left.cut_prompts,
            turn: self.prompted_turn(compacted.at),
        }
    }

    /// The turn of the newest message of the user among the first `end` items.
    pub(crate) fn prompted_turn(&self, end: usize) -> Option<TurnNumber> {
        let prompt = |item: &&Item| matches!(item.body, ItemBody::UserMessage { .. });
        self.items[..end].iter().rev().find(prompt).map(|item| item.turn)
    }

    /// Messages of the user in a turn among the first `end` items.
    pub(crate) fn prompts_of(&self, turn: Option<TurnNumber>, end: usize) -> Vec<&str> {
        let of_turn = self.items[..end].iter().filter(|item| Some(item.turn) == turn);
        of_turn
            .filter_map(|item| match &item.body {
                ItemBody::UserMessage { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// What stands in place of the items before `start`.
    fn begin_with(
        &self,
        builder: &mut Builder,
        compacted: &Compacted<'_>,
        start: usize,
        cuts: &Cuts,
    ) {
        if let Some(handoff) = &compacted.left.handoff {
            let text = format!("{HANDOFF}\n\n{handoff}");
            builder.push_user(&text, |parts| &mut parts.handoff);
        }
        if let Some(text) = whole_text(&compacted.record) {
            builder.push_user(&text, |parts| &mut parts.record);
        }
        builder.shown = ShownRecord::showing(&compacted.record);
        for skill in &compacted.left.skills {
            builder.push_user(skill, |parts| &mut parts.skills);
        }
        if !compacted.left.running.is_empty() {
            let lines = compacted.left.running.join("\n");
            let text = format!("Running when the conversation was compacted:\n{lines}");
            builder.push_user(&text, |parts| &mut parts.handoff);
        }
        for prompt in self.prompts_of(cuts.turn, start) {
            let prompt = cut(prompt, cuts.prompts);
            let text = format!("The user's newest message, word for word:\n\n{prompt}");
            builder.push_user(&text, |parts| &mut parts.user);
        }
    }

    fn add(&self, builder: &mut Builder, range: Range<usize>, cuts: &Cuts) {
        for (index, item) in self.items.iter().enumerate().take(range.end).skip(range.start) {
            let is_old = index < cuts.until;
            let limit = cuts.texts.filter(|_| is_old);
            let step = step_of(item);
            builder.close_other(item.turn, step);
            match (&item.body, step) {
                (ItemBody::UserMessage { text, .. }, _) => {
                    let opens_turn = item.id == ItemId::user(item.turn, 0);
                    if let Some(record) = self.records_before.get(&item.id)
                        && opens_turn
                        && !is_old
                        && let Some(record) = builder.shown.news(record)
                    {
                        builder.push_user(&record, |parts| &mut parts.record);
                    }
                    let of_turn = Some(item.turn) == cuts.turn;
                    let limit = if is_old && of_turn { cuts.prompts } else { limit };
                    builder.push_user(&cut(text, limit), |parts| &mut parts.user);
                }
                (ItemBody::Notice { text, about_call }, _) => {
                    builder.push_notice(&cut(text, limit), *about_call);
                }
                (ItemBody::ToolCall(call), None) => {
                    let result = result_of(call);
                    let text = format!("[The user ran {}.]\n{}", call.tool, result.text);
                    builder.push_user(&cut(&text, limit), |parts| &mut parts.user);
                }
                (body, Some(step)) => builder.push_answer(item.turn, step, body, limit),
                (_, None) => {}
            }
        }
    }
}

/// Puts messages together and keeps count of what they are made of.
#[derive(Default)]
struct Builder {
    window: Window,
    answer: Option<(TurnNumber, String, Vec<AssistantPart>, ContextParts)>,
    shown: ShownRecord,
}

impl Builder {
    fn finish(mut self) -> Window {
        self.close();
        let pictures = |message: &Message| match message {
            Message::User(parts) => {
                parts.iter().filter(|part| matches!(part, UserPart::Image { .. })).count()
            }
            Message::Assistant(_) => 0,
        };
        let pictures: usize = self.window.messages.iter().map(pictures).sum();
        self.window.parts.images = PER_IMAGE * pictures as u64;
        self.window
    }

    fn push_user(&mut self, text: &str, of: fn(&mut ContextParts) -> &mut u64) {
        self.close();
        let part = UserPart::Text(text.to_owned());
        let mut tokens = estimate::text(text);
        match self.window.messages.last_mut() {
            Some(Message::User(parts)) => parts.push(part),
            _ => {
                tokens += PER_MESSAGE;
                self.window.messages.push(Message::User(vec![part]));
            }
        }
        *of(&mut self.window.parts) += tokens;
    }

    /// What speaks of a call reaches the model with that call's result.
    fn push_notice(&mut self, text: &str, about_call: bool) {
        self.close();
        match self.window.messages.last_mut().and_then(last_call).filter(|_| about_call) {
            Some(call) => {
                call.result.text.extend(["\n\n[", text, "]"]);
                self.window.parts.results += estimate::text(text) + 2;
            }
            None => self.push_user(text, |parts| &mut parts.user),
        }
    }

    fn push_answer(&mut self, turn: TurnNumber, step: &str, body: &ItemBody, limit: Option<u64>) {
        let Some(part) = assistant_part(body, limit) else { return };
        let (_, _, parts, size) = self
            .answer
            .get_or_insert_with(|| (turn, step.to_owned(), Vec::new(), ContextParts::default()));
        match &part {
            AssistantPart::Text(text) => size.assistant += estimate::text(text),
            AssistantPart::Thinking(thinking) => size.thinking += thinking_size(thinking),
            AssistantPart::Call(call) => {
                size.assistant +=
                    PER_CALL + estimate::text(&call.name) + estimate::json(&call.arguments);
                size.results += estimate::text(&call.result.text);
            }
        }
        parts.push(part);
    }

    fn close_other(&mut self, turn: TurnNumber, step: Option<&str>) {
        if let Some((open_turn, open_step, ..)) = &self.answer
            && (*open_turn != turn || step != Some(open_step))
        {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some((_, _, parts, size)) = self.answer.take()
            && parts.iter().any(|part| !matches!(part, AssistantPart::Thinking(_)))
        {
            let whole = &mut self.window.parts;
            whole.assistant += size.assistant + PER_MESSAGE;
            whole.thinking += size.thinking;
            whole.results += size.results;
            self.window.messages.push(Message::Assistant(AssistantMessage { parts }));
        }
    }
}

fn cut(text: &str, limit: Option<u64>) -> std::borrow::Cow<'_, str> {
    without_middle(text, limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX))
}

/// What a provider wants back unchanged is sent too.
fn thinking_size(thinking: &Thinking) -> u64 {
    estimate::text(&thinking.text) + thinking.opaque.as_ref().map_or(0, estimate::json)
}

fn last_call(message: &mut Message) -> Option<&mut AnsweredCall> {
    match message {
        Message::Assistant(AssistantMessage { parts }) => match parts.last_mut() {
            Some(AssistantPart::Call(call)) => Some(call),
            _ => None,
        },
        Message::User(_) => None,
    }
}

fn assistant_part(body: &ItemBody, limit: Option<u64>) -> Option<AssistantPart> {
    match body {
        ItemBody::AssistantMessage { text, .. } => {
            (!text.is_empty()).then(|| AssistantPart::Text(cut(text, limit).into_owned()))
        }
        ItemBody::Thinking(thinking) => Some(AssistantPart::Thinking(thinking.clone())),
        ItemBody::ToolCall(call) => {
            let mut result = result_of(call);
            let mut arguments = call.arguments.clone();
            if let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) {
                result.text = without_middle(&result.text, limit).into_owned();
                arguments = value_without_middles(&arguments, limit);
            }
            append_guidance(&mut result.text, call, limit);
            let (id, name) = (call.call.clone(), call.tool.clone());
            Some(AssistantPart::Call(AnsweredCall { id, name, arguments, result }))
        }
        ItemBody::UserMessage { .. } | ItemBody::Notice { .. } | ItemBody::Compaction(_) => None,
    }
}

/// Adds the guidance that came with a call.
fn append_guidance(result: &mut String, call: &ToolCallItem, limit: Option<u64>) {
    for Guidance { path, scope, text, .. } in call.guidance_given() {
        // Writing to a string cannot fail.
        let _ = match text {
            Some(text) => write!(
                result,
                "\n\n[Instructions of this repository for {scope} ({path}), from now on:]\n\
                 {}\n[End of {path}]",
                cut(text, limit)
            ),
            None => write!(result, "\n\n[{path}: see another call of this answer]"),
        };
    }
}

pub(super) fn result_of(call: &ToolCallItem) -> ToolResult {
    match (&call.result, call.status) {
        (Some(result), _) => result.clone(),
        (None, ToolCallStatus::Unknown) => ToolResult::error(UNKNOWN_OUTCOME),
        (None, _) => ToolResult::error("This call was not made."),
    }
}

/// The `turn.step` part of an item's id, for items that belong to an answer.
pub(crate) fn step_of(item: &Item) -> Option<&str> {
    match &item.body {
        ItemBody::UserMessage { .. } | ItemBody::Notice { .. } | ItemBody::Compaction(_) => None,
        ItemBody::ToolCall(call) if call.by_user => None,
        _ => item.id.as_str().rsplit_once('.').map(|(step, _)| step),
    }
}
