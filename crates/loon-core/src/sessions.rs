//! Finding sessions, and branching off from them.

mod fork;

use std::str::FromStr as _;

use loon_api::{AgentEvent, ExecutionId, ExecutionKind};
use loon_kernel::{JournalStore, StoreError};

pub use self::fork::{ForkError, fork_session, turn_of};

/// The newest session of a folder that has a turn and was not put away.
pub fn newest_session(
    store: &dyn JournalStore,
    cwd: &str,
) -> Result<Option<ExecutionId>, StoreError> {
    let is_shown = |exec| store.stamp(exec).is_some_and(|stamp| !stamp.archived);
    let mut newest = store.list()?.into_iter();
    Ok(newest.find(|exec| {
        folder_of(store, *exec).as_deref() == Some(cwd) && is_shown(*exec) && has_turn(store, *exec)
    }))
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
    Ok(begins_with(store.list()?, prefix))
}

/// The one of these ids that begins with `prefix`, else all that do.
pub fn begins_with(
    mut ids: Vec<ExecutionId>,
    prefix: &str,
) -> Result<ExecutionId, Vec<ExecutionId>> {
    let prefix = prefix.to_ascii_lowercase();
    ids.retain(|exec| exec.to_string().starts_with(&prefix));
    match ids[..] {
        [one] if !prefix.is_empty() => Ok(one),
        _ => Err(ids),
    }
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

/// The execution and all that it started, and that those started, itself first.
pub fn family(store: &dyn JournalStore, exec: ExecutionId) -> Result<Vec<ExecutionId>, StoreError> {
    let mut found = vec![exec];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        for record in store.read(parent)? {
            // What cannot be read names no more children.
            let Ok(record) = record else { break };
            if let AgentEvent::SubagentStarted(started) = record.event
                && !found.contains(&started.child)
                && is_child_of(store, started.child, parent)
            {
                found.push(started.child);
            }
        }
    }
    Ok(found)
}

/// A fork names children too that belong to the session it came from.
fn is_child_of(store: &dyn JournalStore, child: ExecutionId, parent: ExecutionId) -> bool {
    let first = store.read(child).ok().and_then(|mut records| records.next()?.ok());
    first.is_some_and(|first| match first.event {
        AgentEvent::ExecutionStarted(started) => started.parent == Some(parent),
        _ => false,
    })
}
