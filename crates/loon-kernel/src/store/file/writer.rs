//! The one writer of a journal file.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loon_api::{BoxFuture, Envelope, ExecutionId};

use super::super::line::{Batch, Blob, End};
use super::super::{JournalWriter, StoreError, SyncJob};
use super::fence::{Fence, FenceFile, Mark};
use super::io_error;
use super::open::Lease;
use super::wake::{Listener, Wakes};

/// Appends to a journal file. Its lease is the lock on `file`.
pub(super) struct FileWriter {
    exec: ExecutionId,
    dir: PathBuf,
    file: Arc<File>,
    fence_file: Arc<FenceFile>,
    fence: u64,
    pid: u32,
    end: End,
    /// Bytes of the file up to `end`.
    len: u64,
    /// Without it, it is taken as soon as a former writer lets it go.
    pub(super) has_lease: bool,
    /// The file still has its first name, which nobody looks for.
    is_new: bool,
    /// Folders whose new entries are not on disk yet.
    unsynced: Vec<PathBuf>,
    /// A write could not be taken back, or a sync failed. What is on disk is not known any more: the
    /// system reports a failed sync once and would call the next one good.
    broken: Arc<AtomicBool>,
    wakes: Arc<Wakes>,
}

/// The files that a writer works with.
pub(super) struct Files {
    pub(super) exec: ExecutionId,
    /// The folder they are in.
    pub(super) dir: PathBuf,
    pub(super) journal: File,
    pub(super) fence: FenceFile,
    pub(super) wakes: Arc<Wakes>,
}

impl FileWriter {
    pub(super) fn of_new(files: Files, mark: &Mark, unsynced: Vec<PathBuf>) -> Self {
        Self { is_new: true, unsynced, ..Self::of_opened(files, mark, 0) }
    }

    pub(super) fn of_opened(files: Files, mark: &Mark, len: u64) -> Self {
        Self {
            exec: files.exec,
            dir: files.dir,
            file: Arc::new(files.journal),
            fence_file: Arc::new(files.fence),
            fence: mark.fence,
            pid: mark.pid,
            end: mark.durable.clone(),
            len,
            has_lease: true,
            is_new: false,
            unsynced: Vec::new(),
            broken: Arc::default(),
            wakes: files.wakes,
        }
    }

    pub(super) fn exec(&self) -> ExecutionId {
        self.exec
    }

    /// Appends events given as JSON.
    pub(super) fn append_events(&mut self, events: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let batch = Batch::of_events(self.exec, events, self.fence, &self.end)?;
        self.append_batch(batch)
    }

    fn append_batch(&mut self, batch: Batch) -> Result<(), StoreError> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(self.write_error(std::io::Error::other("a former write or sync failed")));
        }
        for blob in &batch.blobs {
            self.keep_blob(blob)?;
        }
        let mut bytes = Vec::new();
        for line in &batch.lines {
            bytes.extend_from_slice(line);
            bytes.push(b'\n');
        }
        self.take_lease();
        let fence = self.fence_file.lock()?;
        fence.check(self.fence)?;
        self.write(&bytes, &fence)?;
        if self.is_new {
            let (from, to) = (self.dir.join("journal.new"), self.path());
            std::fs::rename(&from, &to).map_err(io_error("rename", &from))?;
            self.is_new = false;
        }
        drop(fence);
        self.end = batch.end;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Writes under the lock.
    fn write(&self, bytes: &[u8], fence: &Fence<'_>) -> Result<(), StoreError> {
        let written = (&*self.file).write_all(bytes);
        if !fence.is_in_place()? {
            // The process was stopped under the lock, and the journal was moved away meanwhile.
            return Err(StoreError::Fenced { exec: self.exec });
        }
        written.map_err(|error| {
            // Half a batch must not stay, or the next one would be lost with it.
            if self.file.set_len(self.len).is_err() {
                self.broken.store(true, Ordering::SeqCst);
            }
            self.write_error(error)
        })
    }

    /// Puts a payload on disk before any line speaks of it.
    fn keep_blob(&self, blob: &Blob) -> Result<(), StoreError> {
        let dir = self.dir.join("blobs");
        if !dir.is_dir() {
            DirBuilder::new().mode(0o700).create(&dir).map_err(io_error("create", &dir))?;
            sync_dir(&self.dir)?;
        }
        let path = dir.join(&blob.hash);
        let new = dir.join(format!("{}.new", blob.hash));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .map_err(io_error("create", &new))?;
        file.write_all(blob.text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
            // What is left of it would only take up room, of which there may be none.
            let _ = std::fs::remove_file(&new);
            io_error("write", &new)(error)
        })?;
        std::fs::rename(&new, &path).map_err(io_error("rename", &new))?;
        sync_dir(&dir)
    }

    fn path(&self) -> PathBuf {
        self.dir.join("journal.jsonl")
    }

    fn write_error(&self, error: std::io::Error) -> StoreError {
        io_error("write", &self.path())(error)
    }
}

impl JournalWriter for FileWriter {
    fn append(&mut self, batch: &[Envelope]) -> Result<(), StoreError> {
        let batch = Batch::of(self.exec, batch, self.fence, &self.end)?;
        self.append_batch(batch)
    }

    fn sync_job(&mut self) -> SyncJob {
        let file = Arc::clone(&self.file);
        let fence_file = Arc::clone(&self.fence_file);
        let mark = Mark { fence: self.fence, pid: self.pid, durable: self.end.clone() };
        let unsynced = std::mem::take(&mut self.unsynced);
        let broken = Arc::clone(&self.broken);
        let path = self.path();
        Box::new(move || {
            if broken.load(Ordering::SeqCst) {
                return Err(io_error("sync", &path)(std::io::Error::other("a former sync failed")));
            }
            let synced = file.sync_data().map_err(io_error("sync", &path));
            synced
                .and_then(|()| unsynced.iter().try_for_each(|dir| sync_dir(dir)))
                .inspect_err(|_| broken.store(true, Ordering::SeqCst))?;
            // Only after the sync: the mark must never promise more than is there.
            let fence = fence_file.lock()?;
            fence.check(mark.fence)?;
            fence.write(&mark)
        })
    }

    fn check(&self) -> Result<(), StoreError> {
        self.fence_file.check(self.fence)
    }

    fn take_lease(&mut self) -> bool {
        self.has_lease = self.has_lease || Lease::IfFree.take(&self.file).unwrap_or(false);
        self.has_lease
    }

    fn taken_over(&self) -> BoxFuture<'static, ()> {
        let mut listener = Listener::new(&self.wakes, &self.dir);
        let (fence_file, fence) = (Arc::clone(&self.fence_file), self.fence);
        Box::pin(async move {
            // Once before the first wait: it may have happened before there was anybody to hear it.
            while !matches!(fence_file.check(fence), Err(StoreError::Fenced { .. })) {
                listener.heard().await;
            }
        })
    }
}

fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io_error("sync", dir))
}

#[cfg(test)]
mod tests;
