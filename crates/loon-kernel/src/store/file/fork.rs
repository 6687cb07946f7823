//! A new execution that begins with the records of another one.

use std::fs::OpenOptions;
use std::path::Path;

use loon_api::event::SessionForked;
use loon_api::{At, Envelope, ExecutionId, Seq, VERSION};

use super::super::line::{Link, TERMINAL, move_to};
use super::super::verify::{Fault, Verifier};
use super::super::{JournalWriter as _, StoreError};
use super::reader::Lines;
use super::shelf::make_private_folder;
use super::{FileStore, FileWriter, entries, io_error};

/// Records that are written together.
const BATCH: usize = 256;

impl FileStore {
    pub(super) fn fork_of(
        &self,
        from: ExecutionId,
        upto: Seq,
        now: At,
    ) -> Result<ExecutionId, StoreError> {
        let file = self.open_for(from, OpenOptions::new().read(true))?;
        let exec = ExecutionId::generate();
        let mut writer = self.create_writer(exec)?;
        let copied = self.copy_records(from, Lines::new(file, u64::MAX), upto, &mut writer);
        let done = copied.and_then(|records| {
            link_files(&self.dir(from).join("snapshots"), &self.dir(exec).join("snapshots"))?;
            let event = SessionForked { from, records };
            let seq = Some(records + 1);
            let event = event.into();
            writer.append(&[Envelope { v: VERSION, seq, at: now, exec, turn: None, event }])?;
            writer.sync()
        });
        drop(writer);
        if done.is_err() {
            // Nobody was told of it.
            let _ = std::fs::remove_dir_all(self.dir(exec));
        }
        done.map(|()| exec)
    }

    /// Copies up to `upto` records, payloads included, and checks the chain on the way, so that no
    /// fork vouches for what was changed. Gives their number.
    fn copy_records(
        &self,
        from: ExecutionId,
        mut lines: Lines,
        upto: Seq,
        writer: &mut FileWriter,
    ) -> Result<Seq, StoreError> {
        let path = self.journal(from);
        let (old, new) = (self.dir(from).join("blobs"), self.dir(writer.exec()).join("blobs"));
        // Payloads are as good in the copy as they were: their name is their hash.
        let unread = |_: &str| Ok(String::new());
        let mut verifier = Verifier::new(from, None, &unread);
        let mut batch = Vec::new();
        let mut records = 0;
        while records < upto && lines.advance().map_err(io_error("read", &path))? {
            let line = lines.line();
            if line.is_empty() {
                continue;
            }
            if Link::parse(line).is_ok_and(|link| TERMINAL.contains(&link.kind.as_ref())) {
                break;
            }
            let corrupt = |line, reason| StoreError::Corrupt {
                exec: from,
                line,
                reason,
                intact: records,
                mendable: false,
            };
            verifier.check(line).map_err(|fault| match fault {
                Fault::Torn(reason) => corrupt(records + 1, reason),
                Fault::Changed(line, reason) => corrupt(line, reason),
            })?;
            let moved = move_to(line, writer.exec()).map_err(|why| corrupt(records + 1, why))?;
            if !moved.blobs.is_empty() {
                make_private_folder(&new)?;
            }
            for blob in &moved.blobs {
                link(&old.join(blob), &new.join(blob))?;
            }
            batch.push(moved.event);
            records += 1;
            if batch.len() == BATCH {
                writer.append_events(std::mem::take(&mut batch))?;
            }
        }
        writer.append_events(batch)?;
        Ok(records)
    }
}

/// Files in there never change, so a second name is as good as a copy.
fn link_files(from: &Path, to: &Path) -> Result<(), StoreError> {
    let files = entries(from)?;
    if !files.is_empty() {
        make_private_folder(to)?;
    }
    for file in files {
        if let Some(name) = file.file_name() {
            link(&file, &to.join(name))?;
        }
    }
    Ok(())
}

fn link(from: &Path, to: &Path) -> Result<(), StoreError> {
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems know no second names.
        Err(_) => std::fs::copy(from, to).map(drop).map_err(io_error("copy", from)),
    }
}

#[cfg(test)]
mod tests;
