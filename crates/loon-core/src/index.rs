//! An index over all sessions, for lists and for full text search.
//!
//! It is never the truth: everything in it comes from the journals, is brought up to date by their
//! stamps, and can be deleted at any time. An index that cannot be read is thrown away and made anew;
//! where none can be kept, it lives in memory for as long as it is used.

mod database;
mod entry;
mod hooks;
mod search;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use loon_api::{ErrorCode, ErrorInfo, ExecutionId, SessionHit, SessionSummary};
use loon_kernel::{JournalStore, StoreError};
use rusqlite::Connection;

use self::database::Database;
pub use self::hooks::Fired;

/// Why the index gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The journals cannot be listed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database cannot be used.
    #[error("the index of sessions: {0}")]
    Database(#[from] rusqlite::Error),
}

impl IndexError {
    /// The error as events carry it.
    pub fn info(&self) -> ErrorInfo {
        match self {
            Self::Store(error) => error.info(),
            Self::Database(_) => ErrorInfo::new(ErrorCode::Io, self.to_string())
                .hint("the index can be deleted; it is made anew from the journals"),
        }
    }

    /// The index itself is not as it was written.
    fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        matches!(
            self,
            Self::Database(rusqlite::Error::SqliteFailure(error, _))
                if matches!(error.code, DatabaseCorrupt | NotADatabase)
        )
    }
}

/// Which sessions a list has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those of this folder only.
    pub cwd: Option<String>,
    /// Those put away too.
    pub archived: bool,
    /// Those of subagents too.
    pub children: bool,
    /// Those in which nothing was asked yet too.
    pub empty: bool,
    /// At most so many, the newest.
    pub limit: Option<usize>,
}

/// What to look for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Words that all occur in one item; words in double quotes stand beside each other, and the last
    /// word may be the beginning of one.
    pub query: String,
    /// In sessions of this folder only.
    pub cwd: Option<String>,
    /// At most so many hits, the best.
    pub limit: usize,
}

/// Another session that changed a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changer {
    /// The session.
    pub session: SessionSummary,
    /// The file is as it left it.
    pub left_so: bool,
}

impl Changer {
    /// The conflict as a sentence.
    pub fn words(&self) -> String {
        let SessionSummary { exec, title, .. } = &self.session;
        if self.left_so {
            format!("Another session wrote what it holds now: {exec} (\"{title}\").")
        } else {
            format!("Another session that is at work has changed it too: {exec} (\"{title}\").")
        }
    }
}

/// The index. Clones share it.
#[derive(Clone, Default)]
pub struct SessionIndex {
    path: Option<PathBuf>,
    open: Arc<Mutex<Option<Database>>>,
}

impl SessionIndex {
    /// An index in this file, which is made when first needed.
    pub fn at(path: PathBuf) -> Self {
        Self { path: Some(path), open: Arc::default() }
    }

    /// An index that is gone with its last clone.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Takes in what changed in any journal.
    pub fn refresh(&self, store: &dyn JournalStore) -> Result<(), IndexError> {
        self.with(|connection| refresh(connection, store))
    }

    /// Takes in what changed in one journal.
    pub fn refresh_one(
        &self,
        store: &dyn JournalStore,
        exec: ExecutionId,
    ) -> Result<(), IndexError> {
        self.with(|connection| entry::update(connection, store, exec))
    }

    /// Sessions as their journals stand now, newest first.
    pub fn list(
        &self,
        store: &dyn JournalStore,
        filter: &Filter,
    ) -> Result<Vec<SessionSummary>, IndexError> {
        let mut sessions = self.with(|connection| {
            refresh(connection, store)?;
            entry::all(connection)
        })?;
        sessions.retain(|session| {
            // Nothing tells the folder of one whose beginning is lost.
            let folder_lost = session.damaged && session.cwd.is_empty();
            (folder_lost || filter.cwd.as_ref().is_none_or(|cwd| *cwd == session.cwd))
                && (filter.archived || !session.archived)
                && (filter.children || session.parent.is_none())
                && (filter.empty || session.turns > 0 || session.damaged)
        });
        sessions.sort_by_key(|session| std::cmp::Reverse((session.updated, session.exec)));
        sessions.truncate(filter.limit.unwrap_or(usize::MAX));
        // Whoever still has the lease of a cancelled session can write nothing in it.
        for session in sessions.iter_mut().filter(|session| !session.cancelled) {
            if let Some(holder) = store.holder(session.exec) {
                session.live = true;
                session.pid = Some(holder.pid);
            }
        }
        Ok(sessions)
    }

