//! The conversation as a fold of records: what the transcript shows and what the model is sent.
//!
//! The turn loop feeds it the same records a resume reads back, so a resumed session asks the model
//! exactly what an uninterrupted one would.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loon_api::event::{EffectStatus, SubagentFinished, SubagentStarted};
use loon_api::{
    AgentEvent, Cost, EffectKey, FileChange, FileRead, Item, ItemBody, ItemId, Mode, ToolCallItem,
    TurnNumber, Usage, WorkingRecord,
};

mod ending;
mod given;
mod messages;
mod receipts;
mod shorten;
mod units;

use self::ending::Ending;
pub(crate) use self::given::Given;
pub(crate) use self::messages::{Compacted, Cuts, UNKNOWN_OUTCOME, Window, step_of};
use self::receipts::Receipts;
pub(crate) use self::shorten::without_middle;

/// Everything a session knows of its past.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    items: Vec<Item>,
    place: HashMap<ItemId, usize>,
    last_turn: TurnNumber,
    open_turn: Option<TurnNumber>,
    queued: Vec<Queued>,
    model: Option<String>,
    mode: Option<Mode>,
    ultra_loop: Option<bool>,
    title: Option<String>,
    usage: Usage,
    cost: Cost,
    request_tokens: Option<u64>,
    turns: u32,
    user_calls: u32,
    record: Arc<WorkingRecord>,
    /// Compactions, oldest first.
    compactions: Vec<ItemId>,
    /// The working record as it stood before each message of the user and each compaction.
    records_before: HashMap<ItemId, Arc<WorkingRecord>>,
    past: Past,
    children: Vec<KnownChild>,
    receipts: Receipts,
    ending: Ending,
    /// At least so many of the newest items are kept; absent keeps all.
    keep: Option<usize>,
    /// Older items were left out.
    cut: bool,
}

/// What calls did that later calls must know of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// Hashes of files as the model saw them last, by absolute path.
    pub reads: HashMap<PathBuf, String>,
    /// Changes of files, oldest first, each with the call that made it.
    pub changes: Vec<(EffectKey, FileChange)>,
    /// The folder that paths of changes begin at.
    cwd: PathBuf,
}

impl Past {
    fn take(&mut self, key: &EffectKey, call: &ToolCallItem) {
        for FileRead { path, sha256 } in &call.reads {
            self.reads.insert(self.cwd.join(path), sha256.clone());
        }
        for change in &call.changes {
            let path = self.cwd.join(change.real_path());
            match &change.after {
                Some(after) if wrote(change) => self.reads.insert(path, after.clone()),
                _ => self.reads.remove(&path),
            };
            // The text of the diff is for people and not needed again.
            let change = FileChange { diff: String::new(), ..change.clone() };
            self.changes.push((key.clone(), change));
        }
    }
}

/// The model itself wrote what the file holds now, so it knows it. What was moved, copied or
/// brought back it may never have seen.
fn wrote(change: &FileChange) -> bool {
    change.kind.is_file()
        && change.from.is_none()
        && change.kept.is_none()
        && change.undoes.is_none()
        && !change.copied
}

/// A child of the session as far as the journal knows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KnownChild {
    pub(crate) started: SubagentStarted,
    pub(crate) finished: Option<SubagentFinished>,
    /// The model was told of its end.
    told: bool,
}

/// Words of the user that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The words.
    pub text: String,
    /// For the running turn rather than the next.
    pub steer: bool,
}

impl Conversation {
    /// A conversation that holds only the newest items, `keep` or somewhat more, so that opening a
    /// long session costs memory for what is shown. It must not be sent to a model.
    pub fn newest(keep: usize) -> Self {
        Self { keep: Some(keep), ..Self::default() }
    }

    /// Notes that texts of items were left out.
    pub(crate) fn is_lean(&mut self) {
        self.cut = true;
    }

