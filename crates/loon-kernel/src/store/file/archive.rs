//! Sessions as one file to carry elsewhere. Its lines are, for each execution, a header, then the lines
//! of the journal as they are, with each payload on a line before the first that speaks of it. So the
//! chain of hashes comes along, and whoever imports it can tell that nothing was changed.

use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use loon_api::{Envelope, ExecutionId};
use serde::{Deserialize, Serialize};

use super::super::line::{End, Link, hash, move_to};
use super::super::verify::{Fault, Verifier};
use super::super::{JournalStore as _, JournalWriter as _, StoreError};
use super::fence::{FenceFile, Mark};
use super::reader::Lines;
use super::shelf::make_private_folder;
use super::wake::Wakes;
use super::{FileStore, FileWriter, io_error};

/// What `archive` says in a header.
const NAME: &str = "loon-sessions";

/// The newest form of archives.
const FORM: u32 = 1;

/// What has come in of a journal, until it is whole.
const STAGED: &str = "journal.import";

/// Longest line that is taken in, in bytes.
const MOST: u64 = 512 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct Header {
    archive: String,
    v: u32,
    exec: ExecutionId,
}

#[derive(Serialize, Deserialize)]
struct Payload {
    payload: String,
}

/// An execution that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its id where it comes from.
    pub from: ExecutionId,
    /// Its id here: the same, unless that was taken.
    pub exec: ExecutionId,
    /// Its records.
    pub records: u64,
}

impl FileStore {
    /// Writes executions as an archive. Pre-images of files are not in it. If one of them is not as it
    /// was written, nothing is: an archive vouches for what is in it.
    pub fn export(&self, execs: &[ExecutionId], out: &mut dyn Write) -> Result<(), StoreError> {
        for exec in execs {
            self.verify(*exec)?.sound(*exec)?;
        }
        execs.iter().try_for_each(|exec| self.export_one(*exec, out))
    }

    fn export_one(&self, exec: ExecutionId, out: &mut dyn Write) -> Result<(), StoreError> {
        let path = self.journal(exec);
        let file = self.open_for(exec, OpenOptions::new().read(true))?;
        let written =
            |source| StoreError::Io { action: "write", path: PathBuf::from("archive"), source };
        let json = |source| StoreError::Encode { exec, source };
        let header = Header { archive: NAME.to_owned(), v: FORM, exec };
        let header = serde_json::to_vec(&header).map_err(json)?;
        out.write_all(&header).and_then(|()| out.write_all(b"\n")).map_err(written)?;
        let dir = self.dir(exec);
        let mut told = HashSet::new();
        let mut lines = Lines::new(file, u64::MAX);
        let mut records = 0;
        while lines.advance().map_err(io_error("read", &path))? {
            let line = lines.line();
            if line.is_empty() {
                continue;
            }
            let Ok(moved) = move_to(line, exec) else {
                // What a crash left unfinished is no record.
                let at_end = lines.rest_is_empty().map_err(io_error("read", &path))?;
                let reason = "it is no record".to_owned();
                let line = records + 1;
                return if at_end {
                    Ok(())
                } else {
                    Err(StoreError::Corrupt {
                        exec,
                        line,
                        reason,
                        intact: records,
                        mendable: false,
                    })
                };
            };
            for name in moved.blobs.into_iter().filter(|name| told.insert(name.clone())) {
                let payload = Self::fetch(&dir, &name).map_err(|reason| {
                    let line = records + 1;
                    StoreError::Corrupt { exec, line, reason, intact: records, mendable: false }
                })?;
                let payload = serde_json::to_vec(&Payload { payload }).map_err(json)?;
                out.write_all(&payload).and_then(|()| out.write_all(b"\n")).map_err(written)?;
            }
            out.write_all(line).and_then(|()| out.write_all(b"\n")).map_err(written)?;
            records += 1;
        }
        Ok(())
    }

