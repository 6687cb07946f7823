//! Running commands, from the composer, the palette or a list.

use loon_api::{Command, Mode};

use crate::event::Action;
use crate::model::Model;
use crate::popup::{self, Kind, Value};
use crate::slash::Name;
use crate::theme::Theme;

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
            vec![Action::Send(Command::ListSessions)]
        }
        Name::New => vec![Action::Send(Command::OpenSession { exec: None })],
        Name::Stop => vec![Action::Send(Command::StopAfterStep)],
        Name::Rewind => {
            model.layers.push(popup::rewind::open(&model.transcript));
            Vec::new()
        }
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
            model.transcript.toggle_last();
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
        Value::Model(name) => vec![Action::Send(Command::SetModel { model: name })],
        Value::Session(exec) => vec![Action::Send(Command::OpenSession { exec: Some(exec) })],
        Value::Message(to) => vec![Action::Send(Command::Rewind { to, files: false })],
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
    match model.transcript.text_to_copy().map(str::to_owned) {
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
