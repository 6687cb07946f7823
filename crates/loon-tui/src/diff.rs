//! Unified diffs as coloured lines with line numbers.

use std::ops::Range;

use ratatui::style::Modifier;

use crate::line::{Break, Line, Look, Span, wrap, wrap_text};
use crate::theme::Role;

/// True if `text` is a unified diff.
pub(crate) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ -"))
}

/// Lays out words and unified diffs of any number of files, each diff under its path.
pub(crate) fn lay_files(text: &str, width: usize, words: Look) -> Vec<Line> {
    let mut lines = Vec::new();
    for part in parts(text) {
        match part {
            Part::Words(text) => lines.extend(wrap_text(text, words, width, Break::Words)),
            Part::Diff(diff) => {
                if !lines.is_empty() {
                    lines.push(Line::default());
                }
                if let Some(path) = path_words(diff) {
                    let look = Look::of(Role::Text).with(Modifier::BOLD);
                    lines.extend(wrap_text(&path, look, width, Break::Anywhere));
                }
                lines.extend(lay(diff, width));
            }
        }
    }
    lines
}

/// A stretch of text that holds diffs.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    /// No diff.
    Words(&'a str),
    /// The diff of one file.
    Diff(&'a str),
}

/// Takes text apart. What belongs to a hunk is counted, so that no line of a file passes for the
/// heading of another one.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut in_diff = false;
    let (mut old, mut new) = (0u64, 0u64);
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let begins_file =
            line.starts_with("--- ") && lines.peek().is_some_and(|next| next.starts_with("+++ "));
        let in_hunk = in_diff && (old > 0 || new > 0);
        if in_hunk && line.starts_with([' ', '-', '+']) {
            old = old.saturating_sub(u64::from(!line.starts_with('+')));
            new = new.saturating_sub(u64::from(!line.starts_with('-')));
        } else if line.starts_with("@@ -") {
            (old, new) = hunk_sizes(line).unwrap_or_default();
            if !in_diff {
                push_part(&mut parts, text, start..at, in_diff);
                (start, in_diff) = (at, true);
            }
        } else if begins_file {
            push_part(&mut parts, text, start..at, in_diff);
            (start, in_diff) = (at, true);
            (old, new) = (0, 0);
            at += lines.next().map_or(0, str::len);
        } else if in_diff && !line.starts_with('\\') {
            push_part(&mut parts, text, start..at, in_diff);
            (start, in_diff) = (at, false);
        }
        at += line.len();
    }
    push_part(&mut parts, text, start..text.len(), in_diff);
    parts
}

fn push_part<'a>(parts: &mut Vec<Part<'a>>, text: &'a str, range: Range<usize>, in_diff: bool) {
    match text.get(range) {
        Some("") | None => {}
        Some(part) if in_diff => parts.push(Part::Diff(part)),
        Some(part) => parts.push(Part::Words(part)),
    }
}

/// What the heading of a diff says of its file.
fn path_words(diff: &str) -> Option<String> {
    let mut rows = diff.lines();
    let old = rows.next()?.strip_prefix("--- ")?;
    let new = rows.next()?.strip_prefix("+++ ")?;
    let plain = |path: &str, side: &str| path.strip_prefix(side).unwrap_or(path).to_owned();
    Some(match (old, new) {
        ("/dev/null", new) => format!("{}, new", plain(new, "b/")),
        (old, "/dev/null") => format!("{}, deleted", plain(old, "a/")),
        (old, new) => match (plain(old, "a/"), plain(new, "b/")) {
            (old, new) if old == new => new,
            (old, new) => format!("{old}, moved to {new}"),
        },
    })
}

