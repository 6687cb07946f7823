//! A sheet in place of the composer: a detail that scrolls, and choices below it.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::line::{Line, Look};
use crate::model::Model;
use crate::theme::Role;

/// Most rows of the detail, however long it is.
const MOST_DETAIL: u16 = 24;

/// What every sheet has.
pub(super) struct Sheet<'a> {
    /// In the upper edge.
    pub(super) heading: &'a str,
    /// In the lower edge.
    pub(super) footer: &'a Line,
    /// What may be more than fits.
    pub(super) detail: &'a [Line],
    /// Its rows above the view.
    pub(super) scrolled: usize,
    /// Rows below it.
    pub(super) choices: u16,
}

/// Rows wanted of the `rest` above the state line.
pub(super) fn height(detail: usize, choices: u16, rest: Rect) -> u16 {
    // Some of the transcript stays in view.
    let most = if rest.height > 12 { rest.height * 3 / 4 } else { rest.height.saturating_sub(1) };
    (detail.min(usize::from(MOST_DETAIL)) as u16 + 1 + choices + 2).min(most)
}

/// Columns inside a sheet.
pub(super) fn inner_width(model: &Model) -> usize {
    usize::from(model.size.0).saturating_sub(if model.is_roomy() { 8 } else { 4 }).max(4)
}

/// Rows of the detail that can be above the view.
pub(super) fn scroll_limit(model: &Model, detail: usize, choices: u16) -> usize {
    let inside = model.places.bottom.height.saturating_sub(2);
    let room = usize::from(inside.saturating_sub(choices)).max(1);
    detail.saturating_sub(room)
}

/// Draws all but the choices. Gives their place.
pub(super) fn draw(canvas: &mut Canvas<'_>, sheet: &Sheet<'_>) -> Rect {
    let model = canvas.model;
    let area = model.places.bottom;
    let margin = u16::from(model.is_roomy());
    let area = Rect { x: area.x + margin, width: area.width.saturating_sub(2 * margin), ..area };
    let look = Look::of(Role::Warn).with(ratatui::style::Modifier::BOLD);
    let heading = Line::of(sheet.heading, look);
    let inner = canvas.frame(area, &heading, sheet.footer, Look::of(Role::Warn));
    let padding = if model.is_roomy() { 2 } else { 1 };
    let x = inner.x + padding;
    let width = inner.width.saturating_sub(2 * padding);
    let choices = sheet.choices.min(inner.height);
    let room = usize::from(inner.height - choices);
    let first = sheet.scrolled;
    let below = sheet.detail.len().saturating_sub(first + room);
    for (y, line) in (inner.y..).zip(sheet.detail.iter().skip(first).take(room)) {
        canvas.put(x, y, width, line);
    }
    if (below > 0 || first > 0) && room > 0 {
        let words = if model.is_roomy() {
            format!(" {first} above, {below} below: PgUp PgDn ")
        } else {
            format!(" +{below} ")
        };
        let at = inner.right().saturating_sub(words.len() as u16 + 1).max(x);
        canvas.text(at, area.y, width, &words, Role::Dim);
    }
    Rect { x, y: inner.bottom() - choices, width, height: choices }
}
