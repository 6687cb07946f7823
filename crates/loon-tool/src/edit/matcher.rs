//! Finding the text a model means.
//!
//! An exact match always wins and is judged alone: look-alikes do not make it ambiguous. Only when
//! there is none are texts compared in ever more tolerant ways, one tier after the other, each
//! including those before it. Tabs never stand for blanks.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::canonical_combining_class;

/// In what a match may differ from the text that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// In nothing.
    Exact,
    /// In composed against decomposed characters.
    Normalisation,
    /// In blanks at the end of lines too.
    TrailingBlanks,
    /// In typographic against plain quotes, dashes and spaces too.
    Typography,
    /// In indentation too, every line by the same.
    Indentation,
}

impl Tier {
    const TOLERANT: [Self; 4] =
        [Self::Normalisation, Self::TrailingBlanks, Self::Typography, Self::Indentation];

    /// What differs, for a sentence.
    pub fn difference(self) -> &'static str {
        match self {
            Self::Exact => "nothing",
            Self::Normalisation => "Unicode normalisation",
            Self::TrailingBlanks => "blanks at the end of lines",
            Self::Typography => "typographic quotes, dashes or spaces",
            Self::Indentation => "indentation",
        }
    }
}

/// How the file is indented compared to the text that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indent {
    /// In the same way.
    Same,
    /// Every line has this in front of the indentation asked for.
    More(String),
    /// Every line lacks this in front.
    Less(String),
}

impl Indent {
    /// Puts lines in the file's indentation; absent if one of them is not indented deep enough.
    pub fn apply(&self, text: &str) -> Option<String> {
        let line = |line: &str| match self {
            Self::Same => Some(line.to_owned()),
            _ if is_blank(line) => Some(line.to_owned()),
            Self::More(more) => Some(format!("{more}{line}")),
            Self::Less(less) => line.strip_prefix(less.as_str()).map(str::to_owned),
        };
        let lines: Option<Vec<_>> = text.split('\n').map(line).collect();
        lines.map(|lines| lines.join("\n"))
    }
}

/// A place at which the text was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The part of the searched text, in bytes.
    pub span: Range<usize>,
    /// In what it may differ from the wanted text.
    pub tier: Tier,
    /// How it is indented compared to the wanted text.
    pub indent: Indent,
}

/// All places of the first tier that has any, in order. `wanted` may begin and end within a line.
/// Both texts end their lines with LF. An empty `wanted` is nowhere.
pub fn find(text: &str, wanted: &str) -> Vec<Hit> {
    let exact = exact(text, wanted);
    if !exact.is_empty() {
        return exact;
    }
    let pieces: Vec<&str> = wanted.split('\n').collect();
    Search { lines: lines(text), pieces, whole: false, length: text.len() }.tolerant()
}

/// As [`find`] for whole lines: the spans begin at the start of a line and take the last newline
/// along.
pub fn find_lines(text: &str, wanted: &[&str]) -> Vec<Hit> {
    let mut lines = lines(text);
    if text.is_empty() || text.ends_with('\n') {
        lines.pop();
    }
    let search = Search { lines, pieces: wanted.to_vec(), whole: true, length: text.len() };
    let exact: Vec<Hit> = search
        .windows()
        .filter(|at| search.window(*at).all(|(line, piece)| line.text == piece))
        .map(|at| search.whole_lines(at, Tier::Exact, Indent::Same))
        .collect();
    if exact.is_empty() { search.tolerant() } else { exact }
}

fn exact(text: &str, wanted: &str) -> Vec<Hit> {
    let Some(first) = wanted.chars().next() else { return Vec::new() };
    let hit = |start: usize| Hit {
        span: start..start + wanted.len(),
        tier: Tier::Exact,
        indent: Indent::Same,
    };
    let mut hits: Vec<Hit> = text.match_indices(wanted).map(|(start, _)| hit(start)).collect();
    // A second place may overlap the only one, as "aa" in "aaa".
    if let [only] = hits.as_slice() {
        let from = only.span.start + first.len_utf8();
        if let Some(overlapping) = text[from..].find(wanted) {
            hits.push(hit(from + overlapping));
        }
    }
    hits
}

#[derive(Clone, Copy)]
struct Line<'a> {
    start: usize,
    text: &'a str,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    text.split('\n')
        .map(|line| {
            let line = Line { start, text: line };
            start += line.text.len() + 1;
            line
        })
        .collect()
}

