//! What the index keeps of one journal, as a fold that goes on where it stopped.

use std::collections::HashMap;
use std::path::Path;

use loon_api::event::EffectKind;
use loon_api::{
    AgentEvent, At, Cost, Envelope, ExecutionId, Item, ItemBody, ItemId, SessionSummary,
    ToolCallItem,
};
use loon_kernel::{JournalStore, Place, Stamp, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::{IndexError, hooks};
use crate::conversation::title_of;

/// Bytes of one item that are searched, from its beginning and from its end.
const HEAD: usize = 24 * 1024;
const TAIL: usize = 8 * 1024;

/// In the place of the time of a journal that was being written.
const NOT_AT_REST: i64 = i64::MIN;

/// The stamps of all journals as they were taken in.
pub(super) fn stamps(connection: &Connection) -> Result<HashMap<ExecutionId, Stamp>, IndexError> {
    let mut query =
        connection.prepare_cached("SELECT exec, len, modified, archived FROM sessions")?;
    let rows = query.query_map((), |row| {
        let stamp = Stamp {
            len: row.get::<_, i64>(1)?.cast_unsigned(),
            modified: row.get(2)?,
            archived: row.get(3)?,
        };
        Ok((row.get::<_, String>(0)?, stamp))
    })?;
    let mut stamps = HashMap::new();
    for row in rows {
        let (exec, stamp) = row?;
        if let Ok(exec) = exec.parse() {
            stamps.insert(exec, stamp);
        }
    }
    Ok(stamps)
}

/// All summaries.
pub(super) fn all(connection: &Connection) -> Result<Vec<SessionSummary>, IndexError> {
    let mut query = connection.prepare_cached("SELECT data FROM sessions")?;
    let rows = query.query_map((), |row| row.get::<_, String>(0))?;
    let mut summaries = Vec::new();
    for row in rows {
        if let Ok(summary) = serde_json::from_str(&row?) {
            summaries.push(summary);
        }
    }
    Ok(summaries)
}

/// Who changed a file, newest first, each with the hash of what the file was afterwards.
pub(super) fn changes_of(
    connection: &Connection,
    path: &str,
) -> Result<Vec<(SessionSummary, Option<String>)>, IndexError> {
    let mut query = connection.prepare_cached(
        "SELECT sessions.data, changes.after FROM changes
            JOIN sessions ON sessions.id = changes.session
            WHERE changes.path = ? ORDER BY changes.id DESC LIMIT 200",
    )?;
    let rows = query.query_map([path], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let mut changes = Vec::new();
    for row in rows {
        let (data, after): (String, Option<String>) = row?;
        if let Ok(summary) = serde_json::from_str(&data) {
            changes.push((summary, after));
        }
    }
    Ok(changes)
}

/// Takes in what is new in one journal. All of it is there afterwards, or nothing.
pub(super) fn update(
    connection: &mut Connection,
    store: &dyn JournalStore,
    exec: ExecutionId,
) -> Result<(), IndexError> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Taken before reading: what is written meanwhile is found the next time.
    match store.stamp(exec) {
        Some(stamp) => Entry::load(&change, exec, stamp)?.take_in(&change, store, stamp)?,
        None => remove(&change, exec)?,
    }
    Ok(change.commit()?)
}

/// Forgets a journal that is gone.
pub(super) fn forget(connection: &mut Connection, exec: ExecutionId) -> Result<(), IndexError> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    remove(&change, exec)?;
    Ok(change.commit()?)
}

fn remove(change: &Transaction<'_>, exec: ExecutionId) -> Result<(), IndexError> {
    let exec = exec.to_string();
    change.execute(
        "DELETE FROM texts WHERE rowid IN (SELECT items.id FROM items
            JOIN sessions ON sessions.id = items.session WHERE sessions.exec = ?)",
        [&exec],
    )?;
    change.execute(
        "DELETE FROM items WHERE session IN (SELECT id FROM sessions WHERE exec = ?)",
        [&exec],
    )?;
    change.execute(
        "DELETE FROM changes WHERE session IN (SELECT id FROM sessions WHERE exec = ?)",
        [&exec],
    )?;
    change.execute(
        "DELETE FROM hooks WHERE session IN (SELECT id FROM sessions WHERE exec = ?)",
        [&exec],
    )?;
    change.execute("DELETE FROM sessions WHERE exec = ?", [&exec])?;
    Ok(())
}

