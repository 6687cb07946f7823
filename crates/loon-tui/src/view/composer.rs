//! The composer's box and what stands right above it.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::line::{Line, Look};
use crate::model::Model;
use crate::popup::modes;
use crate::slash;
use crate::theme::Role;

/// Most rows of the draft that show.
const MOST_ROWS: usize = 10;

/// Rows wanted, frame included, of the `rest` above the state line.
pub(super) fn height(model: &Model, rest: Rect) -> u16 {
    let rows = model.composer.rows(model.composer_width()).all.len();
    let most = (usize::from(rest.height) / 3).clamp(1, MOST_ROWS);
    let rows = rows.min(most) as u16;
    if framed(rest.height) { rows + 2 } else { rows }
}

fn framed(rows: u16) -> bool {
    rows >= 5
}

pub(super) fn draw(canvas: &mut Canvas<'_>) -> (u16, u16) {
    let model = canvas.model;
    let area = model.places.bottom;
    let role = modes::role(model.session.mode);
    let margin = u16::from(model.is_roomy());
    let area = Rect { x: area.x + margin, width: area.width.saturating_sub(2 * margin), ..area };
    let inner = if framed(model.size.1.saturating_sub(model.places.state.height)) {
        let words = match &model.session.watched {
            Some(_) => "only watched: nothing is sent",
            None => modes::words(model.session.mode),
        };
        let title = Line::of(&format!(" {words} "), role);
        canvas.frame(area, &title, &keys(model), Look::of(role))
    } else {
        area
    };
    let x = inner.x + 1;
    let width = model.composer_width();
    let rows = model.composer.rows(width);
    let (cursor_row, cursor_column) = rows.cursor;
    let visible = usize::from(inner.height).max(1);
    let first = (cursor_row + 1).saturating_sub(visible);
    for (y, row) in (inner.top()..inner.bottom()).zip(rows.all.iter().skip(first)) {
        canvas.put(x, y, width as u16, &model.composer.row_line(*row, width));
    }
    if model.composer.is_empty() && !model.is_working() && model.opened {
        let words = match &model.session.watched {
            Some(_) => "/takeover goes on here, /fork branches off",
            None => &model.placeholder,
        };
        canvas.text(x, inner.y, width as u16, words, Role::Dim);
    }
    let column = cursor_column.min(usize::from(inner.width.saturating_sub(1)));
    (x + column as u16, inner.y + (cursor_row - first) as u16)
}

/// Keys that act on the draft right now.
fn keys(model: &Model) -> Line {
    let glyphs = model.glyphs;
    let (enter, tab, dot) = (glyphs.enter, glyphs.tab, glyphs.dot);
    let words = if !model.is_roomy() {
        format!(" {enter} send ")
    } else if model.is_working() {
        format!(" {enter} steer {dot} {tab} send after {dot} esc stop ")
    } else {
        format!(" {enter} send {dot} {tab} queue ")
    };
    let mut line = Line::default();
    if model.shown_transcript().is_scrolled() && model.is_roomy() {
        line.push(&format!(" {} newer below, Ctrl+End ", glyphs.down), Role::Warn);
        line.push(glyphs.rule, Role::Border);
    }
    line.and(&words, Role::Dim)
}

/// Commands the draft may become, else prompts that wait.
pub(super) fn draw_above(canvas: &mut Canvas<'_>) {
    let model = canvas.model;
    let area = model.places.above;
    let x = area.x + if model.is_roomy() { 3 } else { 1 };
    let width = area.right().saturating_sub(x);
    let suggested = slash::suggestions(model.composer.raw(), &model.customs);
    let lines: Vec<Line> = if suggested.is_empty() {
        model
            .session
            .queued
            .iter()
            .map(|queued| {
                let word = if queued.steer { "next step  " } else { "next turn  " };
                let first = queued.text.lines().next().unwrap_or_default();
                Line::of(word, Role::Dim).and(first, Role::User)
            })
            .collect()
    } else {
        suggested
            .iter()
            .map(|command| {
                let name = format!("/{} {}", command.word(), command.argument());
                Line::of(&format!("{name:<36}"), Role::Accent).and(command.about(), Role::Dim)
            })
            .collect()
    };
    let hidden = lines.len().saturating_sub(usize::from(area.height));
    for (y, line) in (area.top()..area.bottom()).zip(lines.into_iter().skip(hidden.min(1) * hidden))
    {
        canvas.put(x, y, width, &line.cut(usize::from(width), model.glyphs.ellipsis));
    }
}
