//! Running commands, from the composer, the palette or a list.

mod agents;

use loon_api::{Command, ExecutionId, ItemId, Mode, SessionAccess};

use crate::event::Action;
use crate::model::Model;
use crate::panel::Panel;
use crate::popup::{self, Kind, Value};
use crate::rewind::Rewind;
use crate::slash::Name;
use crate::theme::Theme;

pub(super) use self::agents::{begin_steering, steer_shown};

/// Bytes that terminals take for their clipboard at once.
const COPY_LIMIT: usize = 74_000;

/// Runs a command with what was typed behind it.
pub(super) fn run(model: &mut Model, name: Name, argument: &str) -> Vec<Action> {
    match name {
        Name::Model if argument.is_empty() => {
            model.layers.push(popup::models::open());
            vec![Action::Send(Command::ListModels)]
        }
        Name::Model => vec![Action::Send(Command::SetModel { model: argument.to_owned() })],
        Name::Mode if argument.is_empty() => {
            model.layers.push(popup::modes::open(model.session.mode));
            Vec::new()
        }
        Name::Mode => match popup::modes::named(argument) {
            Some(mode) => set_mode(model, mode),
            None => {
                say(model, format!("there is no mode {argument}: default, auto, plan or bypass"))
            }
        },
        Name::Resume => {
            model.layers.push(popup::sessions::open());
            vec![Action::Send(Command::ListSessions { all: false })]
        }
        Name::Sessions => {
            model.layers.push(popup::sessions::open_all());
            vec![Action::Send(Command::ListSessions { all: true })]
        }
        Name::Fork => fork(model, argument),
        Name::TakeOver => take_over(model),
        Name::New => vec![open_session(None, SessionAccess::Write)],
        Name::Stop => vec![Action::Send(Command::StopAfterStep)],
        Name::Rewind => {
            model.layers.push(popup::rewind::open(&model.transcript));
            Vec::new()
        }
        Name::Undo => vec![Action::Send(Command::Undo { redo: false })],
        Name::Redo => vec![Action::Send(Command::Undo { redo: true })],
        Name::Goal => goal(model, argument),
        Name::Plan => plan(model, argument),
        Name::Budget => budget(model, argument),
        Name::Ultra => ultra(model, argument),
        Name::Agents => agents::open(model),
        Name::Steer => agents::steer(model, argument),
        Name::Todo => {
            model.layers.push(popup::record::open(&model.session, model.glyphs));
            Vec::new()
        }
        Name::Compact => {
            let focus = (!argument.is_empty()).then(|| argument.to_owned());
            model.hint = Some("compacting".to_owned());
            vec![Action::Send(Command::Compact { focus })]
        }
        Name::Mcp => {
            model.layers.push(popup::mcp::open());
            vec![Action::Send(Command::ListMcp)]
        }
        Name::Context => {
            model.layers.push(popup::context::open(&model.session, model.glyphs));
            vec![Action::Send(Command::MeasureContext)]
        }
        Name::Guidance => {
            model.layers.push(popup::guidance::open());
            let path = (!argument.is_empty()).then(|| argument.to_owned());
            vec![Action::Send(Command::ListGuidance { path })]
        }
        Name::Skills => {
            model.layers.push(popup::skills::open());
            vec![Action::Send(Command::ListSkills)]
        }
        Name::Panel => panel(model),
        Name::Theme if argument.is_empty() => {
            model.theme_before = Some(model.theme.clone());
            model.layers.push(popup::themes::open(model.theme.name()));
            Vec::new()
        }
        Name::Theme => match Theme::embedded(argument) {
            Some(theme) => {
                model.theme = theme;
                Vec::new()
            }
            None => say(model, format!("there is no theme {argument}")),
        },
        Name::Copy => copy(model),
        Name::Unfold => {
            model.shown_transcript_mut().toggle_last();
            Vec::new()
        }
        Name::Help => {
            model.layers.push(popup::help::open());
            Vec::new()
        }
        Name::Quit => close(model),
    }
}

