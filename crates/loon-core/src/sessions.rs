//! Lists of sessions, read from their journals.

use std::str::FromStr as _;

use loon_api::{AgentEvent, Envelope, ExecutionId, ExecutionKind, ItemBody, SessionSummary};
use loon_kernel::{JournalStore, StoreError};

use crate::conversation::title_of;

/// The newest sessions, newest first: those of the folder `cwd`, or all. Sessions without a turn have
/// nothing to go back to and are left out, as are damaged journals, which `loon sessions verify --all`
/// names.
pub fn list_sessions(
    store: &dyn JournalStore,
    cwd: Option<&str>,
    limit: usize,
) -> Result<Vec<SessionSummary>, StoreError> {
    let mut sessions = Vec::new();
    for exec in store.list()? {
        if sessions.len() == limit {
            break;
        }
        if cwd.is_some_and(|cwd| folder_of(store, exec).as_deref() != Some(cwd)) {
            continue;
        }
        sessions.extend(summarize(store, exec));
    }
    Ok(sessions)
}

/// The newest session of a folder that has a turn.
pub fn newest_session(
    store: &dyn JournalStore,
    cwd: &str,
) -> Result<Option<ExecutionId>, StoreError> {
    let mut newest = store.list()?.into_iter();
    Ok(newest
        .find(|exec| folder_of(store, *exec).as_deref() == Some(cwd) && has_turn(store, *exec)))
}

fn has_turn(store: &dyn JournalStore, exec: ExecutionId) -> bool {
    let records = store.read(exec).into_iter().flatten();
    records.flatten().any(|record| matches!(record.event, AgentEvent::TurnStarted(_)))
}

/// The session whose id begins with `prefix`, if there is exactly one.
pub fn find_session(
    store: &dyn JournalStore,
    prefix: &str,
) -> Result<Result<ExecutionId, Vec<ExecutionId>>, StoreError> {
    if let Ok(exec) = ExecutionId::from_str(prefix) {
        return Ok(Ok(exec));
    }
    let mut matches: Vec<ExecutionId> = store.list()?;
    matches.retain(|exec| exec.to_string().starts_with(prefix));
    Ok(match matches[..] {
        [one] if !prefix.is_empty() => Ok(one),
        _ => Err(matches),
    })
}

/// The folder that a session's first record names; nothing for other kinds of execution.
pub fn folder_of(store: &dyn JournalStore, exec: ExecutionId) -> Option<String> {
    match store.read(exec).ok()?.next()?.ok()?.event {
        AgentEvent::ExecutionStarted(started) if started.kind == ExecutionKind::Session => {
            Some(started.cwd)
        }
        _ => None,
    }
}

fn summarize(store: &dyn JournalStore, exec: ExecutionId) -> Option<SessionSummary> {
    let mut summary: Option<SessionSummary> = None;
    for record in store.read(exec).ok()? {
        let Ok(record) = record else { break };
        let Some(summary) = &mut summary else {
            summary = Some(begun(exec, record)?);
            continue;
        };
        summary.updated = record.at;
        match record.event {
            AgentEvent::TurnStarted(started) => {
                summary.turns += 1;
                summary.model = Some(started.model);
            }
            AgentEvent::ItemCompleted(completed) if summary.title.is_empty() => {
                if let ItemBody::UserMessage { text, .. } = &completed.item.body {
                    summary.title = title_of(text);
                }
            }
            _ => {}
        }
    }
    let summary = summary.filter(|summary| summary.turns > 0)?;
    Some(SessionSummary { live: store.is_live(exec), ..summary })
}

/// The summary of a session of which only the first record is known.
fn begun(exec: ExecutionId, first: Envelope) -> Option<SessionSummary> {
    let AgentEvent::ExecutionStarted(started) = first.event else { return None };
    (started.kind == ExecutionKind::Session).then_some(SessionSummary {
        exec,
        title: String::new(),
        cwd: started.cwd,
        created: first.at,
        updated: first.at,
        turns: 0,
        model: None,
        live: false,
    })
}
