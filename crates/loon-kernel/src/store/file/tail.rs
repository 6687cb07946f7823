//! The end of a journal: where the next line goes on, and what a crash in the middle of a write has
//! left there.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use loon_api::ExecutionId;

use super::super::StoreError;
use super::super::line::{End, Link, hash};
use super::io_error;

/// How much of the end is read at first; more if two lines do not fit.
const WINDOW: u64 = 64 * 1024;

/// The end of a journal as it was found.
pub(super) struct Tail {
    /// The last whole record.
    pub(super) end: End,
    /// Its fence.
    pub(super) fence: u64,
    /// Bytes up to its end, without the line end.
    whole: u64,
    /// What follows the last whole record.
    rest: Rest,
}

enum Rest {
    /// One line end, as it should be.
    LineEnd,
    /// Nothing: the line end itself is missing.
    Nothing,
    /// More line ends than one.
    EmptyLines,
    /// A record whose writing was cut off.
    Torn(Vec<u8>),
}

impl Tail {
    /// Looks at the end of `file` and changes nothing.
    pub(super) fn find(file: &File, path: &Path, exec: ExecutionId) -> Result<Self, StoreError> {
        let len = file.metadata().map_err(io_error("look at", path))?.len();
        let mut window = WINDOW.min(len);
        loop {
            let start = len - window;
            let mut bytes = vec![0; usize::try_from(window).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut bytes, start).map_err(io_error("read", path))?;
            let whole_file = start == 0;
            match Self::of(&bytes, start, whole_file) {
                Found::Tail(tail) => return Ok(tail),
                Found::NeedsMore if !whole_file => window = (window * 4).min(len),
                Found::NeedsMore | Found::Broken => return Err(broken(exec, len)),
            }
        }
    }

    fn of(bytes: &[u8], start: u64, whole_file: bool) -> Found {
        let Some(last) = LastLine::of(bytes, whole_file) else { return Found::NeedsMore };
        if let Ok(link) = Link::parse(last.bytes) {
            let rest = match bytes.len() - last.end {
                0 => Rest::Nothing,
                1 => Rest::LineEnd,
                _ => Rest::EmptyLines,
            };
            return Found::Tail(Self::after(&link, last.bytes, start + last.end as u64, rest));
        }
        // The last line is no record: the one before it must be.
        let torn = bytes[last.start..].to_vec();
        let Some(before) = LastLine::of(&bytes[..last.start], whole_file) else {
            return Found::NeedsMore;
        };
        match Link::parse(before.bytes) {
            Ok(link) => {
                let whole = start + before.end as u64;
                Found::Tail(Self::after(&link, before.bytes, whole, Rest::Torn(torn)))
            }
            Err(_) => Found::Broken,
        }
    }

    fn after(link: &Link<'_>, line: &[u8], whole: u64, rest: Rest) -> Self {
        let end = End { seq: link.seq, hash: hash(line) };
        Self { end, fence: link.fence.unwrap_or(0), whole, rest }
    }

    /// Brings the file to the state in which the next line can be appended.
    pub(super) fn mend(&self, file: &File, path: &Path) -> Result<Mended, StoreError> {
        let mut mended = Mended { len: self.whole + 1, ..Mended::default() };
        match &self.rest {
            Rest::LineEnd => return Ok(mended),
            Rest::Nothing => {
                let mut file = file;
                file.write_all(b"\n").map_err(io_error("write", path))?;
                mended.closed_line = true;
            }
            Rest::EmptyLines => {
                file.set_len(self.whole + 1).map_err(io_error("shorten", path))?;
            }
            Rest::Torn(bytes) => {
                mended.moved_to = Some(keep(bytes, path)?);
                mended.moved_bytes = Some(bytes.len() as u64);
                // `whole` is followed by its line end and perhaps by empty lines.
                file.set_len(self.whole + 1).map_err(io_error("shorten", path))?;
            }
        }
        file.sync_all().map_err(io_error("sync", path))?;
        Ok(mended)
    }
}

/// What was done to the end of a journal.
#[derive(Default)]
pub(super) struct Mended {
    pub(super) len: u64,
    pub(super) moved_bytes: Option<u64>,
    pub(super) moved_to: Option<PathBuf>,
    pub(super) closed_line: bool,
}

enum Found {
    Tail(Tail),
    NeedsMore,
    Broken,
}

/// The last line that is not empty, by its place in a window.
struct LastLine<'a> {
    bytes: &'a [u8],
    start: usize,
    end: usize,
}

impl<'a> LastLine<'a> {
    fn of(window: &'a [u8], whole_file: bool) -> Option<Self> {
        let end = window.iter().rposition(|byte| *byte != b'\n')? + 1;
        let start = match window[..end].iter().rposition(|byte| *byte == b'\n') {
            Some(line_end) => line_end + 1,
            None if whole_file => 0,
            None => return None,
        };
        Some(Self { bytes: &window[start..end], start, end })
    }
}

fn broken(exec: ExecutionId, len: u64) -> StoreError {
    let (line, reason) = match len {
        0 => (1, "the file is empty"),
        _ => (1, "no whole record is at the end of the file"),
    };
    StoreError::Corrupt { exec, line, reason: reason.to_owned(), intact: 0, mendable: false }
}

/// Puts torn bytes into the first free side file.
fn keep(bytes: &[u8], journal: &Path) -> Result<PathBuf, StoreError> {
    let mut number = 1_u64;
    loop {
        let path = journal.with_file_name(format!("torn-{number}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match file {
            Ok(mut file) => {
                file.write_all(bytes)
                    .and_then(|()| file.sync_all())
                    .map_err(io_error("write", &path))?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(io_error("create", &path)(error)),
        }
    }
}
