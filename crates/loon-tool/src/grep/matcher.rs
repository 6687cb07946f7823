//! The regular expression as it is searched for.

use std::fmt::Write as _;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use unicode_normalization::UnicodeNormalization;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) matcher: RegexMatcher,
    /// It speaks of line ends, so files are searched as a whole.
    pub(super) spans_lines: bool,
}

impl Expression {
    /// Compiles a pattern that finds accents in both forms, composed and not. The error is what the
    /// model reads.
    pub(super) fn new(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        let spans_lines = pattern.contains('\n') || pattern.contains("\\n");
        let build = |pattern: &str| {
            let mut builder = RegexMatcherBuilder::new();
            builder.case_insensitive(ignore_case).multi_line(true);
            if spans_lines {
                builder.line_terminator(None);
            } else {
                builder.crlf(true);
            }
            builder.build(pattern)
        };
        let both = in_both_forms(pattern);
        let built = if both == pattern {
            build(pattern)
        } else {
            // A name of a group, say, can only be written in one way.
            build(&both).or_else(|_| build(pattern))
        };
        match built {
            Ok(matcher) => Ok(Self { matcher, spans_lines }),
            Err(error) => {
                // Where the fault lies in the pattern as it was written.
                let fault = regex::Regex::new(pattern)
                    .map_or_else(|fault| fault.to_string(), |_| error.to_string());
                Err(format!(
                    "The pattern is not a valid regular expression.\n{fault}\nTo search for these \
                     characters themselves, escape them with a backslash: {}",
                    regex::escape(pattern)
                ))
            }
        }
    }
}

/// Writes each character that has a decomposed form as a choice of both, outside of brackets.
fn in_both_forms(pattern: &str) -> String {
    if pattern.is_ascii() {
        return pattern.to_owned();
    }
    let mut out = String::new();
    let mut brackets = 0_u32;
    let mut escaped = false;
    for ch in pattern.nfc() {
        match ch {
            _ if escaped => {}
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        let decomposed: String = std::iter::once(ch).nfd().collect();
        if brackets > 0 || escaped || decomposed.chars().eq([ch]) {
            out.push(ch);
        } else {
            let _ = write!(out, "(?:{ch}|{decomposed})");
        }
        escaped = ch == '\\' && !escaped;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_are_looked_for_in_both_forms() {
        assert_eq!(in_both_forms("caf\u{e9}+"), "caf(?:\u{e9}|e\u{301})+");
        assert_eq!(in_both_forms("cafe\u{301}"), "caf(?:\u{e9}|e\u{301})");
        assert_eq!(in_both_forms("[\u{e9}a]\u{e9}"), "[\u{e9}a](?:\u{e9}|e\u{301})");
        assert_eq!(in_both_forms("\\[\u{e9}"), "\\[(?:\u{e9}|e\u{301})");
        assert_eq!(in_both_forms("語"), "語");
    }

    #[test]
    fn a_wrong_expression_says_where_and_how_to_escape() {
        let error = Expression::new("foo(bar", false).unwrap_err();
        assert!(
            error.contains("foo(bar\n       ^\n") && error.contains("unclosed group"),
            "{error}"
        );
        assert!(error.ends_with(r"foo\(bar"), "{error}");
    }
}
