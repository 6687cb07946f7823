//! Sessions of this folder to continue.

use loon_api::{At, ExecutionId, SessionSummary};

use super::{Kind, Popup, Row, Value};

/// The list before its rows are known.
pub(crate) fn open() -> Popup {
    Popup::new(Kind::Sessions, "sessions of this folder", "no other session is here", Vec::new())
}

/// Rows for `sessions` other than the `shown` one, as seen at `now`.
pub(crate) fn rows(sessions: &[SessionSummary], shown: ExecutionId, now: At) -> Vec<Row> {
    sessions
        .iter()
        .filter(|session| session.exec != shown)
        .map(|session| {
            let turns = if session.turns == 1 {
                "1 turn".to_owned()
            } else {
                format!("{} turns", session.turns)
            };
            let live = if session.live { ", open elsewhere" } else { "" };
            let model = session.model.as_deref().unwrap_or("no model");
            Row {
                label: if session.title.is_empty() {
                    "untitled".to_owned()
                } else {
                    session.title.clone()
                },
                note: format!("{}{live}", ago(session.updated, now)),
                about: format!("{turns} with {model} in {}. {}", session.cwd, session.exec),
                value: Value::Session(session.exec),
            }
        })
        .collect()
}

/// How long ago, in the largest fitting unit.
pub(super) fn ago(then: At, now: At) -> String {
    let minutes = now.since(then).as_secs() / 60;
    match minutes {
        0 => "just now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..2880 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_in_the_largest_fitting_unit() {
        let at = |minutes: i64| At::from_unix_ms(minutes * 60_000);
        assert_eq!(ago(at(0), at(0)), "just now");
        assert_eq!(ago(at(0), at(59)), "59 min ago");
        assert_eq!(ago(at(0), at(61)), "1 h ago");
        assert_eq!(ago(at(0), at(4320)), "3 days ago");
    }

    #[test]
    fn the_session_on_the_screen_is_not_among_those_to_open() {
        let at = At::from_unix_ms(0);
        let session = |exec| SessionSummary {
            exec,
            title: String::new(),
            cwd: "/work".to_owned(),
            created: at,
            updated: at,
            turns: 0,
            model: None,
            live: true,
        };
        let (shown, other) = (ExecutionId::generate(), ExecutionId::generate());
        let rows = rows(&[session(shown), session(other)], shown, at);
        let values: Vec<&Value> = rows.iter().map(|row| &row.value).collect();
        assert_eq!(values, [&Value::Session(other)]);
    }
}
