//! What a search found, within bounds.

use std::fmt::Write as _;
use std::io;

use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use loon_kernel::ToolOutput;

use super::Mode;
use super::matcher::Expression;
use crate::text;

/// Most bytes of result text.
const TEXT: usize = 32 * 1024;
/// Most characters shown of a line.
const LINE: usize = 300;
/// Characters shown before the match in a longer line.
const BEFORE: usize = 60;
/// Matching lines after which the search stops.
const ENOUGH: usize = 20_000;

/// What one file holds.
pub(super) struct Found<'a> {
    expression: &'a Expression,
    /// Bytes that may still be shown.
    room: usize,
    mode: Mode,
    text: String,
    /// Matching lines.
    matches: usize,
    /// Matching lines shown.
    shown: usize,
    is_binary: bool,
    gap: bool,
}

impl<'a> Found<'a> {
    pub(super) fn new(expression: &'a Expression, report: &Report) -> Self {
        Self {
            expression,
            room: TEXT.saturating_sub(report.text.len()),
            mode: report.mode,
            text: String::new(),
            matches: 0,
            shown: 0,
            is_binary: false,
            gap: false,
        }
    }

    /// Adds a line with its number and a mark; false if there is no room.
    fn line(&mut self, number: u64, mark: char, bytes: &[u8]) -> bool {
        if self.mode != Mode::Content || self.text.len() >= self.room {
            return false;
        }
        if std::mem::take(&mut self.gap) && !self.text.is_empty() {
            self.text.push_str("--\n");
        }
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let _ = writeln!(self.text, "{number}{mark}{}", self.shorten(bytes));
        true
    }

    /// A line as shown; of a long one the part around the match.
    fn shorten(&self, bytes: &[u8]) -> String {
        let line = String::from_utf8_lossy(bytes);
        if line.char_indices().nth(LINE).is_none() {
            return text::visible(&line).into_owned();
        }
        let place =
            self.expression.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start());
        let before = String::from_utf8_lossy(&bytes[..place]).chars().count();
        let skipped = before.saturating_sub(BEFORE);
        let part: String = line.chars().skip(skipped).take(LINE).collect();
        let begin = if skipped > 0 { "[...] " } else { "" };
        let end = if line.chars().nth(skipped + LINE).is_some() { " [...]" } else { "" };
        format!("{begin}{}{end}", text::visible(&part))
    }
}

impl Sink for Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let first = found.line_number().unwrap_or(0);
        for (number, line) in (first..).zip(found.lines()) {
            self.matches += 1;
            self.shown += usize::from(self.line(number, ':', line));
        }
        Ok(self.mode != Mode::Files && self.matches < ENOUGH)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.line(context.line_number().unwrap_or(0), '-', context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.gap = true;
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}

/// What all files hold.
pub(super) struct Report {
    mode: Mode,
    text: String,
    matches: usize,
    shown: usize,
    /// Files that match.
    files: usize,
    /// Of these, files shown.
    files_shown: usize,
    searched: usize,
    binary: usize,
    /// Files and folders that could not be read.
    pub(super) unreadable: usize,
}

impl Report {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mode,
            text: String::new(),
            matches: 0,
            shown: 0,
            files: 0,
            files_shown: 0,
            searched: 0,
            binary: 0,
            unreadable: 0,
        }
    }

    /// Adds what was found in the file `name`.
    pub(super) fn add(&mut self, name: &str, found: &Found<'_>) {
        if found.is_binary {
            self.binary += 1;
            return;
        }
        self.searched += 1;
        if found.matches == 0 {
            return;
        }
        self.matches += found.matches;
        self.files += 1;
        if self.text.len() >= TEXT {
            return;
        }
        let matches = found.matches;
        let _ = match self.mode {
            Mode::Content if found.text.is_empty() => return,
            Mode::Content => write!(self.text, "{name}\n{}\n", found.text),
            Mode::Files => writeln!(self.text, "{name}"),
            Mode::Count => writeln!(self.text, "{name}:{matches}"),
        };
        self.files_shown += 1;
        self.shown += found.shown;
    }

    /// True if going on would tell nothing new.
    pub(super) fn is_over(&self) -> bool {
        self.matches >= ENOUGH
    }

    /// The result of the search in `place`.
    pub(super) fn finish(mut self, place: &str, hidden_too: bool) -> ToolOutput {
        let more = if self.is_over() { "at least " } else { "" };
        let files = text::count(self.files, "file");
        let counts = match self.mode {
            Mode::Files => format!("{more}{files}"),
            Mode::Content | Mode::Count => {
                format!("{more}{} in {files}", text::count(self.matches, "match"))
            }
        };
        let mut notes = vec![counts.clone()];
        if self.matches == 0 {
            let hidden = if hidden_too { "" } else { ", hidden" };
            let searched = text::count(self.searched, "file");
            notes = vec![format!(
                "no match in {searched} of {place}; ignored{hidden} and binary files were left out"
            )];
        } else if self.mode == Mode::Content && self.shown < self.matches {
            notes.push(format!("{} shown; narrow down by path, glob or mode files", self.shown));
        } else if self.files_shown < self.files {
            notes.push(format!(
                "{} shown; narrow down by path or glob",
                text::count(self.files_shown, "file")
            ));
        }
        if self.binary > 0 {
            notes.push(format!("{} skipped", text::count(self.binary, "binary file")));
        }
        if self.unreadable > 0 {
            notes.push(format!("{} not readable", text::count(self.unreadable, "path")));
        }
        let _ = write!(self.text, "[{}]", notes.join("; "));
        ToolOutput::ok(self.text, counts)
    }
}
