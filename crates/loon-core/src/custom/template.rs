//! Places for arguments in the text of a custom command.

use std::iter::Peekable;
use std::str::Chars;

/// The word for all arguments, behind a dollar.
const ALL: &str = "ARGUMENTS";

/// Puts arguments into a text: `$ARGUMENTS` is all of them as they were written, `$1` to `$9` are
/// single ones, which blanks part unless they are in quotes. What was put in is not looked at again.
/// Arguments for which the text has no place stand behind it.
pub(super) fn fill(text: &str, arguments: &str) -> String {
    let single = split(arguments);
    let mut filled = String::with_capacity(text.len() + arguments.len());
    let mut rest = text;
    let mut has_place = false;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(behind) = after.strip_prefix(ALL).filter(|behind| ends_word(behind)) {
            filled.push_str(arguments);
            (rest, has_place) = (behind, true);
        } else if let Some(number) = place(after) {
            filled.push_str(single.get(number - 1).map_or("", String::as_str));
            (rest, has_place) = (&after[1..], true);
        } else {
            filled.push('$');
            rest = after;
        }
    }
    filled.push_str(rest);
    if !has_place && !arguments.is_empty() {
        filled.extend(["\n\n", arguments]);
    }
    filled
}

/// The number of a place; `$10` is an amount, no place.
fn place(after: &str) -> Option<usize> {
    let mut chars = after.chars();
    let number = chars.next()?.to_digit(10).filter(|number| *number > 0)?;
    let is_amount = matches!(chars.next(), Some(next) if next.is_ascii_digit());
    (!is_amount).then_some(number as usize)
}

fn ends_word(rest: &str) -> bool {
    !rest.starts_with(|ch: char| ch.is_ascii_alphanumeric() || ch == '_')
}

fn split(arguments: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut chars = arguments.chars().peekable();
    while let Some(argument) = next_argument(&mut chars) {
        found.push(argument);
    }
    found
}

/// The next argument. Quotes that do not end hold the rest.
fn next_argument(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    while chars.next_if(|ch| ch.is_whitespace()).is_some() {}
    chars.peek()?;
    let mut argument = String::new();
    let mut quote = None;
    for ch in chars.by_ref() {
        match quote {
            Some(open) if ch == open => quote = None,
            None if ch.is_whitespace() => break,
            // An apostrophe within a word is one.
            None if ch == '"' || (ch == '\'' && argument.is_empty()) => quote = Some(ch),
            _ => argument.push(ch),
        }
    }
    Some(argument)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_go_to_their_places_and_are_not_read_again() {
        for (text, arguments, filled) in [
            ("Fix $1 in $2.", "a \"b c\"", "Fix a in b c."),
            ("All: $ARGUMENTS", "  x \"y z\" ", "All:   x \"y z\" "),
            ("$1 and $2", "$2 $ARGUMENTS", "$2 and $ARGUMENTS"),
            ("none of $3!", "a b", "none of !"),
            (
                "costs $10 or $0, $$, $HOME, $ARGUMENTSX",
                "",
                "costs $10 or $0, $$, $HOME, $ARGUMENTSX",
            ),
            ("Review it.", "be brief", "Review it.\n\nbe brief"),
            ("Review it.", "", "Review it."),
            ("$1", "don't", "don't"),
            ("$1|$2", "'a b'c \"open end", "a bc|open end"),
            ("!`rm -rf /` @/etc/passwd $1", "x", "!`rm -rf /` @/etc/passwd x"),
        ] {
            assert_eq!(fill(text, arguments), filled, "{text} with {arguments}");
        }
    }

    proptest! {
        #[test]
        fn all_arguments_stand_where_they_should(before in "[a-z ]{0,9}", arguments in "[^ ]{1,20}") {
            let whole = fill(&format!("{before}$ARGUMENTS."), &arguments);
            prop_assert_eq!(whole, format!("{before}{arguments}."));
            prop_assert_eq!(fill(&before, &arguments), format!("{before}\n\n{arguments}"));
        }
    }
}