    /// Puts an item in place of the same one without its texts. Nothing else follows from it.
    pub(crate) fn refill(&mut self, item: &Item) {
        if let Some(&index) = self.place.get(&item.id) {
            self.items[index] = item.clone();
        }
    }

    /// True if nothing of any item was left out.
    pub fn is_whole(&self) -> bool {
        !self.cut
    }

    /// Takes in one record. Passing events change nothing.
    pub fn apply(&mut self, turn: Option<TurnNumber>, event: &AgentEvent) {
        self.receipts.apply(turn, event);
        match event {
            AgentEvent::ExecutionStarted(started) => self.past.cwd = PathBuf::from(&started.cwd),
            AgentEvent::TurnStarted(started) => {
                let turn = turn.unwrap_or(self.last_turn + 1);
                self.last_turn = self.last_turn.max(turn);
                self.open_turn = Some(turn);
                self.turns += 1;
                self.model = Some(started.model.clone());
                self.mode = Some(started.mode);
            }
            AgentEvent::TurnFinished(_) => {
                self.open_turn = None;
                // Steering that came too late for its turn leads the next one.
                self.queued.iter_mut().for_each(|queued| queued.steer = false);
            }
            AgentEvent::ItemCompleted(completed) => self.upsert(&completed.item),
            AgentEvent::PromptQueued(queued) => {
                self.queued.push(Queued { text: queued.text.clone(), steer: queued.steer });
            }
            AgentEvent::QueueReturned(_) => self.queued.clear(),
            AgentEvent::PromptBlocked(blocked) => self.forget_queued(&blocked.text),
            AgentEvent::ModeChanged(changed) => self.mode = Some(changed.mode),
            AgentEvent::UltraLoopChanged(changed) => self.ultra_loop = Some(changed.on),
            AgentEvent::ModelChanged(changed) => self.model = Some(changed.model.clone()),
            AgentEvent::SessionRewound(rewound) => {
                self.rewind(&rewound.to);
                self.record = Arc::new(rewound.record.clone());
            }
            AgentEvent::RecordChanged(changed) => {
                Arc::make_mut(&mut self.record).apply(&changed.change);
            }
            AgentEvent::EffectFinished(finished) if finished.key.is_aside() => {
                self.charge_summary(finished.usage, finished.cost);
            }
            AgentEvent::EffectFinished(finished) => {
                if finished.status == EffectStatus::Unknown {
                    self.ending.note_unknown(&finished.key);
                }
                self.charge(finished.usage, finished.cost);
            }
            AgentEvent::ExecutionCancelled(cancelled) => self.end(cancelled),
            AgentEvent::ContextCompacted(compacted) => {
                let turn = turn.unwrap_or(self.last_turn);
                let body = ItemBody::Compaction(compacted.compaction.clone());
                self.upsert(&Item { id: compacted.item.clone(), turn, body });
            }
            AgentEvent::SubagentStarted(started) => {
                let started = started.clone();
                self.children.push(KnownChild { started, finished: None, told: false });
            }
            AgentEvent::SubagentFinished(finished) => self.take_child(finished),
            AgentEvent::SessionForked(_) => self.begin_anew(),
            _ => {}
        }
    }

    /// What was spent, what waits and who is at work before a fork belongs to the session it came from.
    fn begin_anew(&mut self) {
        self.usage = Usage::default();
        self.cost = Cost::default();
        self.queued.clear();
        self.children.retain(|child| child.finished.is_some());
    }

    /// Counts what one effect used. The gate records it; the turn loop, which is handed the same
    /// numbers, counts it here.
    pub(crate) fn charge(&mut self, usage: Usage, cost: Cost) {
        self.usage += usage;
        self.cost += cost;
        if let Some(input) = usage.input_tokens {
            self.request_tokens = Some(input.saturating_add(usage.output_tokens.unwrap_or(0)));
        }
    }

    /// Counts what a summary used. It says nothing of the size of the conversation.
    pub(crate) fn charge_summary(&mut self, usage: Usage, cost: Cost) {
        self.usage += usage;
        self.cost += cost;
    }

