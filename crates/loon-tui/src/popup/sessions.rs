//! Sessions to continue: those of this folder or all, and what a search over their words finds.

use loon_api::{At, ExecutionId, SessionAccess, SessionHit, SessionSummary};

use super::{Kind, Popup, Row, Value};

/// The list of this folder's sessions before its rows are known.
pub(crate) fn open() -> Popup {
    Popup::new(Kind::Sessions, "sessions of this folder", "no other session is here", Vec::new())
}

/// The list of all sessions before its rows are known. What is typed is searched in their words too.
pub(crate) fn open_all() -> Popup {
    Popup::new(Kind::AllSessions, "search all sessions", "no other session is here", Vec::new())
}

/// Signs before what was found in a row.
const BEFORE: usize = 16;

/// Rows for what a search for `query` found, as seen at `now`.
pub(crate) fn found(hits: &[SessionHit], query: &str, now: At) -> Vec<Row> {
    hits.iter()
        .map(|hit| {
            let who = match hit.kind.as_str() {
                "user" => "you",
                "assistant" => "the model",
                "tool" => "a tool",
                _ => "a notice",
            };
            let archived = if hit.archived { ", archived" } else { "" };
            Row {
                label: excerpt(&hit.snippet, query),
                note: format!("{who}, {}{archived}", ago(hit.updated, now)),
                about: format!(
                    "{}: {who} in turn {} of \"{}\" in {}. {}",
                    hit.snippet, hit.turn, hit.title, hit.cwd, hit.exec
                ),
                value: Value::Hit(hit.exec, hit.item.clone()),
            }
        })
        .collect()
}

/// The snippet from shortly before the first word of the query that is in it, so that a narrow row shows
/// what was found and not how its text begins.
fn excerpt(snippet: &str, query: &str) -> String {
    let words: Vec<String> = query
        .split(|c: char| c.is_whitespace() || c == '"')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let is_there = |(at, _): &(usize, char)| {
        let rest: String = snippet[*at..].chars().take(64).collect::<String>().to_lowercase();
        words.iter().any(|word| rest.starts_with(word.as_str()))
    };
    let Some((found, _)) = snippet.char_indices().find(is_there) else {
        return snippet.to_owned();
    };
    let before = snippet[..found].char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    // From the beginning of a word on.
    let begin = match snippet[before..found].split_once(' ') {
        Some((cut, _)) if before > 0 => before + cut.len() + 1,
        _ if before > 0 => found,
        _ => 0,
    };
    if begin == 0 { snippet.to_owned() } else { format!("…{}", &snippet[begin..]) }
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
            let state = match session.state() {
                "open" => String::new(),
                "live" => match session.pid {
                    Some(pid) => format!(", open in process {pid}"),
                    None => ", open elsewhere".to_owned(),
                },
                state => format!(", {state}"),
            };
            let model = session.model.as_deref().unwrap_or("no model");
            Row {
                label: if session.title.is_empty() {
                    "untitled".to_owned()
                } else {
                    session.title.clone()
                },
                note: format!("{}{state}", ago(session.updated, now)),
                about: format!("{turns} with {model} in {}. {}", session.cwd, session.exec),
                value: Value::Session(session.exec, SessionAccess::Write),
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
    fn a_row_begins_shortly_before_what_was_found() {
        let long = "read src/pager.rs and then a long way further on the Needle stands here";
        assert_eq!(excerpt(long, "needle"), "…further on the Needle stands here");
        assert_eq!(excerpt(long, "\"stands here\" x"), "…on the Needle stands here");
        assert_eq!(excerpt(long, "read"), long);
        assert_eq!(excerpt(long, "müsli"), long);
        assert_eq!(excerpt("oneverylongwordwithoutblanks-needle", "needle"), "…needle");
        assert_eq!(excerpt("ä ö ü needle", "ü"), "ä ö ü needle");
    }

    #[test]
    fn the_session_on_the_screen_is_not_among_those_to_open() {
        let at = At::from_unix_ms(0);
        let session = |exec| SessionSummary::begun(exec, at);
        let (shown, other) = (ExecutionId::generate(), ExecutionId::generate());
        let rows = rows(&[session(shown), session(other)], shown, at);
        let values: Vec<&Value> = rows.iter().map(|row| &row.value).collect();
        assert_eq!(values, [&Value::Session(other, SessionAccess::Write)]);
    }
}
