//! Styled lines and how text is broken into them.

use ratatui::style::Modifier;

use crate::safe::SafeText;
use crate::theme::Role;

/// How a piece of text looks: its role in the theme and what is added to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// The role that gives the colour.
    pub(crate) role: Role,
    /// Bold, italic and the like.
    pub(crate) added: Modifier,
}

impl Look {
    /// The plain look of a role.
    pub(crate) const fn of(role: Role) -> Self {
        Self { role, added: Modifier::empty() }
    }

    /// The same, with more modifiers.
    #[must_use]
    pub(crate) const fn with(self, more: Modifier) -> Self {
        Self { role: self.role, added: self.added.union(more) }
    }
}

impl From<Role> for Look {
    fn from(role: Role) -> Self {
        Self::of(role)
    }
}

/// A piece of a line in one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The text.
    pub(crate) text: SafeText,
    /// Its look.
    pub(crate) look: Look,
}

impl Span {
    /// Neutralises `raw`.
    pub(crate) fn new(raw: &str, look: impl Into<Look>) -> Self {
        Self { text: SafeText::new(raw), look: look.into() }
    }
}

/// One line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its pieces, from the left.
    pub(crate) spans: Vec<Span>,
}

impl Line {
    /// A line of one piece.
    pub(crate) fn of(raw: &str, look: impl Into<Look>) -> Self {
        Self { spans: vec![Span::new(raw, look)] }
    }

    /// Adds text at the end.
    pub(crate) fn push(&mut self, raw: &str, look: impl Into<Look>) {
        if !raw.is_empty() {
            let column = if raw.contains('\t') { self.width() } else { 0 };
            self.spans.push(Span { text: SafeText::at(raw, column), look: look.into() });
        }
    }

    /// The same line with more text at its end.
    #[must_use]
    pub(crate) fn and(mut self, raw: &str, look: impl Into<Look>) -> Self {
        self.push(raw, look);
        self
    }

    /// Adds blanks until the line is `width` columns wide.
    pub(crate) fn pad_to(&mut self, width: usize) {
        let have = self.width();
        if have < width {
            self.push(&" ".repeat(width - have), Look::default());
        }
    }

    /// Columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// Its text without looks.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The line cut to `width` columns, with `mark` at its end if something is missing.
    #[must_use]
    pub(crate) fn cut(self, width: usize, mark: &str) -> Self {
        if self.width() <= width {
            return self;
        }
        let room = width.saturating_sub(SafeText::new(mark).width());
        let mut cut = Self::default();
        let mut used = 0;
        'spans: for span in self.spans {
            let mut kept = SafeText::default();
            for (cluster, columns) in span.text.clusters() {
                if used + columns > room {
                    cut.spans.push(Span { text: kept, look: span.look });
                    break 'spans;
                }
                used += columns;
                kept.push_cluster(cluster);
            }
            cut.spans.push(Span { text: kept, look: span.look });
        }
        cut.push(mark, Role::Dim);
        cut
    }
}

/// `left` and `right` on one line of `width` columns; `right` gives way first.
pub(crate) fn spread(left: Line, right: &Line, width: usize, mark: &str) -> Line {
    let beside = right.width();
    if beside == 0 || beside + 8 > width {
        return left.cut(width, mark);
    }
    let mut line = left.cut(width - beside - 1, mark);
    line.pad_to(width - beside);
    line.spans.extend(right.spans.iter().cloned());
    line
}

/// Where long text may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// At blanks and between wide characters, inside a word only if it alone is too long.
    Words,
    /// At the last column; every blank is kept.
    Anywhere,
}

struct Cluster<'a> {
    text: &'a str,
    width: usize,
    look: Look,
}

/// Breaks a line so that no part is wider than `width` columns (at least 2). No cluster is split.
pub(crate) fn wrap(spans: &[Span], width: usize, how: Break) -> Vec<Line> {
    let width = width.max(2);
    let total: usize = spans.iter().map(|span| span.text.width()).sum();
    if total <= width {
        return vec![Line { spans: spans.to_vec() }];
    }
    let clusters: Vec<Cluster<'_>> = spans
        .iter()
        .flat_map(|span| {
            span.text.clusters().map(|(text, width)| Cluster { text, width, look: span.look })
        })
        .collect();
    let mut lines = Vec::new();
    let mut start = 0;
    while start < clusters.len() {
        let (end, next) = row_end(&clusters, start, width, how);
        lines.push(join(clusters.get(start..end).unwrap_or_default()));
        start = next;
    }
    lines
}

