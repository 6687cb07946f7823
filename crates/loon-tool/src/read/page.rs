//! A bounded page of numbered lines.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use loon_api::FileRead;
use tokio_util::sync::CancellationToken;

use super::kind;
use crate::nearby;
use crate::open;
use crate::text;
use crate::workspace::Workspace;
use crate::write_path::{Document, Encoding, Ending};

/// Most bytes of one page.
pub(crate) const PAGE: usize = 64 * 1024;
/// Larger files are not loaded: only the lines that are shown are read, and such a file cannot be
/// edited as text.
pub(crate) const LOADED: u64 = 16 * 1024 * 1024;
/// Most characters shown of a line.
const LINE: usize = 2000;

/// Which part of a file is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// First line, from 1.
    pub(crate) first: usize,
    /// Most lines.
    pub(crate) lines: usize,
    /// Most bytes of text.
    pub(crate) bytes: usize,
}

/// A part of a file, with what there is to say about it.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) text: String,
    /// Lines shown.
    pub(crate) lines: usize,
    /// The file, if it was read whole and can be edited now.
    pub(crate) read: Option<FileRead>,
}

/// Reads a page of the file at `path` (as [`nearby::locate`] gives it), and has the workspace
/// remember what was read. The error is what the model reads.
pub(crate) fn read(
    workspace: &Workspace,
    path: &Path,
    window: Window,
    cancel: &CancellationToken,
) -> Result<Page, String> {
    let shown = text::visible_line(&workspace.display(path));
    let failed = |error: io::Error| format!("{shown} cannot be read: {error}.");
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(nearby::missing(workspace, path));
        }
        Err(error) => return Err(failed(error)),
    };
    if metadata.is_dir() {
        return Err(format!("{shown} is a folder: use list_directory or tree."));
    }
    if !metadata.is_file() {
        return Err(format!("{shown} is {}, which cannot be read.", kind::special(&metadata)));
    }
    let mut file = open::for_reading(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.by_ref().take(kind::SAMPLE as u64).read_to_end(&mut bytes).map_err(failed)?;
    if kind::is_binary(&bytes) {
        return Err(format!(
            "{shown} is no text but {} of {}. Its first bytes: {}",
            kind::name(&bytes),
            text::size(metadata.len()),
            kind::glimpse(&bytes),
        ));
    }
    if metadata.len() > LOADED {
        return large(file, &bytes, window, &shown, metadata.len(), cancel);
    }
    file.take(LOADED + 1 - bytes.len() as u64).read_to_end(&mut bytes).map_err(failed)?;
    let document = Document::decode(bytes);
    if document.encoding() == Encoding::Utf8 && document.bytes().contains(&0) {
        let size = text::size(document.bytes().len() as u64);
        return Err(format!("{shown} is no text: it holds NUL bytes further on, in {size}."));
    }
    let page = loaded(&document, window, &shown)?;
    let read = Some(workspace.note_read(path, document.bytes()));
    Ok(Page { read, ..page })
}

fn loaded(document: &Document, window: Window, shown: &str) -> Result<Page, String> {
    let total = document.line_count();
    if total == 0 {
        return Ok(Page { text: "[the file is empty]".to_owned(), lines: 0, read: None });
    }
    if window.first > total {
        let lines = text::count(total, "line");
        return Err(format!("{shown} has {lines}; offset {} is past its end.", window.first));
    }
    let mut sheet = Sheet::new(window, &notes(document));
    let mut line = window.first - 1;
    while line < total {
        let whole = &document.view()[document.line_span(line)];
        if !sheet.put(whole.strip_suffix('\n').unwrap_or(whole)) {
            break;
        }
        line += 1;
    }
    if line < total {
        let (first, next) = (window.first, line + 1);
        sheet.note(&format!("lines {first}-{line} of {total}; go on with offset {next}"));
    } else if document.ending(total - 1) == Ending::None {
        sheet.note("no newline at the end of the file");
    }
    Ok(sheet.finish())
}

/// What the lines alone do not show.
fn notes(document: &Document) -> Vec<String> {
    let mut notes = Vec::new();
    if document.encoding() != Encoding::Utf8 {
        notes.push(format!("encoding {}, shown decoded", document.encoding().name()));
    } else if std::str::from_utf8(document.bytes()).is_err() {
        notes.push("bytes that are no UTF-8 are shown as \u{FFFD}".to_owned());
    }
    let endings = Endings::of(document);
    if let Some(name) = endings.unusual() {
        notes.push(format!("{name} line endings, shown as LF"));
    }
    if document.view().chars().any(|ch| ch.is_control() && !matches!(ch, '\t' | '\n')) {
        notes.push("control characters are shown as symbols".to_owned());
    }
    notes
}

