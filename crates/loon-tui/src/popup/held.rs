//! What to do about a session that another process works in.

use loon_api::{ExecutionId, SessionAccess, SessionHolder};

use super::{Kind, Popup, Row, Value};

/// The two ways to open it all the same.
pub(crate) fn open(session: ExecutionId, holder: &SessionHolder) -> Popup {
    let row = |label: &str, access, about: String| Row {
        label: label.to_owned(),
        note: String::new(),
        about,
        value: Value::Session(session, access),
    };
    let who = &holder.words;
    let rows = vec![
        row(
            "watch",
            SessionAccess::Watch,
            format!(
                "In use by {who}. See what it does there; nothing can be changed. /fork branches off, /takeover takes over."
            ),
        ),
        row(
            "take over",
            SessionAccess::TakeOver,
            format!(
                "In use by {who}. Its turn ends there and goes on here. Of calls under way there, nobody will know whether they took effect."
            ),
        ),
    ];
    Popup::new(Kind::Held, "in use by another process", "", rows)
}
