//! The side panel's place.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::model::Model;
use crate::panel::FRAME_COLUMNS;
use crate::theme::Role;

/// The part of `area` that the panel takes, at its right; of no width if there is none.
pub(super) fn place(model: &Model, area: Rect) -> Rect {
    let width = model.panel_width().min(area.width);
    Rect { x: area.right() - width, width, ..area }
}

pub(super) fn draw(canvas: &mut Canvas<'_>) {
    let model = canvas.model;
    let area = model.places.panel;
    if area.width <= FRAME_COLUMNS {
        return;
    }
    for y in area.top()..area.bottom() {
        canvas.text(area.x, y, 1, model.glyphs.column, Role::Border);
    }
    for (y, line) in (area.top()..area.bottom()).zip(model.panel.lines()) {
        canvas.put(area.x + 2, y, area.width - FRAME_COLUMNS, line);
    }
}
