//! Models to choose from.

use super::{Kind, Popup, Row, Value};

/// The list before its rows are known.
pub(crate) fn open() -> Popup {
    Popup::new(Kind::Models, "model", "no model is set up", Vec::new())
}

/// Rows for `models`; the one in use says so.
pub(crate) fn rows(models: &[String], current: Option<&str>) -> Vec<Row> {
    models
        .iter()
        .map(|model| Row {
            label: model.clone(),
            note: if Some(model.as_str()) == current { "in use".to_owned() } else { String::new() },
            about: "Used from the next turn on.".to_owned(),
            value: Value::Model(model.clone()),
        })
        .collect()
}