    /// Takes in what an archive holds, or a stream of events as `loon sessions export --json` writes
    /// it. Each execution is there whole and checked, or not at all.
    pub fn import(&self, from: &mut dyn BufRead) -> Result<Vec<Imported>, StoreError> {
        let mut imported = Vec::new();
        let mut part: Option<Part<'_>> = None;
        let mut number = 0;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut *from).take(MOST).read_until(b'\n', &mut line).map_err(|source| {
                StoreError::Io { action: "read", path: PathBuf::from("archive"), source }
            })?;
            number += 1;
            if read == 0 {
                break;
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if line.is_empty() {
                continue;
            }
            let bad = |reason: String| StoreError::Archive { line: number, reason };
            if let Ok(header) = serde_json::from_slice::<Header>(&line) {
                if header.archive != NAME || header.v > FORM {
                    return Err(bad(format!("it is of form {} {}", header.archive, header.v)));
                }
                if let Some(part) = part.take() {
                    imported.push(part.finish()?);
                }
                part = Some(Part::begin(self, header.exec)?);
                continue;
            }
            match &mut part {
                Some(part) => part.take(&line).map_err(bad)?,
                None => {
                    let whole = Part::of_events(self, &line).map_err(bad)?;
                    part.insert(whole).take(&line).map_err(bad)?;
                }
            }
        }
        match part {
            Some(part) => imported.push(part.finish()?),
            None if imported.is_empty() => {
                let reason = "there is no session in it".to_owned();
                return Err(StoreError::Archive { line: number, reason });
            }
            None => {}
        }
        Ok(imported)
    }
}

/// An execution on its way in. Dropped before it is whole, it leaves nothing behind.
struct Part<'a> {
    store: &'a FileStore,
    from: ExecutionId,
    exec: ExecutionId,
    dir: PathBuf,
    form: Form,
    records: u64,
    whole: bool,
}

/// How its lines become a journal.
enum Form {
    /// They are lines of a journal. They are kept as they are until all are there.
    Lines(File),
    /// They are events without a chain.
    Events(FileWriter),
}

impl<'a> Part<'a> {
    fn begin(store: &'a FileStore, from: ExecutionId) -> Result<Self, StoreError> {
        let exec = free_id(store, from);
        let dir = store.dir(exec);
        make_private_folder(dir.parent().unwrap_or(&store.executions))?;
        DirBuilder::new().mode(0o700).create(&dir).map_err(io_error("create", &dir))?;
        let form = Form::Lines(new_file(&dir.join(STAGED))?);
        Ok(Self { store, from, exec, dir, form, records: 0, whole: false })
    }

