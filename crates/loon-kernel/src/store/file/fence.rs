//! The fence file beside a journal: the number of its present writer, and up to where the journal
//! is durable. Whoever writes the journal holds this file's lock for as long as the write takes, so
//! that nobody can take a newer fence between the check and the write.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use loon_api::ExecutionId;

use super::super::StoreError;
use super::super::line::End;
use super::io_error;

/// How long a lock is waited for that others hold only for the time of one write.
const PATIENCE: Duration = Duration::from_secs(2);

/// Digits of a fence number in the file.
const DIGITS: usize = 20;

/// What a fence file says.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    /// Number of the present writer.
    pub(super) fence: u64,
    /// Process that holds the lease, as far as known.
    pub(super) pid: u32,
    /// Up to where the journal is durable.
    pub(super) durable: End,
}

impl Mark {
    fn to_text(&self) -> String {
        let Self { fence, pid, durable } = self;
        format!("{fence:020} {pid:010} {:020} {}\n", durable.seq, durable.hash)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let mark = Self {
            fence: words.next()?.parse().ok()?,
            pid: words.next()?.parse().ok()?,
            durable: End {
                seq: words.next()?.parse().ok()?,
                hash: words.next().filter(|hash| hash.len() == 64)?.to_owned(),
            },
        };
        words.next().is_none().then_some(mark)
    }

    /// What the file at `path` says; nothing if it is missing or unreadable.
    pub(super) fn peek(path: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }
}

/// An open fence file.
pub(super) struct FenceFile {
    /// A lock of the system is shared by all threads that use one open file, hence the mutex.
    file: Mutex<File>,
    path: PathBuf,
    exec: ExecutionId,
}

impl FenceFile {
    pub(super) fn open(path: PathBuf, exec: ExecutionId) -> Result<Self, StoreError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io_error("open", &path))?;
        Ok(Self { file: Mutex::new(file), path, exec })
    }

    /// Opens the file only to lock and read it; nothing if there is none.
    pub(super) fn look_at(path: PathBuf, exec: ExecutionId) -> Result<Option<Self>, StoreError> {
        match File::open(&path) {
            Ok(file) => Ok(Some(Self { file: Mutex::new(file), path, exec })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error("open", &path)(error)),
        }
    }

    /// Waits until no other process writes.
    pub(super) fn lock(&self) -> Result<Fence<'_>, StoreError> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Fence { file, of: self }),
                Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {
                    let pid = Mark::peek(&self.path).map(|mark| mark.pid);
                    return Err(StoreError::Busy { exec: self.exec, pid });
                }
                Err(TryLockError::Error(error)) => return Err(io_error("lock", &self.path)(error)),
            }
        }
    }
}

/// A locked fence file.
pub(super) struct Fence<'a> {
    file: MutexGuard<'a, File>,
    of: &'a FenceFile,
}

impl Fence<'_> {
    pub(super) fn read(&self) -> Result<Option<Mark>, StoreError> {
        let mut bytes = vec![0; 256];
        let mut len = 0;
        loop {
            match self.file.read_at(&mut bytes[len..], len as u64) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_error("read", &self.of.path)(error)),
            }
        }
        bytes.truncate(len);
        Ok(String::from_utf8(bytes).ok().and_then(|text| Mark::parse(&text)))
    }

    /// Fails unless `fence` is still the newest.
    pub(super) fn check(&self, fence: u64) -> Result<(), StoreError> {
        let mut digits = [0; DIGITS];
        match self.file.read_exact_at(&mut digits, 0) {
            Ok(()) if digits == *format!("{fence:020}").as_bytes() => Ok(()),
            Ok(()) => Err(StoreError::Fenced { exec: self.of.exec }),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(StoreError::Fenced { exec: self.of.exec })
            }
            Err(error) => Err(io_error("read", &self.of.path)(error)),
        }
    }

    /// Always the same length, so that no older text is left behind it.
    pub(super) fn write(&self, mark: &Mark) -> Result<(), StoreError> {
        self.file
            .write_all_at(mark.to_text().as_bytes(), 0)
            .map_err(io_error("write", &self.of.path))
    }

    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(io_error("sync", &self.of.path))
    }
}

impl Drop for Fence<'_> {
    fn drop(&mut self) {
        // Closing the file would free it as well; there is nothing to be done about a failure.
        let _ = self.file.unlock();
    }
}
