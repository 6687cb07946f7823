//! Journals as files: `<data dir>/executions/<yyyy>/<mm>/<id>/journal.jsonl`.
//!
//! The lease is a lock of the operating system on the journal itself, so it ends with its process and
//! no file that stays behind can block anybody. Beside the journal are `fence`, `wake`, `blobs/`, after a
//! crash `torn-<n>`, `stop` once somebody left word to end it at the next step boundary, `holder` for
//! who opened it last, and `archived` if lists leave it out.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loon_api::{At, ExecutionId, Seq};

use super::line::{End, Link, TERMINAL, hash, rehome};
use super::verify::Verifier;
use super::{
    Changes, Holder, IsWhole, JournalStore, JournalWriter, Opened, Place, PlacedRecords, Records,
    Repaired, Stamp, StopRequest, StoreError, Verified,
};

mod archive;
mod fence;
mod fork;
mod open;
mod reader;
mod shelf;
mod tail;
mod wake;
mod writer;

pub use archive::Imported;
pub use shelf::make_private_folder;

use fence::{Fence, FenceFile, Mark};
use open::Aim;
use reader::Lines;
use wake::Wakes;
use writer::{FileWriter, Files};

/// Journals below one data folder.
#[derive(Clone, Debug)]
pub struct FileStore {
    executions: PathBuf,
    wakes: Arc<Wakes>,
}

impl FileStore {
    /// Journals below `data_dir`, which is made when the first journal is.
    pub fn new(data_dir: impl AsRef<Path>) -> Self {
        Self { executions: data_dir.as_ref().join("executions"), wakes: Wakes::new() }
    }

    /// The folder of one execution. Its journal, its blobs and its snapshots are in there.
    pub fn dir(&self, exec: ExecutionId) -> PathBuf {
        let ms = exec.created_ms().and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0);
        let made = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
        let day = jiff::tz::Offset::UTC.to_datetime(made).date();
        self.executions
            .join(format!("{:04}", day.year()))
            .join(format!("{:02}", day.month()))
            .join(exec.to_string())
    }

    fn journal(&self, exec: ExecutionId) -> PathBuf {
        self.dir(exec).join("journal.jsonl")
    }

    fn open_for(&self, exec: ExecutionId, options: &OpenOptions) -> Result<File, StoreError> {
        let path = self.journal(exec);
        options.open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::NotFound { exec },
            _ => io_error("open", &path)(error),
        })
    }

    /// The text of a blob, checked against its name.
    fn fetch(dir: &Path, name: &str) -> Result<String, String> {
        let path = dir.join("blobs").join(name);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("payload {}: {error}", path.display()))?;
        if hash(text.as_bytes()) != name {
            return Err(format!("payload {} was changed", path.display()));
        }
        Ok(text)
    }
}

impl JournalStore for FileStore {
    fn create(&self, exec: ExecutionId) -> Result<Box<dyn JournalWriter>, StoreError> {
        Ok(Box::new(self.create_writer(exec)?))
    }

    fn open(&self, exec: ExecutionId) -> Result<Opened, StoreError> {
        Ok(self.open_writer(exec, Aim::Work)?.into())
    }

    fn take_over(&self, exec: ExecutionId) -> Result<Opened, StoreError> {
        Ok(self.open_writer(exec, Aim::TakeOver)?.into())
    }

    fn take_over_to_end(&self, exec: ExecutionId) -> Result<Opened, StoreError> {
        Ok(self.open_writer(exec, Aim::End)?.into())
    }

    fn read(&self, exec: ExecutionId) -> Result<Records, StoreError> {
        let file = self.open_for(exec, OpenOptions::new().read(true))?;
        Ok(Box::new(reader::FileRecords::new(exec, self.dir(exec), Lines::new(file, u64::MAX))))
    }

    fn read_lean(&self, exec: ExecutionId, is_whole: IsWhole) -> Result<Records, StoreError> {
        let file = self.open_for(exec, OpenOptions::new().read(true))?;
        let lines = Lines::new(file, u64::MAX);
        Ok(Box::new(reader::FileRecords::lean(exec, self.dir(exec), lines, is_whole)))
    }

