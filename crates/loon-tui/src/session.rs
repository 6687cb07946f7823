//! What the screen knows of the session besides its transcript: a fold of events.

use loon_api::event::{ContextEstimated, EffectKind, SessionState};
use loon_api::{
    AgentEvent, At, Bounds, Cost, Item, ItemBody, Mode, RecordChange, SessionHolder, Task, Usage,
    WorkStatus, WorkingRecord,
};

/// A prompt that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    /// The words.
    pub(crate) text: String,
    /// For the running turn.
    pub(crate) steer: bool,
}

/// Speed of the last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    /// Output tokens.
    pub(crate) tokens: u64,
    /// Milliseconds since the request was sent.
    pub(crate) ms: u64,
    /// Counted from characters.
    pub(crate) estimated: bool,
}

/// A running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// When it began, in milliseconds of the screen's clock.
    pub(crate) since: u64,
    /// The user asked to stop it.
    pub(crate) stopping: bool,
}

/// A compaction under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacting {
    /// The request it waits for, from 1.
    pub(crate) request: u32,
    /// How many it needs.
    pub(crate) of: u32,
    /// The user asked to stop it.
    pub(crate) stopping: bool,
}

/// A request that will be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// When, in milliseconds of the screen's clock.
    pub(crate) at: u64,
    /// Why.
    pub(crate) reason: String,
}

/// The session as far as it is shown.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Folder.
    pub(crate) cwd: String,
    /// `provider/model`.
    pub(crate) model: Option<String>,
    /// Branch.
    pub(crate) branch: Option<String>,
    /// Permission mode.
    pub(crate) mode: Mode,
    /// Money so far.
    pub(crate) cost: Cost,
    /// How full the window is.
    pub(crate) context: Option<ContextEstimated>,
    /// When the newest event was made.
    pub(crate) at: Option<At>,
    /// A compaction under way.
    pub(crate) compacting: Option<Compacting>,
    /// When the context was compacted last, and from how many tokens to how many.
    pub(crate) compacted: Option<(At, u64, u64)>,
    /// Speed.
    pub(crate) meter: Option<Meter>,
    /// The running turn.
    pub(crate) turn: Option<Turn>,
    /// A retry that waits.
    pub(crate) retry: Option<Retry>,
    /// Prompts that wait.
    pub(crate) queued: Vec<Queued>,
    /// Checklist, tasks, notes and goal.
    pub(crate) record: WorkingRecord,
    /// Tokens so far.
    pub(crate) usage: Usage,
    /// Requests to models so far.
    pub(crate) requests: u64,
    /// What may be spent.
    pub(crate) bounds: Bounds,
    /// One of these bounds is reached.
    pub(crate) exceeded: bool,
    /// It is only watched: who works in it.
    pub(crate) watched: Option<SessionHolder>,
    /// Claims of completion are reviewed.
    pub(crate) ultra: bool,
    /// A review is under way: which of how many.
    pub(crate) reviewing: Option<(u32, u32)>,
    /// Moves on whenever the record or what was spent changes.
    pub(crate) revision: u64,
}

impl Session {
    /// A session as its front end finds it, in place of the `former` one.
    pub(crate) fn opened(state: &SessionState, former: &Self) -> Self {
        Self {
            cwd: state.cwd.clone(),
            model: state.model.clone(),
            branch: state.branch.clone(),
            mode: state.mode,
            cost: state.cost,
            queued: state
                .queued
                .iter()
                .map(|text| Queued { text: text.clone(), steer: false })
                .collect(),
            record: state.record.clone(),
            usage: state.usage,
            watched: state.watched.clone(),
            ultra: state.ultra,
            compacted: state.items.iter().rev().find_map(compaction_of),
            revision: former.revision + 1,
            ..Self::default()
        }
    }

