//! What a change looks like: a unified diff, counts of lines, and the changed places with line
//! numbers. Bounded, and free of control characters.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use crate::text::visible;
use crate::write_path::{Document, Ending};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Lines of one diff or excerpt; what is beyond is counted in its last line.
const MAX_DIFF_LINES: usize = 400;
const MAX_EXCERPT_LINES: usize = 40;
/// Characters of one shown line.
const MAX_LINE_CHARS: usize = 400;
/// After this the diff of two very different files may be coarser than the smallest one.
const PATIENCE: Duration = Duration::from_millis(500);

/// How two contents differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineDiff {
    /// Lines only in the later content.
    pub(crate) added: u32,
    /// Lines only in the earlier content.
    pub(crate) removed: u32,
    /// The hunks of a unified diff, without file names; empty if nothing differs.
    pub(crate) hunks: String,
    /// The changed lines of the later content, counted from 0. An empty range is a removal.
    pub(crate) changed: Vec<Range<usize>>,
}

impl LineDiff {
    /// Compares two documents line by line, line endings included.
    pub(crate) fn between(before: &Document, after: &Document) -> Self {
        let (old, new) = (byte_lines(before), byte_lines(after));
        let deadline = Some(Instant::now() + PATIENCE);
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
        let mut diff = Self { added: 0, removed: 0, hunks: String::new(), changed: Vec::new() };
        for op in &ops {
            if !matches!(op, DiffOp::Equal { .. }) {
                diff.removed += op.old_range().len() as u32;
                diff.added += op.new_range().len() as u32;
                diff.changed.push(op.new_range());
            }
        }
        diff.hunks = hunks(before, after, ops);
        diff
    }

    /// The hunks under the names of the two files; an absent name is a file that is not there.
    pub(crate) fn unified(&self, before: Option<&str>, after: Option<&str>) -> String {
        if self.hunks.is_empty() {
            return String::new();
        }
        let name = |side: &str, path: Option<&str>| match path {
            Some(path) => format!("{side}/{}", shown(path)),
            None => "/dev/null".to_owned(),
        };
        format!("--- {}\n+++ {}\n{}", name("a", before), name("b", after), self.hunks)
    }

    /// The changed lines of `after` with their numbers and one line around each.
    pub(crate) fn excerpt(&self, after: &Document) -> String {
        let mut out = String::new();
        let (mut next, mut written) = (0, 0);
        for range in &self.changed {
            let start = range.start.saturating_sub(1).max(next);
            let end = (range.end + 1).min(after.line_count());
            if start > next && written > 0 {
                out.push_str("...\n");
            }
            for line in start..end {
                if written == MAX_EXCERPT_LINES {
                    out.push_str("... (more changed lines are not shown)\n");
                    return out;
                }
                numbered(&mut out, after, line);
                written += 1;
            }
            next = next.max(end);
        }
        out
    }
}

/// Appends one line of a document, counted from 0, under its number.
fn numbered(out: &mut String, document: &Document, line: usize) {
    let _ = writeln!(out, "{}\t{}", line + 1, shown(content(document, line)));
}

/// A line as it may be shown: without control characters other than tab, cut at a bound.
pub(crate) fn shown(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", visible(&line[..end])),
        None => visible(line).into_owned(),
    }
}

fn content(document: &Document, line: usize) -> &str {
    let text = &document.view()[document.line_span(line)];
    text.strip_suffix('\n').unwrap_or(text)
}

fn byte_lines(document: &Document) -> Vec<&[u8]> {
    (0..document.line_count())
        .map(|line| {
            let span = document.line_span(line);
            &document.bytes()[document.byte_at(span.start)..document.byte_at(span.end)]
        })
        .collect()
}

fn hunks(before: &Document, after: &Document, ops: Vec<DiffOp>) -> String {
    let (mut out, mut lines, mut left_out) = (String::new(), 0, 0);
    for group in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old = first.old_range().start..last.old_range().end;
        let new = first.new_range().start..last.new_range().end;
        if lines < MAX_DIFF_LINES {
            let _ = writeln!(out, "@@ -{} +{} @@", range(&old), range(&new));
        }
        let sides = group.iter().flat_map(|op| match op {
            DiffOp::Equal { .. } => vec![(' ', before, op.old_range())],
            _ => vec![('-', before, op.old_range()), ('+', after, op.new_range())],
        });
        for (sign, document, line) in
            sides.flat_map(|(sign, document, range)| range.map(move |line| (sign, document, line)))
        {
            if lines == MAX_DIFF_LINES {
                left_out += 1;
                continue;
            }
            lines += 1;
            let _ = writeln!(out, "{sign}{}", shown(content(document, line)));
            if document.ending(line) == Ending::None {
                out.push_str("\\ No newline at end of file\n");
            }
        }
    }
    if left_out > 0 {
        let _ = writeln!(out, "... {left_out} more lines of this diff are not shown");
    }
    out
}

/// A range of lines as hunk headers write it: an empty one begins before its place.
fn range(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        len => format!("{},{len}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str) -> (LineDiff, Document) {
        let before = Document::decode(before.as_bytes().to_vec());
        let after = Document::decode(after.as_bytes().to_vec());
        (LineDiff::between(&before, &after), after)
    }

    #[test]
    fn changed_lines_are_counted_and_shown_with_context() {
        let (diff, after) = diff("a\nb\nc\nd\ne\nf", "a\nb\nc\nd\nE\nf\n");
        assert_eq!((diff.added, diff.removed), (2, 2));
        assert_eq!(
            diff.unified(Some("x"), Some("x")),
            "--- a/x\n+++ b/x\n@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n-f\n\\ No newline at end of file\n\
             +E\n+f\n"
        );
        assert_eq!(diff.excerpt(&after), "4\td\n5\tE\n6\tf\n");
    }

    #[test]
    fn a_changed_line_ending_is_a_changed_line() {
        let (diff, _) = diff("a\nb\n", "a\r\nb\n");
        assert_eq!((diff.added, diff.removed), (1, 1));
    }

    #[test]
    fn nothing_changed_is_an_empty_diff() {
        let (diff, after) = diff("a\n", "a\n");
        assert_eq!(diff.unified(Some("x"), Some("x")), "");
        assert_eq!(diff.excerpt(&after), "");
    }

    #[test]
    fn long_diffs_say_how_much_is_left_out() {
        let long = "line\n".repeat(MAX_DIFF_LINES + 7);
        let (diff, _) = diff("", &long);
        assert_eq!(diff.added as usize, MAX_DIFF_LINES + 7);
        assert!(diff.hunks.ends_with("+line\n... 7 more lines of this diff are not shown\n"));
        assert!(
            diff.unified(None, Some("new")).starts_with("--- /dev/null\n+++ b/new\n@@ -0,0 +1,")
        );
    }

    #[test]
    fn control_characters_are_pictures_and_long_lines_are_cut() {
        assert_eq!(shown("a\x1b[31m\tb\u{9b}\r"), "a␛[31m\tb\u{FFFD}␍");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), MAX_LINE_CHARS + 1);
    }

    #[test]
    fn places_apart_are_shown_apart() {
        let (diff, after) = diff("1\n2\n3\n4\n5\n6\n7\n8\n", "1\nX\n3\n4\n5\n6\n8\n");
        assert_eq!(diff.excerpt(&after), "1\t1\n2\tX\n3\t3\n...\n6\t6\n7\t8\n");
    }
}
