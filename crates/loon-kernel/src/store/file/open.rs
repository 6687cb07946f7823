//! Opening a journal for writing: lease, fence, the end mended, and a journal moved away from under a
//! writer that cannot be waited for.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loon_api::ExecutionId;

use super::super::verify::missing;
use super::super::{Opened, StoreError};
use super::fence::{Fence, FenceFile, Mark};
use super::tail::{Mended, Tail};
use super::wake;
use super::writer::{FileWriter, Files};
use super::{FileStore, io_error, shelf};

/// Whether a writer must have the lease.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lease {
    Required,
    IfFree,
}

impl Lease {
    /// Takes it; false if another writer holds it. Somebody who only looks whether it is held does so
    /// for an instant; hence the tries, where it is needed.
    pub(super) fn take(self, journal: &File) -> io::Result<bool> {
        let tries = match self {
            Self::Required => 20,
            Self::IfFree => 1,
        };
        for left in (0..tries).rev() {
            match journal.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) if left > 0 => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// What a journal is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// To work in it, unless somebody else does.
    Work,
    /// To work in it, whoever else does.
    TakeOver,
    /// To write its end, whoever works in it.
    End,
    /// To mend it. Records that had been made durable and are gone are accepted.
    Repair,
}

impl Aim {
    fn lease(self) -> Lease {
        match self {
            Self::Work | Self::Repair => Lease::Required,
            Self::TakeOver | Self::End => Lease::IfFree,
        }
    }
}

/// A journal that can be written.
pub(super) struct Writable {
    pub(super) writer: FileWriter,
    pub(super) mended: Mended,
    /// Records that had been made durable and are gone.
    pub(super) missing_records: u64,
}

impl From<Writable> for Opened {
    fn from(of: Writable) -> Self {
        Self { writer: Box::new(of.writer), repaired_bytes: of.mended.moved_bytes }
    }
}

impl FileStore {
    /// Opens a journal for writing.
    pub(super) fn open_writer(&self, exec: ExecutionId, aim: Aim) -> Result<Writable, StoreError> {
        loop {
            if let Some(opened) = self.try_open(exec, aim)? {
                return Ok(opened);
            }
        }
    }

    /// Gives nothing if a file was put in the place of one that had been opened already.
    fn try_open(&self, exec: ExecutionId, aim: Aim) -> Result<Option<Writable>, StoreError> {
        let dir = self.dir(exec);
        let path = self.journal(exec);
        let mut journal = self.open_for(exec, OpenOptions::new().read(true).append(true))?;
        let fence_file = FenceFile::open(dir.join("fence"), exec)?;
        let mut leased = aim.lease().take(&journal).map_err(io_error("lock", &path))?;
        if !leased && aim.lease() == Lease::Required {
            let pid = Mark::peek(&dir.join("fence")).map(|mark| mark.pid);
            return Err(StoreError::Busy { exec, pid });
        }
        let Some(fence) = fence_file.lock_or_stuck()? else {
            fence_file.displace()?;
            return Ok(None);
        };
        if !fence.is_in_place()? || !is_at(&journal, &path)? {
            return Ok(None);
        }
        let mark = fence.read()?;
        if mark.is_none() {
            // Another fence file than this one may still let a writer write.
            let Some(copy) = moved(&journal, &path, &fence)? else { return Ok(None) };
            (journal, leased) = (copy, true);
        }
        let tail = Tail::find(&journal, &path, exec)?;
        let lost = mark.as_ref().map_or(0, |mark| mark.durable.seq.saturating_sub(tail.end.seq));
        if lost > 0 && aim != Aim::Repair {
            let (line, intact) = (tail.end.seq + 1, tail.end.seq);
            return Err(StoreError::Corrupt {
                exec,
                line,
                reason: missing(lost),
                intact,
                mendable: true,
            });
        }
        let mended = tail.mend(&journal, &path)?;
        journal.sync_data().map_err(io_error("sync", &path))?;
        let number = fence.number()?.max(tail.fence) + 1;
        let owner = if leased { None } else { mark.map(|mark| mark.pid) };
        let pid = owner.unwrap_or_else(std::process::id);
        let mark = Mark { fence: number, pid, durable: tail.end };
        fence.write(&mark)?;
        if matches!(aim, Aim::Work | Aim::TakeOver) {
            // Before the former writer hears of it, which looks who it was.
            shelf::note_holder(&dir);
        }
        wake::ring(&dir);
        fence.sync()?;
        drop(fence);
        let wakes = Arc::clone(&self.wakes);
        let files = Files { exec, dir, journal, fence: fence_file, wakes };
        let mut writer = FileWriter::of_opened(files, &mark, mended.len);
        writer.has_lease = leased;
        Ok(Some(Writable { writer, mended, missing_records: lost }))
    }
}

/// Whether the file at `path` is this one.
fn is_at(file: &File, path: &Path) -> Result<bool, StoreError> {
    let ours = file.metadata().map_err(io_error("look at", path))?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io_error("look at", path)(error)),
    }
}

/// Puts a copy of the journal in its place, with its lease taken: whoever had the old file open writes
/// nothing into this one. Nothing if `fence` is displaced.
fn moved(journal: &File, path: &Path, fence: &Fence<'_>) -> Result<Option<File>, StoreError> {
    let folder = fence.lock_folder()?;
    if !fence.is_in_place()? {
        return Ok(None);
    }
    let new = path.with_extension("moved");
    let copy = || -> io::Result<File> {
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        let mut copy = options.read(true).append(true).create_new(true).mode(0o600).open(&new)?;
        copy.lock()?;
        let mut journal = journal;
        journal.rewind()?;
        io::copy(&mut journal, &mut copy)?;
        copy.sync_all()?;
        std::fs::rename(&new, path)?;
        folder.sync_all()?;
        Ok(copy)
    };
    copy().map(Some).map_err(io_error("move", path))
}