struct Search<'a> {
    lines: Vec<Line<'a>>,
    pieces: Vec<&'a str>,
    /// Only whole lines match; else the first and the last piece may be parts of lines.
    whole: bool,
    length: usize,
}

impl<'a> Search<'a> {
    fn tolerant(&self) -> Vec<Hit> {
        if self.pieces.iter().all(|piece| is_blank(piece)) {
            return Vec::new();
        }
        Tier::TOLERANT
            .into_iter()
            .map(|tier| self.tier(tier))
            .find(|hits| !hits.is_empty())
            .unwrap_or_default()
    }

    fn tier(&self, tier: Tier) -> Vec<Hit> {
        let lines: Vec<_> = self.lines.iter().map(|line| fold(line.text, tier)).collect();
        let pieces: Vec<_> = self.pieces.iter().map(|piece| fold(piece, tier)).collect();
        let folded = Folded { search: self, tier, lines, pieces };
        self.windows().flat_map(|at| folded.hits(at)).collect()
    }

    /// The lines at which the pieces could begin.
    fn windows(&self) -> Range<usize> {
        match self.pieces.len() {
            0 => 0..0,
            pieces => 0..(self.lines.len() + 1).saturating_sub(pieces),
        }
    }

    fn window(&self, at: usize) -> impl Iterator<Item = (Line<'a>, &'a str)> {
        self.lines[at..].iter().copied().zip(self.pieces.iter().copied())
    }

    fn whole_lines(&self, at: usize, tier: Tier, indent: Indent) -> Hit {
        let end = self.lines.get(at + self.pieces.len()).map_or(self.length, |next| next.start);
        Hit { span: self.lines[at].start..end, tier, indent }
    }

    fn hit(&self, start: (usize, usize), end: (usize, usize), tier: Tier, indent: Indent) -> Hit {
        let place = |(line, offset): (usize, usize)| self.lines[line].start + offset;
        Hit { span: place(start)..place(end), tier, indent }
    }
}

/// All lines and pieces with the differences of a tier taken out.
struct Folded<'s, 'a> {
    search: &'s Search<'a>,
    tier: Tier,
    lines: Vec<Cow<'a, str>>,
    pieces: Vec<Cow<'a, str>>,
}

impl Folded<'_, '_> {
    fn hits(&self, at: usize) -> Vec<Hit> {
        if self.tier == Tier::Indentation {
            return self.indented(at).into_iter().collect();
        }
        if self.search.whole {
            let equal = (0..self.pieces.len()).all(|index| self.equal(at + index, index));
            return equal
                .then(|| self.search.whole_lines(at, self.tier, Indent::Same))
                .into_iter()
                .collect();
        }
        if self.pieces.len() == 1 { self.within(at) } else { self.across(at).into_iter().collect() }
    }

    /// Places of the only piece within one line.
    fn within(&self, at: usize) -> Vec<Hit> {
        let (line, piece) = (&*self.lines[at], &*self.pieces[0]);
        let mut spans: Vec<_> =
            line.match_indices(piece).map(|(start, _)| start..start + piece.len()).collect();
        let (line, piece) = (self.trim(line), self.trim(piece));
        if spans.is_empty() && piece.len() < self.pieces[0].len() && line.ends_with(piece) {
            spans.push(line.len() - piece.len()..line.len());
        }
        spans
            .into_iter()
            .filter_map(|span| {
                let start = self.unfold(at, span.start)?;
                let end = self.unfold(at, span.end)?;
                Some(self.search.hit((at, start), (at, end), self.tier, Indent::Same))
            })
            .collect()
    }

    /// The place of several pieces: the end of a line, whole lines, the beginning of a line.
    fn across(&self, at: usize) -> Option<Hit> {
        let last = self.pieces.len() - 1;
        let first_line = self.trim(&self.lines[at]);
        let first_piece = self.trim(&self.pieces[0]);
        if !first_line.ends_with(first_piece)
            || !(1..last).all(|index| self.equal(at + index, index))
        {
            return None;
        }
        let start = if self.pieces[0].is_empty() {
            self.search.lines[at].text.len()
        } else {
            self.unfold(at, first_line.len() - first_piece.len())?
        };
        let end = self.unfold(at + last, self.head(&self.lines[at + last], &self.pieces[last])?)?;
        Some(self.search.hit((at, start), (at + last, end), self.tier, Indent::Same))
    }

