//! Drawing: the model in, a buffer out, nothing else touched.

mod approval;
mod budget;
mod canvas;
mod composer;
mod panel;
mod popup;
mod rewind;
mod sheet;
mod state;
mod transcript;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::canvas::Canvas;
use crate::model::{Model, Places};
use crate::slash;

pub(crate) use self::popup::page as popup_page;

/// Rows of an approval's detail that can be above the view.
pub(crate) fn approval_scroll_limit(model: &Model) -> usize {
    approval::scroll_limit(model)
}

/// Rows of the detail before a rewind that can be above the view.
pub(crate) fn rewind_scroll_limit(model: &Model) -> usize {
    model.shown_rewind().map_or(0, |rewind| rewind::scroll_limit(model, rewind))
}

/// Columns inside a sheet.
pub(crate) fn sheet_width(model: &Model) -> usize {
    sheet::inner_width(model)
}

/// Rows that waiting prompts and suggestions may take.
const ABOVE_ROWS: usize = 5;

/// Rows from which the transcript keeps a distance to what is below it.
const ROOMY_ROWS: u16 = 20;

/// Where things stand for the model's size.
pub(crate) fn places(model: &Model) -> Places {
    let (columns, rows) = model.size;
    let whole = Rect::new(0, 0, columns, rows);
    let (rest, state) = cut_bottom(whole, 1);
    let wanted = if model.approvals.shown().is_some() {
        approval::height(model, rest)
    } else if let Some(shown) = model.shown_budget() {
        budget::height(model, shown, rest)
    } else if let Some(shown) = model.shown_rewind() {
        rewind::height(shown, rest)
    } else {
        composer::height(model, rest)
    };
    let (rest, bottom) = cut_bottom(rest, wanted);
    let (rest, above) = cut_bottom(rest, (above_rows(model) as u16).min(rest.height / 3));
    let panel = panel::place(model, rest);
    let (transcript, _) = cut_bottom(rest, u16::from(rows >= ROOMY_ROWS));
    let transcript = Rect { width: transcript.width - panel.width, ..transcript };
    Places { transcript, panel, above, bottom, state }
}

/// Draws everything. Answers where the cursor stands, if it shows.
pub(crate) fn draw(model: &Model, buffer: &mut Buffer) -> Option<(u16, u16)> {
    let mut canvas = Canvas::new(model, buffer);
    transcript::draw(&mut canvas);
    panel::draw(&mut canvas);
    composer::draw_above(&mut canvas);
    let cursor = if model.approvals.shown().is_some() {
        approval::draw(&mut canvas)
    } else if let Some(shown) = model.shown_budget() {
        budget::draw(&mut canvas, shown)
    } else if let Some(shown) = model.shown_rewind() {
        rewind::draw(&mut canvas, shown);
        None
    } else {
        Some(composer::draw(&mut canvas))
    };
    state::draw(&mut canvas);
    let cursor = match model.layers.last() {
        Some(layer) => popup::draw(&mut canvas, layer),
        None => cursor,
    };
    let (columns, rows) = model.size;
    cursor.map(|(x, y)| (x.min(columns.saturating_sub(1)), y.min(rows.saturating_sub(1))))
}

fn above_rows(model: &Model) -> usize {
    if model.shows_sheet() {
        return 0;
    }
    let suggested = slash::suggestions(model.composer.raw(), &model.customs).len();
    if suggested > 0 {
        suggested.min(ABOVE_ROWS)
    } else {
        model.session.queued.len().min(ABOVE_ROWS)
    }
}

fn cut_bottom(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let top = Rect { height: area.height - rows, ..area };
    (top, Rect { y: area.y + top.height, height: rows, ..area })
}

#[cfg(test)]
mod tests;
