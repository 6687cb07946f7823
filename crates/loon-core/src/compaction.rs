//! Compaction: the older part of a conversation gives way to a handoff that the serving model wrote,
//! before the window is full, when it was fuller than anybody knew, or when the user asks.
//!
//! Nothing is taken out of the journal or the transcript. One record says from where on items are
//! still sent and what stands in place of the others; the fold makes requests from it. What must not
//! be lost in words is never summarised: system text, guidance, working record, skills, loaded tools
//! and the user's newest messages are sent from their own sources.

mod asked;
mod chunks;
mod gauge;
mod hooks;
mod named_limit;
mod plan;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{CompactionFailed, ContextCompacted};
use loon_api::{
    At, Compaction, ContextParts, Cost, ErrorCode, ErrorInfo, ItemId, ModelInfo, ModelRequest,
    TurnNumber, Usage,
};
use loon_kernel::{EffectFailure, Route};
use tokio_util::sync::CancellationToken;

pub(crate) use self::gauge::Gauge;
use self::plan::{Plan, Room};
use self::summary::Work;
use crate::conversation::{Compacted, without_middle};
use crate::estimate;
use crate::runtime::RuntimeError;
use crate::session::Session;
use crate::turn::sentence;

/// How long nobody tries by himself after a failure.
const PAUSE: Duration = Duration::from_mins(1);
/// Failures of one turn after which it does not try again.
const MOST_FAILURES: u32 = 2;

/// Who wants a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The user, who may have said what matters.
    Asked(Option<String>),
    /// The next request would pass the threshold.
    Full,
    /// The provider found a request too long, so often before that the step was answered.
    Overflow(u32),
}

/// A compaction that the user asked for and that has not begun.
pub(crate) struct Asked {
    /// What matters.
    pub(crate) focus: Option<String>,
}

/// What a session knows of its context window beyond the conversation.
#[derive(Default)]
pub(crate) struct ContextKeeper {
    /// A compaction the user asked for.
    pub(crate) asked: Option<Asked>,
    /// Stops the compaction that runs outside of a turn.
    cancel: Option<CancellationToken>,
    /// When an automatic one failed last.
    failed: Option<At>,
    /// Failures of automatic ones in a turn.
    failures: (TurnNumber, u32),
    /// A pass that stayed above the threshold came to this size; a new one must have more to gain.
    floor: Option<u64>,
    /// How often the running step was too long for the provider, and in which turn.
    overflows: (TurnNumber, u32),
    /// A size that a model's provider found too long.
    overflowed: Option<Of<u64>>,
    /// Limits that providers named when a request was too long, by model.
    named: BTreeMap<String, u64>,
    /// What the bytes of the last request came to.
    sent: u64,
    /// How far that was off.
    scale: Option<Of<f64>>,
}

/// What was learned of one model, which says nothing of the others of a combo.
struct Of<T> {
    model: String,
    value: T,
}

impl<T: Copy> Of<T> {
    fn known(this: Option<&Self>, model: &str) -> Option<T> {
        this.filter(|this| this.model == model).map(|this| this.value)
    }
}

impl ContextKeeper {
    /// A request was made of these parts.
    pub(crate) fn note_request(&mut self, raw: &ContextParts) {
        self.sent = raw.total();
    }

    /// The provider of this model counted the input of the last request.
    pub(crate) fn note_usage(&mut self, usage: Usage, model: &str) {
        if let Some(counted) = usage.input_tokens.filter(|_| self.sent > 0) {
            let value = gauge::scale_of(self.sent, counted);
            self.scale = Some(Of { model: model.to_owned(), value });
        }
    }

    /// The last request was too long for this model, as its server says.
    fn note_too_long(&mut self, model: &str, words: &str) {
        self.note_named_limit(model, words);
        let scale = Of::known(self.scale.as_ref(), model).unwrap_or(1.0);
        let sent = gauge::scaled(self.sent, scale);
        let former = Of::known(self.overflowed.as_ref(), model).unwrap_or(u64::MAX);
        self.overflowed = Some(Of { model: model.to_owned(), value: former.min(sent) });
    }

