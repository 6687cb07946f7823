//! The envelope format: sections for files between `*** Begin Patch` and `*** End Patch`.

use super::{Action, FilePatch, Hunk, ParseError, Patch, Reader, hunk_line, ranges};

const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const MARK: &str = "*** ";

/// Reads from `*** Begin Patch` to the end of the text.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Patch, ParseError> {
    reader.next();
    let mut patch = Patch::default();
    loop {
        reader.skip_blank();
        let Some(line) = reader.peek() else {
            return Err(reader.error("the patch ends without `*** End Patch`; it looks cut off"));
        };
        if line.trim_end() == END {
            reader.next();
            break;
        }
        patch.files.push(section(reader, line)?);
    }
    reader.skip_blank();
    match reader.peek() {
        Some(_) => Err(reader.error("there is text after `*** End Patch`")),
        None => Ok(patch),
    }
}

fn section(reader: &mut Reader<'_>, line: &str) -> Result<FilePatch, ParseError> {
    let number = reader.number();
    let named = |mark: &str| line.strip_prefix(mark).map(|path| path.trim().to_owned());
    let (path, kind) = if let Some(path) = named("*** Add File:") {
        (path, Kind::Add)
    } else if let Some(path) = named("*** Delete File:") {
        (path, Kind::Delete)
    } else if let Some(path) = named("*** Update File:") {
        (path, Kind::Update)
    } else {
        return Err(reader.error(
            "expected `*** Add File: PATH`, `*** Update File: PATH`, `*** Delete File: PATH` or \
             `*** End Patch`",
        ));
    };
    if path.is_empty() {
        return Err(reader.error("the path is missing"));
    }
    reader.next();
    let action = match kind {
        Kind::Add => Action::Add { content: added(reader)? },
        Kind::Delete => Action::Delete,
        Kind::Update => update(reader)?,
    };
    Ok(FilePatch { line: number, path, action })
}

enum Kind {
    Add,
    Delete,
    Update,
}

fn added(reader: &mut Reader<'_>) -> Result<String, ParseError> {
    let mut content = String::new();
    while let Some(line) = reader.peek() {
        if let Some(text) = line.strip_prefix('+') {
            content.push_str(text);
            content.push('\n');
        } else if line.starts_with(MARK) {
            break;
        } else if line.trim().is_empty() {
            // Blank lines between sections mean nothing; within the text they need their sign.
            reader.skip_blank();
            if reader.peek().is_some_and(|line| !line.starts_with(MARK)) {
                reader.at -= 1;
                return Err(reader.error("every line of an added file begins with `+`"));
            }
            break;
        } else {
            return Err(reader.error("every line of an added file begins with `+`"));
        }
        reader.next();
    }
    Ok(content)
}

fn update(reader: &mut Reader<'_>) -> Result<Action, ParseError> {
    let mut move_to = None;
    if let Some(path) = reader.peek().and_then(|line| line.strip_prefix("*** Move to:")) {
        let path = path.trim();
        if path.is_empty() {
            return Err(reader.error("the path is missing"));
        }
        move_to = Some(path.to_owned());
        reader.next();
    }
    let begin = reader.number();
    let mut hunks = Vec::new();
    let mut hunk = Hunk { line: begin, ..Hunk::default() };
    while let Some(line) = reader.peek() {
        if line.trim_end() == END_OF_FILE {
            hunk.at_end = true;
        } else if line.starts_with(MARK) {
            break;
        } else if let Some(header) = line.strip_prefix("@@") {
            if !hunk.lines.is_empty() {
                close(reader, &mut hunks, &mut hunk)?;
            }
            read_header(&mut hunk, header);
        } else if line.starts_with('\\') {
            if let Some(last) = hunk.lines.last_mut() {
                last.no_newline = true;
            }
        } else if hunk.at_end && !line.trim().is_empty() {
            return Err(reader.error("after `*** End of File` comes `@@` or the next file"));
        } else if !hunk.at_end {
            let line = hunk_line(line).ok_or_else(|| {
                reader.error("a line of a change begins with a blank, `-`, `+` or `@@`")
            })?;
            hunk.lines.push(line);
        }
        reader.next();
    }
    // Blank lines between the last change and the next section are no change.
    let nothing = hunk.headers.is_empty() && hunk.lines.iter().all(|line| line.unsigned);
    if !(nothing && (move_to.is_some() || !hunks.is_empty())) {
        close(reader, &mut hunks, &mut hunk)?;
    }
    Ok(Action::Update { move_to, hunks })
}

fn read_header(hunk: &mut Hunk, header: &str) {
    let header = header.trim();
    match ranges(header) {
        Some((start, _, _)) => hunk.start = Some(start),
        None if header.is_empty() => {}
        None => hunk.headers.push(header.to_owned()),
    }
}

/// Ends a hunk and begins the next one at the reader's line.
fn close(reader: &Reader<'_>, hunks: &mut Vec<Hunk>, hunk: &mut Hunk) -> Result<(), ParseError> {
    let done = std::mem::replace(hunk, Hunk { line: reader.number(), ..Hunk::default() });
    if done.lines.iter().all(|line| line.unsigned) {
        let problem = "this change has no lines".to_owned();
        return Err(ParseError { line: done.line, problem });
    }
    hunks.push(done);
    Ok(())
}
