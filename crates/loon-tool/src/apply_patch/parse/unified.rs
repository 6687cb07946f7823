//! Unified diffs, plain or from Git. Line numbers in them are hints; the text decides.

use super::{Action, FilePatch, Hunk, ParseError, Patch, Reader, hunk_line, ranges};

/// Whether a unified diff can begin with this line.
pub(super) fn begins(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with("diff ") || line.starts_with("Index: ")
}

/// Reads to the end of the text.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Patch, ParseError> {
    let mut patch = Patch::default();
    loop {
        reader.skip_blank();
        match reader.peek() {
            None => return Ok(patch),
            Some(line) if begins(line) => patch.files.push(file(reader)?),
            Some(_) => return Err(reader.error("expected the `---` line of the next file")),
        }
    }
}

/// What Git says of a file before its `---` line.
#[derive(Default)]
struct Extended {
    git_paths: Option<(String, String)>,
    rename: Option<(String, String)>,
    added: bool,
    deleted: bool,
}

fn file(reader: &mut Reader<'_>) -> Result<FilePatch, ParseError> {
    let line = reader.number();
    let extended = extended(reader)?;
    if !reader.peek().is_some_and(|line| line.starts_with("--- ")) {
        return without_hunks(reader, line, extended);
    }
    let old = path(reader, "--- ")?;
    let new = path(reader, "+++ ")?;
    let hunks = hunks(reader)?;
    let (path, action) = match (old, new) {
        (None, None) => return Err(reader.error("both sides are /dev/null")),
        (None, Some(path)) => (path, Action::Add { content: added(reader, &hunks)? }),
        (Some(path), None) => (path, Action::Delete),
        (Some(old), Some(new)) => {
            if hunks.is_empty() && extended.rename.is_none() {
                return Err(reader.error("the file has no `@@` part"));
            }
            let moved = old != new;
            if moved && extended.rename.is_none() {
                return Err(ParseError {
                    line,
                    problem: format!("the two sides name different files, {old} and {new}"),
                });
            }
            (old, Action::Update { move_to: moved.then_some(new), hunks })
        }
    };
    Ok(FilePatch { line, path, action })
}

fn extended(reader: &mut Reader<'_>) -> Result<Extended, ParseError> {
    let mut found = Extended::default();
    let mut rename_from = None;
    let mut first = true;
    while let Some(line) = reader.peek() {
        if line.starts_with("--- ") || !first && begins(line) || line.trim().is_empty() {
            break;
        }
        if let Some(paths) = line.strip_prefix("diff --git ") {
            found.git_paths = paths
                .strip_prefix("a/")
                .and_then(|paths| paths.split_once(" b/"))
                .map(|(old, new)| (old.to_owned(), new.to_owned()));
        } else if let Some(from) = line.strip_prefix("rename from ") {
            rename_from = Some(from.to_owned());
        } else if let Some(to) = line.strip_prefix("rename to ") {
            found.rename = rename_from.take().map(|from| (from, to.to_owned()));
        } else if line.starts_with("new file mode ") {
            found.added = true;
        } else if line.starts_with("deleted file mode ") {
            found.deleted = true;
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return Err(reader.error("binary changes cannot be applied"));
        } else if line.starts_with("copy from ") {
            return Err(reader.error("copies cannot be applied; add the new file instead"));
        } else if !KNOWN.iter().any(|known| line.starts_with(known)) {
            return Err(reader.error("expected a `---` line"));
        }
        first = false;
        reader.next();
    }
    Ok(found)
}

const KNOWN: [&str; 8] = [
    "diff ",
    "Index: ",
    "index ",
    "old mode ",
    "new mode ",
    "similarity index ",
    "dissimilarity index ",
    "====",
];

/// A file of which Git shows no lines: renamed as it is, or empty.
fn without_hunks(
    reader: &Reader<'_>,
    line: usize,
    extended: Extended,
) -> Result<FilePatch, ParseError> {
    if let Some((from, to)) = extended.rename {
        let action = Action::Update { move_to: Some(to), hunks: Vec::new() };
        return Ok(FilePatch { line, path: from, action });
    }
    match extended.git_paths {
        Some((_, path)) if extended.added => {
            Ok(FilePatch { line, path, action: Action::Add { content: String::new() } })
        }
        Some((path, _)) if extended.deleted => Ok(FilePatch { line, path, action: Action::Delete }),
        _ => Err(reader.error("the file has no change of lines; modes are not changed")),
    }
}

