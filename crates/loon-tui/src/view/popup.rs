//! A list on top of the screen.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::line::{Break, Line, Look, spread, wrap_text};
use crate::model::Model;
use crate::popup::{Kind, Popup, Row};
use crate::theme::Role;

/// Widest list.
const WIDEST: u16 = 100;
/// Tallest list.
const TALLEST: u16 = 24;
/// Columns from which the description stands beside the rows.
const BESIDE: u16 = 90;

fn area(model: &Model, popup: &Popup) -> Rect {
    let (columns, rows) = model.size;
    let width = width(columns);
    let wanted = popup.len().clamp(4, usize::from(TALLEST)) + 3 + about_rows(model.size);
    let most = if rows < 16 { rows } else { rows - 4 };
    let height = most.min(wanted as u16);
    Rect { x: (columns - width) / 2, y: (rows - height) / 3, width, height }
}

fn width(columns: u16) -> u16 {
    if columns < 60 { columns } else { (columns - 4).min(WIDEST) }
}

/// Rows a page of the list has.
pub(crate) fn page(model: &Model, popup: &Popup) -> usize {
    let inside = usize::from(area(model, popup).height.saturating_sub(3));
    inside.saturating_sub(about_rows(model.size)).max(1)
}

/// Rows below the list that the description takes.
fn about_rows(size: (u16, u16)) -> usize {
    if width(size.0) >= BESIDE || size.1 < 16 { 0 } else { 3 }
}

pub(super) fn draw(canvas: &mut Canvas<'_>, popup: &Popup) -> Option<(u16, u16)> {
    let model = canvas.model;
    let area = area(model, popup);
    canvas.clear(area);
    let glyphs = model.glyphs;
    let count = popup.shown_rows().len();
    let page = popup.page.max(1);
    let position = if count > page {
        format!(" {} of {count} {}", popup.selected() + 1, glyphs.dot)
    } else {
        String::new()
    };
    let choose = if popup.only_tells() {
        String::new()
    } else if popup.kind == Kind::Agents {
        let dot = glyphs.dot;
        format!(" {} watch {dot} s steer {dot} x stop {dot}", glyphs.enter)
    } else {
        format!(" {} choose {}", glyphs.enter, glyphs.dot)
    };
    let keys = format!("{position}{choose} esc back ");
    let title = Line::of(&format!(" {} ", popup.title), Role::Accent);
    let inner = canvas.frame(area, &title, &Line::of(&keys, Role::Dim), Look::of(Role::Border));
    if inner.width < 6 || inner.height < 2 {
        return None;
    }
    let filter = if popup.kind == Kind::Agents {
        Line::of("what each did last, where it stands, what it used", Role::Dim)
    } else {
        Line::of("filter: ", Role::Dim).and(&popup.filter, Role::Text)
    };
    canvas.put(inner.x + 1, inner.y, inner.width - 2, &filter);
    let cursor = (inner.x + 1 + filter.width() as u16).min(inner.right() - 1);
    let beside = area.width >= BESIDE && popup.kind != Kind::Help;
    let list_width = if beside { inner.width * 3 / 5 } else { inner.width };
    let list = Rect { y: inner.y + 1, height: page as u16, width: list_width, ..inner };
    draw_rows(canvas, popup, list);
    draw_about(canvas, popup, inner, list);
    (popup.kind != Kind::Agents).then_some((cursor, inner.y))
}

fn draw_rows(canvas: &mut Canvas<'_>, popup: &Popup, list: Rect) {
    let first = popup.page_start();
    if popup.shown_rows().len() == 0 {
        let words = if popup.filter.is_empty() { popup.empty } else { "nothing matches" };
        canvas.text(list.x + 2, list.y, list.width.saturating_sub(2), words, Role::Dim);
    }
    for ((at, row), y) in popup.shown_rows().enumerate().skip(first).zip(list.top()..list.bottom())
    {
        let room = list.width.saturating_sub(3);
        let line = row_line(popup.kind, row, usize::from(room), canvas.model.glyphs.ellipsis);
        canvas.put(list.x + 2, y, room, &line);
        if at == popup.selected() {
            canvas.select_row(Rect {
                x: list.x,
                y,
                width: list.width.saturating_sub(1),
                height: 1,
            });
        }
    }
}

/// Keys stand in a column with what they do behind them; other rows have their note at the right.
fn row_line(kind: Kind, row: &Row, room: usize, ellipsis: &str) -> Line {
    if kind == Kind::Help {
        let mut line = Line::of(&row.label, Role::Text);
        line.pad_to(if room > 70 { 38 } else { 0 });
        return line.and("  ", Role::Text).and(&row.note, Role::Dim).cut(room, ellipsis);
    }
    spread(Line::of(&row.label, Role::Text), &Line::of(&row.note, Role::Dim), room, ellipsis)
}

fn draw_about(canvas: &mut Canvas<'_>, popup: &Popup, inner: Rect, list: Rect) {
    let Some(row) = popup.selected_row() else { return };
    let place = if list.width < inner.width {
        let column = canvas.model.glyphs.column;
        for y in list.top()..inner.bottom() {
            canvas.text(list.right(), y, 1, column, Role::Border);
        }
        Rect {
            x: list.right() + 2,
            y: list.y,
            width: (inner.width - list.width).saturating_sub(3),
            height: list.height,
        }
    } else {
        let y = list.bottom();
        Rect {
            x: inner.x + 2,
            y,
            width: inner.width.saturating_sub(3),
            height: inner.bottom().saturating_sub(y),
        }
    };
    let lines = wrap_text(&row.about, Role::Dim, usize::from(place.width), Break::Words);
    for (y, line) in (place.top()..place.bottom()).zip(&lines) {
        canvas.put(place.x, y, place.width, line);
    }
}