/// A row of the index.
struct Entry {
    id: i64,
    place: Place,
    summary: SessionSummary,
}

impl Entry {
    /// The row as it is, or a new one if there is none or the journal is another one than before.
    fn load(change: &Transaction<'_>, exec: ExecutionId, stamp: Stamp) -> Result<Self, IndexError> {
        let row = change
            .query_row(
                "SELECT id, place, data, len FROM sessions WHERE exec = ?",
                [exec.to_string()],
                |row| {
                    let place = Place(row.get::<_, i64>(1)?.cast_unsigned());
                    let len = row.get::<_, i64>(3)?.cast_unsigned();
                    Ok((row.get(0)?, place, row.get::<_, String>(2)?, len))
                },
            )
            .optional()?;
        if let Some((id, place, data, len)) = row
            && len <= stamp.len
            && let Ok(summary) = serde_json::from_str::<SessionSummary>(&data)
            && !summary.damaged
        {
            return Ok(Self { id, place, summary });
        }
        remove(change, exec)?;
        let created = exec.created_ms().and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0);
        let summary = SessionSummary::begun(exec, At::from_unix_ms(created));
        change.execute(
            "INSERT INTO sessions(exec, len, modified, archived, place, cwd, data)
                VALUES (?, 0, 0, 0, 0, '', '')",
            [exec.to_string()],
        )?;
        Ok(Self { id: change.last_insert_rowid(), place: Place(0), summary })
    }

    fn take_in(
        mut self,
        change: &Transaction<'_>,
        store: &dyn JournalStore,
        stamp: Stamp,
    ) -> Result<(), IndexError> {
        let read = match store.read_from(self.summary.exec, self.place) {
            Ok(records) => self.fold(change, records)?,
            Err(error) => Some(error),
        };
        let exec = self.summary.exec;
        // What can be read of a damaged one stays in lists; `verify` says what is wrong.
        self.summary.damaged = match read {
            Some(StoreError::NotFound { exec }) => return remove(change, exec),
            Some(_) => true,
            None => false,
        };
        // One that somebody works in is checked once it rests, and looked at again until then.
        let is_at_work = !self.summary.cancelled && store.is_live(exec);
        if !self.summary.damaged && !is_at_work {
            self.summary.damaged = !store.verify(exec).is_ok_and(|verified| verified.holds());
        }
        let modified = if is_at_work { NOT_AT_REST } else { stamp.modified };
        self.summary.archived = stamp.archived;
        let data = serde_json::to_string(&self.summary).unwrap_or_default();
        change.execute(
            "UPDATE sessions SET len = ?, modified = ?, archived = ?, place = ?, cwd = ?, data = ?
                WHERE id = ?",
            params![
                stamp.len.cast_signed(),
                modified,
                stamp.archived,
                self.place.0.cast_signed(),
                self.summary.cwd,
                data,
                self.id
            ],
        )?;
        Ok(())
    }

    /// Takes in records up to the end or the first that cannot be read, which is the answer.
    fn fold(
        &mut self,
        change: &Transaction<'_>,
        records: loon_kernel::PlacedRecords,
    ) -> Result<Option<StoreError>, IndexError> {
        for record in records {
            match record {
                Ok((record, place)) => {
                    self.apply(change, &record)?;
                    self.place = place;
                }
                Err(error) => return Ok(Some(error)),
            }
        }
        Ok(None)
    }

    fn apply(&mut self, change: &Transaction<'_>, record: &Envelope) -> Result<(), IndexError> {
        let summary = &mut self.summary;
        summary.updated = record.at;
        match &record.event {
            AgentEvent::ExecutionStarted(started) => {
                summary.created = record.at;
                summary.cwd.clone_from(&started.cwd);
                summary.parent = started.parent;
            }
            AgentEvent::SessionForked(forked) => {
                summary.forked_from = Some(forked.from);
                summary.created = record.at;
                summary.cost = Cost::default();
                summary.unfinished = false;
                hooks::forget(change, self.id)?;
            }
            AgentEvent::TurnStarted(started) => {
                summary.turns += 1;
                summary.unfinished = true;
                summary.model = Some(started.model.clone());
                summary.branch.clone_from(&started.branch);
            }
            AgentEvent::TurnFinished(_) => summary.unfinished = false,
            AgentEvent::ModelChanged(changed) => summary.model = Some(changed.model.clone()),
            AgentEvent::EffectStarted(started) if started.kind == EffectKind::Hook => {
                hooks::begin(change, self.id, started, record.at)?;
            }
            AgentEvent::EffectFinished(finished) => {
                summary.cost += finished.cost;
                if finished.key.is_hook() {
                    hooks::end(change, self.id, finished)?;
                }
            }
            AgentEvent::SubagentFinished(finished) => summary.cost += finished.cost,
            AgentEvent::ExecutionCancelled(_) => {
                summary.cancelled = true;
                summary.unfinished = false;
            }
            AgentEvent::ItemCompleted(completed) => self.take_item(change, &completed.item)?,
            AgentEvent::SessionRewound(rewound) => self.rewind(change, &rewound.to)?,
            _ => {}
        }
        Ok(())
    }

    fn take_item(&mut self, change: &Transaction<'_>, item: &Item) -> Result<(), IndexError> {
        if let (true, ItemBody::UserMessage { text, .. }) =
            (self.summary.title.is_empty(), &item.body)
        {
            self.summary.title = title_of(text);
        }
        if let ItemBody::ToolCall(call) = &item.body {
            for changed in call.changes.iter().filter(|changed| changed.kind.is_file()) {
                let path = Path::new(&self.summary.cwd).join(changed.real_path());
                change
                    .prepare_cached("INSERT INTO changes(session, path, after) VALUES (?, ?, ?)")?
                    .execute(params![self.id, path.to_string_lossy(), changed.after])?;
            }
        }
        let Some((kind, text)) = searched(item) else { return Ok(()) };
        change
            .prepare_cached(
                "INSERT INTO items(session, item, turn, kind) VALUES (?, ?, ?, ?)
                    ON CONFLICT(session, item) DO UPDATE SET kind = excluded.kind",
            )?
            .execute(params![self.id, item.id.as_str(), item.turn, kind])?;
        let row: i64 = change
            .prepare_cached("SELECT id FROM items WHERE session = ? AND item = ?")?
            .query_row(params![self.id, item.id.as_str()], |row| row.get(0))?;
        change
            .prepare_cached("INSERT OR REPLACE INTO texts(rowid, text) VALUES (?, ?)")?
            .execute(params![row, text])?;
        Ok(())
    }

    /// What left the conversation is not found any more.
    fn rewind(&mut self, change: &Transaction<'_>, to: &ItemId) -> Result<(), IndexError> {
        let gone = "SELECT id FROM items WHERE session = ?1
            AND id >= (SELECT id FROM items WHERE session = ?1 AND item = ?2)";
        let which = params![self.id, to.as_str()];
        change.execute(&format!("DELETE FROM texts WHERE rowid IN ({gone})"), which)?;
        change.execute(&format!("DELETE FROM items WHERE id IN ({gone})"), which)?;
        let left: i64 =
            change.query_row("SELECT count(*) FROM items WHERE session = ?", [self.id], |row| {
                row.get(0)
            })?;
        if left == 0 {
            self.summary.title.clear();
        }
        Ok(())
    }
}

/// What of an item is searched, and what it is called.
fn searched(item: &Item) -> Option<(&'static str, String)> {
    match &item.body {
        ItemBody::UserMessage { text, .. } => Some(("user", bounded(text))),
        ItemBody::AssistantMessage { text, .. } => Some(("assistant", bounded(text))),
        ItemBody::Notice { text, .. } => Some(("notice", bounded(text))),
        ItemBody::ToolCall(call) if call.status.is_final() => Some(("tool", words_of(call))),
        // A handoff only says again what stands above it.
        ItemBody::ToolCall(_) | ItemBody::Thinking(_) | ItemBody::Compaction(_) => None,
    }
}

fn words_of(call: &ToolCallItem) -> String {
    let mut text = format!("{} {}", call.tool, call.title);
    for change in &call.changes {
        text.push('\n');
        text.push_str(&change.path);
    }
    if let Some(result) = &call.result {
        text.push('\n');
        text.push_str(&bounded(&result.text));
    }
    text
}

fn bounded(text: &str) -> String {
    if text.len() <= HEAD + TAIL {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(HEAD)];
    let tail = &text[text.ceil_char_boundary(text.len() - TAIL)..];
    format!("{head}\n…\n{tail}")
}
