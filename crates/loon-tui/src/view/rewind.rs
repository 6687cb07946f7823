//! The sheet before going back to a message.

use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::canvas::Canvas;
use super::sheet::{self, Sheet};
use crate::line::{Line, Look};
use crate::model::Model;
use crate::rewind::{CHOICES, Rewind};
use crate::theme::Role;

/// Rows wanted of the `rest` above the state line.
pub(super) fn height(rewind: &Rewind, rest: Rect) -> u16 {
    sheet::height(rewind.lines().len(), CHOICES.len() as u16, rest)
}

/// Rows of the detail that can be above the view.
pub(super) fn scroll_limit(model: &Model, rewind: &Rewind) -> usize {
    sheet::scroll_limit(model, rewind.lines().len(), CHOICES.len() as u16)
}

pub(super) fn draw(canvas: &mut Canvas<'_>, rewind: &Rewind) {
    let model = canvas.model;
    let glyphs = model.glyphs;
    let footer = format!(" {} choose {} esc cancel ", glyphs.enter, glyphs.dot);
    let place = sheet::draw(
        canvas,
        &Sheet {
            heading: " go back to this message? ",
            footer: &Line::of(&footer, Role::Dim),
            detail: rewind.lines(),
            scrolled: rewind.scrolled,
            choices: CHOICES.len() as u16,
        },
    );
    for ((at, files), y) in CHOICES.iter().enumerate().zip(place.top()..place.bottom()) {
        let mark = if at == rewind.marked { glyphs.folded } else { " " };
        let (key, words) = if *files {
            ("f", "conversation and files, as above")
        } else {
            ("c", "conversation only, files stay as they are")
        };
        let line = Line::of(&format!("{mark} "), Role::Accent)
            .and(&format!("{key}  "), Look::of(Role::Accent).with(Modifier::BOLD))
            .and(words, Role::Text);
        canvas.put(place.x, y, place.width, &line.cut(usize::from(place.width), glyphs.ellipsis));
    }
}
