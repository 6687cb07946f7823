//! Unified diffs as coloured lines with line numbers.

use crate::line::{Break, Line, Span, wrap};
use crate::theme::Role;

/// True if `text` is a unified diff.
pub(crate) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ -"))
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
    fn removed_lines_that_look_like_headings_stay() {
        let lines = lay("@@ -1,2 +1 @@\n--- x\n+++ y\n", 40);
        assert_eq!(lines[0].text(), "  1 - -- x");
        assert_eq!(lines[1].text(), "  1 + ++ y");
    }
}