    /// Remembers the limit that a server names for this model, if it does.
    fn note_named_limit(&mut self, model: &str, words: &str) {
        if let Some(limit) = named_limit::read(words, model) {
            self.named.insert(model.to_owned(), limit);
        }
    }

    /// Most tokens of a request, from what this model's provider found too long.
    fn learned(&self, model: &str) -> Option<u64> {
        let found = Of::known(self.overflowed.as_ref(), model).map(|tokens| tokens / 10 * 9);
        [found, self.named.get(model).copied()].into_iter().flatten().min()
    }

    /// The running step of this turn was too long. Gives how often it was before.
    fn note_overflow(&mut self, turn: TurnNumber) -> u32 {
        let before = if self.overflows.0 == turn { self.overflows.1 } else { 0 };
        self.overflows = (turn, before + 1);
        before
    }

    /// A step was answered.
    pub(crate) fn note_answer(&mut self) {
        self.overflows.1 = 0;
    }

    /// Another model has another window, another tokenizer and other faults.
    pub(crate) fn forget_model(&mut self) {
        *self = Self {
            asked: self.asked.take(),
            cancel: self.cancel.take(),
            named: std::mem::take(&mut self.named),
            ..Self::default()
        };
    }

    /// A compaction runs outside of a turn.
    pub(crate) fn is_compacting(&self) -> bool {
        self.cancel.is_some()
    }

    pub(crate) fn stop(&self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }

    /// An automatic compaction may be tried.
    fn may_try(&self, turn: TurnNumber, now: At) -> bool {
        let paused = self.failed.is_some_and(|failed| now.since(failed) < PAUSE);
        !paused && (self.failures.0 != turn || self.failures.1 < MOST_FAILURES)
    }

    /// There is something to gain since the last pass.
    fn has_grown(&self, tokens: u64) -> bool {
        self.floor.is_none_or(|floor| tokens > floor + floor / 10)
    }

    fn note_failure(&mut self, turn: TurnNumber, now: At) {
        self.failed = Some(now);
        let former = if self.failures.0 == turn { self.failures.1 } else { 0 };
        self.failures = (turn, former + 1);
    }
}

/// Why there is no compaction.
enum Failure {
    /// There is nothing that could be left out.
    Nothing,
    /// It was tried.
    Failed(ErrorInfo),
}

impl Session {
    /// How full the window is with a request of these parts.
    pub(crate) fn gauge(&self, raw: &ContextParts, model: Option<&ModelInfo>) -> Gauge {
        let total = raw.total().max(1);
        let name = model.map_or("", |model| &model.name);
        let scale = match &self.context.scale {
            scale @ Some(_) => Of::known(scale.as_ref(), name).unwrap_or(1.0),
            None => {
                // Nothing was counted since the session was opened: what was counted before holds.
                let counted = self.conversation.request_tokens().unwrap_or(0);
                gauge::scale_of(total, counted.max(total))
            }
        };
        let own = self.deps.options.context;
        Gauge::read(*raw, scale, model, own, self.context.learned(name))
    }

    /// The next request, after a compaction if it needs one. The error ends the turn.
    pub(crate) async fn fitting_request(
        &mut self,
        model: &Arc<Route>,
    ) -> Result<Result<ModelRequest, ErrorInfo>, RuntimeError> {
        if let Some(Asked { focus }) = self.context.asked.take()
            && let Err(error) = Box::pin(self.compact(model, Why::Asked(focus))).await?
            && ends_the_turn(&error)
        {
            return Ok(Err(error));
        }
        let (mut request, mut parts) = self.request();
        let mut gauge = self.gauge(&parts, Some(model.info()));
        let turn = self.turn_number().unwrap_or_default();
        let mut cause = None;
        if gauge.is_over_threshold()
            && self.context.has_grown(gauge.tokens)
            && self.context.may_try(turn, self.recorder.now())
        {
            match Box::pin(self.compact(model, Why::Full)).await? {
                Ok(()) => {
                    (request, parts) = self.request();
                    gauge = self.gauge(&parts, Some(model.info()));
                }
                Err(error) if ends_the_turn(&error) => return Ok(Err(error)),
                Err(error) => cause = Some(error),
            }
        }
        self.recorder.pass(self.turn_number(), gauge.event()).await;
        if gauge.is_over_limit() {
            return Ok(Err(too_long(&gauge, cause)));
        }
        self.context.note_request(&parts);
        Ok(Ok(request))
    }