    /// The best places for a search in journals as they stand now.
    pub fn search(
        &self,
        store: &dyn JournalStore,
        search: &Search,
    ) -> Result<Vec<SessionHit>, IndexError> {
        self.with(|connection| {
            refresh(connection, store)?;
            search::run(connection, search)
        })
    }

    /// The other session that left a file as it is now (`sha256`, hexadecimal), or else one that is at
    /// work and changed it. What the two have in common since a fork is nobody else's change.
    pub fn who_changed(
        &self,
        store: &dyn JournalStore,
        path: &Path,
        sha256: &str,
        own: ExecutionId,
    ) -> Result<Option<Changer>, IndexError> {
        let path = path.to_string_lossy();
        let mut changes = self.with(|connection| {
            refresh(connection, store)?;
            entry::changes_of(connection, &path)
        })?;
        changes.retain(|(session, _)| session.exec != own);
        let exact = changes.iter().find(|(_, after)| after.as_deref() == Some(sha256));
        if let Some((session, _)) = exact {
            return Ok(Some(Changer { session: session.clone(), left_so: true }));
        }
        let is_at_work =
            |session: &SessionSummary| !session.cancelled && store.is_live(session.exec);
        let at_work = changes.into_iter().find(|(session, _)| is_at_work(session));
        Ok(at_work.map(|(session, _)| Changer { session, left_so: false }))
    }

    /// How often each hook fired, by the target of its effects.
    pub fn hooks(&self, store: &dyn JournalStore) -> Result<HashMap<String, Fired>, IndexError> {
        self.with(|connection| {
            refresh(connection, store)?;
            hooks::all(connection)
        })
    }

    /// Other sessions of a folder in which a process works now.
    pub fn neighbours(
        &self,
        store: &dyn JournalStore,
        cwd: &str,
        own: ExecutionId,
    ) -> Result<Vec<SessionSummary>, IndexError> {
        let filter = Filter { cwd: Some(cwd.to_owned()), empty: true, ..Filter::default() };
        let mut sessions = self.list(store, &filter)?;
        sessions.retain(|session| session.live && session.exec != own);
        Ok(sessions)
    }

    /// One use of the database. A damaged one is thrown away and made anew, once.
    fn with<T>(
        &self,
        use_it: impl Fn(&mut Connection) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let database = match open.take() {
            Some(database) if database.is_current() => database,
            _ => Database::open(self.path.as_deref())?,
        };
        let database = open.insert(database);
        match use_it(&mut database.connection) {
            Err(error) if error.is_damage() => {
                *open = None;
                let database = open.insert(Database::anew(self.path.as_deref())?);
                use_it(&mut database.connection)
            }
            done => done,
        }
    }
}

/// Takes in journals that changed, and forgets those that are gone.
fn refresh(connection: &mut Connection, store: &dyn JournalStore) -> Result<(), IndexError> {
    let mut known: HashMap<ExecutionId, _> = entry::stamps(connection)?;
    let there = store.list()?;
    let ids: HashSet<ExecutionId> = there.iter().copied().collect();
    for exec in there {
        let known = known.remove(&exec);
        if known.is_none() || known != store.stamp(exec) {
            entry::update(connection, store, exec)?;
        }
    }
    for exec in known.into_keys().filter(|exec| !ids.contains(exec)) {
        entry::forget(connection, exec)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
