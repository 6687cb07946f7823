//! Blanking out comments and strings, so that what they hold is not taken for code.
//!
//! This is no lexer of any language: where it loses its way (a string that seems never to end), it
//! begins again without what spans lines.

/// Which marks begin and end comments and strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Syntax {
    /// Begin a comment up to the end of the line.
    pub(super) line: &'static [&'static str],
    /// Begin and end of what spans lines: comments and long strings.
    pub(super) blocks: &'static [(&'static str, &'static str)],
    /// Quotes of strings within a line.
    pub(super) quotes: &'static [char],
    /// `'x'` is a character and a single `'` something else.
    pub(super) chars: bool,
}

/// The text with every character of a comment or string replaced by a space; lines stay lines.
pub(super) fn mask(text: &str, syntax: Syntax) -> String {
    let (masked, whole) = attempt(text, syntax);
    if whole {
        return masked;
    }
    let comments = if syntax.blocks.contains(&("/*", "*/")) { &[("/*", "*/")][..] } else { &[] };
    let (again, whole) = attempt(text, Syntax { blocks: comments, ..syntax });
    if whole { again } else { attempt(text, Syntax { blocks: &[], ..syntax }).0 }
}

/// The masked text, and whether all that spans lines had an end.
fn attempt(text: &str, syntax: Syntax) -> (String, bool) {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(ch) = rest.chars().next() {
        // Blocks first: one may begin like the comment of a line, and with more.
        let block = syntax.blocks.iter().find(|(open, _)| rest.starts_with(open));
        let length = if let Some((open, close)) = block {
            match block_length(rest, open, close) {
                Some(length) => length,
                None => return (out, false),
            }
        } else if syntax.line.iter().any(|mark| begins_comment(&out, rest, mark)) {
            rest.find('\n').unwrap_or(rest.len())
        } else if syntax.chars && ch == '\'' {
            char_length(rest)
        } else if syntax.quotes.contains(&ch) {
            string_length(rest, ch)
        } else {
            out.push(ch);
            rest = &rest[ch.len_utf8()..];
            continue;
        };
        let (hidden, after) = rest.split_at(length);
        out.extend(hidden.chars().map(|ch| if ch == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    (out, true)
}

/// `#` is a comment only where a word may begin: not in `$#` or `${x#y}`.
fn begins_comment(before: &str, rest: &str, mark: &str) -> bool {
    rest.starts_with(mark)
        && (mark != "#" || before.chars().next_back().is_none_or(char::is_whitespace))
}

/// The length of a block with both its marks; absent if it has no end.
fn block_length(rest: &str, open: &str, close: &str) -> Option<usize> {
    let inner = &rest[open.len()..];
    let escapes = close.len() == 1;
    let mut at = 0;
    loop {
        let found = at + inner.get(at..)?.find(close)?;
        let slashes = inner[..found].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if !escapes || slashes % 2 == 0 {
            return Some(open.len() + found + close.len());
        }
        at = found + close.len();
    }
}

/// The length of `'x'` or `'\n'`; of the mark alone if it is no character.
fn char_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    let Some((_, first)) = chars.next() else { return rest.len() };
    if first == '\\' {
        // The escaped character itself may be a quote.
        let end = chars.skip(1).take(10).find(|(_, ch)| matches!(ch, '\'' | '\n'));
        return end.map_or(1, |(at, ch)| if ch == '\'' { at + 1 } else { at });
    }
    match chars.next() {
        Some((at, '\'')) => at + 1,
        _ => 1,
    }
}

/// The length of a string that ends on its line at the latest.
fn string_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, ch) in rest.char_indices().skip(1) {
        match ch {
            '\n' => return at,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if ch == quote => return at + ch.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::super::language::{C_LIKE, PYTHON, RUST, SHELL};
    use super::*;

    #[test]
    fn comments_and_strings_become_spaces() {
        assert_eq!(mask("a /* b\nc */ d // e\nf", C_LIKE), "a     \n     d     \nf");
        assert_eq!(mask("s = \"x \\\" y\"; z", C_LIKE), "s =         ; z");
        assert_eq!(
            mask("'''\ndef a():\n'''\ndef b(): # c", PYTHON),
            "   \n        \n   \ndef b():    "
        );
        assert_eq!(mask("x=$# # c", SHELL), "x=$#    ");
    }

    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        assert_eq!(
            mask("'\"' fn a<'a>(x: &'a str) '\\'' b", RUST),
            "    fn a< a>(x: & a str)      b"
        );
    }

    #[test]
    fn a_mark_that_never_ends_hides_nothing() {
        assert_eq!(
            mask("r = /`/;\nfunction f() {}", super::super::language::SCRIPT),
            "r = /`/;\nfunction f() {}"
        );
    }
}
