//! What a person does about the children of the session.

use loon_api::{Command, SubagentState};

use super::say;
use crate::agents::Shown;
use crate::event::Action;
use crate::model::Model;
use crate::popup;
use crate::transcript::Transcript;

/// Lists them.
pub(super) fn open(model: &mut Model) -> Vec<Action> {
    model.layers.push(popup::agents::open(&model.agents, model.glyphs));
    vec![Action::Send(Command::ListSubagents)]
}

/// Shows the transcript of one in place of the session's own.
pub(super) fn show(model: &mut Model, id: String) -> Vec<Action> {
    model.agents.shown = Some(Shown { id: id.clone(), transcript: Transcript::default() });
    vec![Action::Send(Command::WatchSubagent { id: Some(id) })]
}

/// Sends words behind `/steer`: the name of a child, and what it is to read.
pub(super) fn steer(model: &mut Model, argument: &str) -> Vec<Action> {
    match argument.split_once(char::is_whitespace) {
        Some((id, text)) if !text.trim().is_empty() => send(model, id.to_owned(), text.trim()),
        _ => say(
            model,
            "say /steer AGENT and the words for it, as in /steer a1 look left".to_owned(),
        ),
    }
}

/// Prepares the draft for words to a child.
pub(crate) fn begin_steering(model: &mut Model, id: &str) -> Vec<Action> {
    if !model.composer.is_empty() {
        return say(model, format!("send or clear the draft first, or type /steer {id}"));
    }
    model.layers.clear();
    model.composer.set(&format!("/steer {id} "));
    Vec::new()
}

/// Sends the draft to the child whose transcript is shown.
pub(crate) fn steer_shown(model: &mut Model, id: String, text: &str) -> Vec<Action> {
    let actions = send(model, id, text);
    if !actions.is_empty() {
        model.composer.take();
        model.shown_transcript_mut().scroll_to_end();
    }
    actions
}

fn send(model: &mut Model, id: String, text: &str) -> Vec<Action> {
    match model.agents.find(&id) {
        None => say(model, format!("there is no agent {id}: /agents lists them")),
        Some(agent) if agent.summary.state == SubagentState::Ended => {
            say(model, format!("agent {id} has ended; nothing reaches it any more"))
        }
        Some(_) => {
            model.hint = Some(format!("agent {id} reads it at its next step"));
            vec![Action::Send(Command::SteerSubagent { id, text: text.to_owned() })]
        }
    }
}
