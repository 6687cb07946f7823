//! The sheet that asks whether to raise a bound of the budget.

use loon_api::ReachedBound;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::approval::draw_field;
use super::canvas::Canvas;
use super::sheet::{self, Sheet};
use crate::budget::{BudgetSheet, CHOICES, Choice, amount_words, doubled};
use crate::line::{Break, Line, Look, wrap_text};
use crate::model::Model;
use crate::theme::Role;

/// Rows wanted of the `rest` above the state line.
pub(super) fn height(model: &Model, budget: &BudgetSheet, rest: Rect) -> u16 {
    sheet::height(detail(model, budget).len(), choice_rows(budget), rest)
}

fn choice_rows(budget: &BudgetSheet) -> u16 {
    if budget.field.is_some() { 1 } else { CHOICES.len() as u16 }
}

fn detail(model: &Model, budget: &BudgetSheet) -> Vec<Line> {
    let width = sheet::inner_width(model);
    let reached = budget.reached.to_string();
    let mut lines =
        wrap_text(&reached, Look::of(Role::Text).with(Modifier::BOLD), width, Break::Words);
    let in_dollars = matches!(budget.reached, ReachedBound::MaxUsd { .. });
    let words = match model.session.cost.unpriced {
        unpriced if unpriced > 0 && in_dollars => {
            format!("Not counted, for want of a price: {unpriced} more. ")
        }
        _ => String::new(),
    };
    let words = format!("{words}What comes next waits. A new bound holds for this session.");
    lines.extend(wrap_text(&words, Role::Dim, width, Break::Words));
    lines
}

pub(super) fn draw(canvas: &mut Canvas<'_>, budget: &BudgetSheet) -> Option<(u16, u16)> {
    let model = canvas.model;
    let glyphs = model.glyphs;
    let footer = match budget.field {
        Some(_) => format!(" {} set {} esc back ", glyphs.enter, glyphs.dot),
        None => " esc later ".to_owned(),
    };
    let place = sheet::draw(
        canvas,
        &Sheet {
            heading: " raise the budget? ",
            footer: &Line::of(&footer, Role::Dim),
            detail: &detail(model, budget),
            scrolled: 0,
            choices: choice_rows(budget),
        },
    );
    if let Some(field) = &budget.field {
        return Some(draw_field(canvas, place.x, place.y, place.width, "new bound: ", field));
    }
    for ((at, choice), y) in CHOICES.iter().enumerate().zip(place.top()..place.bottom()) {
        let mark = if at == budget.marked { glyphs.folded } else { " " };
        let (key, words) = match choice {
            Choice::Double => {
                ("d", format!("raise it to {}", amount_words(&doubled(&budget.reached))))
            }
            Choice::Amount => ("a", "raise it to another amount".to_owned()),
            Choice::Stop => ("n", "no, stop the turn".to_owned()),
        };
        let line = Line::of(&format!("{mark} "), Role::Accent)
            .and(&format!("{key}  "), Look::of(Role::Accent).with(Modifier::BOLD))
            .and(&words, Role::Text);
        canvas.put(place.x, y, place.width, &line.cut(usize::from(place.width), glyphs.ellipsis));
    }
    None
}
