//! Telling a model why its text was not found: the nearest text of the file, and where it begins
//! to differ.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::matcher::{Tier, fold, is_blank};
use crate::diff::shown;

/// Lines of the nearest text that are shown.
const MAX_LINES: usize = 12;
/// Below this share of common letter pairs a line is not called near.
const MIN_LIKENESS: f64 = 0.5;
/// Characters shown on both sides of a difference.
const EXCERPT_CHARS: usize = 60;

/// Why `wanted` is not in `text`, in one or a few sentences that end with a full stop or with the
/// lines of the nearest text.
pub(crate) fn explain(text: &str, wanted: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = wanted.lines().collect();
    let mut filled = wanted.iter().filter(|line| !is_blank(line)).peekable();
    if filled.peek().is_some() && filled.all(|line| has_number(line)) {
        return "Its lines begin with line numbers: give the text of the lines alone.".to_owned();
    }
    if let Some(reason) = blanks_only(&lines, &wanted) {
        return reason;
    }
    let Some(at) = nearest(&lines, &wanted) else {
        return "Nothing in the file is close to it; read the file again.".to_owned();
    };
    let mut out = String::from("The nearest text is:\n");
    let end = (at + wanted.len()).min(lines.len());
    for (index, line) in lines.iter().enumerate().take(end.min(at + MAX_LINES)).skip(at) {
        let _ = writeln!(out, "{}\t{}", index + 1, shown(line));
    }
    if let Some((index, line, asked)) = first_difference(&lines[at..], &wanted) {
        let _ = write!(out, "{}", difference(at + index, line, asked));
    }
    out
}

/// Whether a line begins as those do that tools number.
fn has_number(line: &str) -> bool {
    let rest = line.trim_start_matches(|ch: char| ch.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with('\t')
}

/// The first line of the window that is not the wanted one, by its index.
fn first_difference<'a>(
    window: &[&'a str],
    wanted: &[&'a str],
) -> Option<(usize, Option<&'a str>, &'a str)> {
    wanted.iter().enumerate().find_map(|(index, asked)| {
        let line = window.get(index).copied();
        (line != Some(*asked)).then_some((index, line, *asked))
    })
}

fn difference(index: usize, line: Option<&str>, asked: &str) -> String {
    let number = index + 1;
    let Some(line) = line else {
        return format!("It ends before line {number}, where you have {}.", quoted(asked, 0));
    };
    let same = line.chars().zip(asked.chars()).take_while(|(a, b)| a == b).count();
    format!(
        "It first differs in line {number}, column {}: the file has {}, you have {}.",
        same + 1,
        quoted(line, same),
        quoted(asked, same)
    )
}

/// The text around a character, with tabs and invisible characters spelled out.
fn quoted(text: &str, at: usize) -> String {
    let start = at.saturating_sub(EXCERPT_CHARS / 3);
    let excerpt: String = text.chars().skip(start).take(EXCERPT_CHARS).collect();
    let (before, after) = (
        if start > 0 { "…" } else { "" },
        if text.chars().nth(start + EXCERPT_CHARS).is_some() { "…" } else { "" },
    );
    format!("{before}{excerpt:?}{after}")
}

/// The explanation if the texts differ in blanks and tabs only.
fn blanks_only(lines: &[&str], wanted: &[&str]) -> Option<String> {
    let squashed: Vec<String> = lines.iter().map(|line| squash(line)).collect();
    let pieces: Vec<String> = wanted.iter().map(|line| squash(line)).collect();
    if pieces.iter().all(String::is_empty) {
        return None;
    }
    let last = pieces.len() - 1;
    let at = (0..(lines.len() + 1).saturating_sub(pieces.len())).find(|at| {
        pieces.iter().enumerate().all(|(index, piece)| {
            let line = &squashed[at + index];
            match index {
                0 if last == 0 => line.contains(piece.as_str()),
                0 => line.ends_with(piece.as_str()),
                _ if index == last => line.starts_with(piece.as_str()),
                _ => line == piece,
            }
        })
    })?;
    let (index, line, asked) = wanted
        .iter()
        .enumerate()
        .map(|(index, asked)| (index, lines[at + index], *asked))
        .find(|(_, line, asked)| !line.contains(*asked))?;
    let what = if blanks(line).contains('\t') == blanks(asked).contains('\t') {
        "in blanks"
    } else {
        "in tab against blanks"
    };
    Some(format!(
        "Line {} differs only {what}: the file has {}, you have {}. Copy the file's own characters.",
        at + index + 1,
        quoted(line, 0),
        quoted(asked, 0)
    ))
}

fn blanks(line: &str) -> String {
    line.chars().filter(|ch| *ch == ' ' || *ch == '\t').collect()
}

/// The line with every run of blanks and tabs as one blank, none at its ends.
fn squash(line: &str) -> String {
    let folded = fold(line, Tier::Typography);
    folded.split([' ', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Where the file is most like the wanted lines: most equal lines, else the most similar line.
fn nearest(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    most_equal(lines, wanted).or_else(|| {
        let (offset, longest) =
            wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
        let pairs = letter_pairs(longest);
        let (line, likeness) = lines
            .iter()
            .map(|line| likeness(&pairs, line))
            .enumerate()
            .max_by(|(a_at, a), (b_at, b)| a.total_cmp(b).then(b_at.cmp(a_at)))?;
        (likeness >= MIN_LIKENESS).then(|| line.saturating_sub(offset))
    })
}

/// The start that has the most wanted lines at their places, blanks at their ends aside.
fn most_equal(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in wanted.iter().enumerate().filter(|(_, line)| !is_blank(line)) {
        places.entry(line.trim()).or_default().push(at);
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        for offset in places.get(line.trim()).into_iter().flatten() {
            *votes.entry(at.saturating_sub(*offset)).or_default() += 1;
        }
    }
    votes.into_iter().max_by_key(|(at, count)| (*count, usize::MAX - at)).map(|(at, _)| at)
}

type Pairs = HashMap<(char, char), u32>;

fn letter_pairs(line: &str) -> Pairs {
    let mut pairs = Pairs::new();
    let line = line.trim();
    for pair in line.chars().zip(line.chars().skip(1)) {
        *pairs.entry(pair).or_default() += 1;
    }
    pairs
}

/// Share of letter pairs that a line has in common with another, 0 to 1.
fn likeness(pairs: &Pairs, line: &str) -> f64 {
    let count = |pairs: &Pairs| pairs.values().sum::<u32>();
    // Lines of very different length cannot be near; most are passed over here.
    let (own, length) = (count(pairs) as usize + 1, line.trim().chars().count());
    if own.min(length) * 3 + 3 < own.max(length) {
        return 0.0;
    }
    let others = letter_pairs(line);
    let all = count(pairs) + count(&others);
    if all == 0 {
        return 0.0;
    }
    let common: u32 =
        pairs.iter().map(|(pair, count)| others.get(pair).map_or(0, |o| *count.min(o))).sum();
    f64::from(2 * common) / f64::from(all)
}