    /// The provider found the last request too long: compacts for the next try, to what the model has
    /// room for that it failed at, and to less each time. A pass that gains nothing is the last. The
    /// error ends the turn.
    pub(crate) async fn compact_after_overflow(
        &mut self,
        model: &Arc<Route>,
        failure: &EffectFailure,
    ) -> Result<Result<(), ErrorInfo>, RuntimeError> {
        let overflow = &failure.error;
        let failed = failure.model.as_ref().unwrap_or(&model.info().name);
        self.context.note_too_long(failed, &overflow.message);
        let model = &Arc::new(model.led_by(failed));
        let turn = self.turn_number().unwrap_or_default();
        let before = self.context.note_overflow(turn);
        if !self.context.may_try(turn, self.recorder.now()) {
            return Ok(Err(with_ways_out(overflow.clone())));
        }
        Ok(match Box::pin(self.compact(model, Why::Overflow(before))).await? {
            Ok(()) => Ok(()),
            Err(error) if ends_the_turn(&error) => Err(error),
            Err(error) => {
                let message =
                    format!("{} {}", sentence(&overflow.message), sentence(&error.message));
                Err(with_ways_out(ErrorInfo { message, ..overflow.clone() }))
            }
        })
    }

    /// Compacts and tells how it went. Every compaction comes through here, so this is the place for
    /// what is to happen before and after one.
    async fn compact(
        &mut self,
        model: &Arc<Route>,
        why: Why,
    ) -> Result<Result<(), ErrorInfo>, RuntimeError> {
        let automatic = !matches!(why, Why::Asked(_));
        let turn = self.turn_number();
        let trigger = why.trigger();
        let made = match self.hooks_before_compaction(&why).await? {
            Ok(focus) => self.make_compaction(model, why, focus).await?,
            Err(error) => Err(Failure::Failed(error)),
        };
        match made {
            Ok(compaction) => {
                let number = turn.unwrap_or_else(|| self.conversation.last_turn());
                let item = ItemId::compaction(number, self.conversation.compactions());
                self.context.failed = None;
                let compacted = ContextCompacted { item, compaction: compaction.clone() };
                self.record(Some(number), compacted).await?;
                self.hooks_after_compaction(trigger, &compaction).await?;
                Ok(Ok(()))
            }
            Err(Failure::Nothing) => {
                let message = "There is nothing in the conversation that could be left out.";
                let error = ErrorInfo::new(ErrorCode::Conflict, message);
                if !automatic {
                    self.tell_failure(error.clone(), automatic).await?;
                }
                Ok(Err(error))
            }
            Err(Failure::Failed(error)) => {
                if automatic && !ends_the_turn(&error) {
                    let now = self.recorder.now();
                    self.context.note_failure(turn.unwrap_or_default(), now);
                }
                self.tell_failure(error.clone(), automatic).await?;
                Ok(Err(error))
            }
        }
    }

    async fn tell_failure(&self, error: ErrorInfo, automatic: bool) -> Result<(), RuntimeError> {
        let failed = CompactionFailed { error, automatic };
        self.recorder.pass(self.turn_number(), failed).await;
        Ok(())
    }

