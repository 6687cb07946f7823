//! Reads a journal as a stream, one line at a time, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::PathBuf;

use loon_api::{At, Envelope, ExecutionId, VERSION};

use super::super::StoreError;
use super::super::line::{Link, decode};
use super::{FileStore, io_error};

const BUFFER: usize = 256 * 1024;

/// The lines of a file up to a length.
pub(super) struct Lines {
    from: Take<BufReader<File>>,
    line: Vec<u8>,
    closed: bool,
}

impl Lines {
    pub(super) fn new(file: File, len: u64) -> Self {
        let from = BufReader::with_capacity(BUFFER, file).take(len);
        Self { from, line: Vec::new(), closed: true }
    }

    /// Goes to the next line; false at the end of the file.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        if self.from.read_until(b'\n', &mut self.line)? == 0 {
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
    ended: bool,
}

impl FileRecords {
    pub(super) fn new(exec: ExecutionId, dir: PathBuf, lines: Lines) -> Self {
        let path = dir.join("journal.jsonl");
        Self { exec, dir, path, lines, line: 0, records: 0, last_at: None, ended: false }
    }

    fn read(&mut self) -> Result<Option<Envelope>, StoreError> {
        loop {
            if !self.lines.advance().map_err(io_error("read", &self.path))? {
                return if self.records == 0 {
                    Err(self.corrupt("the file is empty".to_owned()))
                } else {
                    Ok(None)
                };
            }
            self.line += 1;
            if self.lines.line().is_empty() {
                continue;
            }
            let fetch = |name: &str| FileStore::fetch(&self.dir, name);
            let decoded = decode(self.lines.line(), self.exec, self.last_at, &fetch);
            return match decoded {
                Ok(envelope) => {
                    self.check_format(envelope.v)?;
                    self.records += 1;
                    self.last_at = Some(envelope.at);
                    Ok(Some(envelope))
                }
                // A torn end is what a crash leaves; whoever opens the journal mends it.
                Err(_)
                    if self.records > 0
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
