//! Themes, shown as the selection moves.

use super::{Kind, Popup, Row, Value};
use crate::theme::Theme;

/// The list.
pub(crate) fn open(current: &str) -> Popup {
    let rows: Vec<Row> = Theme::names()
        .map(|name| Row {
            label: name.to_owned(),
            note: if name == current { "in use".to_owned() } else { String::new() },
            about: "Moving shows it, Enter keeps it for this run, Escape goes back.".to_owned(),
            value: Value::Theme(name),
        })
        .collect();
    let used = Theme::names().find(|name| *name == current).map_or(Value::Nothing, Value::Theme);
    Popup::new(Kind::Themes, "theme", "no theme matches", rows).select(&used)
}
