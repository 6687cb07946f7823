//! What fills the context window, part by part, and when it is compacted.

use loon_api::event::ContextEstimated;

use super::sessions::ago;
use super::{Kind, Popup, Row, Value};
use crate::glyphs::Glyphs;
use crate::session::{Session, count_words};

/// Columns of a full bar.
const BAR: u64 = 20;

/// The list as far as it is known; the answer to the question that goes with it renews it.
pub(crate) fn open(session: &Session, glyphs: &Glyphs) -> Popup {
    let rows = rows(session, glyphs);
    Popup::new(Kind::Context, "context", "not measured yet", rows)
}

/// One row for the whole, one for each part, and what is known of compactions.
pub(crate) fn rows(session: &Session, glyphs: &Glyphs) -> Vec<Row> {
    let Some(context) = &session.context else { return Vec::new() };
    let window = window(context);
    let whole = window.unwrap_or(context.tokens).max(1);
    let size = |name: &str, tokens: u64, about: &str| Row {
        label: format!("{name:<10}{}", bar(tokens, whole, glyphs)),
        note: format!("~{} {:>3} %", count_words(tokens), tokens * 100 / whole),
        about: about.to_owned(),
        value: Value::Nothing,
    };
    let all = match window {
        Some(window) => format!(
            "The next request takes about {} of {} tokens. All sizes are estimates.",
            context.tokens, window
        ),
        None => format!(
            "The next request takes about {} tokens. How large the model's window is, nobody said: \
             set context_tokens of the model, or context.max_tokens.",
            context.tokens
        ),
    };
    let mut rows = vec![size("all", context.tokens, &all)];
    let parts = context.parts.unwrap_or_default();
    let filled = parts.named().into_iter().filter(|(_, tokens)| *tokens > 0);
    rows.extend(filled.map(|(name, tokens)| size(name, tokens, about(name))));
    rows.extend(limits(context));
    rows.push(last(session, glyphs));
    rows
}

/// The window that counts: the user's own limit if it is the smaller.
fn window(context: &ContextEstimated) -> Option<u64> {
    context.limit.into_iter().chain(context.capacity).min().filter(|window| *window > 0)
}

fn bar(tokens: u64, whole: u64, glyphs: &Glyphs) -> String {
    let columns = (tokens * BAR).div_ceil(whole).min(BAR);
    glyphs.block.repeat(usize::try_from(columns).unwrap_or(0))
}

fn about(part: &str) -> &'static str {
    match part {
        "system" => "How Loom works, where it works, which agents there are.",
        "guidance" => {
            "Instructions for all of the work, yours and the project's. /guidance lists them."
        }
        "tools" => "What the model is told of tools. session.tools = \"lean\" tells of fewer.",
        "skills" => "The catalog of skills, and active skills kept through a compaction.",
        "record" => "Goal, plan, tasks and notes as they are shown to the model.",
        "handoff" => "What a compaction left of the older conversation.",
        "user" => "Your words, and notices on your side.",
        "assistant" => "The model's words and the calls it made.",
        "thinking" => "Reasoning the provider wants back.",
        "results" => "What calls gave back.",
        "images" => "Pictures.",
        _ => "",
    }
}

fn limits(context: &ContextEstimated) -> Vec<Row> {
    let row = |label: &str, tokens: u64, about: &str| Row {
        label: label.to_owned(),
        note: count_words(tokens),
        about: about.to_owned(),
        value: Value::Nothing,
    };
    let window = context.capacity.map(|tokens| row("window", tokens, "The window of the model."));
    let own = context.limit.map(|tokens| row("your limit", tokens, "context.max_tokens."));
    let threshold = context.threshold.map(|tokens| {
        let about = "From here on the older conversation gives way to a summary by itself. \
                     context.compact_at sets it, up to 80 % of the window; /compact does it now.";
        row("compacts at", tokens, about)
    });
    window.into_iter().chain(own).chain(threshold).collect()
}

fn last(session: &Session, glyphs: &Glyphs) -> Row {
    let (note, about) = match (session.compacted, session.at) {
        (Some((then, before, after)), Some(now)) => (
            ago(then, now),
            format!(
                "From ~{} {} ~{} tokens, at {then}.",
                count_words(before),
                glyphs.arrow,
                count_words(after)
            ),
        ),
        _ => ("never".to_owned(), "Nothing was left out of this conversation yet.".to_owned()),
    };
    Row { label: "last compaction".to_owned(), note, about, value: Value::Nothing }
}

#[cfg(test)]
mod tests {
    use loon_api::{At, ContextParts};

    use super::*;
    use crate::glyphs::ASCII;

    fn session(capacity: Option<u64>, limit: Option<u64>) -> Session {
        let parts = ContextParts { system: 500, tools: 1_500, user: 2_000, ..Default::default() };
        let threshold = Some(8_000);
        let context =
            ContextEstimated { tokens: 4_000, capacity, limit, threshold, parts: Some(parts) };
        Session { context: Some(context), ..Session::default() }
    }

    fn lines(session: &Session) -> Vec<(String, String)> {
        rows(session, &ASCII).into_iter().map(|row| (row.label, row.note)).collect()
    }

    #[test]
    fn parts_have_bars_that_share_the_window() {
        let shown = lines(&session(Some(40_000), Some(10_000)));
        let expected = [
            ("all       ########", "~4.0k  40 %"),
            ("system    #", "~500   5 %"),
            ("tools     ###", "~1.5k  15 %"),
            ("user      ####", "~2.0k  20 %"),
            ("window", "40.0k"),
            ("your limit", "10.0k"),
            ("compacts at", "8.0k"),
            ("last compaction", "never"),
        ];
        let expected = expected.map(|(label, note)| (label.to_owned(), note.to_owned()));
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_unknown_window_and_an_old_compaction_are_said() {
        let mut session = session(None, None);
        session.compacted = Some((At::from_unix_ms(0), 84_000, 12_000));
        session.at = Some(At::from_unix_ms(5 * 60_000));
        let rows = rows(&session, &ASCII);
        assert!(rows[0].about.contains("nobody said"), "{}", rows[0].about);
        let last = rows.last().unwrap();
        assert_eq!(last.note, "5 min ago");
        assert!(last.about.starts_with("From ~84.0k -> ~12.0k tokens"), "{}", last.about);
        assert_eq!(super::rows(&Session::default(), &ASCII).len(), 0);
    }
}
