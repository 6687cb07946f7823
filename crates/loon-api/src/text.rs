//! Making text from outside safe for models and screens: each control character gives way to one
//! that can be seen.

use std::borrow::Cow;

/// Replaces each control character other than tab and newline by a visible one.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        Cow::Owned(text.chars().map(substitute).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// [`visible`] for what must stay on one line, such as a path.
pub fn visible_line(text: &str) -> String {
    text.chars()
        .map(|ch| match ch {
            '\t' => '\u{2409}',
            '\n' => '\u{240A}',
            _ => substitute(ch),
        })
        .collect()
}

/// What stands in the place of one character; most stay as they are.
pub fn substitute(ch: char) -> char {
    match ch {
        '\t' | '\n' => ch,
        // Unicode has a picture for each of these.
        '\0'..='\x1f' => {
            char::from_u32(0x2400 + u32::from(ch)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\x7f' => '\u{2421}',
        _ if ch.is_control() => char::REPLACEMENT_CHARACTER,
        _ => ch,
    }
}

fn is_unsafe(ch: char) -> bool {
    ch.is_control() && !matches!(ch, '\t' | '\n')
}