    async fn make_compaction(
        &mut self,
        model: &Arc<Route>,
        why: Why,
        focus: Option<String>,
    ) -> Result<Result<Compaction, Failure>, RuntimeError> {
        let (_, raw) = self.request();
        let before = self.gauge(&raw, Some(model.info()));
        // Of a window that nobody knows, only this much is sure: the conversation fitted so far.
        let window = before.limit.unwrap_or(before.tokens);
        let now = self.conversation.window().parts;
        let catalog = raw.skills.saturating_sub(now.skills);
        let fixed = raw.fixed() + catalog;
        if before.limit.is_some_and(|limit| gauge::scaled(fixed, before.scale) >= limit) {
            return Ok(Err(Failure::Failed(no_room(&before))));
        }
        let target = match why {
            Why::Overflow(before) => (window / 2).checked_shr(before).unwrap_or(0),
            _ => before.threshold.unwrap_or(window).min(window / 5 * 4),
        };
        // From here on in what bytes say, not in what the provider counts.
        let room = unscaled(target, before.scale).saturating_sub(fixed);
        let conversation = now.total();
        let free = before.limit.map(|limit| unscaled(limit, before.scale).saturating_sub(fixed));
        let rooms = Room {
            tail: room.min(conversation) / 4,
            newest: free.map(|free| free / 4),
            prompts: free.map(|free| free / 2),
        };
        let Some(plan) = Plan::of(&self.conversation, rooms) else {
            return Ok(Err(Failure::Nothing));
        };
        let automatic = !matches!(why, Why::Asked(_));
        let turn = self.turn.as_ref();
        let mut work = Work {
            model: Arc::clone(model),
            turn: turn.map_or_else(|| self.conversation.last_turn(), |turn| turn.number),
            cancel: turn
                .map(|turn| turn.cancel.clone())
                .or_else(|| self.context.cancel.clone())
                .unwrap_or_default(),
            focus,
            automatic,
            half: unscaled(window / 2, before.scale.max(1.0)),
            knows_window: before.limit.is_some(),
            broke: Vec::new(),
            overflow: None,
            requests: 0,
            needed: 0,
            usage: Usage::default(),
            cost: Cost::default(),
            writer: None,
        };
        let handoff = if plan.summarised.is_empty() {
            plan.handoff.clone()
        } else {
            match self.summarise(&mut work, &plan).await? {
                Ok(handoff) => Some(bounded(&handoff, room / 4)),
                Err(error) => return Ok(Err(Failure::Failed(error))),
            }
        };
        let mut compaction = Compaction {
            kept_from: plan.kept_from,
            handoff,
            skills: Vec::new(),
            running: self.running_work(),
            cut_texts: plan.cut_texts,
            cut_prompts: plan.cut_prompts,
            tokens_before: before.tokens,
            tokens_after: 0,
            requests: work.requests,
            usage: work.usage,
            cost: work.cost,
            model: work.writer.unwrap_or_else(|| model.info().name.clone()),
            automatic,
            focus: work.focus,
            at: self.recorder.now(),
        };
        let without_skills = self.parts_after(&compaction).total();
        let skills_room = room.saturating_sub(without_skills).min(room / 4);
        compaction.skills = self.active_skills(skills_room).await;
        let window = self.parts_after(&compaction);
        let after = ContextParts {
            system: raw.system,
            guidance: raw.guidance,
            tools: raw.tools,
            skills: window.skills + catalog,
            ..window
        };
        compaction.tokens_after = gauge::scaled(after.total(), before.scale);
        if compaction.tokens_after >= before.tokens - before.tokens / 20 {
            self.context.floor = Some(before.tokens);
            return Ok(Err(Failure::Failed(no_gain(before.tokens, compaction.tokens_after))));
        }
        let stays_above = before.threshold.is_some_and(|most| compaction.tokens_after > most);
        self.context.floor = stays_above.then_some(compaction.tokens_after);
        Ok(Ok(compaction))
    }

