//! Every command with its key, the custom ones behind the others.

use loon_api::CustomCommand;

use super::{Kind, Popup, Row, Value};
use crate::slash;

/// The list of commands; those who answer the question that goes with it renew it.
pub(crate) fn open(customs: &[CustomCommand]) -> Popup {
    Popup::new(Kind::Palette, "commands", "no command matches", rows(customs, &[]))
}

/// One row for each command, and for each file that should be one.
pub(crate) fn rows(customs: &[CustomCommand], unusable: &[String]) -> Vec<Row> {
    let own = slash::ALL.iter().map(|entry| Row {
        label: format!("/{}", entry.word),
        note: entry.key.to_owned(),
        about: entry.about.to_owned(),
        value: Value::Command(entry.name),
    });
    let customs = customs.iter().map(|custom| {
        let name = custom.name.clone();
        if slash::is_taken(custom) {
            return not_usable(&format!("{}: the name is taken.", custom.origin));
        }
        let about = format!("{} ({})", slash::about(custom), custom.origin);
        let takes_arguments = !custom.argument_hint.is_empty();
        let label = format!("/{name}");
        let note = custom.argument_hint.clone();
        Row { label, note, about, value: Value::Custom { name, takes_arguments } }
    });
    own.chain(customs).chain(unusable.iter().map(|file| not_usable(file))).collect()
}

fn not_usable(file: &str) -> Row {
    let (path, reason) = file.split_once(": ").unwrap_or((file, ""));
    Row {
        label: path.to_owned(),
        note: "not usable".to_owned(),
        about: reason.to_owned(),
        value: Value::Nothing,
    }
}
