//! How a JSON text is laid out, and writing new values the same way.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Kind, Node};

/// How the values of a text are laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// One step of indentation.
    unit: String,
    /// Between key and value, colon included.
    colon: String,
    /// Between entries on one line, comma included.
    comma: String,
    /// Entries have lines of their own.
    pub(super) lines: bool,
    /// Characters beyond ASCII are written as escapes.
    ascii: bool,
}

impl Layout {
    /// The layout of a text; `ascii` if it can hold nothing else.
    pub(crate) fn of(root: Node<'_>, ascii: bool) -> Self {
        let whole = root.whole();
        let colon = first_colon(root);
        Self {
            unit: unit(whole),
            comma: first_comma(root).unwrap_or_else(|| {
                if colon.ends_with(' ') { ", ".to_owned() } else { ",".to_owned() }
            }),
            colon,
            lines: root.children().next().is_none_or(|_| has_lines(root)),
            ascii: ascii || (whole.is_ascii() && escapes_letters(whole)),
        }
    }

    /// The layout inside `container`, which says more than the text as a whole.
    pub(crate) fn inside(&self, container: Node<'_>) -> Self {
        let mut own = self.clone();
        if let Some(member) = container.members().next() {
            own.colon = colon(member.key, member.value);
        }
        if container.children().next().is_some() {
            own.lines = has_lines(container);
        }
        if !own.lines
            && let Some(comma) = comma(container)
        {
            own.comma = comma;
        }
        own
    }

    /// What stands before an entry of `container`, without the comma.
    pub(crate) fn before_entry(&self, container: Node<'_>) -> String {
        if !self.lines {
            return self.comma.strip_prefix(',').unwrap_or_default().to_owned();
        }
        format!("\n{}", self.indent_of_entries(container))
    }

    /// The indentation of the entries of `container`.
    pub(crate) fn indent_of_entries(&self, container: Node<'_>) -> String {
        let first = entry_starts(container).next();
        match first.and_then(|start| own_indent(container.whole(), start)) {
            Some(indent) => indent.to_owned(),
            None => format!("{}{}", line_indent(container), self.unit),
        }
    }

    /// A key with its colon.
    pub(crate) fn key(&self, key: &str) -> String {
        let mut out = String::new();
        self.string(key, &mut out);
        out.push_str(&self.colon);
        out
    }

    /// A value whose first line is indented by `indent`.
    pub(crate) fn value(&self, value: &Value, indent: &str) -> String {
        let mut out = String::new();
        self.write(value, indent, &mut out);
        out
    }

    fn write(&self, value: &Value, indent: &str, out: &mut String) {
        match value {
            Value::String(text) => self.string(text, out),
            Value::Array(items) => {
                let write = |item: &Value, inner: &str, out: &mut String| {
                    self.write(item, inner, out);
                };
                self.entries(items.iter(), ('[', ']'), indent, out, write);
            }
            Value::Object(map) => {
                let write = |(key, item): (&String, &Value), inner: &str, out: &mut String| {
                    out.push_str(&self.key(key));
                    self.write(item, inner, out);
                };
                self.entries(map.iter(), ('{', '}'), indent, out, write);
            }
            scalar => out.push_str(&scalar.to_string()),
        }
    }

    fn entries<T>(
        &self,
        items: impl ExactSizeIterator<Item = T>,
        (open, close): (char, char),
        indent: &str,
        out: &mut String,
        write: impl Fn(T, &str, &mut String),
    ) {
        out.push(open);
        let any = items.len() > 0;
        let inner = format!("{indent}{}", self.unit);
        for (place, item) in items.enumerate() {
            if place > 0 {
                out.push_str(if self.lines { "," } else { &self.comma });
            }
            if self.lines {
                out.push('\n');
                out.push_str(&inner);
            }
            write(item, &inner, out);
        }
        if any && self.lines {
            out.push('\n');
            out.push_str(indent);
        }
        out.push(close);
    }

    fn string(&self, text: &str, out: &mut String) {
        let quoted = Value::from(text).to_string();
        if !self.ascii {
            out.push_str(&quoted);
            return;
        }
        for ch in quoted.chars() {
            if ch.is_ascii() {
                out.push(ch);
            } else {
                for unit in ch.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
}

/// Where the entries of a container begin.
fn entry_starts(container: Node<'_>) -> impl Iterator<Item = usize> {
    let members = container.members().map(|member| member.key.span().start);
    members.chain(container.elements().map(|element| element.span().start))
}

/// Its first entry stands on a line of its own.
fn has_lines(container: Node<'_>) -> bool {
    let start = container.span().start;
    entry_starts(container)
        .next()
        .is_some_and(|first| container.whole()[start..first].contains('\n'))
}

/// What indents this place, if only white space stands before it on its line.
fn own_indent(whole: &str, at: usize) -> Option<&str> {
    let line = whole[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = &whole[line..at];
    before.trim().is_empty().then_some(before)
}

/// What indents the line on which the value begins.
pub(crate) fn line_indent(node: Node<'_>) -> &str {
    let before = &node.whole()[..node.span().start];
    let line = &node.whole()[before.rfind('\n').map_or(0, |newline| newline + 1)..];
    let length = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &line[..length]
}

/// One step of indentation: that of the first line that has any.
fn unit(whole: &str) -> String {
    whole
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| &line[..line.len() - line.trim_start().len()])
        .find(|indent| !indent.is_empty())
        .map_or_else(|| "  ".to_owned(), str::to_owned)
}

fn colon(key: Node<'_>, value: Node<'_>) -> String {
    let between = &key.whole()[key.span().end..value.span().start];
    if between.contains('\n') { ": ".to_owned() } else { between.to_owned() }
}

fn first_colon(root: Node<'_>) -> String {
    let mut node = root;
    for _ in 0..8 {
        if let Some(member) = node.members().next() {
            return colon(member.key, member.value);
        }
        let Some(first) = node.children().next() else { break };
        node = first;
    }
    ": ".to_owned()
}

/// What stands between the first two entries of a container, if they share a line.
fn comma(container: Node<'_>) -> Option<String> {
    let second = entry_starts(container).nth(1)?;
    let first = container.children().next()?;
    let between = container.whole().get(first.span().end..second)?;
    (!between.contains('\n')).then(|| between.to_owned())
}

fn first_comma(root: Node<'_>) -> Option<String> {
    let inner = root.children().take(64).filter(|child| child.is_container());
    std::iter::once(root).chain(inner).find_map(comma)
}

/// The text has a letter beyond ASCII, written as an escape.
fn escapes_letters(whole: &str) -> bool {
    whole.match_indices("\\u").any(|(at, _)| {
        let digits = whole.get(at + 2..at + 6).unwrap_or_default();
        u32::from_str_radix(digits, 16).is_ok_and(|code| code > 0x9F)
    })
}

/// True if a new value of the kind of `old` should stay on one line as it is now.
pub(crate) fn stays_on_one_line(old: Node<'_>, new: &Value) -> bool {
    let same = match old.kind() {
        Kind::Array => new.is_array(),
        Kind::Object => new.is_object(),
        _ => false,
    };
    same && old.children().next().is_some() && !old.raw().contains('\n')
}
