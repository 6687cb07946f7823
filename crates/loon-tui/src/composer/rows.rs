//! The draft broken into rows of a width, with the cursor among them.

use unicode_segmentation::UnicodeSegmentation;

use super::Composer;
use crate::line::Line;
use crate::safe::SafeText;
use crate::theme::Role;

/// One row: a range of bytes of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisualRow {
    /// First byte.
    pub(crate) start: usize,
    /// Byte behind the last, the line feed not included.
    pub(crate) end: usize,
}

/// The whole draft in rows.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Top to bottom; never empty.
    pub(crate) all: Vec<VisualRow>,
    /// Row and column of the cursor.
    pub(crate) cursor: (usize, usize),
    /// Columns and byte offset of every cluster, row by row.
    cells: Vec<Vec<(usize, usize)>>,
}

impl Rows {
    /// Byte offset of the character at or left of a column.
    pub(crate) fn offset(&self, row: usize, column: usize) -> usize {
        let Some(cells) = self.cells.get(row) else { return 0 };
        let mut used = 0;
        for (width, offset) in cells {
            if used + width > column {
                return *offset;
            }
            used += width;
        }
        self.all.get(row).map_or(0, |row| row.end)
    }
}

impl Composer {
    /// The draft in rows of at most `width` columns.
    pub(crate) fn rows(&self, width: usize) -> Rows {
        let width = width.max(2);
        let text = &self.state.text;
        let mut rows = Vec::new();
        let mut cells = Vec::new();
        let mut row = Vec::new();
        let (mut start, mut used) = (0, 0);
        let mut cursor = None;
        for (at, cluster) in text.grapheme_indices(true) {
            if cluster == "\n" {
                if at == self.state.cursor {
                    cursor = Some((rows.len(), used));
                }
                rows.push(VisualRow { start, end: at });
                cells.push(std::mem::take(&mut row));
                (start, used) = (at + 1, 0);
                continue;
            }
            let columns = self.display(cluster, used).width().min(width);
            if used + columns > width {
                rows.push(VisualRow { start, end: at });
                cells.push(std::mem::take(&mut row));
                (start, used) = (at, 0);
            }
            if at == self.state.cursor {
                cursor = Some((rows.len(), used));
            }
            row.push((columns, at));
            used += columns;
        }
        let mut last = (rows.len(), used);
        rows.push(VisualRow { start, end: text.len() });
        cells.push(row);
        if used >= width && cursor.is_none() {
            rows.push(VisualRow { start: text.len(), end: text.len() });
            cells.push(Vec::new());
            last = (rows.len() - 1, 0);
        }
        Rows { all: rows, cursor: cursor.unwrap_or(last), cells }
    }

    /// A row as it is drawn.
    pub(crate) fn row_line(&self, row: VisualRow, width: usize) -> Line {
        let mut line = Line::default();
        let mut plain = String::new();
        for cluster in self.state.text.get(row.start..row.end).unwrap_or_default().graphemes(true) {
            if self.is_chip(cluster) {
                line.push(&std::mem::take(&mut plain), Role::Text);
                line.push(self.display(cluster, 0).as_str(), Role::Accent);
            } else {
                plain.push_str(cluster);
            }
        }
        line.push(&plain, Role::Text);
        line.cut(width, "")
    }

    fn is_chip(&self, cluster: &str) -> bool {
        cluster.chars().next().is_some_and(|c| self.paste(c).is_some())
    }

    fn display(&self, cluster: &str, column: usize) -> SafeText {
        match cluster.chars().next().and_then(|c| self.paste(c)) {
            Some(paste) => {
                let lines = paste.lines().count();
                SafeText::new(&if lines > 1 {
                    format!("[pasted {lines} lines]")
                } else {
                    format!("[pasted {} characters]", paste.chars().count())
                })
            }
            None => SafeText::at(cluster, column),
        }
    }
}
