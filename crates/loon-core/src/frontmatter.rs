//! The small head of a definition file (agent, skill, rule): scalars and inline lists between two
//! lines of dashes. It is no YAML, and nothing in it is ever executed.

use std::collections::BTreeMap;

/// Longest definition file read, in bytes.
pub(crate) const LIMIT: u64 = 256 * 1024;

/// A definition file, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Definition<'a> {
    fields: BTreeMap<&'a str, Field<'a>>,
    /// What follows the head.
    pub(crate) body: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
struct Field<'a> {
    /// Line of its name in the file, from 1.
    line: usize,
    value: Value<'a>,
}

#[derive(Debug, PartialEq, Eq)]
enum Value<'a> {
    /// What stands behind the name, quotes included.
    Written(&'a str),
    /// Several lines that make one.
    Folded(String),
    /// A list over several lines.
    List(Vec<String>),
}

/// A list that has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    /// Line where it begins, from 1.
    pub(crate) line: usize,
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

    /// True if a head begins and never ends.
    pub(crate) fn is_open(text: &str) -> bool {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        text.lines().next().is_some_and(|first| first.trim_end() == "---") && split(text).is_none()
    }

    /// A scalar.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let value = match &self.fields.get(name)?.value {
            Value::Written(written) => unquoted(written),
            Value::Folded(text) => text,
            Value::List(_) => return None,
        };
        (!value.is_empty()).then_some(value)
    }

    /// A list: `[a, b]` on one line or several, `a, b`, or a line with a dash for each.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<String>> {
        self.whole_list(name).ok()?
    }

    /// The same, where a list without its end is an error.
    pub(crate) fn whole_list(&self, name: &str) -> Result<Option<Vec<String>>, Unfinished> {
        let Some(Field { line, value }) = self.fields.get(name) else { return Ok(None) };
        match value {
            Value::List(items) => Ok(Some(items.clone())),
            Value::Folded(text) => Ok(Some(elements(text))),
            Value::Written("") => Ok(None),
            Value::Written(written) => match written.strip_prefix('[') {
                Some(rest) => {
                    let inner = without_comment(rest).strip_suffix(']');
                    inner.map(|inner| Some(elements(inner))).ok_or(Unfinished { line: *line })
                }
                // One text in quotes may hold several that commas part.
                None => Ok(Some(elements(whole_quoted(written).unwrap_or(written)))),
            },
        }
    }

    /// Line of a field, from 1.
    pub(crate) fn line(&self, name: &str) -> Option<usize> {
        self.fields.get(name).map(|field| field.line)
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

/// The fields of a head. A value of `>` or `|` stands for the indented lines that follow; one that is
/// empty, for the lines with a dash.
fn fields(head: &str) -> BTreeMap<&str, Field<'_>> {
    let mut found = BTreeMap::new();
    // The head begins in the second line of the file.
    let mut lines = (2..).zip(head.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let Some((name, written)) = field(line) else { continue };
        let mut value = Value::Written(written);
        if matches!(written, ">" | ">-" | ">+" | "|" | "|-" | "|+") {
            let mut words = Vec::new();
            while let Some((_, more)) = lines.next_if(|(_, line)| is_indented(line)) {
                words.extend(more.split_whitespace());
            }
            value = Value::Folded(words.join(" "));
        } else if without_comment(written).is_empty() {
            let mut items = Vec::new();
            while let Some((_, more)) = lines.next_if(|(_, line)| goes_on(line)) {
                items.extend(dashed(more).map(element));
            }
            value = if items.is_empty() { Value::Written("") } else { Value::List(items) };
        } else if written.starts_with('[') && !without_comment(written).ends_with(']') {
            let mut inner = without_comment(&written[1..]).to_owned();
            while let Some((_, more)) = lines.next_if(|(_, line)| in_brackets(line)) {
                let more = without_comment(more);
                inner.push('\n');
                if let Some(last) = more.strip_suffix(']') {
                    inner.push_str(last);
                    value = Value::List(elements(&inner));
                    break;
                }
                inner.push_str(more);
            }
        }
        found.insert(name, Field { line: number, value });
    }
    found
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t']) || line.trim().is_empty()
}

/// The line belongs to a list of lines with a dash.
fn goes_on(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#') || dashed(line).is_some()
}

fn in_brackets(line: &str) -> bool {
    is_indented(line) || line.starts_with(']')
}

/// What follows the dash of a list's line.
fn dashed(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix('-')?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(rest)
}

fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_name = !name.is_empty()
        && name.chars().all(|ch| ch.is_ascii_alphanumeric() || matches!(ch, '-' | '_'));
    is_name.then(|| (name, value.trim()))
}

