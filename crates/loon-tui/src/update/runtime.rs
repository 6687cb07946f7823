//! What each event of the runtime changes.

use loon_api::event::{NoticeLevel, SubagentFinished};
use loon_api::{AgentEvent, Envelope, Item, ItemBody, RecordChange, SubagentStatus, TurnStatus};

use crate::event::{Action, Exit};
use crate::model::Model;
use crate::popup::{self, Kind};
use crate::session::Session;
use crate::transcript::Body;

/// Takes in one event.
pub(super) fn apply(model: &mut Model, envelope: &Envelope) -> Vec<Action> {
    let now = model.now;
    let revision = model.session.revision;
    model.session.apply(&envelope.event, now);
    let actions = show(model, envelope, now);
    if model.session.revision != revision
        && model.layers.iter().any(|popup| popup.kind == Kind::Record)
    {
        let rows = popup::record::rows(&model.session, model.glyphs);
        if let Some(popup) = model.layers.iter_mut().find(|popup| popup.kind == Kind::Record) {
            popup.renew_rows(rows);
        }
    }
    actions
}

fn show(model: &mut Model, envelope: &Envelope, now: u64) -> Vec<Action> {
    match &envelope.event {
        AgentEvent::SessionOpened(opened) => {
            model.session = Session::opened(&opened.session, &model.session);
            model.rewind = None;
            model.opened = true;
            model.approvals.clear();
            for item in &opened.session.items {
                if let ItemBody::UserMessage { text, .. } = &item.body {
                    model.composer.keep(text);
                }
            }
            model.transcript.open(&opened.session.items, opened.session.more, now);
        }
        AgentEvent::HistoryPage(page) => model.transcript.prepend(&page.items, page.more, now),
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
        AgentEvent::TurnFinished(turn) => {
            if turn.status != TurnStatus::Completed {
                // What was stopped on request needs no reason.
                let error = turn.error.clone().filter(|_| turn.status != TurnStatus::Interrupted);
                model.transcript.say(Body::Ended { status: turn.status, error });
            }
        }
        AgentEvent::ApprovalRequested(request) => {
            model.approvals.ask(request.approval.clone(), now);
        }
        AgentEvent::ApprovalResolved(resolved) => model.approvals.resolve(&resolved.approval, now),
        AgentEvent::QueueReturned(returned) => take_back(model, &returned.texts),
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
            fill(model, Kind::Sessions, rows);
        }
        AgentEvent::ModelsListed(listed) => {
            let rows = popup::models::rows(&listed.models, model.session.model.as_deref());
            fill(model, Kind::Models, rows);
        }
        AgentEvent::Notice(notice) => model.transcript.say(Body::Message {
            level: notice.level,
            message: notice.message.clone(),
            hints: notice.hints.clone(),
        }),
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
        AgentEvent::ExecutionStarted(_)
        | AgentEvent::ExecutionResumed(_)
        | AgentEvent::TurnStarted(_)
        | AgentEvent::EffectStarted(_)
        | AgentEvent::SubagentStarted(_)
        | AgentEvent::EffectRetried(_)
        | AgentEvent::EffectFinished(_)
        | AgentEvent::PromptQueued(_)
        | AgentEvent::ModeChanged(_)
        | AgentEvent::ModelChanged(_)
        | AgentEvent::MeterUpdated(_)
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

fn fill(model: &mut Model, kind: Kind, rows: Vec<popup::Row>) {
    if let Some(popup) = model.layers.iter_mut().rev().find(|popup| popup.kind == kind) {
        popup.set_rows(rows);
    }
}

/// One line on the end of a child.
fn child_ended(finished: &SubagentFinished) -> Body {
    let level = match finished.status {
        SubagentStatus::Completed => NoticeLevel::Info,
        _ => NoticeLevel::Warning,
    };
    let why = finished.error.as_ref().map(|error| format!(": {}", error.message));
    let how = finished.status.words();
    let message =
        format!("agent {} ({}) {how}{}", finished.id, finished.agent, why.unwrap_or_default());
    Body::Message { level, message, hints: Vec::new() }
}
