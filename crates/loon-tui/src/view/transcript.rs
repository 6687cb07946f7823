//! The transcript's rows.

use ratatui::style::Modifier;

use super::canvas::Canvas;
use crate::line::{Line, Look};
use crate::theme::Role;

pub(super) fn draw(canvas: &mut Canvas<'_>) {
    let model = canvas.model;
    let area = model.places.transcript;
    let page = model.page();
    if model.shown_transcript().is_empty() {
        if model.agents.shown.is_some() {
            canvas.text(
                area.x + page.gutter,
                area.y,
                area.width,
                "nothing was done yet",
                Role::Dim,
            );
            return;
        }
        welcome(canvas);
        return;
    }
    let mark_at = area.x + u16::from(!page.narrow);
    let text_at = area.x + page.gutter;
    for (y, row) in (area.top()..area.bottom()).zip(model.shown_transcript().view()) {
        let Some((line, mark, focused)) = model.shown_transcript().line(*row) else { continue };
        canvas.put(text_at, y, area.right().saturating_sub(text_at), line);
        if let Some(mark) = mark {
            let mut look = mark.look;
            if focused {
                look = look.with(Modifier::REVERSED);
            }
            canvas.text(mark_at, y, 1, mark.glyph, look);
        } else if focused {
            canvas.text(mark_at, y, 1, model.glyphs.bar, Role::Accent);
        }
    }
}

/// What a new session shows.
fn welcome(canvas: &mut Canvas<'_>) {
    let model = canvas.model;
    let area = model.places.transcript;
    if area.height < 3 {
        return;
    }
    let x = area.x + if model.is_roomy() { 3 } else { 1 };
    let width = area.right().saturating_sub(x);
    let ellipsis = model.glyphs.ellipsis;
    let mut lines = vec![Line::of("Loom", Look::of(Role::Accent).with(Modifier::BOLD))];
    if model.opened {
        lines.push(Line::of(&model.session.cwd, Role::Dim));
        lines.push(Line::default());
        if model.session.model.is_some() {
            lines.push(Line::of("Say what to do. / lists commands, ? shows the keys.", Role::Text));
        } else {
            lines.push(Line::of("No model is set up.", Role::Warn));
            lines.push(Line::of(
                "/model chooses one; loon doctor says what is missing.",
                Role::Text,
            ));
        }
    }
    for (y, line) in (area.y + 1..area.bottom()).zip(lines) {
        canvas.put(x, y, width, &line.cut(usize::from(width), ellipsis));
    }
}
