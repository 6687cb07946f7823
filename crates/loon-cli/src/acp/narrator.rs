//! From events to what a client is told of a session, and the same for its past.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Cost as ToldCost, MessageId, Notice as ToldNotice, NoticeSeverity,
    Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, ToolCall, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, UsageUpdate,
};
use loon_api::event::{DeltaKind, ItemDelta, NoticeLevel};
use loon_api::{
    AgentEvent, ApprovalId, ChecklistStep, Cost, ErrorInfo, Item, ItemBody, ItemId, Receipt,
    RecordChange, ToolCallItem, WorkStatus,
};
use tokio::time::Instant;

use super::handshake::Client;
use super::live::LiveOutput;
use super::permission;
use super::text::remark;
use super::tool_call;
use crate::safe::plain;

/// Tells the events of one session.
pub(super) struct Narrator {
    client: Client,
    cwd: PathBuf,
    /// Bytes of messages and thoughts that were told while they arrived.
    streamed: HashMap<ItemId, usize>,
    /// Calls that were told of and have not ended.
    calls: HashSet<ItemId>,
    live: LiveOutput,
    remarks: u64,
    window: Option<(u64, u64)>,
    cost: Cost,
}

impl Narrator {
    /// Tells of a session in this folder.
    pub(super) fn new(client: Client, cwd: PathBuf) -> Self {
        Self {
            client,
            cwd,
            streamed: HashMap::new(),
            calls: HashSet::new(),
            live: LiveOutput::default(),
            remarks: 0,
            window: None,
            cost: Cost::default(),
        }
    }

    /// What there is to tell of an event.
    pub(super) fn tell(&mut self, event: &AgentEvent) -> Vec<SessionUpdate> {
        match event {
            AgentEvent::ItemStarted(started) => match &started.item.body {
                ItemBody::ToolCall(call) => vec![self.call(&started.item, call)],
                _ => Vec::new(),
            },
            AgentEvent::ItemDelta(delta) => self.delta(delta).into_iter().collect(),
            AgentEvent::ItemDropped(dropped) => self.dropped(&dropped.item),
            AgentEvent::ItemCompleted(completed) => self.item(&completed.item),
            AgentEvent::ApprovalRequested(asked) if !permission::is_own(&asked.approval.id) => {
                let (approval, cwd) = (&asked.approval, &self.cwd);
                let update = ToolCallUpdate::new(
                    permission::call_id(approval),
                    permission::fields(approval, cwd),
                );
                // It has a title, so it is a whole call.
                ToolCall::try_from(update).map(SessionUpdate::ToolCall).into_iter().collect()
            }
            AgentEvent::ApprovalResolved(resolved) if !permission::is_own(&resolved.approval) => {
                vec![child_answered(&resolved.approval, resolved.decision)]
            }
            AgentEvent::EffectRetried(retried) => {
                let seconds = retried.delay_ms as f64 / 1000.0;
                let words = format!("{} Trying again in {seconds} s.", retried.error.message);
                vec![self.remark(NoticeLevel::Warning, &words)]
            }
            AgentEvent::EffectRerouted(rerouted) => {
                vec![self.remark(NoticeLevel::Warning, &rerouted.words())]
            }
            AgentEvent::CircuitChanged(changed) => {
                let words = changed.words();
                words.map(|words| self.remark(NoticeLevel::Warning, &words)).into_iter().collect()
            }
            AgentEvent::ContextCompacted(compacted) => {
                vec![self.remark(NoticeLevel::Info, &compaction_words(&compacted.compaction))]
            }
            AgentEvent::CompactionFailed(failed) => {
                let words = format!("The context was not compacted. {}", failed.error.message);
                vec![self.remark(NoticeLevel::Warning, &words)]
            }
            AgentEvent::Notice(notice) => {
                let lines = std::iter::once(&notice.message).chain(&notice.hints);
                let words: Vec<&str> = lines.map(String::as_str).collect();
                vec![self.remark(notice.level, &words.join("\n"))]
            }
            AgentEvent::TurnFinished(turn) => {
                let line = turn.receipt.as_ref().and_then(Receipt::line);
                // Beside the answer it is worth a word, in it it would be taken for the model's.
                let line = line.filter(|_| self.client.notices);
                line.map(|line| self.remark(NoticeLevel::Info, &line)).into_iter().collect()
            }
            AgentEvent::ContextEstimated(estimated) => {
                self.window = estimated.capacity.map(|capacity| (estimated.tokens, capacity));
                self.usage()
            }
            AgentEvent::ResourcesUpdated(used) if used.cost != self.cost => {
                self.cost = used.cost;
                self.usage()
            }
            _ => Vec::new(),
        }
    }

