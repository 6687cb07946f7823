//! Journals as things on a shelf: their stamps, who holds them, those put away and those thrown away.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use loon_api::{At, ExecutionId};
use notify::event::{AccessKind, EventKind};
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::watch;

use super::super::shelf::{Changes, Holder, Stamp, this_host};
use super::super::{JournalStore as _, StoreError};
use super::fence::Mark;
use super::open::Lease;
use super::{FileStore, entries, io_error};

/// The file that says who opened the journal last.
const HOLDER: &str = "holder";

/// Where the children of a session in the trash are.
const CHILDREN: &str = "children";

/// The file that says that lists leave the session out.
const ARCHIVED: &str = "archived";

/// Leaves word who has the journal. It is only ever shown to people, so that a failure costs nothing
/// but that.
pub(super) fn note_holder(dir: &Path) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = At::from_unix_ms(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    let holder = Holder { pid: std::process::id(), host: this_host(), since: Some(since) };
    let _ = serde_json::to_vec(&holder)
        .map_err(io::Error::from)
        .and_then(|text| replace(&dir.join(HOLDER), &text));
}

/// The word that was left last.
pub(super) fn told_holder(dir: &Path) -> Option<Holder> {
    serde_json::from_slice(&std::fs::read(dir.join(HOLDER)).ok()?).ok()
}

/// Under another name until it is whole, so that nobody reads half of it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    std::fs::rename(&new, path)
}

impl FileStore {
    pub(super) fn stamp_of(&self, exec: ExecutionId) -> Option<Stamp> {
        let journal = self.journal(exec);
        let metadata = journal.metadata().ok()?;
        Some(Stamp {
            len: metadata.len(),
            modified: metadata.mtime().saturating_mul(1_000_000_000) + metadata.mtime_nsec(),
            archived: journal.with_file_name(ARCHIVED).exists(),
        })
    }

    pub(super) fn holder_of(&self, exec: ExecutionId) -> Option<Holder> {
        if !self.is_live(exec) {
            return None;
        }
        let dir = self.dir(exec);
        told_holder(&dir).or_else(|| {
            let mark = Mark::peek(&dir.join("fence"))?;
            Some(Holder { pid: mark.pid, host: None, since: None })
        })
    }

    pub(super) fn changes_of(&self, exec: ExecutionId) -> Result<Changes, StoreError> {
        let dir = self.dir(exec);
        let (sender, seen) = watch::channel(0);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<_>| {
            // Reading is an event too, and tells nothing.
            let told = event.map(|event: notify::Event| event.kind);
            let reading = matches!(told, Ok(EventKind::Access(kind)) if !is_end_of_write(kind));
            if !reading {
                sender.send_modify(|number| *number += 1);
            }
        })
        .map_err(|error| cannot_watch(&dir, error))?;
        watcher
            .watch(&dir, RecursiveMode::NonRecursive)
            .map_err(|error| cannot_watch(&dir, error))?;
        Ok(Changes { seen, _source: Box::new(watcher) })
    }

    /// Takes a session out of lists, or puts it back. False if it was so already.
    pub fn set_archived(&self, exec: ExecutionId, archived: bool) -> Result<bool, StoreError> {
        self.open_for(exec, OpenOptions::new().read(true))?;
        let path = self.dir(exec).join(ARCHIVED);
        if path.exists() == archived {
            return Ok(false);
        }
        let done = if archived { replace(&path, b"") } else { std::fs::remove_file(&path) };
        done.map_err(io_error("change", &path))?;
        Ok(true)
    }

    /// Folder of the sessions that were thrown away.
    pub fn trash(&self) -> PathBuf {
        self.executions.with_file_name("trash")
    }

    /// Moves a session that nobody writes to the trash with everything that is kept for it, and those
    /// of its `children` with it. Gives its place there.
    pub fn discard(
        &self,
        exec: ExecutionId,
        children: &[ExecutionId],
    ) -> Result<PathBuf, StoreError> {
        // Held until all has moved, so that nobody opens it meanwhile.
        let _held = self.hold(exec)?;
        let held: Result<Vec<File>, StoreError> =
            children.iter().map(|child| self.hold(*child)).collect();
        let _held_too = held?;
        let target = self.trash().join(exec.to_string());
        if target.exists() {
            return Err(StoreError::Exists { exec });
        }
        make_private_folder(&self.trash())?;
        move_folder(&self.dir(exec), &target)?;
        let with = target.join(CHILDREN);
        if !children.is_empty() {
            make_private_folder(&with)?;
        }
        for child in children {
            move_folder(&self.dir(*child), &with.join(child.to_string()))?;
        }
        Ok(target)
    }

    /// The lease of a journal without writing it.
    fn hold(&self, exec: ExecutionId) -> Result<File, StoreError> {
        let file = self.open_for(exec, OpenOptions::new().read(true))?;
        if Lease::Required.take(&file).map_err(io_error("lock", &self.journal(exec)))? {
            return Ok(file);
        }
        let pid = self.holder_of(exec).map(|holder| holder.pid);
        Err(StoreError::Busy { exec, pid })
    }

    /// Takes a session out of the trash, with those of its children. Gives all of them.
    pub fn recover(&self, exec: ExecutionId) -> Result<Vec<ExecutionId>, StoreError> {
        let from = self.trash().join(exec.to_string());
        if !from.join("journal.jsonl").exists() {
            return Err(StoreError::NotFound { exec });
        }
        let mut recovered = vec![exec];
        for child in entries(&from.join(CHILDREN))? {
            if let Some(id) = id_of(&child) {
                self.put_back(&child, id)?;
                recovered.push(id);
            }
        }
        self.put_back(&from, exec)?;
        let _ = std::fs::remove_dir(self.dir(exec).join(CHILDREN));
        Ok(recovered)
    }

    fn put_back(&self, from: &Path, exec: ExecutionId) -> Result<(), StoreError> {
        let dir = self.dir(exec);
        if dir.exists() {
            return Err(StoreError::Exists { exec });
        }
        make_private_folder(dir.parent().unwrap_or(&self.executions))?;
        move_folder(from, &dir)
    }

    /// The sessions in the trash, newest first.
    pub fn discarded(&self) -> Result<Vec<ExecutionId>, StoreError> {
        let mut found: Vec<ExecutionId> =
            entries(&self.trash())?.iter().filter_map(|path| id_of(path)).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        Ok(found)
    }

    /// Removes a session in the trash for good.
    pub fn destroy(&self, exec: ExecutionId) -> Result<(), StoreError> {
        let dir = self.trash().join(exec.to_string());
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::NotFound { exec })
            }
            done => done.map_err(io_error("remove", &dir)),
        }
    }
}

fn id_of(path: &Path) -> Option<ExecutionId> {
    path.file_name()?.to_str()?.parse().ok()
}

fn move_folder(from: &Path, to: &Path) -> Result<(), StoreError> {
    std::fs::rename(from, to).map_err(io_error("move", from))
}

fn is_end_of_write(kind: AccessKind) -> bool {
    kind == AccessKind::Close(notify::event::AccessMode::Write)
}

fn cannot_watch(dir: &Path, error: notify::Error) -> StoreError {
    io_error("watch", dir)(io::Error::other(error))
}

/// Makes a folder, and those above it, that only their owner can look into.
pub fn make_private_folder(dir: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io_error("create", dir))
}

#[cfg(test)]
mod tests;