    /// How much of a line the last piece covers, if it begins with it.
    fn head(&self, line: &str, piece: &str) -> Option<usize> {
        if line.starts_with(piece) {
            return Some(piece.len());
        }
        let (line, trimmed) = (self.trim(line), self.trim(piece));
        (trimmed.len() < piece.len() && line == trimmed).then_some(line.len())
    }

    /// The place where all lines differ by the same indentation.
    fn indented(&self, at: usize) -> Option<Hit> {
        let last = self.pieces.len() - 1;
        let mut indent: Option<Indent> = None;
        for index in 0..=last {
            let (line, piece) = (&*self.lines[at + index], &*self.pieces[index]);
            let open = !self.search.whole && index == last;
            if is_blank(self.search.pieces[index]) {
                if (open && piece.is_empty()) || (!open && is_blank(line)) {
                    continue;
                }
                return None;
            }
            let (line_indent, line) = line.split_at(indent_of(self.search.lines[at + index].text));
            let (piece_indent, piece) = piece.split_at(indent_of(self.search.pieces[index]));
            let same = self.trim(line) == self.trim(piece);
            if !(same || open && line.starts_with(piece)) {
                return None;
            }
            let found = relation(line_indent, piece_indent)?;
            if *indent.get_or_insert_with(|| found.clone()) != found {
                return None;
            }
        }
        let indent = indent?;
        if self.search.whole {
            return Some(self.search.whole_lines(at, self.tier, indent));
        }
        let (line, piece) = (&*self.lines[at + last], &*self.pieces[last]);
        let end = if piece.is_empty() {
            0
        } else {
            let indent = indent_of(self.search.lines[at + last].text);
            let piece = &piece[indent_of(self.search.pieces[last])..];
            self.unfold(at + last, indent + self.head(&line[indent..], piece)?)?
        };
        Some(self.search.hit((at, 0), (at + last, end), self.tier, indent))
    }

    fn equal(&self, line: usize, piece: usize) -> bool {
        self.trim(&self.lines[line]) == self.trim(&self.pieces[piece])
    }

    fn trim<'t>(&self, text: &'t str) -> &'t str {
        if self.tier >= Tier::TrailingBlanks { text.trim_end_matches([' ', '\t']) } else { text }
    }

    /// The place in the line for a place in the folded line; absent within a character.
    fn unfold(&self, line: usize, wanted: usize) -> Option<usize> {
        let text = self.search.lines[line].text;
        if text.is_ascii() {
            return Some(wanted);
        }
        let (mut at, mut folded) = (0, 0);
        for cluster in clusters(text) {
            if folded >= wanted {
                break;
            }
            at += cluster.len();
            folded += fold_cluster(cluster, self.tier).map(char::len_utf8).sum::<usize>();
        }
        (folded == wanted).then_some(at)
    }
}

/// How a line is indented compared to the wanted one; absent if neither indentation ends the other.
fn relation(line: &str, wanted: &str) -> Option<Indent> {
    if line == wanted {
        return Some(Indent::Same);
    }
    line.strip_suffix(wanted)
        .map(|more| Indent::More(more.to_owned()))
        .or_else(|| wanted.strip_suffix(line).map(|less| Indent::Less(less.to_owned())))
}

/// Length of the indentation. It is the same after folding; what was folded to a blank is none.
fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|ch| ch == ' ' || ch == '\t')
}

/// The text with the differences of a tier taken out, except for blanks.
pub(super) fn fold(text: &str, tier: Tier) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(clusters(text).flat_map(|cluster| fold_cluster(cluster, tier)).collect())
}

fn fold_cluster(cluster: &str, tier: Tier) -> impl Iterator<Item = char> {
    cluster.nfd().map(move |ch| if tier >= Tier::Typography { plain(ch) } else { ch })
}

/// A character with the marks that combine with it.
fn clusters(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(_, ch)| canonical_combining_class(*ch) == 0)
            .map_or(rest.len(), |(end, _)| end);
        let (cluster, tail) = rest.split_at(end);
        rest = tail;
        (!cluster.is_empty()).then_some(cluster)
    })
}

/// The key on a keyboard for a typographic character.
fn plain(ch: char) -> char {
    match ch {
        '\u{2018}'..='\u{201B}' | '\u{2032}' => '\'',
        '\u{201C}'..='\u{201F}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        _ => ch,
    }
}

#[cfg(test)]
mod tests;