/// Does what a chosen row means.
pub(super) fn choose(model: &mut Model, value: Value) -> Vec<Action> {
    model.theme_before = None;
    match value {
        Value::Command(name) => run(model, name, ""),
        // Whoever can write something behind it is asked for that first.
        Value::Custom { name, takes_arguments: true } => {
            model.composer.set(&format!("/{name} "));
            Vec::new()
        }
        Value::Custom { name, .. } => send_custom(model, name, String::new(), true),
        Value::Model(name) => vec![Action::Send(Command::SetModel { model: name })],
        Value::Session(exec, access) => {
            model.sought.take_if(|(sought, _)| *sought != exec);
            vec![open_session(Some(exec), access)]
        }
        Value::Hit(exec, item) => {
            model.sought = Some((exec, item));
            match model.exec {
                Some(shown) if shown == exec => super::runtime::seek(model),
                _ => vec![open_session(Some(exec), SessionAccess::Write)],
            }
        }
        Value::Fork(at) => vec![Action::Send(Command::Fork { at })],
        Value::Message(to) => go_back(model, to),
        Value::Agent(id) => agents::show(model, id),
        Value::Mode(mode) => set_mode(model, mode),
        Value::Theme(name) => {
            if let Some(theme) = Theme::embedded(name) {
                model.theme = theme;
            }
            Vec::new()
        }
        Value::Nothing => Vec::new(),
    }
}

/// Sends a custom command in place of the draft; to the running turn if `steer` says so.
pub(super) fn send_custom(
    model: &mut Model,
    name: String,
    arguments: String,
    steer: bool,
) -> Vec<Action> {
    if let Some(words) = only_watched(model) {
        return say(model, words);
    }
    model.composer.take();
    model.transcript.scroll_to_end();
    let steer = steer && model.is_working();
    vec![Action::Send(Command::Custom { name, arguments, steer })]
}

/// Why nothing is sent to a session that is only watched.
pub(super) fn only_watched(model: &Model) -> Option<String> {
    let holder = model.session.watched.as_ref()?;
    Some(format!("only watched, {} works in it: /takeover or /fork", holder.words))
}

fn open_session(exec: Option<ExecutionId>, access: SessionAccess) -> Action {
    Action::Send(Command::OpenSession { exec, access })
}

/// Branches off after the turn that was named, or asks after which.
fn fork(model: &mut Model, argument: &str) -> Vec<Action> {
    if argument.is_empty() {
        model.layers.push(popup::fork::open(&model.transcript));
        return Vec::new();
    }
    match argument.parse() {
        Ok(turn) => vec![Action::Send(Command::Fork { at: Some(turn) })],
        Err(_) => say(model, "say the number of a turn, or /fork alone to choose one".to_owned()),
    }
}

/// Goes on here in the session that is watched.
fn take_over(model: &mut Model) -> Vec<Action> {
    match (model.exec, &model.session.watched) {
        (Some(exec), Some(_)) => vec![open_session(Some(exec), SessionAccess::TakeOver)],
        _ => say(model, "this session is not only watched: it is yours already".to_owned()),
    }
}

/// Searches all sessions for what the filter says now.
pub(super) fn search(model: &Model) -> Vec<Action> {
    match model.layers.last() {
        Some(popup) if popup.kind == Kind::AllSessions && !popup.filter.trim().is_empty() => {
            let query = popup.filter.clone();
            vec![Action::Send(Command::SearchSessions { query, all: true })]
        }
        _ => Vec::new(),
    }
}

/// Sets, shows or takes away the goal.
fn goal(model: &mut Model, argument: &str) -> Vec<Action> {
    match argument {
        "" if model.session.record.goal.is_none() => {
            say(model, "there is no goal yet: /goal TEXT sets one".to_owned())
        }
        // The goal stands first, whole in the description.
        "" => {
            let mut popup = popup::record::open(&model.session, model.glyphs);
            popup.step(isize::MIN);
            model.layers.push(popup);
            Vec::new()
        }
        "off" => vec![Action::Send(Command::SetGoal { goal: None })],
        text => vec![Action::Send(Command::SetGoal { goal: Some(text.to_owned()) })],
    }
}

