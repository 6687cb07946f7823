//! What each event of the runtime changes.

use loon_api::event::{CircuitState, NoticeLevel, SubagentFinished, SubagentShown};
use loon_api::{
    AgentEvent, Command, Envelope, ErrorCode, Item, ItemBody, Receipt, RecordChange, ReviewVerdict,
    SubagentStatus, TurnStatus,
};

use crate::agents::Agents;
use crate::approval::Approvals;
use crate::budget::BudgetSheet;
use crate::event::{Action, Exit};
use crate::model::Model;
use crate::popup::{self, Kind};
use crate::session::Session;
use crate::transcript::Body;

/// Older items that are asked for at once while a place among them is looked for.
pub(super) const SOUGHT_PAGE: u32 = 400;

/// Takes in one event.
pub(super) fn apply(model: &mut Model, envelope: &Envelope) -> Vec<Action> {
    let now = model.now;
    let revision = model.session.revision;
    model.session.apply(&envelope.event, now);
    model.session.at = Some(envelope.at);
    let agents_changed = model.agents.apply(&envelope.event);
    let actions = show(model, envelope, now);
    if agents_changed {
        let agents = |popup: &&mut popup::Popup| popup.kind == Kind::Agents;
        if let Some(popup) = model.layers.iter_mut().find(agents) {
            popup.renew_rows(popup::agents::rows(&model.agents, model.glyphs));
        }
    }
    if model.session.revision != revision {
        for popup in &mut model.layers {
            match popup.kind {
                Kind::Record => {
                    popup.renew_rows(popup::record::rows(&model.session, model.glyphs));
                }
                Kind::Context => {
                    popup.renew_rows(popup::context::rows(&model.session, model.glyphs));
                }
                _ => {}
            }
        }
    }
    actions
}