    /// What there is to tell of an item of the past, or of one that is whole now.
    pub(super) fn item(&mut self, item: &Item) -> Vec<SessionUpdate> {
        match &item.body {
            ItemBody::UserMessage { text, .. } => {
                vec![SessionUpdate::UserMessageChunk(chunk(&item.id, text))]
            }
            ItemBody::AssistantMessage { text, .. } => {
                let rest = self.rest_of(&item.id, text);
                rest.map(|rest| SessionUpdate::AgentMessageChunk(chunk(&item.id, rest)))
                    .into_iter()
                    .collect()
            }
            ItemBody::Thinking(thinking) => {
                let rest = self.rest_of(&item.id, &thinking.text);
                rest.map(|rest| SessionUpdate::AgentThoughtChunk(chunk(&item.id, rest)))
                    .into_iter()
                    .collect()
            }
            ItemBody::ToolCall(call) => {
                let mut updates = vec![self.call(item, call)];
                updates.extend(new_checklist(call).map(plan));
                updates
            }
            ItemBody::Notice { text, about_call: false } => {
                vec![self.remark(NoticeLevel::Info, text)]
            }
            // It reaches the model with the result of a call, which shows it.
            ItemBody::Notice { about_call: true, .. } => Vec::new(),
            ItemBody::Compaction(compaction) => {
                vec![self.remark(NoticeLevel::Info, &compaction_words(compaction))]
            }
        }
    }

    /// A remark of Loom that is not the model's.
    pub(super) fn remark(&mut self, level: NoticeLevel, words: &str) -> SessionUpdate {
        let words = plain(words.trim());
        if self.client.notices {
            let (title, more) = words.split_once('\n').unwrap_or((&words, ""));
            let severity = match level {
                NoticeLevel::Info => NoticeSeverity::Info,
                NoticeLevel::Warning => NoticeSeverity::Warning,
            };
            let more = (!more.is_empty()).then(|| more.to_owned());
            return SessionUpdate::Notice(ToldNotice::new(severity, title).description(more));
        }
        self.remarks += 1;
        let id = MessageId::new(format!("loom-{}", self.remarks));
        let content = ContentBlock::from(remark(&words));
        SessionUpdate::AgentMessageChunk(ContentChunk::new(content).message_id(id))
    }

    /// The same for an error, with what to do about it.
    pub(super) fn error(&mut self, error: &ErrorInfo) -> SessionUpdate {
        let lines: Vec<&str> =
            std::iter::once(&error.message).chain(&error.hints).map(String::as_str).collect();
        self.remark(NoticeLevel::Warning, &lines.join("\n"))
    }

