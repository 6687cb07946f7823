//! Text that may be drawn: no control characters, no reordering marks, measured in grapheme
//! clusters. The only kind of text a [`crate::line::Line`] can hold.

use std::fmt::Write as _;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Distance of tab stops in columns.
const TAB_STOP: usize = 8;

/// Code points one cluster may have; more combining marks than this are left out.
const CLUSTER_LIMIT: usize = 16;

/// Columns one cluster may have; what would make it wider is left out.
const WIDEST_CLUSTER: usize = 4;

/// One line of text without anything a terminal would obey. Whatever else was in it is shown by a
/// visible substitute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SafeText(String);

impl SafeText {
    /// Neutralises `raw`, whose first character stands in column 0.
    pub(crate) fn new(raw: &str) -> Self {
        Self::at(raw, 0)
    }

    /// Neutralises `raw`, whose first character stands in column `column`; tabs depend on it.
    pub(crate) fn at(raw: &str, column: usize) -> Self {
        if raw.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return Self(raw.to_owned());
        }
        let mut safe = String::with_capacity(raw.len());
        let mut at = column;
        for cluster in raw.graphemes(true) {
            let from = safe.len();
            neutralise(cluster, at, &mut safe);
            at += safe.get(from..).map_or(0, text_width);
        }
        Self(safe)
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Columns it takes.
    pub(crate) fn width(&self) -> usize {
        text_width(&self.0)
    }

    /// Its grapheme clusters, each with its columns.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = (&str, usize)> {
        clusters(&self.0)
    }

    /// Appends a part of another safe text.
    pub(crate) fn push_cluster(&mut self, cluster: &str) {
        self.0.push_str(cluster);
    }
}

/// Columns of text that is free of control characters, cluster by cluster.
pub(crate) fn text_width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { clusters(text).map(|(_, width)| width).sum() }
}

fn clusters(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.graphemes(true).map(|cluster| (cluster, UnicodeWidthStr::width(cluster)))
}

fn neutralise(cluster: &str, column: usize, out: &mut String) {
    if cluster == "\t" {
        let width = TAB_STOP - column % TAB_STOP;
        out.extend(std::iter::repeat_n(' ', width));
        return;
    }
    let from = out.len();
    for c in cluster.chars().take(CLUSTER_LIMIT) {
        match c {
            '\0'..='\u{1f}' => out.push(control_picture(c)),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\u{2424}'),
            '\u{80}'..='\u{9f}' => out.push('\u{fffd}'),
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "<U+{:04X}>", u32::from(c));
            }
            c => {
                out.push(c);
                if out.get(from..).is_some_and(|added| text_width(added) > WIDEST_CLUSTER) {
                    out.pop();
                    break;
                }
            }
        }
    }
    // A cluster without columns would hang on whatever stands before it.
    if out.get(from..).is_some_and(|added| text_width(added) == 0) {
        out.truncate(from);
    }
}

fn control_picture(c: char) -> char {
    char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn widths_are_those_of_clusters() {
        for (text, width) in [
            ("你好", 4),
            ("e\u{301}", 1),
            ("\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}", 2),
            ("\u{2638}\u{fe0f}", 2),
            ("\u{267b}\u{fe0f}\u{267b}\u{fe0f}", 4),
            ("\u{1f1eb}\u{1f1f7}", 2),
            ("한글", 4),
            ("\u{ff71}", 1),
            ("A\u{200b}B", 2),
            ("\u{1f44d}\u{1f3fd}", 2),
        ] {
            assert_eq!(SafeText::new(text).width(), width, "{text:?}");
        }
        assert_eq!(SafeText::at("\t", 3).width(), 5);
    }

    #[test]
    fn escapes_and_overrides_become_visible() {
        assert_eq!(SafeText::new("\x1b[2Ja\r\nb").as_str(), "\u{241b}[2Ja\u{240d}\u{240a}b");
        assert_eq!(SafeText::new("a\u{202e}b").as_str(), "a<U+202E>b");
        assert_eq!(SafeText::new("\u{9b}31m\u{7f}").as_str(), "\u{fffd}31m\u{2421}");
    }

    #[test]
    fn piled_up_marks_are_bounded() {
        let pile = format!("e{}", "\u{301}".repeat(5000));
        let safe = SafeText::new(&pile);
        assert_eq!(safe.width(), 1);
        assert_eq!(safe.as_str().chars().count(), CLUSTER_LIMIT);
    }

    proptest! {
        #[test]
        fn nothing_a_terminal_obeys_survives(raw in any::<String>()) {
            let safe = SafeText::new(&raw);
            let obeyed = |c: char| {
                c.is_control()
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
            };
            prop_assert!(!safe.as_str().chars().any(obeyed));
            prop_assert_eq!(safe.width(), safe.clusters().map(|(_, width)| width).sum::<usize>());
            prop_assert_eq!(SafeText::new(safe.as_str()), safe.clone());
        }
    }
}
