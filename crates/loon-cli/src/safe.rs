//! Text and JSON in which nothing from outside can make a terminal do something.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Text without control characters other than newline and tab, and without marks that show it in
/// another order than it has.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() || reorders(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

fn reorders(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes `value` as JSON on one line without its end, all such characters escaped: a reader of the
/// JSON gets every one of them.
pub(crate) fn write_json(out: &mut impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Escaping))
}

/// The same as text.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    write_json(&mut bytes, value)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| c.is_control() || reorders(*c))
        {
            let (before, after) = rest.split_at(at);
            out.write_all(before.as_bytes())?;
            write!(out, "\\u{:04x}", u32::from(c))?;
            rest = after.strip_prefix(c).unwrap_or_default();
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &str = "a\x1b[2J\u{9b}31m\x7f\u{202e}b\u{2069}\u{e9}\n\tc";

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_a_substitute() {
        assert_eq!(plain(RAW), "a\u{fffd}[2J\u{fffd}31m\u{fffd}\u{fffd}b\u{fffd}\u{e9}\n\tc");
    }

    #[test]
    fn json_holds_it_escaped_and_whole() {
        let mut line = Vec::new();
        write_json(&mut line, &serde_json::json!({ RAW: [RAW] })).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert_eq!(plain(&line), line);
        assert!(line.contains("\\u009b31m\\u007f\\u202eb\\u2069\u{e9}\\n\\tc"), "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read[RAW][0], RAW);
    }
}