/// Lays out a unified diff for `width` columns. Lines that are no part of a hunk are left out if
/// they only name the file, and are dim otherwise.
pub(crate) fn lay(diff: &str, width: usize) -> Vec<Line> {
    let digits = number_width(diff);
    let mut lines = Vec::new();
    let mut hunks = 0;
    let (mut old, mut new) = (0u64, 0u64);
    for row in diff.lines() {
        let (number, sign, text, role) = match row.as_bytes().first() {
            Some(b'@') => {
                if let Some(starts) = hunk_starts(row) {
                    (old, new) = starts;
                    hunks += 1;
                    if hunks > 1 {
                        lines.push(Line::of(&format!("{:>digits$}", ".."), Role::Dim));
                    }
                    continue;
                }
                (None, ' ', row, Role::Dim)
            }
            Some(b'-') if hunks > 0 => {
                old += 1;
                (Some(old - 1), '-', row.get(1..).unwrap_or_default(), Role::Removed)
            }
            Some(b'+') if hunks > 0 => {
                new += 1;
                (Some(new - 1), '+', row.get(1..).unwrap_or_default(), Role::Added)
            }
            Some(b' ') if hunks > 0 => {
                old += 1;
                new += 1;
                (Some(new - 1), ' ', row.get(1..).unwrap_or_default(), Role::Dim)
            }
            _ if hunks == 0 && is_heading(row) => continue,
            _ => (None, ' ', row, Role::Dim),
        };
        let number = number.map_or(String::new(), |number| number.to_string());
        let margin = format!("{number:>digits$} ");
        let room = width.saturating_sub(digits + 3).max(4);
        for (part, line) in
            wrap(&[Span::new(text, role)], room, Break::Anywhere).into_iter().enumerate()
        {
            let mut whole = if part == 0 {
                Line::of(&margin, Role::Dim).and(&format!("{sign} "), role)
            } else {
                Line::of(&" ".repeat(digits + 3), Role::Dim)
            };
            whole.spans.extend(line.spans);
            lines.push(whole);
        }
    }
    lines
}

fn is_heading(row: &str) -> bool {
    ["--- ", "+++ ", "diff ", "index "].iter().any(|start| row.starts_with(start))
}

/// First old and new line of a hunk.
fn hunk_starts(row: &str) -> Option<(u64, u64)> {
    let mut words = row.strip_prefix("@@ -")?.split(' ');
    let start = |word: &str| word.split(',').next()?.parse().ok();
    Some((start(words.next()?)?, start(words.next()?.strip_prefix('+')?)?))
}

/// How many old and new lines a hunk has.
fn hunk_sizes(row: &str) -> Option<(u64, u64)> {
    let mut words = row.strip_prefix("@@ -")?.split(' ');
    let size = |word: &str| match word.trim_end().split_once(',') {
        Some((_, size)) => size.parse().ok(),
        None => Some(1),
    };
    Some((size(words.next()?)?, size(words.next()?)?))
}

fn number_width(diff: &str) -> usize {
    let last =
        diff.lines().filter_map(hunk_starts).map(|(old, new)| old.max(new)).max().unwrap_or(0);
    let longest = diff.lines().count() as u64;
    (last + longest).to_string().len().max(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_and_signs() {
        let diff = "--- a/x\n+++ b/x\n@@ -41,3 +41,3 @@\n fn last()\n-    old\n+    new\n@@ -90 +90,2 @@\n+tail\n\\ No newline at end of file\n";
        let lines = lay(diff, 40);
        let texts: Vec<String> = lines.iter().map(Line::text).collect();
        assert_eq!(
            texts,
            [
                " 41   fn last()",
                " 42 -     old",
                " 42 +     new",
                " ..",
                " 90 + tail",
                "      \\ No newline at end of file",
            ]
        );
        assert_eq!(lines[1].spans[1].look.role, Role::Removed);
        assert_eq!(lines[2].spans[1].look.role, Role::Added);
    }

    #[test]
    fn several_files_stand_under_their_paths() {
        let text = "2 files would change\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\nz: changed by hand\n";
        let look = Look::of(Role::Text);
        let texts: Vec<String> = lay_files(text, 40, look).iter().map(Line::text).collect();
        assert_eq!(
            texts,
            [
                "2 files would change",
                "",
                "x",
                "  1 - -- old",
                "  1 + ++ new",
                "  2   same",
                "",
                "y, deleted",
                "  1 - gone",
                "      \\ No newline at end of file",
                "z: changed by hand",
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn taking_apart_loses_nothing(text in "([-+ @\\\\]{0,3}[a-c0-9, /]{0,6}\n?){0,12}") {
            let joined: String = parts(&text)
                .into_iter()
                .map(|part| match part { Part::Words(text) | Part::Diff(text) => text })
                .collect();
            proptest::prop_assert_eq!(joined, text);
        }
    }

    #[test]
    fn removed_lines_that_look_like_headings_stay() {
        let lines = lay("@@ -1,2 +1 @@\n--- x\n+++ y\n", 40);
        assert_eq!(lines[0].text(), "  1 - -- x");
        assert_eq!(lines[1].text(), "  1 + ++ y");
    }
}
