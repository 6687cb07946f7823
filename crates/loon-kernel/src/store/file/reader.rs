//! Reads a journal as a stream, one line at a time, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::PathBuf;

use loon_api::{At, Envelope, ExecutionId, VERSION};

use super::super::line::{Link, decode_where};
use super::super::{IsWhole, Place, StoreError};
use super::{FileStore, io_error};

const BUFFER: usize = 256 * 1024;

/// The lines of a file up to a length.
pub(super) struct Lines {
    from: Take<BufReader<File>>,
    line: Vec<u8>,
    closed: bool,
    /// Bytes read, without the present line.
    before: u64,
    /// Bytes of the present line with its end.
    len: u64,
}

impl Lines {
    pub(super) fn new(file: File, len: u64) -> Self {
        let from = BufReader::with_capacity(BUFFER, file).take(len);
        Self { from, line: Vec::new(), closed: true, before: 0, len: 0 }
    }

    /// Goes to the next line; false at the end of the file.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.before += std::mem::take(&mut self.len);
        self.len = self.from.read_until(b'\n', &mut self.line)? as u64;
        if self.len == 0 {
            return Ok(false);
        }
        self.closed = self.line.last() == Some(&b'\n');
        if self.closed {
            self.line.pop();
        }
        Ok(true)
    }

    /// The line without its end.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Bytes from the beginning to the end of the line.
    pub(super) fn position(&self) -> u64 {
        self.before + self.len
    }

    /// True if the line that was read last had its end.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// True if only line ends follow.
    pub(super) fn rest_is_empty(&mut self) -> io::Result<bool> {
        loop {
            let bytes = self.from.fill_buf()?;
            if bytes.is_empty() {
                return Ok(true);
            }
            if bytes.iter().any(|byte| *byte != b'\n') {
                return Ok(false);
            }
            let len = bytes.len();
            self.from.consume(len);
        }
    }
}

/// The records of a journal.
pub(super) struct FileRecords {
    exec: ExecutionId,
    dir: PathBuf,
    path: PathBuf,
    lines: Lines,
    line: u64,
    records: u64,
    last_at: Option<At>,
    /// A record is there, read now or before.
    begun: bool,
    ended: bool,
    /// The records that are wanted with all their texts; absent wants all.
    is_whole: Option<IsWhole>,
}

impl FileRecords {
    pub(super) fn new(exec: ExecutionId, dir: PathBuf, lines: Lines) -> Self {
        let path = dir.join("journal.jsonl");
        Self {
            exec,
            dir,
            path,
            lines,
            line: 0,
            records: 0,
            last_at: None,
            begun: false,
            ended: false,
            is_whole: None,
        }
    }

    /// Without the texts of results and diffs in records that `is_whole` does not name.
    pub(super) fn lean(exec: ExecutionId, dir: PathBuf, lines: Lines, is_whole: IsWhole) -> Self {
        Self { is_whole: Some(is_whole), ..Self::new(exec, dir, lines) }
    }

    fn read(&mut self) -> Result<Option<Envelope>, StoreError> {
        loop {
            if !self.lines.advance().map_err(io_error("read", &self.path))? {
                return if self.begun {
                    Ok(None)
                } else {
                    Err(self.corrupt("the file is empty".to_owned()))
                };
            }
            self.line += 1;
            if self.lines.line().is_empty() {
                continue;
            }
            let fetch = |name: &str| FileStore::fetch(&self.dir, name);
            let is_whole = |seq| self.is_whole.as_ref().is_none_or(|is_whole| is_whole(seq));
            let line = self.lines.line();
            let decoded = decode_where(line, self.exec, self.last_at, &fetch, &is_whole);
            return match decoded {
                Ok(envelope) => {
                    self.check_format(envelope.v)?;
                    self.records += 1;
                    self.begun = true;
                    self.last_at = Some(envelope.at);
                    Ok(Some(envelope))
                }
                // A torn end is what a crash leaves; whoever opens the journal mends it.
                Err(_)
                    if self.begun
                        && self.is_torn_end().map_err(io_error("read", &self.path))? =>
                {
                    Ok(None)
                }
                Err(reason) => Err(self.corrupt(reason)),
            };
        }
    }

    fn is_torn_end(&mut self) -> io::Result<bool> {
        // Without its line end it was the end of the file when it was read, whatever a writer has
        // put behind it since.
        Ok(Link::parse(self.lines.line()).is_err()
            && (!self.lines.is_closed() || self.lines.rest_is_empty()?))
    }

    fn check_format(&self, version: u32) -> Result<(), StoreError> {
        if version <= VERSION {
            return Ok(());
        }
        let needed = Link::parse(self.lines.line()).ok().and_then(|link| link.min_reader);
        match needed {
            Some(needed) if needed > VERSION => {
                Err(StoreError::NewerFormat { exec: self.exec, line: self.line, needed })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn corrupt(&self, reason: String) -> StoreError {
        StoreError::Corrupt {
            exec: self.exec,
            line: self.line.max(1),
            reason,
            intact: self.records,
            mendable: false,
        }
    }
}

/// The records of a journal from a place on.
pub(super) struct PlacedFileRecords {
    records: FileRecords,
    begin: Place,
}

impl PlacedFileRecords {
    /// `lines` begin at `begin`.
    pub(super) fn new(exec: ExecutionId, dir: PathBuf, lines: Lines, begin: Place) -> Self {
        let mut records = FileRecords::new(exec, dir, lines);
        // In the middle of a journal, nothing more is no fault.
        records.begun = begin > Place(0);
        Self { records, begin }
    }
}

impl Iterator for PlacedFileRecords {
    type Item = Result<(Envelope, Place), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.records.next()?;
        let place = Place(self.begin.0 + self.records.lines.position());
        Some(next.map(|envelope| (envelope, place)))
    }
}

impl Iterator for FileRecords {
    type Item = Result<Envelope, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