    fn take_child(&mut self, finished: &SubagentFinished) {
        self.usage += finished.usage;
        self.cost += finished.cost;
        let mut children = self.children.iter_mut();
        if let Some(child) = children.find(|child| child.started.child == finished.child) {
            child.finished = Some(finished.clone());
            // The call that waited for it has its report as result.
            child.told = !child.started.background;
        }
    }

    /// Children of the session, oldest first. A rewind takes nothing of them back.
    pub(crate) fn children(&self) -> &[KnownChild] {
        &self.children
    }

    /// Ends of children that the model was not told of.
    pub(crate) fn untold_reports(&self) -> Vec<SubagentFinished> {
        let untold = self.children.iter().filter(|child| !child.told);
        untold.filter_map(|child| child.finished.clone()).collect()
    }

    fn upsert(&mut self, item: &Item) {
        self.last_turn = self.last_turn.max(item.turn);
        if let ItemBody::UserMessage { text, .. } = &item.body {
            if self.title.is_none() {
                self.title = Some(title_of(text));
            }
            self.records_before.insert(item.id.clone(), Arc::clone(&self.record));
            self.forget_queued(text);
        }
        if let ItemBody::Compaction(_) = &item.body {
            self.records_before.insert(item.id.clone(), Arc::clone(&self.record));
            self.compactions.push(item.id.clone());
            self.request_tokens = None;
        }
        if let ItemBody::ToolCall(call) = &item.body {
            self.take_call(&item.id, call);
        }
        if let ItemBody::Notice { text, .. } = &item.body {
            // A report names the child's execution.
            for child in self.children.iter_mut().filter(|child| child.finished.is_some()) {
                child.told |= text.contains(&child.started.child.to_string());
            }
        }
        match self.place.get(&item.id) {
            Some(&index) => self.items[index] = item.clone(),
            None => {
                let by_user = matches!(&item.body, ItemBody::ToolCall(call) if call.by_user);
                self.user_calls += u32::from(by_user);
                self.place.insert(item.id.clone(), self.items.len());
                self.items.push(item.clone());
                self.leave_out_oldest();
            }
        }
    }

    /// These words wait no longer.
    fn forget_queued(&mut self, text: &str) {
        if let Some(first) = self.queued.iter().position(|queued| queued.text == text) {
            self.queued.remove(first);
        }
    }

    fn take_call(&mut self, id: &ItemId, call: &ToolCallItem) {
        if !call.record.is_empty() {
            let record = Arc::make_mut(&mut self.record);
            call.record.iter().for_each(|change| record.apply(change));
        }
        if let Some(key) = effect_of(id) {
            self.past.take(&key, call);
        }
    }

    /// Twice as many are let in before the older half goes, so that each item is moved once.
    fn leave_out_oldest(&mut self) {
        let Some(keep) = self.keep.filter(|keep| self.items.len() > keep * 2) else { return };
        for item in self.items.drain(..self.items.len() - keep) {
            self.records_before.remove(&item.id);
            self.compactions.retain(|id| *id != item.id);
        }
        self.cut = true;
        let ids = self.items.iter().enumerate();
        self.place = ids.map(|(index, item)| (item.id.clone(), index)).collect();
    }

    fn rewind(&mut self, to: &ItemId) {
        let index = match self.place.get(to) {
            Some(&index) => index,
            // It was left out, so everything that is here came after it.
            None if self.cut => 0,
            None => return,
        };
        for item in self.items.drain(index..) {
            self.place.remove(&item.id);
            self.records_before.remove(&item.id);
        }
        self.compactions.retain(|id| self.place.contains_key(id));
        self.request_tokens = None;
        if self.items.is_empty() {
            self.title = None;
        }
    }

