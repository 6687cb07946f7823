//! Making any bytes safe for the model and the terminal: what a program printed is read as a
//! terminal would read it, what a file holds is shown character by character.

mod terminal;

use std::borrow::Cow;
use std::fmt::Write as _;

use loon_exec::Captured;

pub(crate) use loon_api::text::substitute;
pub use loon_api::text::{visible, visible_line};
pub use terminal::Terminal;

/// Where a cut falls within a line, the line is given up if its rest is at most this long, bytes.
const LINE_REST: usize = 4 * 1024;

/// The text of a program's output.
pub fn output(captured: &Captured) -> String {
    if captured.is_whole() {
        return Terminal::read(&captured.head);
    }
    let (head, tail) = (whole_lines_before(&captured.head), whole_lines_after(&captured.tail));
    let omitted = captured.total() - (head.len() + tail.len()) as u64;
    let mut text = Terminal::read(head);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = writeln!(text, "[... {omitted} bytes omitted ...]");
    text.push_str(&Terminal::read(tail));
    text
}

fn whole_lines_before(head: &[u8]) -> &[u8] {
    match head.iter().rposition(|byte| *byte == b'\n') {
        Some(end) if head.len() - end <= LINE_REST => &head[..=end],
        _ => head,
    }
}

fn whole_lines_after(tail: &[u8]) -> &[u8] {
    match tail.iter().position(|byte| *byte == b'\n') {
        Some(end) if end < LINE_REST && end + 1 < tail.len() => &tail[end + 1..],
        _ => tail,
    }
}

/// A size as people read it.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// The text, or its beginning with an ellipsis if it has more than `bytes` bytes.
pub(crate) fn clipped(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(bytes)]))
}

/// A number with its noun: `1 line`, `2 lines`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o']) => format!("{number} {stem}ies"),
        _ if noun.ends_with("ch") || noun.ends_with('s') => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests;