/// Shows what was spent and what may be, or sets a bound.
fn budget(model: &mut Model, argument: &str) -> Vec<Action> {
    if argument.is_empty() {
        let words = model.session.spent_words();
        return say(model, format!("spent {words}: /budget AMOUNT sets the bound"));
    }
    match crate::budget::parse(argument) {
        Some(bounds) => vec![Action::Send(Command::RaiseBudget(bounds))],
        None => say(model, "say /budget 5, 200k tokens, 50 requests or 90m".to_owned()),
    }
}

/// Switches Ultra Loop, or says whether it is on.
fn ultra(model: &mut Model, argument: &str) -> Vec<Action> {
    match argument {
        "on" => vec![Action::Send(Command::SetUltraLoop { on: true })],
        "off" => vec![Action::Send(Command::SetUltraLoop { on: false })],
        "" if model.session.ultra => say(model, "Ultra Loop is on: /ultra off".to_owned()),
        "" => say(model, "Ultra Loop is off: /ultra on".to_owned()),
        _ => say(model, "say /ultra on or /ultra off".to_owned()),
    }
}

/// Begins or leaves plan mode.
fn plan(model: &mut Model, argument: &str) -> Vec<Action> {
    let is_on = model.session.mode == Mode::Plan;
    match argument {
        "on" => set_mode(model, Mode::Plan),
        "" if !is_on => set_mode(model, Mode::Plan),
        "" => vec![Action::Send(Command::LeavePlan)],
        "off" if is_on => vec![Action::Send(Command::LeavePlan)],
        "off" => say(model, "this is not plan mode".to_owned()),
        _ => say(model, "say /plan on or /plan off".to_owned()),
    }
}

/// Shows or hides the side panel; where there is no room for one, lists what it would hold.
pub(super) fn panel(model: &mut Model) -> Vec<Action> {
    if Panel::is_possible(model.size.0) {
        model.panel.hidden = !model.panel.hidden;
        if model.panel_width() == 0 && !model.panel.hidden {
            return say(model, "the side panel shows once there is a plan".to_owned());
        }
        return Vec::new();
    }
    run(model, Name::Todo, "")
}

/// Asks what going back to a message would do to files.
fn go_back(model: &mut Model, to: ItemId) -> Vec<Action> {
    let text = model.transcript.user_messages().find(|(id, _)| **id == to).map(|(_, text)| text);
    let (rewind, question) = Rewind::ask(to, text.unwrap_or_default());
    model.rewind = Some(rewind);
    model.hint = Some("looking at the files".to_owned());
    vec![Action::Send(question)]
}

/// Shows what the selection of a list would mean.
pub(super) fn preview(model: &mut Model) {
    if let Some(popup) = model.layers.last()
        && popup.kind == Kind::Themes
        && let Some(Value::Theme(name)) = popup.selected_row().map(|row| row.value.clone())
        && let Some(theme) = Theme::embedded(name)
    {
        model.theme = theme;
    }
}

/// Closes the list on top without choosing.
pub(super) fn close_layer(model: &mut Model) {
    model.layers.pop();
    if let Some(theme) = model.theme_before.take() {
        model.theme = theme;
    }
}

pub(super) fn set_mode(model: &mut Model, mode: Mode) -> Vec<Action> {
    model.session.mode = mode;
    vec![Action::Send(Command::SetMode { mode })]
}

pub(super) fn copy(model: &mut Model) -> Vec<Action> {
    match model.shown_transcript().text_to_copy().map(str::to_owned) {
        Some(text) if text.len() > COPY_LIMIT => {
            say(model, "that is too long for a terminal's clipboard".to_owned())
        }
        Some(text) => {
            model.hint = Some("copied".to_owned());
            vec![Action::Copy(text)]
        }
        None => say(model, "there is nothing to copy yet".to_owned()),
    }
}

pub(super) fn close(model: &mut Model) -> Vec<Action> {
    if model.closing.is_some() {
        return vec![Action::Exit(crate::event::Exit::Quit)];
    }
    model.closing = Some(model.now);
    vec![Action::Send(Command::Close)]
}

pub(super) fn say(model: &mut Model, words: String) -> Vec<Action> {
    model.hint = Some(words);
    Vec::new()
}