    /// Takes in one event, at `now` milliseconds of the screen's clock.
    pub(crate) fn apply(&mut self, event: &AgentEvent, now: u64) {
        match event {
            AgentEvent::TurnStarted(turn) => {
                self.turn = Some(Turn { since: now, stopping: false });
                self.model = Some(turn.model.clone());
                self.mode = turn.mode;
                self.branch.clone_from(&turn.branch);
            }
            AgentEvent::RecordChanged(changed) => {
                self.change(std::slice::from_ref(&changed.change));
            }
            AgentEvent::SessionRewound(rewound) => {
                self.record.clone_from(&rewound.record);
                self.revision += 1;
            }
            AgentEvent::ItemCompleted(completed) => {
                if let ItemBody::ToolCall(call) = &completed.item.body {
                    self.change(&call.record);
                }
            }
            AgentEvent::UltraLoopChanged(changed) => self.ultra = changed.on,
            AgentEvent::ReviewStarted(started) => {
                self.reviewing = Some((started.number, started.of));
            }
            AgentEvent::ReviewFinished(_) => self.reviewing = None,
            AgentEvent::TurnFinished(_) => {
                self.turn = None;
                self.reviewing = None;
                self.compacting = None;
                self.retry = None;
            }
            AgentEvent::EffectStarted(effect) if effect.kind == EffectKind::Model => {
                self.meter = None;
                self.retry = None;
            }
            AgentEvent::EffectRetried(retry) => {
                self.meter = None;
                self.retry =
                    Some(Retry { at: now + retry.delay_ms, reason: retry.error.message.clone() });
            }
            AgentEvent::EffectRerouted(_) | AgentEvent::EffectFinished(_) => self.retry = None,
            AgentEvent::ResourcesUpdated(used) => {
                self.revision += u64::from(self.cost != used.cost || self.usage != used.usage);
                self.cost = used.cost;
                self.usage = used.usage;
                self.requests = used.requests;
                self.bounds = used.bounds;
                self.exceeded = used.exceeded;
            }
            AgentEvent::PromptQueued(prompt) => {
                self.queued.push(Queued { text: prompt.text.clone(), steer: prompt.steer });
            }
            AgentEvent::QueueReturned(returned) => {
                for text in &returned.texts {
                    self.forget_queued(text);
                }
            }
            AgentEvent::PromptBlocked(blocked) => self.forget_queued(&blocked.text),
            AgentEvent::ModeChanged(change) => self.mode = change.mode,
            AgentEvent::ModelChanged(change) => self.model = Some(change.model.clone()),
            AgentEvent::MeterUpdated(meter) => {
                self.retry = None;
                self.meter =
                    Some(Meter { tokens: meter.tokens, ms: meter.ms, estimated: meter.estimated });
            }
            AgentEvent::ContextEstimated(context) => {
                self.context = Some(context.clone());
                self.revision += 1;
            }
            AgentEvent::CompactionProgress(progress) => {
                let stopping = self.compacting.is_some_and(|compacting| compacting.stopping);
                let (request, of) = (progress.request, progress.of);
                self.compacting = Some(Compacting { request, of, stopping });
            }
            AgentEvent::CompactionFailed(_) => self.compacting = None,
            AgentEvent::ContextCompacted(compacted) => {
                let left = &compacted.compaction;
                self.compacting = None;
                self.compacted = Some((left.at, left.tokens_before, left.tokens_after));
                self.revision += 1;
            }
            _ => {}
        }
    }

    /// Nothing is at work any more.
    pub(crate) fn come_to_rest(&mut self) {
        self.turn = None;
        self.reviewing = None;
        self.retry = None;
        self.compacting = None;
    }

    /// Notes that what runs is to stop. False if nothing runs.
    pub(crate) fn stop(&mut self) -> bool {
        if let Some(turn) = &mut self.turn {
            turn.stopping = true;
        }
        if let Some(compacting) = &mut self.compacting {
            compacting.stopping = true;
        }
        self.turn.is_some() || self.compacting.is_some()
    }

    fn change(&mut self, changes: &[RecordChange]) {
        for change in changes {
            self.record.apply(change);
            self.revision += 1;
        }
    }

    /// Goal, steps, tasks or notes are there.
    pub(crate) fn has_record(&self) -> bool {
        let record = &self.record;
        record.goal.is_some()
            || !(record.steps.is_empty() && record.tasks.is_empty() && record.notes.is_empty())
    }

    /// Money or tokens were spent.
    pub(crate) fn has_spent(&self) -> bool {
        self.usage.total() > 0 || self.money_words().is_some()
    }

    /// The tokens used, with a mark where some were only estimated.
    pub(crate) fn tokens_used(&self) -> String {
        let about = if self.usage.estimated_tokens.is_some() { "~" } else { "" };
        format!("{about}{}", count_words(self.usage.total()))
    }

    /// The money spent, if any is known.
    pub(crate) fn money_words(&self) -> Option<String> {
        self.cost.words()
    }