    /// What the conversation would be made of after this compaction.
    fn parts_after(&self, compaction: &Compaction) -> ContextParts {
        let compacted = Compacted {
            at: self.conversation.items().len(),
            left: compaction,
            record: Arc::clone(self.conversation.record()),
        };
        self.conversation.window_after(Some(&compacted)).parts
    }

    /// Texts of the active skills as they are now, newest first, as far as there is room. The others
    /// are named.
    async fn active_skills(&self, room: u64) -> Vec<String> {
        let names = self.conversation.record().skills.clone();
        let mut left = room;
        let mut told = Vec::new();
        let mut without_room = Vec::new();
        for (name, text) in self.skills.told(names).await.into_iter().rev() {
            let tokens = estimate::text(&text);
            if tokens <= left {
                left -= tokens;
                told.push(text);
            } else {
                without_room.push(name);
            }
        }
        if !without_room.is_empty() {
            told.push(format!(
                "Skills that were active and have no room here; load_skill gives them again: {}.",
                without_room.join(", ")
            ));
        }
        told
    }

    /// What goes on beside the conversation, a line each.
    fn running_work(&self) -> Vec<String> {
        let children = self.conversation.children().iter();
        let agents = children.filter(|child| child.finished.is_none()).map(|child| {
            let started = &child.started;
            format!("agent {} ({}): {}", started.id, started.agent, first_line(&started.task))
        });
        let of_tools = self.tools.iter().flat_map(|tool| tool.running());
        of_tools.chain(agents).collect()
    }
}

fn first_line(text: &str) -> String {
    without_middle(text.trim().lines().next().unwrap_or_default(), 200).into_owned()
}

/// A handoff that keeps to its room, whatever the model made of it.
fn bounded(handoff: &str, room: u64) -> String {
    let most = usize::try_from(room * estimate::SAFE_BYTES).unwrap_or(usize::MAX);
    without_middle(handoff, most).into_owned()
}

/// A compaction that ended so says nothing of the context, and no other request would fare better.
fn ends_the_turn(error: &ErrorInfo) -> bool {
    matches!(
        error.code,
        ErrorCode::Cancelled | ErrorCode::QuotaExceeded | ErrorCode::DeadlineExceeded
    )
}

fn unscaled(tokens: u64, scale: f64) -> u64 {
    gauge::scaled(tokens, 1.0 / scale)
}

fn no_gain(before: u64, after: u64) -> ErrorInfo {
    let message = format!(
        "Compacting gains nothing: the context would still take about {after} of {before} tokens."
    );
    ErrorInfo::new(ErrorCode::Conflict, message)
}

/// No compaction helps: what is in every request takes all there is.
fn no_room(gauge: &Gauge) -> ErrorInfo {
    let message = format!(
        "Compacting cannot help: what every request has takes the whole window of about {} tokens.",
        gauge.limit.unwrap_or_default()
    );
    ErrorInfo::new(ErrorCode::ContextOverflow, message)
}

/// The next request cannot be sent.
fn too_long(gauge: &Gauge, cause: Option<ErrorInfo>) -> ErrorInfo {
    let limit = gauge.limit.unwrap_or_default();
    let mut message = format!(
        "The next request would take about {} tokens, and at most {limit} are allowed.",
        gauge.tokens
    );
    if let Some(cause) = cause {
        message = format!("{message} {}", sentence(&cause.message));
    }
    let mut error = ErrorInfo::new(ErrorCode::ContextOverflow, message);
    let fixed = gauge.parts.fixed() + gauge.parts.skills;
    if fixed > limit / 2 {
        error = error.hint(format!(
            "System text, guidance and tools alone take about {fixed} tokens; \
             `session.tools = \"lean\"` offers fewer tools."
        ));
    }
    with_ways_out(error)
}

fn with_ways_out(error: ErrorInfo) -> ErrorInfo {
    error
        .hint("Send /compact to try again now.")
        .hint("Choose a model with a larger window with /model.")
        .hint("Go back to an earlier message with /rewind, or begin anew with /new.")
}
