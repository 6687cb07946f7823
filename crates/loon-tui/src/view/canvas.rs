//! The buffer with the means to put lines on it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use crate::line::{Line, Look};
use crate::model::Model;
use crate::theme::{self, Role};

pub(super) struct Canvas<'a> {
    pub(super) model: &'a Model,
    buffer: &'a mut Buffer,
}

impl<'a> Canvas<'a> {
    /// A blank canvas in the theme's colours.
    pub(super) fn new(model: &'a Model, buffer: &'a mut Buffer) -> Self {
        buffer.reset();
        let canvas = Self { model, buffer };
        if model.color {
            canvas.buffer.set_style(canvas.buffer.area, model.theme.base());
        }
        canvas
    }

    pub(super) fn style(&self, look: Look) -> Style {
        if self.model.color { self.model.theme.style(look) } else { theme::colourless(look) }
    }

    /// Puts a line at a place, not beyond `width` columns.
    pub(super) fn put(&mut self, x: u16, y: u16, width: u16, line: &Line) {
        let end = x.saturating_add(width).min(self.buffer.area.right());
        let mut x = x;
        for span in &line.spans {
            let style = self.style(span.look);
            for (cluster, columns) in span.text.clusters() {
                let next = x.saturating_add(columns as u16);
                if next > end || y >= self.buffer.area.bottom() {
                    return;
                }
                let mut symbol = cluster;
                while x < next {
                    if let Some(cell) = self.buffer.cell_mut((x, y)) {
                        // The columns behind a wide character hold nothing.
                        cell.set_symbol(symbol).set_style(style);
                    }
                    symbol = "";
                    x += 1;
                }
            }
        }
    }

    /// Puts text at a place.
    pub(super) fn text(&mut self, x: u16, y: u16, width: u16, text: &str, look: impl Into<Look>) {
        self.put(x, y, width, &Line::of(text, look));
    }

    /// Adds a modifier to a stretch of a row.
    pub(super) fn mark(&mut self, area: Rect, modifier: Modifier) {
        self.buffer.set_style(area, Style::new().add_modifier(modifier));
    }

    /// Blanks an area.
    pub(super) fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
        if self.model.color {
            self.buffer.set_style(area, self.model.theme.base());
        }
    }

    /// Draws a frame with words in its upper and lower edge; gives what is inside.
    pub(super) fn frame(&mut self, area: Rect, title: &Line, footer: &Line, look: Look) -> Rect {
        if area.width < 4 || area.height < 2 {
            return area;
        }
        let glyphs = self.model.glyphs;
        let [top_left, top_right, bottom_left, bottom_right] = glyphs.corners;
        let inner_width = area.width - 2;
        let rule = glyphs.rule.repeat(usize::from(inner_width));
        let (right, bottom) = (area.right() - 1, area.bottom() - 1);
        for (y, left_corner, right_corner) in
            [(area.y, top_left, top_right), (bottom, bottom_left, bottom_right)]
        {
            self.text(area.x, y, 1, left_corner, look);
            self.text(area.x + 1, y, inner_width, &rule, look);
            self.text(right, y, 1, right_corner, look);
        }
        for y in area.y + 1..bottom {
            self.text(area.x, y, 1, glyphs.column, look);
            self.text(right, y, 1, glyphs.column, look);
        }
        let room = usize::from(inner_width).saturating_sub(2);
        let title = title.clone().cut(room, glyphs.ellipsis);
        self.put(area.x + 2, area.y, inner_width - 1, &title);
        let footer = footer.clone().cut(room, glyphs.ellipsis);
        let start = right.saturating_sub(footer.width() as u16 + 1).max(area.x + 1);
        self.put(start, bottom, inner_width, &footer);
        Rect { x: area.x + 1, y: area.y + 1, width: inner_width, height: area.height - 2 }
    }

    /// The state of being selected: a bar, and the row inverse.
    pub(super) fn select_row(&mut self, area: Rect) {
        let bar = self.model.glyphs.bar;
        self.mark(area, Modifier::REVERSED);
        self.text(area.x, area.y, 1, bar, Role::Accent);
    }
}
