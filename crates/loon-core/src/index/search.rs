//! Full text search in the index.

use loon_api::{ItemId, SessionHit, SessionSummary};
use rusqlite::{Connection, params};

use super::{IndexError, Search};

/// Words around what was found.
const AROUND: u32 = 24;

/// The best places, best first.
pub(super) fn run(connection: &Connection, search: &Search) -> Result<Vec<SessionHit>, IndexError> {
    let Some(query) = expression(&search.query) else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(
        "SELECT sessions.data, items.item, items.turn, items.kind,
                snippet(texts, 0, '', '', '…', ?4)
            FROM texts
            JOIN items ON items.id = texts.rowid
            JOIN sessions ON sessions.id = items.session
            WHERE texts MATCH ?1 AND (?2 IS NULL OR sessions.cwd = ?2)
            ORDER BY texts.rank LIMIT ?3",
    )?;
    let limit = i64::try_from(search.limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![query, search.cwd, limit, AROUND], |row| {
        let data: String = row.get(0)?;
        let (item, kind): (String, String) = (row.get(1)?, row.get(3)?);
        Ok((data, item, row.get(2)?, kind, row.get::<_, String>(4)?))
    })?;
    let mut hits = Vec::new();
    for row in rows {
        let (data, item, turn, kind, snippet) = row?;
        let Ok(session) = serde_json::from_str::<SessionSummary>(&data) else { continue };
        hits.push(SessionHit {
            exec: session.exec,
            item: ItemId::new(item),
            turn,
            kind,
            snippet: snippet.split_whitespace().collect::<Vec<_>>().join(" "),
            title: session.title,
            cwd: session.cwd,
            updated: session.updated,
            archived: session.archived,
            parent: session.parent,
        });
    }
    Ok(hits)
}

/// The query in the words of the database: nothing a person types means anything else than words.
/// Nothing if there are none.
fn expression(query: &str) -> Option<String> {
    let mut terms: Vec<String> = Vec::new();
    for (index, part) in query.split('"').enumerate() {
        // Every second part stood between quotes.
        if index % 2 == 1 {
            terms.extend(Some(part.trim()).filter(|part| !part.is_empty()).map(quoted));
        } else {
            terms.extend(part.split_whitespace().map(quoted));
        }
    }
    terms.retain(|term| term.chars().any(char::is_alphanumeric));
    let is_open = query.chars().last().is_some_and(char::is_alphanumeric);
    if let (Some(last), true) = (terms.last_mut(), is_open) {
        last.push('*');
    }
    (!terms.is_empty()).then(|| terms.join(" "))
}

fn quoted(words: &str) -> String {
    format!("\"{words}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_never_taken_for_an_operator() {
        let cases = [
            ("one two", Some("\"one\" \"two\"*")),
            ("one \"two three\" ", Some("\"one\" \"two three\"")),
            ("a OR b) NEAR(", Some("\"a\" \"OR\" \"b)\" \"NEAR(\"")),
            ("unclosed \"two thr", Some("\"unclosed\" \"two thr\"*")),
            ("- * ( \"\"", None),
            ("", None),
        ];
        for (query, wanted) in cases {
            assert_eq!(expression(query).as_deref(), wanted, "{query}");
        }
    }
}
