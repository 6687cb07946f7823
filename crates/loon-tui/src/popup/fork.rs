//! Turns to branch off from.

use super::{Kind, Popup, Row, Value};
use crate::transcript::Transcript;

/// The list: the present end, then the turns before it, newest first.
pub(crate) fn open(transcript: &Transcript) -> Popup {
    let now = Row {
        label: "here".to_owned(),
        note: "the whole conversation".to_owned(),
        about: "A new session begins with everything that was said; this one stays as it is. Files are shared by both."
            .to_owned(),
        value: Value::Fork(None),
    };
    let turns = transcript.user_messages().rev().filter_map(|(id, text)| {
        let turn = id.turn()?;
        Some(Row {
            label: text.lines().next().unwrap_or_default().to_owned(),
            note: format!("turn {turn}"),
            about: "A new session begins with all up to the end of this turn; this one stays as it is. Files are shared by both and stay as they are."
                .to_owned(),
            value: Value::Fork(Some(turn)),
        })
    });
    let rows = std::iter::once(now).chain(turns).collect();
    Popup::new(Kind::Fork, "branch off after", "there is no turn to branch off from", rows)
}