    fn read_from(&self, exec: ExecutionId, place: Place) -> Result<PlacedRecords, StoreError> {
        let mut file = self.open_for(exec, OpenOptions::new().read(true))?;
        let path = self.journal(exec);
        file.seek(SeekFrom::Start(place.0)).map_err(io_error("read", &path))?;
        let lines = Lines::new(file, u64::MAX);
        Ok(Box::new(reader::PlacedFileRecords::new(exec, self.dir(exec), lines, place)))
    }

    fn stamp(&self, exec: ExecutionId) -> Option<Stamp> {
        self.stamp_of(exec)
    }

    fn holder(&self, exec: ExecutionId) -> Option<Holder> {
        self.holder_of(exec)
    }

    fn last_holder(&self, exec: ExecutionId) -> Option<Holder> {
        shelf::told_holder(&self.dir(exec))
    }

    fn changes(&self, exec: ExecutionId) -> Result<Changes, StoreError> {
        self.changes_of(exec)
    }

    fn fork(&self, from: ExecutionId, upto: Seq, now: At) -> Result<ExecutionId, StoreError> {
        self.fork_of(from, upto, now)
    }

    fn list(&self) -> Result<Vec<ExecutionId>, StoreError> {
        let mut found = Vec::new();
        for year in entries(&self.executions)? {
            for month in entries(&year)? {
                for dir in entries(&month)? {
                    let name = dir.file_name().and_then(|name| name.to_str());
                    let exec = name.and_then(|name| name.parse::<ExecutionId>().ok());
                    if let (Some(exec), true) = (exec, dir.join("journal.jsonl").exists()) {
                        found.push(exec);
                    }
                }
            }
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        Ok(found)
    }

    fn verify(&self, exec: ExecutionId) -> Result<Verified, StoreError> {
        let dir = self.dir(exec);
        let path = self.journal(exec);
        let file = self.open_for(exec, OpenOptions::new().read(true))?;
        let (len, mark) = snapshot(&file, &path, &dir.join("fence"), exec)?;
        let fetch = |name: &str| Self::fetch(&dir, name);
        let mut verifier = Verifier::new(exec, mark.map(|mark| mark.durable), &fetch);
        let mut lines = Lines::new(file, len);
        let mut closed = true;
        while lines.advance().map_err(io_error("read", &path))? {
            let checked = verifier.check(lines.line());
            closed = lines.is_closed();
            let Err(fault) = checked else { continue };
            let is_empty = lines.line().is_empty();
            let at_end = lines.rest_is_empty().map_err(io_error("read", &path))?;
            return Ok(if is_empty && at_end {
                verifier.done(Some("empty lines follow the last record"))
            } else {
                verifier.damaged(fault, at_end)
            });
        }
        Ok(verifier.done((!closed).then_some("the last record lacks its line end")))
    }

    fn repair(&self, exec: ExecutionId) -> Result<Repaired, StoreError> {
        let found = self.verify(exec)?;
        let is_beyond_repair = found.damage.as_ref().is_some_and(|damage| !damage.mendable);
        if is_beyond_repair {
            found.sound(exec)?;
        }
        let open::Writable { mended, missing_records, .. } = self.open_writer(exec, Aim::Repair)?;
        Ok(Repaired {
            moved_bytes: mended.moved_bytes,
            moved_to: mended.moved_to,
            closed_line: mended.closed_line,
            missing_records,
        })
    }

    fn salvage(&self, exec: ExecutionId) -> Result<ExecutionId, StoreError> {
        let intact = self.verify(exec)?.records;
        let corrupt =
            |line, reason| StoreError::Corrupt { exec, line, reason, intact, mendable: false };
        if intact == 0 {
            return Err(corrupt(1, "there is no intact record to copy".to_owned()));
        }
        let dir = self.dir(exec);
        let path = self.journal(exec);
        let fetch = |name: &str| Self::fetch(&dir, name);
        let copy = ExecutionId::generate();
        let mut writer = self.create_writer(copy)?;
        let mut lines = Lines::new(self.open_for(exec, OpenOptions::new().read(true))?, u64::MAX);
        for number in 1..=intact {
            lines.advance().map_err(io_error("read", &path))?;
            let line = lines.line();
            if Link::parse(line).is_ok_and(|link| TERMINAL.contains(&link.kind.as_ref())) {
                break;
            }
            let event = rehome(line, copy, &fetch).map_err(|reason| corrupt(number, reason))?;
            writer.append_events(vec![event])?;
        }
        copy_files(&dir.join("snapshots"), &self.dir(copy).join("snapshots"))?;
        writer.sync()?;
        Ok(copy)
    }

    fn is_live(&self, exec: ExecutionId) -> bool {
        let Ok(file) = File::open(self.journal(exec)) else { return false };
        // Shared, so that two who look do not see each other; let go at once with the file.
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    fn ask_to_stop(&self, exec: ExecutionId, reason: Option<&str>) -> Result<(), StoreError> {
        self.open_for(exec, OpenOptions::new().read(true))?;
        // Under another name until it is whole, so that nobody reads half of it.
        let path = self.dir(exec).join("stop");
        let new = path.with_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .map_err(io_error("create", &new))?;
        file.write_all(reason.unwrap_or_default().as_bytes()).map_err(io_error("write", &new))?;
        std::fs::rename(&new, &path).map_err(io_error("write", &path))
    }

    fn asked_to_stop(&self, exec: ExecutionId) -> Result<Option<StopRequest>, StoreError> {
        let path = self.dir(exec).join("stop");
        match std::fs::read(&path) {
            Ok(reason) => Ok(Some(StopRequest::of(&String::from_utf8_lossy(&reason)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error("read", &path)(error)),
        }
    }
}

impl FileStore {
    fn create_writer(&self, exec: ExecutionId) -> Result<FileWriter, StoreError> {
        let dir = self.dir(exec);
        let parent = dir.parent().unwrap_or(&self.executions);
        let unsynced = folders_with_new_entries(&dir);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(io_error("create", parent))?;
        DirBuilder::new().mode(0o700).create(&dir).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Exists { exec },
            _ => io_error("create", &dir)(error),
        })?;
        Self::writer_in(exec, dir, Arc::clone(&self.wakes), unsynced)
    }

    /// The writer of a journal that begins in a folder that is there already.
    fn writer_in(
        exec: ExecutionId,
        dir: PathBuf,
        wakes: Arc<Wakes>,
        unsynced: Vec<PathBuf>,
    ) -> Result<FileWriter, StoreError> {
        let path = dir.join("journal.new");
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(io_error("create", &path))?;
        file.lock().map_err(io_error("lock", &path))?;
        let fence = FenceFile::open(dir.join("fence"), exec)?;
        let mark = Mark { fence: 1, pid: std::process::id(), durable: End::nothing() };
        fence.lock()?.write(&mark)?;
        shelf::note_holder(&dir);
        let files = Files { exec, dir, journal: file, fence, wakes };
        Ok(FileWriter::of_new(files, &mark, unsynced))
    }
}

/// The folders that get a new entry when a file is made in `dir`, which is not there yet.
fn folders_with_new_entries(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_path_buf()];
    // The last ancestor of a relative path is empty.
    for above in dir.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        found.push(above.to_path_buf());
        if above.is_dir() {
            break;
        }
    }
    found
}

/// Length and mark of a journal at one moment between two writes.
fn snapshot(
    file: &File,
    path: &Path,
    fence: &Path,
    exec: ExecutionId,
) -> Result<(u64, Option<Mark>), StoreError> {
    let len = || Ok(file.metadata().map_err(io_error("look at", path))?.len());
    let Some(file) = FenceFile::look_at(fence.to_path_buf(), exec)? else {
        return Ok((len()?, None));
    };
    // Between two writes, unless a process was stopped in one. The mark first: it never promises more
    // than is there.
    let held = file.lock_or_stuck()?;
    let mark = held.as_ref().map_or_else(|| file.read(), Fence::read)?;
    Ok((len()?, mark))
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match std::fs::read_dir(dir) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()
            .map_err(io_error("list", dir)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(io_error("list", dir)(error)),
    }
}

fn copy_files(from: &Path, to: &Path) -> Result<(), StoreError> {
    for file in entries(from)? {
        let Some(name) = file.file_name() else { continue };
        DirBuilder::new().recursive(true).mode(0o700).create(to).map_err(io_error("create", to))?;
        std::fs::copy(&file, to.join(name)).map_err(io_error("copy", &file))?;
    }
    Ok(())
}

/// Says what was tried with which file.
fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { action, path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests;