    /// What was used of each bound that is set, and the money in any case.
    pub(crate) fn budget_words(&self) -> Vec<String> {
        let bounds = &self.bounds;
        let usd = match bounds.max_usd {
            Some(limit) => {
                let unknown = if self.cost.unpriced > 0 { "+?" } else { "" };
                let used = self.money_words().unwrap_or_else(|| format!("$0.00{unknown}"));
                Some(format!("{used} of ${limit}"))
            }
            None => self.money_words(),
        };
        let of = |used: String, limit: Option<u64>, what: &str| {
            let limit = count_words(limit?);
            Some(format!("{used} of {limit} {what}"))
        };
        let tokens = of(self.tokens_used(), bounds.max_tokens, "tokens");
        let requests = of(count_words(self.requests), bounds.max_requests, "requests");
        [usd, tokens, requests].into_iter().flatten().collect()
    }

    /// All that was spent, in a line.
    pub(crate) fn spent_words(&self) -> String {
        let mut words = self.budget_words();
        if self.bounds.max_usd.is_none() && self.money_words().is_none() {
            let none = if self.cost.unpriced > 0 { "an unknown sum" } else { "$0.00" };
            words.insert(0, none.to_owned());
        }
        if self.bounds.max_tokens.is_none() {
            words.push(format!("{} tokens", self.tokens_used()));
        }
        if self.bounds.max_requests.is_none() {
            let plural = if self.requests == 1 { "" } else { "s" };
            words.push(format!("{} request{plural}", self.requests));
        }
        words.join(", ")
    }

    /// How far the checklist has come, else the tasks.
    pub(crate) fn progress_words(&self) -> Option<String> {
        let words =
            |name: &str, all: usize, done: usize| (all > 0).then(|| format!("{name} {done}/{all}"));
        let record = &self.record;
        words("plan", record.steps.len(), steps_done(record))
            .or_else(|| words("tasks", record.tasks.len(), tasks_done(record)))
    }

    /// A prompt no longer waits.
    pub(crate) fn forget_queued(&mut self, text: &str) {
        if let Some(at) = self.queued.iter().position(|queued| queued.text == text) {
            self.queued.remove(at);
        }
    }
}

/// When a compaction was made, and from how many tokens to how many.
fn compaction_of(item: &Item) -> Option<(At, u64, u64)> {
    match &item.body {
        ItemBody::Compaction(left) => Some((left.at, left.tokens_before, left.tokens_after)),
        _ => None,
    }
}

/// Steps that are completed.
pub(crate) fn steps_done(record: &WorkingRecord) -> usize {
    record.steps.iter().filter(|step| step.status == WorkStatus::Completed).count()
}

/// Tasks that are completed.
pub(crate) fn tasks_done(record: &WorkingRecord) -> usize {
    record.tasks.iter().filter(|task| task.status == WorkStatus::Completed).count()
}

/// The tasks that `task` still waits for, as `after 2, 3`.
pub(crate) fn waits_for(record: &WorkingRecord, task: &Task) -> Option<String> {
    let open =
        |id: &&u32| record.task(**id).is_some_and(|before| before.status != WorkStatus::Completed);
    let ids: Vec<String> = task.blocked_by.iter().filter(open).map(u32::to_string).collect();
    (task.status != WorkStatus::Completed && !ids.is_empty())
        .then(|| format!("after {}", ids.join(", ")))
}

/// A count in three digits or so.
pub(crate) fn count_words(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        assert_eq!(count_words(842), "842");
        assert_eq!(count_words(41_234), "41.2k");
        assert_eq!(count_words(1_999_999), "1.9M");
    }

    #[test]
    fn a_task_waits_for_what_is_not_completed_only() {
        let task = |id: u32, status: WorkStatus, blocked_by: &[u32]| Task {
            id,
            title: String::new(),
            description: String::new(),
            status,
            blocked_by: blocked_by.to_vec(),
        };
        let mut record = WorkingRecord::default();
        for task in [
            task(1, WorkStatus::Completed, &[]),
            task(2, WorkStatus::InProgress, &[]),
            task(3, WorkStatus::Pending, &[]),
            task(4, WorkStatus::Pending, &[1, 2, 3, 9]),
        ] {
            record.apply(&RecordChange::Task { task });
        }
        assert_eq!(waits_for(&record, &record.tasks[3]).as_deref(), Some("after 2, 3"));
        assert_eq!(waits_for(&record, &record.tasks[2]), None);
    }
}
