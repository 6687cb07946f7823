//! Showing JSON values: laid out for reading, every scalar as it is written in the file.

use super::{Kind, Node, blank, scalar_end, string_end};
use crate::text;

/// Containers up to this length are shown on one line.
const ONE_LINE: usize = 72;

/// The value on lines of its own, or nothing if that takes more than `most` bytes.
pub(crate) fn pretty(node: Node<'_>, most: usize) -> Option<String> {
    let bytes = node.raw().as_bytes();
    let mut out = String::new();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        at = blank(bytes, at);
        let Some(byte) = bytes.get(at) else { break };
        match byte {
            b'{' | b'[' => {
                if let Some((line, end)) = one_line(node.raw(), at) {
                    out.push_str(&line);
                    at = end;
                } else {
                    depth += 1;
                    out.push(char::from(*byte));
                    new_line(&mut out, depth);
                    at += 1;
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(char::from(*byte));
                at += 1;
            }
            b',' => {
                out.push(',');
                new_line(&mut out, depth);
                at += 1;
            }
            b':' => {
                out.push_str(": ");
                at += 1;
            }
            _ => {
                let end = token_end(bytes, at);
                out.push_str(node.raw().get(at..end).unwrap_or_default());
                at = end;
            }
        }
        if out.len() > most {
            return None;
        }
    }
    Some(text::visible(&out).into_owned())
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn token_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) == Some(&b'"') { string_end(bytes, at) } else { scalar_end(bytes, at) }
}

/// The container at `at` on one line, if it is short, and where it ends.
fn one_line(raw: &str, at: usize) -> Option<(String, usize)> {
    let bytes = raw.as_bytes();
    let mut line = String::new();
    let (mut at, mut depth) = (at, 0_usize);
    loop {
        at = blank(bytes, at);
        let byte = *bytes.get(at)?;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if matches!(byte, b'{' | b'[' | b'}' | b']' | b',' | b':') {
            line.push(char::from(byte));
            if matches!(byte, b',' | b':') {
                line.push(' ');
            }
            at += 1;
        } else {
            let end = token_end(bytes, at);
            line.push_str(raw.get(at..end)?);
            at = end;
        }
        if line.len() > ONE_LINE {
            return None;
        }
        if depth == 0 {
            return Some((line, at));
        }
    }
}

/// What a value is, with its extent.
pub(crate) fn extent(node: Node<'_>) -> String {
    let raw = text::size(node.raw().len() as u64);
    match node.kind() {
        Kind::Object => format!("object, {}, {raw}", text::count(node.members().count(), "key")),
        Kind::Array => format!("array, {}, {raw}", text::count(node.elements().count(), "element")),
        Kind::String => {
            let length = node.string().map_or(0, |string| string.chars().count());
            format!("string, {}", text::count(length, "character"))
        }
        Kind::Number => "number".to_owned(),
        Kind::Boolean => "boolean".to_owned(),
        Kind::Null => "null".to_owned(),
    }
}

/// A value on one line: itself if it is short, else what it is.
pub(crate) fn brief(node: Node<'_>) -> String {
    let short = match node.kind() {
        Kind::Object | Kind::Array => one_line(node.raw(), 0).map(|(line, _)| line),
        _ => (node.raw().len() <= ONE_LINE).then(|| node.raw().to_owned()),
    };
    match short {
        Some(line) => text::visible_line(&line),
        None => format!("({})", extent(node)),
    }
}
