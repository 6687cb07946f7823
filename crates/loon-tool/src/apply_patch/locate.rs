//! Where in a file a hunk belongs, and the replacement it stands for.

use crate::edit::matcher::{Hit, Tier, find_lines};
use crate::edit::{at_lines, nearest};
use crate::write_path::{Document, Ending, Splice};

use super::parse::{Hunk, HunkLine, LineKind};

/// Hunks that fit nowhere are looked at up to this many: each is compared with the whole file.
const PROBLEMS: usize = 20;

/// The replacements of all hunks in the order of the file, or what is wrong with the hunks.
pub(super) fn splices(document: &Document, hunks: &[Hunk]) -> Result<Vec<Splice>, Vec<String>> {
    let mut found: Vec<Splice> = Vec::with_capacity(hunks.len());
    let mut problems = Vec::new();
    let mut cursor = 0;
    for hunk in hunks {
        if problems.len() == PROBLEMS {
            let line = hunk.line;
            problems
                .push(format!("the changes from line {line} of the patch on were not looked at"));
            break;
        }
        match splice(document, hunk, cursor) {
            Ok(splice) => {
                cursor = splice.span.end;
                found.push(splice);
            }
            Err(problem) => {
                problems.push(format!("the change at line {} of the patch {problem}", hunk.line));
            }
        }
    }
    found.sort_by_key(|splice| (splice.span.start, splice.span.end));
    if let Some([first, _]) = found.array_windows().find(|[one, two]| two.span.start < one.span.end)
    {
        problems.push(format!(
            "two changes overlap at line {}; make them one",
            document.line_at(first.span.end.saturating_sub(1)) + 1
        ));
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

fn splice(document: &Document, hunk: &Hunk, cursor: usize) -> Result<Splice, String> {
    let lines = own_lines(document, hunk);
    if lines.iter().all(|line| line.kind == LineKind::Add) {
        return insertion(document, hunk, &lines);
    }
    let mut lines = lines.as_slice();
    let mut hits = candidates(document, hunk, lines)?;
    if hits.is_empty() {
        let signed = lines.iter().rposition(|line| !line.unsigned).map_or(0, |last| last + 1);
        if signed < lines.len() {
            lines = &lines[..signed];
            hits = candidates(document, hunk, lines)?;
        }
    }
    let hit = choose(document, hunk, cursor, &hits, lines)?;
    replacement(document, &hit, lines)
}

/// The lines of a hunk for this file: a CR at their end belongs to the ending, if the file has such.
fn own_lines(document: &Document, hunk: &Hunk) -> Vec<HunkLine> {
    let mut lines = hunk.lines.clone();
    if document.dominant_ending() == Ending::CrLf {
        for line in &mut lines {
            if line.text.ends_with('\r') {
                line.text.pop();
            }
        }
    }
    lines
}

fn side(lines: &[HunkLine], other: LineKind) -> Vec<&HunkLine> {
    lines.iter().filter(|line| line.kind != other).collect()
}

fn texts<'a>(lines: &[&'a HunkLine]) -> Vec<&'a str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

/// The places of the old lines that the headers and the end-of-file mark allow.
fn candidates(document: &Document, hunk: &Hunk, lines: &[HunkLine]) -> Result<Vec<Hit>, String> {
    let old = side(lines, LineKind::Add);
    let mut hits = find_lines(document.view(), &texts(&old));
    if hunk.at_end {
        hits.retain(|hit| hit.span.end == document.view().len());
    }
    if hunk.headers.is_empty() {
        return Ok(hits);
    }
    let starts = header_places(document, &hunk.headers)?;
    let mut places: Vec<usize> = starts
        .iter()
        .filter_map(|start| hits.iter().position(|hit| hit.span.start >= *start))
        .collect();
    places.dedup();
    Ok(places.into_iter().map(|place| hits[place].clone()).collect())
}

/// The places in the view at which the lines named by all headers begin, one after the other.
fn header_places(document: &Document, headers: &[String]) -> Result<Vec<usize>, String> {
    let mut starts = vec![0];
    for header in headers {
        let wanted = header.trim();
        let all = |matches: fn(&str, &str) -> bool| -> Vec<usize> {
            (0..document.line_count())
                .map(|line| document.line_span(line))
                .filter(|span| matches(document.view()[span.clone()].trim(), wanted))
                .map(|span| span.start)
                .collect()
        };
        let mut places = all(|line, wanted| line == wanted);
        if places.is_empty() {
            places = all(|line, wanted| line.contains(wanted));
        }
        let first = starts.first().copied().unwrap_or_default();
        places.retain(|place| *place >= first);
        if places.is_empty() {
            return Err(format!("names a line that is not in the file: `@@ {wanted}`"));
        }
        starts = places;
    }
    Ok(starts)
}