    /// The visible items, oldest first.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Up to `limit` items, oldest first, that end right before `before` or at the end. The flag
    /// says that there are still older ones.
    pub fn page(&self, before: Option<&ItemId>, limit: usize) -> (Vec<Item>, bool) {
        let end = before.and_then(|id| self.place.get(id).copied()).unwrap_or(self.items.len());
        let start = end.saturating_sub(limit);
        (self.items[start..end].to_vec(), start > 0 || self.cut)
    }

    /// The item with this id.
    pub fn item(&self, id: &ItemId) -> Option<&Item> {
        self.place.get(id).map(|&index| &self.items[index])
    }

    /// Number of the newest turn, 0 before the first. Numbers are never used twice, also not after
    /// a rewind.
    pub fn last_turn(&self) -> TurnNumber {
        self.last_turn
    }

    /// The turn that has begun and not ended.
    pub fn open_turn(&self) -> Option<TurnNumber> {
        self.open_turn
    }

    /// Words that wait, oldest first.
    pub fn queued(&self) -> &[Queued] {
        &self.queued
    }

    /// Checklist, tasks, notes and goal. A rewind takes them back to where they stood.
    pub fn record(&self) -> &Arc<WorkingRecord> {
        &self.record
    }

    /// The working record as it stood before a message of the user.
    pub fn record_before(&self, id: &ItemId) -> Option<&WorkingRecord> {
        self.records_before.get(id).map(Arc::as_ref)
    }

    /// What calls did that later calls must know of. A rewind takes nothing of it back: the files
    /// are as they are.
    pub fn past(&self) -> &Past {
        &self.past
    }

    /// Number of compactions that no rewind took back.
    pub(crate) fn compactions(&self) -> u32 {
        self.compactions.len() as u32
    }

    /// Number of calls the user asked for.
    pub fn user_calls(&self) -> u32 {
        self.user_calls
    }

    /// The first call after this item, in the order in which they were made.
    pub fn first_call_after(&self, id: &ItemId) -> Option<EffectKey> {
        let start = *self.place.get(id)?;
        self.items[start..].iter().find_map(|item| match item.body {
            ItemBody::ToolCall(_) => effect_of(&item.id),
            _ => None,
        })
    }

    /// The model of the newest turn or choice.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The newest mode.
    pub fn mode(&self) -> Option<Mode> {
        self.mode
    }

    /// Whether Ultra Loop is on, if that was ever chosen.
    pub fn ultra_loop(&self) -> Option<bool> {
        self.ultra_loop
    }

    /// Folder it works in.
    pub fn cwd(&self) -> &Path {
        &self.past.cwd
    }

    /// First words of the first prompt.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Tokens used so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Money spent so far.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Turns so far.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Tokens of the last request and its answer as the provider counted them.
    pub fn request_tokens(&self) -> Option<u64> {
        self.request_tokens
    }

    /// Calls that are not final: begun or waiting when a process ended.
    pub fn unfinished_calls(&self) -> Vec<Item> {
        self.items
            .iter()
            .filter(|item| match &item.body {
                ItemBody::ToolCall(call) => !call.status.is_final(),
                _ => false,
            })
            .cloned()
            .collect()
    }
}

/// The effect that a call's item stands for (`3.0.c2` is `t3/s0/c2`, `3.a1` is `t3/a1`).
pub(crate) fn effect_of(id: &ItemId) -> Option<EffectKey> {
    let (turn, rest) = id.as_str().split_once('.')?;
    if let Some(index) = rest.strip_prefix('a') {
        return Some(EffectKey::user_call(turn.parse().ok()?, index.parse().ok()?));
    }
    let (step, index) = rest.split_once(".c")?;
    Some(EffectKey::call(turn.parse().ok()?, step.parse().ok()?, index.parse().ok()?))
}

/// The first line of a prompt, at most 80 characters.
pub fn title_of(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut title: String = line.chars().take(80).collect();
    if line.chars().nth(80).is_some() {
        title.push('…');
    }
    title
}

#[cfg(test)]
mod tests;