/// How often each line ending occurs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Endings {
    lf: usize,
    crlf: usize,
    cr: usize,
}

impl Endings {
    pub(crate) fn of(document: &Document) -> Self {
        let mut endings = Self::default();
        for line in 0..document.line_count() {
            match document.ending(line) {
                Ending::Lf => endings.lf += 1,
                Ending::CrLf => endings.crlf += 1,
                Ending::Cr => endings.cr += 1,
                Ending::None => {}
            }
        }
        endings
    }

    /// Their name; absent if all are LF or there is none.
    pub(crate) fn unusual(self) -> Option<&'static str> {
        match (self.lf, self.crlf, self.cr) {
            (_, 0, 0) => None,
            (0, _, 0) => Some("CRLF"),
            (0, 0, _) => Some("CR"),
            _ => Some("mixed LF and CRLF"),
        }
    }
}

/// Reads on from the beginning of a file that is too large to be loaded.
fn large(
    file: File,
    begun: &[u8],
    window: Window,
    shown: &str,
    size: u64,
    cancel: &CancellationToken,
) -> Result<Page, String> {
    let size = text::size(size);
    if kind::is_utf16(begun) {
        return Err(format!("{shown} is UTF-16 text of {size}: convert a part of it with iconv."));
    }
    let begun = begun.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begun);
    let failed = |error: io::Error| format!("{shown} cannot be read: {error}.");
    let mut reader = BufReader::new(begun.chain(file));
    for skipped in 1..window.first {
        if skipped % 4096 == 1 && cancel.is_cancelled() {
            return Err("Cancelled.".to_owned());
        }
        if !next_line(&mut reader, &mut Vec::new(), 0).map_err(failed)? {
            let lines = text::count(skipped - 1, "line");
            return Err(format!("{shown} has {lines}; offset {} is past its end.", window.first));
        }
    }
    let mut sheet =
        Sheet::new(window, &[format!("a file of {size}, too large to be edited as text")]);
    let mut line = Vec::new();
    loop {
        line.clear();
        if !next_line(&mut reader, &mut line, LINE * 4).map_err(failed)? {
            break;
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if !sheet.put(&String::from_utf8_lossy(&line)) {
            let (first, next) = (window.first, window.first + sheet.lines);
            sheet.note(&format!("lines {first}-{}; go on with offset {next}", next - 1));
            break;
        }
    }
    if sheet.lines == 0 {
        let lines = text::count(window.first - 1, "line");
        return Err(format!("{shown} has {lines}; offset {} is past its end.", window.first));
    }
    Ok(sheet.finish())
}

/// Reads one line without its newline, keeping at most its first `keep` bytes. False at the end.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>, keep: usize) -> io::Result<bool> {
    let mut any = false;
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let piece = &available[..end.unwrap_or(available.len())];
        line.extend_from_slice(&piece[..piece.len().min(keep - line.len())]);
        let used = end.map_or(available.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Takes lines until the window is full.
struct Sheet {
    text: String,
    window: Window,
    lines: usize,
}

impl Sheet {
    fn new(window: Window, notes: &[String]) -> Self {
        let mut text = String::new();
        if !notes.is_empty() {
            text = format!("[{}]\n", notes.join("; "));
        }
        Self { text, window, lines: 0 }
    }

    /// False if there is no room for this line. The first one always has room.
    fn put(&mut self, line: &str) -> bool {
        let line = match line.char_indices().nth(LINE) {
            Some((end, _)) => {
                let rest = line[end..].chars().count();
                format!("{} [... {rest} more characters]", &text::visible(&line[..end]))
            }
            None => text::visible(line).into_owned(),
        };
        let numbered = format!("{}\t{line}\n", self.window.first + self.lines);
        let full =
            self.lines == self.window.lines || self.text.len() + numbered.len() > self.window.bytes;
        if full && self.lines > 0 {
            return false;
        }
        self.text.push_str(&numbered);
        self.lines += 1;
        true
    }

    fn note(&mut self, note: &str) {
        let _ = writeln!(self.text, "[{note}]");
    }

    fn finish(self) -> Page {
        Page { text: self.text, lines: self.lines, read: None }
    }
}