/// The path of a `---` or `+++` line; absent for `/dev/null`.
fn path(reader: &mut Reader<'_>, mark: &str) -> Result<Option<String>, ParseError> {
    let Some(rest) = reader.peek().and_then(|line| line.strip_prefix(mark)) else {
        return Err(reader.error(format!("expected a `{}` line", mark.trim_end())));
    };
    let name = rest.split('\t').next().unwrap_or(rest).trim_end();
    if name.is_empty() {
        return Err(reader.error("the path is missing"));
    }
    let name = if name.starts_with('"') {
        unquote(name).ok_or_else(|| reader.error("the quoted path is not well formed"))?
    } else {
        name.to_owned()
    };
    reader.next();
    if name == "/dev/null" {
        return Ok(None);
    }
    let side = if mark.starts_with('-') { "a/" } else { "b/" };
    Ok(Some(name.strip_prefix(side).unwrap_or(&name).to_owned()))
}

/// A path as Git quotes it: C escapes, bytes above ASCII in octal.
fn unquote(quoted: &str) -> Option<String> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            high @ b'0'..=b'3' => {
                let (middle, low) = (rest.next()?, rest.next()?);
                let digit = |byte: u8| (b'0'..=b'7').contains(&byte).then(|| byte - b'0');
                digit(high)? * 64 + digit(middle)? * 8 + digit(low)?
            }
            other @ (b'"' | b'\\') => other,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hunks(reader: &mut Reader<'_>) -> Result<Vec<Hunk>, ParseError> {
    let mut hunks = Vec::new();
    while let Some(header) = reader.peek().and_then(|line| line.strip_prefix("@@")) {
        let line = reader.number();
        let counts = ranges(header.trim_start());
        reader.next();
        let start = counts.map(|(start, _, _)| start);
        let mut hunk = Hunk { line, start, ..Hunk::default() };
        let mut left = counts.map_or((0, 0), |(_, old, new)| (old as isize, new as isize));
        hunk_lines(reader, &mut hunk, &mut left)?;
        if hunk.lines.iter().all(|line| line.unsigned) {
            return Err(ParseError { line, problem: "this change has no lines".to_owned() });
        }
        hunks.push(hunk);
    }
    Ok(hunks)
}

/// Reads lines up to the next hunk or file. `left` are the lines that the header promised and that
/// did not come yet, on both sides: they tell a removed `-- x` from the name of the next file.
fn hunk_lines(
    reader: &mut Reader<'_>,
    hunk: &mut Hunk,
    left: &mut (isize, isize),
) -> Result<(), ParseError> {
    while let Some(line) = reader.peek() {
        let promised = left.0 > 0 || left.1 > 0;
        if line.starts_with("@@") || !promised && next_file(reader) {
            break;
        }
        if line.starts_with('\\') {
            if let Some(last) = hunk.lines.last_mut() {
                last.no_newline = true;
            }
            reader.next();
            continue;
        }
        let Some(parsed) = hunk_line(line) else {
            if begins(line) {
                break;
            }
            return Err(reader.error("a line of a change begins with a blank, `-`, `+` or `@@`"));
        };
        match parsed.kind {
            super::LineKind::Context => *left = (left.0 - 1, left.1 - 1),
            super::LineKind::Remove => left.0 -= 1,
            super::LineKind::Add => left.1 -= 1,
        }
        hunk.lines.push(parsed);
        reader.next();
    }
    Ok(())
}

fn next_file(reader: &Reader<'_>) -> bool {
    let starts = |ahead, mark| reader.peek_at(ahead).is_some_and(|line| line.starts_with(mark));
    starts(0, "--- ") && starts(1, "+++ ")
}

/// The text of a new file from its hunk.
fn added(reader: &Reader<'_>, hunks: &[Hunk]) -> Result<String, ParseError> {
    let mut content = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| !line.unsigned) {
        if line.kind != super::LineKind::Add {
            return Err(reader.error("a new file can only have `+` lines"));
        }
        content.push_str(&line.text);
        if !line.no_newline {
            content.push('\n');
        }
    }
    Ok(content)
}
