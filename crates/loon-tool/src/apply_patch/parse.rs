//! Reading patches: the envelope format (`*** Begin Patch`) and unified diffs.

mod envelope;
mod unified;

use thiserror::Error;

/// A patch over one or more files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// In the order of the text.
    pub files: Vec<FilePatch>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// Line of the patch where it begins, from 1.
    pub line: usize,
    /// The file, as written.
    pub path: String,
    /// What happens to it.
    pub action: Action,
}

/// What happens to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is made.
    Add {
        /// Its whole text.
        content: String,
    },
    /// It goes.
    Delete,
    /// It changes, its place maybe too.
    Update {
        /// The new place.
        move_to: Option<String>,
        /// The changes, in order; may be empty with a new place.
        hunks: Vec<Hunk>,
    },
}

/// One change: lines that are there, and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Line of the patch where it begins, from 1.
    pub line: usize,
    /// Lines above the change that narrow its place, outermost first.
    pub headers: Vec<String>,
    /// Number of its first line in the old file, from 1, if the patch says so. A hint.
    pub start: Option<usize>,
    /// Its lines.
    pub lines: Vec<HunkLine>,
    /// It ends where the file ends.
    pub at_end: bool,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    /// Its sign.
    pub kind: LineKind,
    /// Its text without sign and newline.
    pub text: String,
    /// It has no newline, being the last of its file.
    pub no_newline: bool,
    /// It was an empty line of the patch without a sign; at the end of a hunk it may mean nothing.
    pub unsigned: bool,
}

/// What a line of a hunk says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// It is there and stays.
    Context,
    /// It is there and goes.
    Remove,
    /// It comes.
    Add,
}

/// Why a text is no patch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line} of the patch: {problem}")]
pub struct ParseError {
    /// Line of the patch, from 1.
    pub line: usize,
    /// What is wrong there and what should be there.
    pub problem: String,
}

/// Reads a patch in either format.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    if lines.iter().all(|line| line.ends_with('\r')) {
        lines = lines.iter().filter_map(|line| line.strip_suffix('\r')).collect();
    }
    let mut reader = Reader { lines, at: 0 };
    reader.skip_blank();
    let patch = match reader.peek() {
        Some(line) if line.trim_end() == "*** Begin Patch" => envelope::parse(&mut reader)?,
        Some(line) if unified::begins(line) => unified::parse(&mut reader)?,
        _ => {
            return Err(
                reader.error("expected `*** Begin Patch`, or the `---` line of a unified diff")
            );
        }
    };
    if patch.files.is_empty() {
        return Err(reader.error("the patch names no file"));
    }
    Ok(patch)
}

/// The lines of a patch and the place in them.
struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<&'a str> {
        self.lines.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.at += 1;
        Some(line)
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
    }

    /// Number of the next line, from 1.
    fn number(&self) -> usize {
        self.at + 1
    }

    fn error(&self, problem: impl Into<String>) -> ParseError {
        ParseError { line: self.number(), problem: problem.into() }
    }
}

/// A line of a hunk by its sign; absent if it has none.
fn hunk_line(line: &str) -> Option<HunkLine> {
    let (kind, text, unsigned) = match line.as_bytes().first() {
        None => (LineKind::Context, line, true),
        Some(b' ') => (LineKind::Context, &line[1..], false),
        Some(b'-') => (LineKind::Remove, &line[1..], false),
        Some(b'+') => (LineKind::Add, &line[1..], false),
        Some(_) => return None,
    };
    Some(HunkLine { kind, text: text.to_owned(), no_newline: false, unsigned })
}

/// The first line of the old file in `-12,3 +12,4 @@`, and the lengths of both sides.
fn ranges(header: &str) -> Option<(usize, usize, usize)> {
    fn range(text: &str) -> Option<(usize, usize)> {
        match text.split_once(',') {
            Some((start, len)) => Some((start.parse().ok()?, len.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    }
    let mut words = header.split_whitespace();
    let (start, old) = range(words.next()?.strip_prefix('-')?)?;
    let (_, new) = range(words.next()?.strip_prefix('+')?)?;
    Some((start, old, new))
}

#[cfg(test)]
mod tests;