/// The one place meant. Line numbers and the order of the hunks may decide between exact matches.
fn choose(
    document: &Document,
    hunk: &Hunk,
    cursor: usize,
    hits: &[Hit],
    lines: &[HunkLine],
) -> Result<Hit, String> {
    match hits {
        [] => {
            let wanted = texts(&side(lines, LineKind::Add)).join("\n");
            let place = match (hunk.at_end, hunk.headers.last()) {
                (true, _) => " at the end of the file".to_owned(),
                (false, Some(header)) => format!(" after `@@ {header}`"),
                (false, None) => String::new(),
            };
            let nearest = nearest::explain(document.view(), &wanted);
            return Err(format!("does not fit: its lines are not in the file{place}. {nearest}"));
        }
        [hit] => return Ok(hit.clone()),
        _ => {}
    }
    if hits.iter().all(|hit| hit.tier == Tier::Exact) {
        let at_hint =
            hits.iter().find(|hit| Some(document.line_at(hit.span.start) + 1) == hunk.start);
        let mut after = hits.iter().filter(|hit| hit.span.start >= cursor);
        let only_after = after.next().filter(|_| cursor > 0 && after.next().is_none());
        if let Some(hit) = at_hint.or(only_after) {
            return Ok(hit.clone());
        }
    }
    Err(format!(
        "fits {} places, at {}. Give more lines around it, or an `@@` line from above it",
        hits.len(),
        at_lines(document, hits)
    ))
}

/// The replacement of the changed lines. Context at both ends is left out, so that hunks may share
/// it; one line stays, for a place of its own.
fn replacement(document: &Document, hit: &Hit, lines: &[HunkLine]) -> Result<Splice, String> {
    let context = |line: &&HunkLine| line.kind == LineKind::Context;
    let old_lines = side(lines, LineKind::Add).len();
    let below = lines.iter().rev().take_while(context).count().min(old_lines - 1);
    let above = lines.iter().take_while(context).count().min(old_lines - 1 - below);
    let lines = &lines[above..lines.len() - below];
    let first = document.line_at(hit.span.start);
    let start = document.line_span(first + above).start;
    let span = start..document.line_span(first + old_lines - below).start;

    let (old, new) = (side(lines, LineKind::Add), side(lines, LineKind::Remove));
    let at_end = span.end == document.view().len();
    let unterminated = at_end && !document.view()[span.clone()].ends_with('\n');
    let says_none = |lines: &[&HunkLine]| lines.last().is_some_and(|line| line.no_newline);
    let newline_after = match (says_none(&old), says_none(&new)) {
        (true, false) => true,
        (false, true) => !at_end,
        _ => !unterminated,
    };
    let fit = |text: String| {
        hit.indent.apply(&text).ok_or_else(|| {
            format!(
                "is at line {} with other indentation and cannot be moved with it; use the file's \
                 own indentation",
                first + 1
            )
        })
    };
    Ok(Splice {
        span,
        old: fit(joined(&texts(&old), !unterminated))?,
        new: fit(joined(&texts(&new), newline_after))?,
    })
}

fn joined(lines: &[&str], newline_after: bool) -> String {
    let mut text = lines.join("\n");
    if newline_after && !lines.is_empty() {
        text.push('\n');
    }
    text
}

/// A hunk of added lines only: at the end of the file, below a header, or into an empty file.
fn insertion(document: &Document, hunk: &Hunk, lines: &[HunkLine]) -> Result<Splice, String> {
    let lines: Vec<_> = lines.iter().collect();
    let end = document.view().len();
    let place = if hunk.at_end || end == 0 {
        end
    } else if hunk.headers.is_empty() {
        return Err("has only added lines, so its place is not known: give a line from above it, \
                    or `*** End of File`"
            .to_owned());
    } else {
        match header_places(document, &hunk.headers)?.as_slice() {
            [place] => document.line_span(document.line_at(*place)).end,
            places => {
                return Err(format!("follows an `@@` line that is there {} times", places.len()));
            }
        }
    };
    let open = place == end && end > 0 && !document.view().ends_with('\n');
    let terminated = !open && !lines.last().is_some_and(|line| line.no_newline && place == end);
    let text = joined(&texts(&lines), terminated);
    let new = if open { format!("\n{text}") } else { text };
    Ok(Splice { span: place..place, old: String::new(), new })
}

#[cfg(test)]
mod tests;