fn show(model: &mut Model, envelope: &Envelope, now: u64) -> Vec<Action> {
    match &envelope.event {
        AgentEvent::SessionOpened(opened) => {
            model.session = Session::opened(&opened.session, &model.session);
            model.exec = Some(envelope.exec);
            model.agents = Agents::default();
            model.rewind = None;
            model.budget = None;
            model.opened = true;
            model.approvals.clear();
            for item in &opened.session.items {
                if let ItemBody::UserMessage { text, .. } = &item.body {
                    model.composer.keep(text);
                }
            }
            model.transcript.open(&opened.session.items, opened.session.more, now);
            let list = Action::Send(Command::ListCommands);
            return std::iter::once(list).chain(seek(model)).collect();
        }
        AgentEvent::HistoryPage(page) => {
            model.transcript.prepend(&page.items, page.more, now);
            if model.sought.as_ref().is_some_and(|(exec, _)| model.exec == Some(*exec)) {
                return seek(model);
            }
        }
        AgentEvent::ItemStarted(started) => {
            forget_queued(model, &started.item);
            model.transcript.begin(&started.item, now);
        }
        AgentEvent::ItemCompleted(completed) => {
            forget_queued(model, &completed.item);
            model.transcript.complete(&completed.item, now);
        }
        AgentEvent::ItemDelta(delta) => model.transcript.extend(&delta.item, delta.of, &delta.text),
        AgentEvent::ItemDropped(dropped) => model.transcript.drop_item(&dropped.item),
        AgentEvent::UltraLoopChanged(changed) => {
            let words = if changed.on { "Ultra Loop is on" } else { "Ultra Loop is off" };
            model.hint = Some(words.to_owned());
        }
        AgentEvent::ReviewFinished(finished) => {
            let level = match finished.review.verdict {
                ReviewVerdict::Accepted => NoticeLevel::Info,
                ReviewVerdict::Findings | ReviewVerdict::Failed => NoticeLevel::Warning,
            };
            model.transcript.say(message(level, finished.review.words()));
        }
        AgentEvent::SubagentShown(shown) => show_child(model, shown, now),
        AgentEvent::TurnFinished(turn) => {
            if let Some(text) = turn.receipt.as_ref().and_then(Receipt::details) {
                model.transcript.say(Body::Receipt { text });
            }
            if turn.status != TurnStatus::Completed {
                // What was stopped on request needs no reason.
                let error = turn.error.clone().filter(|_| turn.status != TurnStatus::Interrupted);
                model.transcript.say(Body::Ended { status: turn.status, error });
            }
        }
        // Whoever works in the session decides; here it is only told.
        AgentEvent::ApprovalRequested(request) if model.session.watched.is_some() => {
            let tool = &request.approval.tool;
            model.transcript.say(told(format!("a person is asked there whether {tool} may run")));
        }
        AgentEvent::ApprovalRequested(request) => {
            model.approvals.ask(request.approval.clone(), now);
        }
        AgentEvent::ApprovalResolved(resolved) => model.approvals.resolve(&resolved.approval, now),
        AgentEvent::BudgetReached(event) if model.session.watched.is_some() => {
            model.transcript.say(told(format!("{}; a person is asked there", event.reached)));
        }
        AgentEvent::BudgetReached(event) => {
            model.budget = Some(BudgetSheet::ask(event.reached, now));
        }
        AgentEvent::BudgetChanged(_) => {
            if model.budget.take().is_some() {
                model.hint = Some("the budget is raised".to_owned());
            }
        }
        AgentEvent::BudgetKept(_) => model.budget = None,
        AgentEvent::QueueReturned(returned) => take_back(model, &returned.texts),
        AgentEvent::PromptBlocked(blocked) => {
            take_back(model, std::slice::from_ref(&blocked.text));
        }
        AgentEvent::RecordChanged(changed) => {
            if let RecordChange::Goal { goal } = &changed.change {
                let words = if goal.is_some() { "the goal is set" } else { "there is no goal now" };
                model.hint = Some(words.to_owned());
            }
        }
        AgentEvent::RewindPreviewed(previewed) => {
            if let Some(rewind) = &mut model.rewind {
                model.hint = None;
                if let Some(command) =
                    rewind.answer(&previewed.to, previewed.detail.as_deref(), now)
                {
                    model.rewind = None;
                    return vec![Action::Send(command)];
                }
            }
        }
        AgentEvent::SessionRewound(rewound) => {
            model.rewind = None;
            model.transcript.rewind(&rewound.to);
            model.composer.set(&rewound.text);
        }
        AgentEvent::SessionsListed(listed) => {
            let rows = popup::sessions::rows(&listed.sessions, envelope.exec, envelope.at);
            fill(model, &[Kind::Sessions, Kind::AllSessions], rows);
        }
        AgentEvent::CommandsListed(listed) => {
            model.customs.clone_from(&listed.commands);
            let rows = popup::palette::rows(&listed.commands, &listed.unusable);
            if let Some(popup) = model.layers.iter_mut().find(|it| it.kind == Kind::Palette) {
                popup.renew_rows(rows);
            }
        }
        AgentEvent::CommandRefused(refused) => model.transcript.say(Body::Message {
            level: NoticeLevel::Warning,
            message: refused.error.message.clone(),
            hints: refused.error.hints.clone(),
        }),
        AgentEvent::SkillsListed(listed) => {
            fill(model, &[Kind::Skills], popup::skills::rows(listed));
        }
        AgentEvent::GuidanceListed(listed) => {
            fill(model, &[Kind::Guidance], popup::guidance::rows(listed));
        }
        AgentEvent::ModelsListed(listed) => {
            let rows = popup::models::rows(&listed.models, model.session.model.as_deref());
            fill(model, &[Kind::Models], rows);
        }
        AgentEvent::McpListed(listed) => {
            fill(model, &[Kind::Mcp], popup::mcp::rows(&listed.servers));
        }
        AgentEvent::SessionsFound(found) => {
            let asked = |popup: &&mut popup::Popup| {
                popup.kind == Kind::AllSessions && popup.filter == found.query
            };
            if let Some(popup) = model.layers.iter_mut().rev().find(asked) {
                popup.set_found(popup::sessions::found(&found.hits, &found.query, envelope.at));
            }
        }
        AgentEvent::SessionHeld(held) if held.session == envelope.exec => {
            let message = match &held.from {
                Some(from) => {
                    format!("{} took this session over from {}", held.holder.words, from.words)
                }
                None => format!("{} works in this session now", held.holder.words),
            };
            model.session.watched = Some(held.holder.clone());
            model.transcript.say(told(message));
        }
        AgentEvent::SessionHeld(held) => {
            model.layers.push(popup::held::open(held.session, &held.holder));
        }
        AgentEvent::SessionReleased(released) => {
            if let Some(holder) = &mut model.session.watched {
                "no process".clone_into(&mut holder.words);
            }
            model.session.come_to_rest();
            model.approvals = Approvals::default();
            model.budget = None;
            let words = match &released.over {
                Some(over) => format!("{}; /fork branches off from it", over.message),
                None => {
                    "no process works in this session now; /takeover goes on in it here".to_owned()
                }
            };
            model.transcript.say(told(words));
        }
        AgentEvent::ContextCompacted(compacted) => {
            model.hint = None;
            let body = ItemBody::Compaction(compacted.compaction.clone());
            let turn = envelope.turn.unwrap_or_default();
            model.transcript.complete(&Item { id: compacted.item.clone(), turn, body }, now);
        }
        AgentEvent::CompactionProgress(_) => model.hint = None,
        AgentEvent::CompactionFailed(failed) => {
            model.hint = None;
            let stopped = failed.error.code == ErrorCode::Cancelled;
            model.transcript.say(Body::Message {
                level: if stopped { NoticeLevel::Info } else { NoticeLevel::Warning },
                message: format!("not compacted: {}", failed.error.message),
                hints: failed.error.hints.clone(),
            });
        }
        AgentEvent::Notice(notice) => model.transcript.say(Body::Message {
            level: notice.level,
            message: notice.message.clone(),
            hints: notice.hints.clone(),
        }),
        AgentEvent::EffectRerouted(rerouted) => {
            model.transcript.say(message(NoticeLevel::Warning, rerouted.words()));
        }
        AgentEvent::CircuitChanged(changed) => {
            let level = match changed.state {
                CircuitState::Open => NoticeLevel::Warning,
                CircuitState::Closed | CircuitState::HalfOpen => NoticeLevel::Info,
            };
            if let Some(words) = changed.words() {
                model.transcript.say(message(level, words));
            }
        }
        AgentEvent::SubagentFinished(finished) => model.transcript.say(child_ended(finished)),
        AgentEvent::ExecutionCancelled(cancelled) => model.transcript.say(Body::Message {
            level: NoticeLevel::Warning,
            message: match &cancelled.reason {
                Some(reason) => format!("the session was cancelled: {reason}"),
                None => "the session was cancelled".to_owned(),
            },
            hints: Vec::new(),
        }),
        // Whoever leaves is not told how the last turn went.
        AgentEvent::StreamFinished(_) if model.closing.is_some() => {
            return vec![Action::Exit(Exit::Quit)];
        }
        AgentEvent::StreamFinished(finished) => {
            let exit_code = u8::try_from(finished.exit_code).unwrap_or(1);
            return vec![Action::Exit(Exit::Finished { exit_code, error: finished.error.clone() })];
        }
        AgentEvent::ReviewStarted(_)
        | AgentEvent::SubagentProgressed(_)
        | AgentEvent::ExecutionStarted(_)
        | AgentEvent::ExecutionResumed(_)
        | AgentEvent::TurnStarted(_)
        | AgentEvent::EffectStarted(_)
        | AgentEvent::SubagentStarted(_)
        | AgentEvent::SessionForked(_)
        | AgentEvent::EffectRetried(_)
        | AgentEvent::EffectFinished(_)
        | AgentEvent::PromptQueued(_)
        | AgentEvent::ModeChanged(_)
        | AgentEvent::ModelChanged(_)
        | AgentEvent::MeterUpdated(_)
        | AgentEvent::ResourcesUpdated(_)
        | AgentEvent::ContextEstimated(_)
        | AgentEvent::DeadlineSet(_)
        | AgentEvent::FlowStarted(_)
        | AgentEvent::DecisionRecorded(_)
        | AgentEvent::TimerSet(_)
        | AgentEvent::TimerFired(_)
        | AgentEvent::ExecutionSuspended(_)
        | AgentEvent::SignalReceived(_)
        | AgentEvent::ExecutionCompleted(_)
        | AgentEvent::ExecutionFailed(_)
        | AgentEvent::Unknown { .. } => {}
    }
    Vec::new()
}