/// End of the row that begins at `start`, and where the next one begins.
fn row_end(clusters: &[Cluster<'_>], start: usize, width: usize, how: Break) -> (usize, usize) {
    let mut used = 0;
    let mut soft = None;
    for (at, cluster) in clusters.iter().enumerate().skip(start) {
        if used + cluster.width > width && at > start {
            if how == Break::Anywhere {
                return (at, at);
            }
            if cluster.text == " " {
                return (at, after_blanks(clusters, at));
            }
            if cluster.width > 1 {
                return (at, at);
            }
            return match soft {
                Some(end) => (trim_end(clusters, start, end), end),
                None => (at, at),
            };
        }
        used += cluster.width;
        if cluster.text == " " || cluster.width > 1 {
            soft = Some(at + 1);
        }
    }
    (clusters.len(), clusters.len())
}

fn after_blanks(clusters: &[Cluster<'_>], from: usize) -> usize {
    clusters
        .iter()
        .enumerate()
        .skip(from)
        .find(|(_, cluster)| cluster.text != " ")
        .map_or(clusters.len(), |(at, _)| at)
}

fn trim_end(clusters: &[Cluster<'_>], start: usize, end: usize) -> usize {
    let blanks = clusters
        .get(start..end)
        .unwrap_or_default()
        .iter()
        .rev()
        .take_while(|cluster| cluster.text == " ")
        .count();
    // A row of blanks alone keeps one, so that it stays a row.
    (end - blanks).max(start + 1)
}

fn join(clusters: &[Cluster<'_>]) -> Line {
    let mut line = Line::default();
    for cluster in clusters {
        match line.spans.last_mut() {
            Some(span) if span.look == cluster.look => span.text.push_cluster(cluster.text),
            _ => {
                let mut text = SafeText::default();
                text.push_cluster(cluster.text);
                line.spans.push(Span { text, look: cluster.look });
            }
        }
    }
    line
}

/// Breaks plain text of several lines.
pub(crate) fn wrap_text(raw: &str, look: impl Into<Look>, width: usize, how: Break) -> Vec<Line> {
    let look = look.into();
    raw.lines().flat_map(|line| wrap(&[Span::new(line, look)], width, how)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn words_move_whole_and_long_words_are_cut() {
        let lines =
            wrap_text("the quick brown supercalifragilistic fox", Role::Text, 10, Break::Words);
        assert_eq!(texts(&lines), ["the quick", "brown", "supercalif", "ragilistic", "fox"]);
    }

    #[test]
    fn wide_characters_break_anywhere_and_never_in_half() {
        let lines = wrap_text("ab你好世界c", Role::Text, 5, Break::Words);
        assert_eq!(texts(&lines), ["ab你", "好世", "界c"]);
    }

    #[test]
    fn code_keeps_every_blank() {
        let lines = wrap_text("a    b", Role::Text, 4, Break::Anywhere);
        assert_eq!(texts(&lines), ["a   ", " b"]);
    }

    #[test]
    fn the_right_side_gives_way_on_narrow_lines() {
        let right = Line::of("120 lines", Role::Dim);
        let wide = spread(Line::of("read src/pager.rs", Role::Text), &right, 40, "…");
        assert_eq!(wide.text(), "read src/pager.rs              120 lines");
        let narrow = spread(Line::of("read src/pager.rs", Role::Text), &right, 12, "…");
        assert_eq!(narrow.text(), "read src/pa…");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_nothing_but_blanks_is_lost(
            raw in "[a-z 你好é👍🏽\u{301}]{0,80}", width in 5usize..20, words in any::<bool>(),
        ) {
            let how = if words { Break::Words } else { Break::Anywhere };
            let lines = wrap(&[Span::new(&raw, Role::Text)], width, how);
            for line in &lines {
                prop_assert!(line.width() <= width);
            }
            let solid = |text: &str| text.replace(' ', "");
            let joined: String = lines.iter().map(Line::text).collect();
            prop_assert_eq!(solid(&joined), solid(SafeText::new(&raw).as_str()));
        }
    }
}
