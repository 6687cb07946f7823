//! The small head of a definition file (agent, skill, rule): scalars and inline lists between two
//! lines of dashes. It is no YAML, and nothing in it is ever executed.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Longest definition file read, in bytes.
pub(crate) const LIMIT: u64 = 256 * 1024;

/// A definition file, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Definition<'a> {
    fields: BTreeMap<&'a str, Cow<'a, str>>,
    /// What follows the head.
    pub(crate) body: &'a str,
}

impl<'a> Definition<'a> {
    /// Takes a text apart. Without a head, all of it is the body.
    pub(crate) fn parse(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let Some((head, body)) = split(text) else {
            return Self { fields: BTreeMap::new(), body: text.trim() };
        };
        Self { fields: fields(head), body: body.trim() }
    }

    /// A scalar.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(Cow::as_ref).filter(|value| !value.is_empty())
    }

    /// A list: `[a, b]` or `a, b`.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<String>> {
        let value = self.text(name)?;
        let inner = value.strip_prefix('[').and_then(|v| v.strip_suffix(']')).unwrap_or(value);
        let parts = inner.split(',').map(|part| unquoted(part.trim()).to_owned());
        Some(parts.filter(|part| !part.is_empty()).collect())
    }
}

/// Head and body of a text that begins with a line of dashes and has another one.
fn split(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// The fields of a head. A value of `>` or `|` stands for the indented lines that follow.
fn fields(head: &str) -> BTreeMap<&str, Cow<'_, str>> {
    let mut found = BTreeMap::new();
    let mut lines = head.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((name, value)) = field(line) else { continue };
        let mut value = Cow::Borrowed(value);
        if matches!(&*value, ">" | ">-" | ">+" | "|" | "|-" | "|+") {
            let mut words = Vec::new();
            while let Some(more) = lines.next_if(|line| is_indented(line)) {
                words.extend(more.split_whitespace());
            }
            value = Cow::Owned(words.join(" "));
        }
        found.insert(name, value);
    }
    found
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t']) || line.trim().is_empty()
}

fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_name = !name.is_empty()
        && name.chars().all(|ch| ch.is_ascii_alphanumeric() || matches!(ch, '-' | '_'));
    is_name.then(|| (name, unquoted(value.trim())))
}

fn unquoted(value: &str) -> &str {
    let inside = |quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_scalars_and_inline_lists() {
        let text = "---\r\nname: reviewer\ndescription: \"Reads: diffs\"\ntools: [read, 'grep',]\n\
                    odd line\n  nested: no\n---\nLook closely.\n---\nat it\n";
        let found = Definition::parse(text);
        assert_eq!(found.text("name"), Some("reviewer"));
        assert_eq!(found.text("description"), Some("Reads: diffs"));
        assert_eq!(found.list("tools"), Some(vec!["read".to_owned(), "grep".to_owned()]));
        assert_eq!((found.text("nested"), found.list("none")), (None, None));
        assert_eq!(found.body, "Look closely.\n---\nat it");
    }

    #[test]
    fn a_folded_value_is_one_line() {
        let text = "--- \r\ndescription: >-\r\n  two\r\n\r\n  lines: of it\r\nname: x\r\nnote: |\r\n---\r\nbody";
        let found = Definition::parse(text);
        assert_eq!(found.text("description"), Some("two lines: of it"));
        assert_eq!((found.text("name"), found.text("note")), (Some("x"), None));
        assert_eq!(found.body, "body");
    }

    #[test]
    fn without_a_whole_head_everything_is_body() {
        for text in ["just words", "---\nname: x\nno end", "--\n--\n", ""] {
            let found = Definition::parse(text);
            assert_eq!((found.body, found.text("name")), (text.trim(), None));
        }
    }
}
