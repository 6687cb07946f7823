//! Every command with its key.

use super::{Kind, Popup, Row, Value};
use crate::slash;

/// The list of commands.
pub(crate) fn open() -> Popup {
    let rows = slash::ALL
        .iter()
        .map(|entry| Row {
            label: format!("/{}", entry.word),
            note: entry.key.to_owned(),
            about: entry.about.to_owned(),
            value: Value::Command(entry.name),
        })
        .collect();
    Popup::new(Kind::Palette, "commands", "no command matches", rows)
}