    fn of_events(store: &'a FileStore, first: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(first).map_err(|error| error.to_string())?;
        let from = Envelope::parse(text)
            .map_err(|_| {
                "this is neither an archive of sessions nor a stream of events".to_owned()
            })?
            .exec;
        let exec = free_id(store, from);
        let writer = store.create_writer(exec).map_err(|error| error.to_string())?;
        let (dir, form) = (store.dir(exec), Form::Events(writer));
        Ok(Self { store, from, exec, dir, form, records: 0, whole: false })
    }

    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let expected = self.records + 1;
        match &mut self.form {
            Form::Lines(file) => {
                if let Ok(Payload { payload }) = serde_json::from_slice(line) {
                    return keep_payload(&self.dir, &payload).map_err(|error| error.to_string());
                }
                file.write_all(line)
                    .and_then(|()| file.write_all(b"\n"))
                    .map_err(|error| error.to_string())?;
            }
            Form::Events(writer) => {
                let link = Link::parse(line)?;
                if link.seq != expected || link.exec != Some(self.from) {
                    return Err(format!("record {expected} of {} must follow", self.from));
                }
                let moved = move_to(line, self.exec)?;
                writer.append_events(vec![moved.event]).map_err(|error| error.to_string())?;
            }
        }
        self.records = expected;
        Ok(())
    }

    /// Checks the whole and lets others see it.
    fn finish(mut self) -> Result<Imported, StoreError> {
        let staged = self.dir.join(STAGED);
        match &mut self.form {
            Form::Events(writer) => writer.sync()?,
            Form::Lines(file) => {
                file.sync_all().map_err(io_error("sync", &staged))?;
                let mark = self.check(&staged)?;
                if self.exec == self.from {
                    let fence_file = FenceFile::open(self.dir.join("fence"), self.exec)?;
                    let held = fence_file.lock()?;
                    held.write(&mark)?;
                    held.sync()?;
                    let to = self.dir.join("journal.jsonl");
                    std::fs::rename(&staged, &to).map_err(io_error("rename", &staged))?;
                } else {
                    self.chain_anew(&staged)?;
                }
            }
        }
        if let Some(damage) = self.store.verify(self.exec)?.damage {
            return Err(StoreError::Archive { line: damage.line, reason: damage.reason });
        }
        self.whole = true;
        Ok(Imported { from: self.from, exec: self.exec, records: self.records })
    }

    /// Checks the lines as the journal they come from.
    fn check(&self, staged: &Path) -> Result<Mark, StoreError> {
        let bad = |line, reason| StoreError::Archive { line, reason };
        let fetch = |name: &str| FileStore::fetch(&self.dir, name);
        let mut lines = open_lines(staged)?;
        let mut verifier = Verifier::new(self.from, None, &fetch);
        let mut mark = Mark { fence: 1, pid: std::process::id(), durable: End::nothing() };
        while lines.advance().map_err(io_error("read", staged))? {
            let line = lines.line();
            verifier.check(line).map_err(|fault| match fault {
                Fault::Torn(reason) => bad(mark.durable.seq + 1, format!("its record: {reason}")),
                Fault::Changed(line, reason) => bad(line, format!("its record: {reason}")),
            })?;
            if let Ok(link) = Link::parse(line) {
                mark.durable = End { seq: link.seq, hash: hash(line) };
                mark.fence = link.fence.unwrap_or(mark.fence);
            }
        }
        match verifier.done(None).damage {
            Some(damage) => Err(bad(damage.line, damage.reason)),
            None => Ok(mark),
        }
    }

    /// Writes the lines as a journal under another id.
    fn chain_anew(&self, staged: &Path) -> Result<(), StoreError> {
        let mut writer =
            FileStore::writer_in(self.exec, self.dir.clone(), Wakes::new(), Vec::new())?;
        let mut lines = open_lines(staged)?;
        while lines.advance().map_err(io_error("read", staged))? {
            let moved = move_to(lines.line(), self.exec)
                .map_err(|reason| StoreError::Archive { line: 1, reason })?;
            writer.append_events(vec![moved.event])?;
        }
        writer.sync()?;
        std::fs::remove_file(staged).map_err(io_error("remove", staged))
    }
}

/// The id of what comes in: its own, unless it is taken here.
fn free_id(store: &FileStore, from: ExecutionId) -> ExecutionId {
    if store.dir(from).exists() { ExecutionId::generate() } else { from }
}

fn open_lines(path: &Path) -> Result<Lines, StoreError> {
    Ok(Lines::new(File::open(path).map_err(io_error("open", path))?, u64::MAX))
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.whole {
            // Nobody was told of it.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Keeps a payload under its own hash, whatever the archive calls it.
fn keep_payload(dir: &Path, payload: &str) -> Result<(), StoreError> {
    let blobs = dir.join("blobs");
    make_private_folder(&blobs)?;
    let path = blobs.join(hash(payload.as_bytes()));
    if path.exists() {
        return Ok(());
    }
    let mut file = new_file(&path)?;
    file.write_all(payload.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(io_error("write", &path))
}

fn new_file(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).map_err(io_error("create", path))
}

#[cfg(test)]
mod tests;
