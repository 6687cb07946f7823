//! The one place where the model changes: an event in, actions out.

mod commands;
mod keys;
mod runtime;
#[cfg(test)]
mod tests;

use crossterm::event::{KeyEventKind, MouseButton, MouseEvent, MouseEventKind};

use crate::event::{Action, Event, Input};
use crate::model::Model;

/// Rows one notch of the wheel moves.
const WHEEL_ROWS: isize = 3;

/// Takes in one event at `now` milliseconds of the screen's clock.
pub(crate) fn update(model: &mut Model, event: Event, now: u64) -> Vec<Action> {
    model.now = now;
    match event {
        Event::Input(Input::Key(key)) if key.kind == KeyEventKind::Release => Vec::new(),
        Event::Input(Input::Key(key)) => keys::key(model, key),
        Event::Input(Input::Paste(text)) => {
            // What a terminal marks as a paste is no burst of keys.
            model.burst = (0, now);
            paste(model, &text);
            commands::search(model)
        }
        Event::Input(Input::Mouse(mouse)) => {
            self::mouse(model, mouse);
            Vec::new()
        }
        Event::Runtime(envelope) => runtime::apply(model, &envelope),
        Event::Resize(columns, rows) => {
            model.size = (columns, rows);
            model.repaint = true;
            Vec::new()
        }
        Event::Tick => {
            model.transcript.tick();
            if let Some(shown) = &mut model.agents.shown {
                shown.transcript.tick();
            }
            Vec::new()
        }
        Event::JobDone(done) => {
            model.transcript.set_highlight(&done.owner, done.id, done.highlight);
            Vec::new()
        }
    }
}

fn paste(model: &mut Model, text: &str) {
    model.hint = None;
    if let Some(popup) = model.layers.last_mut() {
        for c in text.chars().filter(|c| !c.is_control()) {
            popup.key(crossterm::event::KeyEvent::from(crossterm::event::KeyCode::Char(c)));
        }
    } else if model
        .approvals
        .shown()
        .is_some_and(|sheet| !matches!(sheet.stage, crate::approval::Stage::Choosing))
    {
        model.approvals.paste(text);
    } else if model.shown_budget().is_some_and(|sheet| sheet.field.is_some()) {
        if let Some(sheet) = &mut model.budget {
            sheet.paste(text);
        }
    } else {
        model.composer.paste_text(text);
    }
}

fn mouse(model: &mut Model, mouse: MouseEvent) {
    let rows = match mouse.kind {
        MouseEventKind::ScrollUp => -WHEEL_ROWS,
        MouseEventKind::ScrollDown => WHEEL_ROWS,
        MouseEventKind::Down(MouseButton::Left) => {
            click(model, mouse);
            return;
        }
        _ => return,
    };
    if let Some(popup) = model.layers.last_mut() {
        popup.step(rows.signum());
        commands::preview(model);
    } else if model.approvals.shown().is_some() && mouse.row >= model.places.bottom.y {
        model.approvals.scroll(rows);
    } else if model.shown_rewind().is_some() && mouse.row >= model.places.bottom.y {
        if let Some(rewind) = &mut model.rewind {
            rewind.scroll(rows);
        }
    } else {
        let page = model.page();
        model.shown_transcript_mut().scroll(&page, rows);
    }
}

fn click(model: &mut Model, mouse: MouseEvent) {
    let place = model.places.transcript;
    if model.layers.is_empty() && place.contains((mouse.column, mouse.row).into()) {
        model.shown_transcript_mut().toggle_row(usize::from(mouse.row - place.y));
    }
}