fn unquoted(value: &str) -> &str {
    let inside = |quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

/// What one pair of quotes holds, if nothing is outside of it.
fn whole_quoted(value: &str) -> Option<&str> {
    let value = without_comment(value);
    let inner = unquoted(value);
    let quote = value.chars().next()?;
    (inner.len() < value.len() && !inner.contains(quote)).then_some(inner)
}

/// The text without a comment at its end.
fn without_comment(text: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, ch) in text.char_indices() {
        match (quote, ch) {
            (Some(open), ch) if ch == open => quote = None,
            (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some(ch),
            (None, '#') if before.is_whitespace() => return text[..at].trim(),
            _ => {}
        }
        before = ch;
    }
    text.trim()
}

/// One element, without its quotes and a comment behind it.
fn element(text: &str) -> String {
    unquoted(without_comment(text)).to_owned()
}

/// The elements that commas part, but for commas in quotes and braces.
fn elements(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut start, mut depth, mut quote) = (0, 0_u32, None);
    for (at, ch) in text.char_indices() {
        match (quote, ch) {
            (Some(open), ch) if ch == open => quote = None,
            (None, '"' | '\'') if text[start..at].trim().is_empty() => quote = Some(ch),
            (None, '{') => depth += 1,
            (None, '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                found.push(element(&text[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(element(&text[start..]));
    found.retain(|element| !element.is_empty());
    found
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
        assert_eq!((found.line("name"), found.line("tools")), (Some(2), Some(4)));
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

    fn paths(head: &str) -> Result<Option<Vec<String>>, Unfinished> {
        Definition::parse(&format!("---\nfirst: x\n{head}\nlast: y\n---\nbody")).whole_list("paths")
    }

    #[test]
    fn a_list_is_read_in_all_the_ways_people_write_it() {
        let both = ["src/**/*.ts", "**/*.{js,jsx}"];
        for head in [
            "paths: [src/**/*.ts, **/*.{js,jsx}]",
            "paths: [ \"src/**/*.ts\", '**/*.{js,jsx}', ]  # both",
            "paths: src/**/*.ts, **/*.{js,jsx} # both",
            "paths: \"src/**/*.ts\", \"**/*.{js,jsx}\"",
            "paths: \"src/**/*.ts, **/*.{js,jsx}\"",
            "paths:\n  - \"src/**/*.ts\"\n  # and\n  - **/*.{js,jsx}  # more",
            "paths:   # these\n- src/**/*.ts\n\n- '**/*.{js,jsx}'",
            "paths: [\n  \"src/**/*.ts\",\n  **/*.{js,jsx}\n]",
            "paths: [src/**/*.ts,\r\n  **/*.{js,jsx}] # x",
            "paths: >\n  src/**/*.ts,\n  **/*.{js,jsx}",
        ] {
            let found = paths(head);
            assert_eq!(found, Ok(Some(both.map(str::to_owned).to_vec())), "{head}");
            let definition = format!("---\n{head}\nlast: y\n---\nbody");
            assert_eq!(Definition::parse(&definition).text("last"), Some("y"), "{head}");
        }
        assert_eq!(paths("paths: []"), Ok(Some(Vec::new())));
        assert_eq!((paths("paths:"), paths("other: x")), (Ok(None), Ok(None)));
        assert_eq!(paths("paths: [a, b\nnext: [c]"), Err(Unfinished { line: 3 }));
        assert_eq!(paths("paths: [a,\n  b"), Err(Unfinished { line: 3 }));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_apart_and_loses_nothing_of_its_body(head in ".{0,80}", body in "\\PC{0,60}") {
            let plain = Definition::parse(&body).body.len();
            proptest::prop_assert!(plain <= body.len());
            let text = format!("---\n{}\n---\n{body}", head.replace('-', "~"));
            proptest::prop_assert_eq!(Definition::parse(&text).body, body.trim());
        }

        #[test]
        fn elements_written_in_quotes_come_back(items in proptest::collection::vec("[a-z*/{},.#]{1,12}", 1..6)) {
            let quoted: Vec<String> = items.iter().map(|item| format!("\"{item}\"")).collect();
            for head in [
                format!("paths: [{}]", quoted.join(", ")),
                format!("paths:\n  - {}", quoted.join("\n  - ")),
                format!("paths: [\n  {}\n]", quoted.join(",\n  ")),
            ] {
                proptest::prop_assert_eq!(paths(&head), Ok(Some(items.clone())));
            }
        }
    }
}
