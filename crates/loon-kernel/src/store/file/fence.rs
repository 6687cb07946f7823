//! The fence file beside a journal: the number of its present writer, and up to where the journal
//! is durable. Whoever writes the journal holds this file's lock for as long as the write takes, so
//! that nobody can take a newer fence between the check and the write.
//!
//! A process can be stopped while it holds the lock, and would write when it goes on. Whoever cannot
//! wait for it puts another fence file in the place of this one ([`FenceFile::displace`]) and moves
//! the journal to a file that the stopped process has not opened. What it writes later is in nobody's
//! journal, and it is told so: it looks whether its fence file is still in place before *and after*
//! each write.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use loon_api::ExecutionId;

use super::super::StoreError;
use super::super::line::End;
use super::io_error;

/// How long a lock is waited for that others hold only for the time of one write.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long somebody who may displace the fence file waits for its lock.
const TAKER_PATIENCE: Duration = Duration::from_millis(500);

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
    file: File,
    /// A lock of the system is shared by all threads that use one open file, hence the mutex.
    threads: Mutex<()>,
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
        Ok(Self { file, threads: Mutex::new(()), path, exec })
    }

    /// Opens the file only to lock and read it; nothing if there is none.
    pub(super) fn look_at(path: PathBuf, exec: ExecutionId) -> Result<Option<Self>, StoreError> {
        match File::open(&path) {
            Ok(file) => Ok(Some(Self { file, threads: Mutex::new(()), path, exec })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error("open", &path)(error)),
        }
    }

    /// Waits until no other process writes.
    pub(super) fn lock(&self) -> Result<Fence<'_>, StoreError> {
        self.lock_within(PATIENCE)?.ok_or_else(|| self.busy())
    }

    /// The same for somebody who displaces the file if its lock is stuck, which gives nothing.
    pub(super) fn lock_or_stuck(&self) -> Result<Option<Fence<'_>>, StoreError> {
        self.lock_within(TAKER_PATIENCE)
    }

    fn lock_within(&self, patience: Duration) -> Result<Option<Fence<'_>>, StoreError> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let locked = patiently(&self.file, patience).map_err(io_error("lock", &self.path))?;
        Ok(locked.then_some(Fence { _threads: threads, of: self }))
    }

    /// Puts a new fence file in the place of this one, whose lock is stuck. It holds a higher number
    /// and no mark, which tells who opens the journal next to move it first.
    pub(super) fn displace(&self) -> Result<(), StoreError> {
        let folder = self.lock_folder()?;
        if !self.is_in_place()? {
            return Ok(());
        }
        let new = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&new);
        let number = self.number()?.unwrap_or(0) + 1;
        let text = format!("{number:0DIGITS$}\n");
        file.and_then(|file| {
            file.write_all_at(text.as_bytes(), 0)?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)?;
            folder.sync_all()
        })
        .map_err(io_error("replace", &self.path))
    }

    /// Held while files are put in the place of others: two who do so at once would undo each other's
    /// work. It ends with the handle that comes back.
    fn lock_folder(&self) -> Result<File, StoreError> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let folder = File::open(dir).map_err(io_error("open", dir))?;
        if !patiently(&folder, PATIENCE).map_err(io_error("lock", dir))? {
            return Err(self.busy());
        }
        Ok(folder)
    }

    fn busy(&self) -> StoreError {
        StoreError::Busy { exec: self.exec, pid: Mark::peek(&self.path).map(|mark| mark.pid) }
    }

    /// Whether the file at its path is still this one. A path that leads nowhere is an error: without
    /// the file nobody could be kept from writing beside us.
    fn is_in_place(&self) -> Result<bool, StoreError> {
        let there = std::fs::metadata(&self.path).map_err(io_error("find", &self.path))?;
        let ours = self.file.metadata().map_err(io_error("look at", &self.path))?;
        Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino()))
    }

    /// The same as [`Fence::read`], perhaps while somebody writes.
    pub(super) fn read(&self) -> Result<Option<Mark>, StoreError> {
        let mut bytes = vec![0; 256];
        let mut len = 0;
        loop {
            match self.file.read_at(&mut bytes[len..], len as u64) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_error("read", &self.path)(error)),
            }
        }
        bytes.truncate(len);
        Ok(String::from_utf8(bytes).ok().and_then(|text| Mark::parse(&text)))
    }

    /// The number of the newest writer; nothing in a new or damaged file.
    fn number(&self) -> Result<Option<u64>, StoreError> {
        let mut digits = [0; DIGITS];
        match self.file.read_exact_at(&mut digits, 0) {
            Ok(()) => Ok(std::str::from_utf8(&digits).ok().and_then(|text| text.parse().ok())),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(io_error("read", &self.path)(error)),
        }
    }

    /// Fails unless `fence` is still the newest. Whoever writes asks this under the lock.
    pub(super) fn check(&self, fence: u64) -> Result<(), StoreError> {
        if self.is_in_place()? && self.number()? == Some(fence) {
            Ok(())
        } else {
            Err(StoreError::Fenced { exec: self.exec })
        }
    }
}

/// Takes the lock of a file; false if it could not be had in time.
fn patiently(file: &File, patience: Duration) -> io::Result<bool> {
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if begin.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// A locked fence file.
pub(super) struct Fence<'a> {
    _threads: MutexGuard<'a, ()>,
    of: &'a FenceFile,
}

impl Fence<'_> {
    /// What it says; nothing if it is new, damaged or was put in the place of another.
    pub(super) fn read(&self) -> Result<Option<Mark>, StoreError> {
        self.of.read()
    }

    /// The number of the newest writer, also where the mark is missing.
    pub(super) fn number(&self) -> Result<u64, StoreError> {
        Ok(self.of.number()?.unwrap_or(0))
    }

    /// Fails unless `fence` is still the newest.
    pub(super) fn check(&self, fence: u64) -> Result<(), StoreError> {
        self.of.check(fence)
    }

    /// Held while a journal is moved.
    pub(super) fn lock_folder(&self) -> Result<File, StoreError> {
        self.of.lock_folder()
    }

    /// False if another fence file was put in the place of this one.
    pub(super) fn is_in_place(&self) -> Result<bool, StoreError> {
        self.of.is_in_place()
    }

    /// Always the same length, so that no older text is left behind it.
    pub(super) fn write(&self, mark: &Mark) -> Result<(), StoreError> {
        self.of
            .file
            .write_all_at(mark.to_text().as_bytes(), 0)
            .map_err(io_error("write", &self.of.path))
    }

    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.of.file.sync_data().map_err(io_error("sync", &self.of.path))
    }
}

impl Drop for Fence<'_> {
    fn drop(&mut self) {
        // Closing the file would free it as well; there is nothing to be done about a failure.
        let _ = self.of.file.unlock();
    }
}
