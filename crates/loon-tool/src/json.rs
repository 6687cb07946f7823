//! JSON texts as they are written: where each value lies, so that one can be shown or replaced
//! while everything around it stays as it is.
//!
//! A text is checked once, by [`Node::parse`]; after that its values are found by scanning, without
//! a tree in memory and without recursion, however large or deep the text is.

pub(crate) mod change;
pub(crate) mod layout;
pub(crate) mod pointer;
pub(crate) mod show;

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

impl Kind {
    /// With its article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Null => "null",
        }
    }
}

/// One value of a JSON text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    whole: &'a str,
    start: usize,
    end: usize,
}

/// One member of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: Node<'a>,
    pub(crate) value: Node<'a>,
}

impl<'a> Node<'a> {
    /// The value of a whole text. The error says where the text is no JSON.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| syntax(text, &error))?;
        Ok(Self::at(text, blank(text.as_bytes(), 0)))
    }

    fn at(whole: &'a str, start: usize) -> Self {
        Self { whole, start, end: value_end(whole.as_bytes(), start) }
    }

    /// The text it is a part of.
    pub(crate) fn whole(self) -> &'a str {
        self.whole
    }

    /// Where it lies in the whole text.
    pub(crate) fn span(self) -> Range<usize> {
        self.start..self.end
    }

    /// As it is written.
    pub(crate) fn raw(self) -> &'a str {
        self.whole.get(self.span()).unwrap_or_default()
    }

    /// What it is.
    pub(crate) fn kind(self) -> Kind {
        match self.raw().as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// True for objects and arrays.
    pub(crate) fn is_container(self) -> bool {
        matches!(self.kind(), Kind::Object | Kind::Array)
    }

    /// The line it begins at, from 1.
    pub(crate) fn line(self) -> usize {
        self.whole[..self.start].matches('\n').count() + 1
    }

    /// Its members in order; none if it is no object.
    pub(crate) fn members(self) -> impl Iterator<Item = Member<'a>> {
        let at = if self.kind() == Kind::Object { self.start + 1 } else { self.end };
        Entries { whole: self.whole, at, end: self.end }.map_while(|entry| {
            let (key, value) = entry;
            Some(Member { key: key?, value })
        })
    }

    /// Its elements in order; none if it is no array.
    pub(crate) fn elements(self) -> impl Iterator<Item = Self> {
        let at = if self.kind() == Kind::Array { self.start + 1 } else { self.end };
        Entries { whole: self.whole, at, end: self.end }.map(|(_, value)| value)
    }

    /// Its members' values or its elements, in order.
    pub(crate) fn children(self) -> impl Iterator<Item = Self> {
        self.members().map(|member| member.value).chain(self.elements())
    }

    /// The value of a member; of the last one if several have the name.
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        self.members().filter(|member| member.key.is_text(key)).last().map(|member| member.value)
    }

    /// True if it is a string with this text.
    pub(crate) fn is_text(self, text: &str) -> bool {
        self.string().is_some_and(|string| string == text)
    }

    /// Its text, if it is a string. Halves of surrogate pairs become U+FFFD.
    pub(crate) fn string(self) -> Option<Cow<'a, str>> {
        let inner = self.raw().strip_prefix('"')?.strip_suffix('"')?;
        Some(unescape(inner))
    }
}

/// The entries of a container, from the place `at`.
struct Entries<'a> {
    whole: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Option<Node<'a>>, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.whole.as_bytes();
        let mut start = blank(bytes, self.at);
        if start >= self.end || matches!(bytes[start], b'}' | b']') {
            return None;
        }
        let mut key = None;
        let mut node = Node::at(self.whole, start);
        let after = blank(bytes, node.end);
        if bytes.get(after) == Some(&b':') {
            key = Some(node);
            start = blank(bytes, after + 1);
            node = Node::at(self.whole, start);
        }
        self.at = blank(bytes, node.end);
        if bytes.get(self.at) == Some(&b',') {
            self.at += 1;
        } else if self.at == start {
            return None;
        }
        Some((key, node))
    }
}

/// The first place from `at` that is no white space.
fn blank(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            _ => at = scalar_end(bytes, at),
        }
        if depth == 0 {
            break;
        }
    }
    at.min(bytes.len())
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start..];
    let ends = |byte: &u8| matches!(byte, b',' | b':' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
    start + rest.iter().position(ends).unwrap_or(rest.len())
}

fn unescape(inner: &str) -> Cow<'_, str> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escape) = rest.chars().next() else { break };
        rest = &rest[escape.len_utf8()..];
        match escape {
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'u' => {
                let (ch, after) = unescape_unit(rest);
                text.push(ch);
                rest = after;
            }
            other => text.push(other),
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character that four hexadecimal digits stand for, or two times four as a surrogate pair, and
/// what follows it.
fn unescape_unit(text: &str) -> (char, &str) {
    let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
    let Some(first) = unit(text) else { return (char::REPLACEMENT_CHARACTER, text) };
    let rest = &text[4..];
    let second = rest.strip_prefix("\\u").and_then(unit);
    let units = [Some(first), second].into_iter().flatten();
    match char::decode_utf16(units).next() {
        Some(Ok(ch)) if ch.len_utf16() == 2 => (ch, &rest[6..]),
        Some(Ok(ch)) => (ch, rest),
        _ => (char::REPLACEMENT_CHARACTER, rest),
    }
}

/// Where the text is no JSON, why, and what helps.
fn syntax(text: &str, error: &serde_json::Error) -> String {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = line.get(..error.column().saturating_sub(1)).unwrap_or(line);
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let around = line.get(before.len()..).unwrap_or_default().trim_start();
    let more = text.split('\n').skip(error.line()).any(|line| !line.trim().is_empty());
    let hint = if text.trim().is_empty() {
        " The file is empty."
    } else if around.starts_with('/') || around.starts_with('#') {
        " Comments are no JSON; use read and edit for this file."
    } else if around.starts_with(['}', ']']) && before.trim_end().ends_with(',') {
        " JSON has no comma before a closing bracket; use read and edit for this file."
    } else if message.starts_with("trailing characters") && (more || around.starts_with('{')) {
        " Several JSON values in one file (JSON Lines) are for read and edit."
    } else {
        " Use read and edit for it."
    };
    format!("line {}, column {}: {message}.{hint}", error.line(), before.chars().count() + 1)
}

#[cfg(test)]
mod tests;