    /// When live output is to be told next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.live.next_due()
    }

    /// The live output that is to be told now.
    pub(super) fn tell_due(&mut self, now: Instant) -> Vec<SessionUpdate> {
        let due = self.live.take_due(now).into_iter();
        due.map(|(item, text)| {
            let fields = ToolCallUpdateFields::new().content(vec![tool_call::output(&text)]);
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(item.as_str().to_owned(), fields))
        })
        .collect()
    }

    fn call(&mut self, item: &Item, call: &ToolCallItem) -> SessionUpdate {
        let is_new = self.calls.insert(item.id.clone());
        if call.status.is_final() {
            self.live.forget(&item.id);
            self.calls.remove(&item.id);
        }
        if is_new {
            return SessionUpdate::ToolCall(tool_call::whole(item, call, &self.cwd));
        }
        let fields = tool_call::fields(call, &self.cwd);
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(item.id.as_str().to_owned(), fields))
    }

    fn delta(&mut self, delta: &ItemDelta) -> Option<SessionUpdate> {
        let ItemDelta { item, of, text } = delta;
        match of {
            DeltaKind::Text | DeltaKind::Thinking => {
                *self.streamed.entry(item.clone()).or_default() += text.len();
                let chunk = chunk(item, text);
                Some(if *of == DeltaKind::Text {
                    SessionUpdate::AgentMessageChunk(chunk)
                } else {
                    SessionUpdate::AgentThoughtChunk(chunk)
                })
            }
            DeltaKind::Output => {
                self.live.push(item, text, Instant::now());
                None
            }
            DeltaKind::Arguments => None,
        }
    }

    /// What was told of an item that does not come cannot be taken back, so it is said.
    fn dropped(&mut self, item: &ItemId) -> Vec<SessionUpdate> {
        self.live.forget(item);
        if self.calls.remove(item) {
            let fields = ToolCallUpdateFields::new()
                .status(ToolCallStatus::Failed)
                .content(vec!["The answer broke off; the call was not made.".into()]);
            let id = item.as_str().to_owned();
            return vec![SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))];
        }
        let told = self.streamed.remove(item).is_some();
        let is_text = item.as_str().split('.').any(|part| part.starts_with('m'));
        if told && is_text {
            let words = "The answer above broke off and does not count.";
            return vec![self.remark(NoticeLevel::Warning, words)];
        }
        Vec::new()
    }

    /// The part of a text that was not told while it arrived.
    fn rest_of<'a>(&mut self, item: &ItemId, text: &'a str) -> Option<&'a str> {
        let told = self.streamed.remove(item).unwrap_or(0);
        text.get(told..).filter(|rest| !rest.is_empty())
    }

    /// How full the window is, and what was spent, where both sides of it are known.
    fn usage(&self) -> Vec<SessionUpdate> {
        let Some((tokens, capacity)) = self.window else { return Vec::new() };
        let Cost { usd, unpriced } = self.cost;
        let known = unpriced == 0 && usd != loon_api::Money::ZERO;
        let amount = usd.to_string().parse().ok().filter(|_| known);
        let cost = amount.map(|amount: f64| ToldCost::new(amount, "USD"));
        vec![SessionUpdate::UsageUpdate(UsageUpdate::new(tokens, capacity).cost(cost))]
    }
}

fn chunk(item: &ItemId, text: &str) -> ContentChunk {
    let id = MessageId::new(item.as_str());
    ContentChunk::new(ContentBlock::from(plain(text))).message_id(id)
}

fn compaction_words(compaction: &loon_api::Compaction) -> String {
    format!(
        "The context was compacted: about {} to {} tokens.",
        compaction.tokens_before, compaction.tokens_after
    )
}

fn child_answered(approval: &ApprovalId, decision: loon_api::event::Decision) -> SessionUpdate {
    let status = match decision {
        loon_api::event::Decision::Approved => ToolCallStatus::Completed,
        _ => ToolCallStatus::Failed,
    };
    let fields = ToolCallUpdateFields::new().status(status);
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(approval.as_str().to_owned(), fields))
}

/// The checklist as the call leaves it, if it changed it.
fn new_checklist(call: &ToolCallItem) -> Option<&[ChecklistStep]> {
    call.record.iter().rev().find_map(|change| match change {
        RecordChange::Checklist { steps } => Some(steps.as_slice()),
        _ => None,
    })
}

/// The checklist as a plan.
pub(super) fn plan(steps: &[ChecklistStep]) -> SessionUpdate {
    let entries = steps.iter().map(|step| {
        let status = match step.status {
            WorkStatus::Pending => PlanEntryStatus::Pending,
            WorkStatus::InProgress => PlanEntryStatus::InProgress,
            WorkStatus::Completed => PlanEntryStatus::Completed,
        };
        PlanEntry::new(plain(&step.step), PlanEntryPriority::Medium, status)
    });
    SessionUpdate::Plan(Plan::new(entries.collect()))
}

#[cfg(test)]
mod tests;
