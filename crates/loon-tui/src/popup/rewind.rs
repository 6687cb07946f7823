//! Earlier messages to go back to.

use super::{Kind, Popup, Row, Value};
use crate::transcript::Transcript;

/// The list, newest message first.
pub(crate) fn open(transcript: &Transcript) -> Popup {
    let rows = transcript
        .user_messages()
        .rev()
        .enumerate()
        .map(|(back, (id, text))| Row {
            label: text.lines().next().unwrap_or_default().to_owned(),
            note: if back == 0 { "last".to_owned() } else { format!("{back} before the last") },
            about: "This message and all after it leave the conversation; its text comes back as draft. If calls changed files since, you say whether they go back too."
                .to_owned(),
            value: Value::Message(id.clone()),
        })
        .collect();
    Popup::new(Kind::Rewind, "go back to", "there is no message to go back to", rows)
}
