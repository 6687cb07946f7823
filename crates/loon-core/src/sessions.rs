//! Lists of sessions, read from their journals.

use std::str::FromStr as _;

use loon_api::{AgentEvent, At, ExecutionId, ExecutionKind, SessionSummary};
use loon_kernel::{JournalStore, StoreError};

use crate::conversation::Conversation;

/// The newest sessions, newest first: those of the folder `cwd`, or all. Damaged journals are left
/// out; `loon sessions verify --all` names them.
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

/// The newest session of a folder.
pub fn newest_session(
    store: &dyn JournalStore,
    cwd: &str,
) -> Result<Option<ExecutionId>, StoreError> {
    let mut newest = store.list()?.into_iter();
    Ok(newest.find(|exec| folder_of(store, *exec).as_deref() == Some(cwd)))
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
    let mut conversation = Conversation::default();
    let mut cwd = None;
    let mut created: Option<At> = None;
    let mut updated: Option<At> = None;
    for envelope in store.read(exec).ok()? {
        let Ok(envelope) = envelope else { break };
        created.get_or_insert(envelope.at);
        updated = Some(envelope.at);
        if let AgentEvent::ExecutionStarted(started) = &envelope.event {
            if started.kind != ExecutionKind::Session {
                return None;
            }
            cwd = Some(started.cwd.clone());
        }
        conversation.apply(envelope.turn, &envelope.event);
    }
    Some(SessionSummary {
        exec,
        title: conversation.title().unwrap_or_default().to_owned(),
        cwd: cwd?,
        created: created?,
        updated: updated?,
        turns: conversation.turns(),
        model: conversation.model().map(str::to_owned),
        live: store.is_live(exec),
    })
}
