//! Which hooks fired, how often, and what became of it.

use std::collections::HashMap;

use loon_api::At;
use loon_api::event::{EffectFinished, EffectStarted, EffectStatus};
use rusqlite::{Connection, Transaction, params};

use super::IndexError;
use crate::hooks::{HookAnswer, HookVerdict};

/// Most characters of a result.
const MOST_RESULT: usize = 200;

/// What is known of one hook from all journals that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// How often it ran.
    pub count: u64,
    /// When it ran last.
    pub at: String,
    /// How that ended, one line; absent if it never did.
    pub result: Option<String>,
}

/// All hooks by the target of their effects.
pub(super) fn all(connection: &Connection) -> Result<HashMap<String, Fired>, IndexError> {
    // Of the row with the largest time, as SQLite has it for a lone max().
    let mut query = connection
        .prepare_cached("SELECT target, count(*), max(at), result FROM hooks GROUP BY target")?;
    let rows = query.query_map((), |row| {
        let count = row.get::<_, i64>(1)?.cast_unsigned();
        Ok((row.get(0)?, Fired { count, at: row.get(2)?, result: row.get(3)? }))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn begin(
    change: &Transaction<'_>,
    session: i64,
    started: &EffectStarted,
    at: At,
) -> Result<(), IndexError> {
    change
        .prepare_cached(
            "INSERT OR REPLACE INTO hooks(session, key, target, at) VALUES (?, ?, ?, ?)",
        )?
        .execute(params![session, started.key.as_str(), started.target, at.to_string()])?;
    Ok(())
}

pub(super) fn end(
    change: &Transaction<'_>,
    session: i64,
    finished: &EffectFinished,
) -> Result<(), IndexError> {
    change
        .prepare_cached("UPDATE hooks SET result = ? WHERE session = ? AND key = ?")?
        .execute(params![result_of(finished), session, finished.key.as_str()])?;
    Ok(())
}

/// What fired before a fork fired in the other session.
pub(super) fn forget(change: &Transaction<'_>, session: i64) -> Result<(), IndexError> {
    change.execute("DELETE FROM hooks WHERE session = ?", [session])?;
    Ok(())
}

fn result_of(finished: &EffectFinished) -> String {
    let answer =
        || finished.output.clone().and_then(|it| serde_json::from_value::<HookAnswer>(it).ok());
    let words = match (finished.status, finished.error.as_ref()) {
        (EffectStatus::Completed, _) => match answer().map(|answer| answer.verdict) {
            Some(HookVerdict::Block { reason }) => format!("blocked: {reason}"),
            Some(HookVerdict::Ask { reason }) => format!("asked: {reason}"),
            Some(HookVerdict::Go) | None => "ok".to_owned(),
        },
        (EffectStatus::Unknown, _) => "its end is not known".to_owned(),
        (_, Some(error)) => format!("failed: {}", error.message),
        (_, None) => "failed".to_owned(),
    };
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_RESULT).collect()
}