/// Goes to the place that a search found, once its session shows; asks for older items until it is here.
pub(super) fn seek(model: &mut Model) -> Vec<Action> {
    let Some((exec, item)) = model.sought.take() else { return Vec::new() };
    if model.exec != Some(exec) || model.transcript.show_item(&item) {
        return Vec::new();
    }
    let asked = model.transcript.ask_older();
    if asked.is_none() && !model.transcript.awaits_older() {
        model.hint = Some("what was found is not in the session any more".to_owned());
        return Vec::new();
    }
    model.sought = Some((exec, item));
    let history = |before| Action::Send(Command::History { before, limit: SOUGHT_PAGE });
    asked.map(history).into_iter().collect()
}

/// A prompt that waited is in the transcript now.
fn forget_queued(model: &mut Model, item: &Item) {
    if let ItemBody::UserMessage { text, .. } = &item.body {
        model.session.forget_queued(text);
    }
}

/// Prompts that were taken back stand above what is being written.
fn take_back(model: &mut Model, texts: &[String]) {
    let mut texts = texts.to_vec();
    let draft = model.composer.text();
    if !draft.trim().is_empty() {
        texts.push(draft);
    }
    model.composer.set(&texts.join("\n\n"));
}

fn fill(model: &mut Model, kinds: &[Kind], rows: Vec<popup::Row>) {
    if let Some(popup) = model.layers.iter_mut().rev().find(|popup| kinds.contains(&popup.kind)) {
        popup.set_rows(rows);
    }
}

fn told(message: String) -> Body {
    Body::Message { level: NoticeLevel::Info, message, hints: Vec::new() }
}

/// More of the child that is watched.
fn show_child(model: &mut Model, event: &SubagentShown, now: u64) {
    if let Some(shown) = model.agents.shown.as_mut().filter(|shown| shown.id == event.id) {
        for item in &event.items {
            shown.transcript.complete(item, now);
        }
    }
}

/// One line on the end of a child.
fn child_ended(finished: &SubagentFinished) -> Body {
    let level = match finished.status {
        SubagentStatus::Completed => NoticeLevel::Info,
        _ => NoticeLevel::Warning,
    };
    message(level, finished.words())
}

fn message(level: NoticeLevel, message: String) -> Body {
    Body::Message { level, message, hints: Vec::new() }
}
