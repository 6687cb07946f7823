//! Permission modes to choose from.

use loon_api::Mode;

use super::{Kind, Popup, Row, Value};
use crate::theme::Role;

/// Every mode with its name in commands, its words and what it means.
pub(crate) const ALL: [(Mode, &str, &str, &str); 4] = [
    (Mode::Default, "default", "ask before edits", "Reading is free; everything else asks."),
    (
        Mode::Auto,
        "auto",
        "auto",
        "Files of the project change without asking; shell and network ask.",
    ),
    (Mode::Plan, "plan", "plan, nothing changes", "Nothing may change: only tools that read."),
    (
        Mode::Bypass,
        "bypass",
        "bypass, nothing asks",
        "Nothing asks. Deny and ask rules still hold.",
    ),
];

/// The words for a mode.
pub(crate) fn words(mode: Mode) -> &'static str {
    ALL.iter().find(|(known, ..)| *known == mode).map_or("", |(_, _, words, _)| words)
}

/// The role whose colour a mode has.
pub(crate) fn role(mode: Mode) -> Role {
    match mode {
        Mode::Default => Role::ModeAsk,
        Mode::Auto => Role::ModeAuto,
        Mode::Bypass => Role::ModeBypass,
        Mode::Plan => Role::ModePlan,
    }
}

/// The mode of a name.
pub(crate) fn named(name: &str) -> Option<Mode> {
    ALL.iter().find(|(_, known, ..)| *known == name).map(|(mode, ..)| *mode)
}

/// The mode that follows when cycling. Bypass is never reached this way.
pub(crate) fn next(mode: Mode) -> Mode {
    match mode {
        Mode::Default => Mode::Auto,
        Mode::Auto => Mode::Plan,
        Mode::Plan | Mode::Bypass => Mode::Default,
    }
}

/// The list.
pub(crate) fn open(current: Mode) -> Popup {
    let rows = ALL
        .iter()
        .map(|(mode, name, _, about)| Row {
            label: (*name).to_owned(),
            note: if *mode == current { "in use".to_owned() } else { String::new() },
            about: (*about).to_owned(),
            value: Value::Mode(*mode),
        })
        .collect();
    Popup::new(Kind::Modes, "mode", "no mode matches", rows).select(&Value::Mode(current))
}
