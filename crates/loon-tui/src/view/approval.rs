//! The approval sheet: exactly what would happen, why it is asked, and what each key does.

use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::canvas::Canvas;
use super::sheet;
use crate::approval::{CHOICES, Choice, Sheet, Stage, rule_words};
use crate::composer::Composer;
use crate::diff;
use crate::line::{Break, Line, Look, wrap_text};
use crate::model::Model;
use crate::theme::Role;

/// Rows wanted of the `rest` above the state line.
pub(super) fn height(model: &Model, rest: Rect) -> u16 {
    let Some(shown) = model.approvals.shown() else { return 0 };
    let detail = detail(model, shown, sheet::inner_width(model)).len();
    sheet::height(detail, choice_rows(shown), rest)
}

fn choice_rows(sheet: &Sheet) -> u16 {
    match sheet.stage {
        Stage::Choosing => CHOICES.len() as u16,
        Stage::EditingRule(_) | Stage::SayingWhy(_) => 1,
    }
}

fn title(sheet: &Sheet) -> String {
    let question = if diff::is_diff(&sheet.approval.detail) {
        "make this change?".to_owned()
    } else if sheet.approval.tool == "bash" {
        "run this command?".to_owned()
    } else {
        format!("allow {}?", sheet.approval.tool)
    };
    format!(" {question} ")
}

/// What would happen and why it is asked.
fn detail(model: &Model, sheet: &Sheet, width: usize) -> Vec<Line> {
    let approval = &sheet.approval;
    let mut lines = if diff::is_diff(&approval.detail) {
        diff::lay_files(&approval.detail, width, Look::of(Role::Text))
    } else {
        wrap_text(
            &approval.detail,
            Look::of(Role::Code).with(Modifier::BOLD),
            width,
            Break::Anywhere,
        )
    };
    if model.is_roomy() {
        lines.push(Line::default());
    }
    let label = if model.is_roomy() { 16 } else { 0 };
    for reason in &approval.reasons {
        labelled("asked because", reason, label, width, &mut lines);
    }
    if !approval.cwd.is_empty() {
        labelled("runs in", &approval.cwd, label, width, &mut lines);
    }
    lines
}

fn labelled(name: &str, text: &str, label: usize, width: usize, lines: &mut Vec<Line>) {
    let named = |name: &str| if label > 0 { format!("{name:<label$}") } else { String::new() };
    let wrapped = wrap_text(text, Role::Text, width.saturating_sub(label), Break::Words);
    for (at, line) in wrapped.into_iter().enumerate() {
        let mut whole = Line::of(&named(if at == 0 { name } else { "" }), Role::Dim);
        whole.spans.extend(line.spans);
        lines.push(whole);
    }
}

/// Rows of the detail that can be above the view.
pub(super) fn scroll_limit(model: &Model) -> usize {
    let Some(shown) = model.approvals.shown() else { return 0 };
    let detail = detail(model, shown, sheet::inner_width(model)).len();
    sheet::scroll_limit(model, detail, choice_rows(shown))
}

pub(super) fn draw(canvas: &mut Canvas<'_>) -> Option<(u16, u16)> {
    let model = canvas.model;
    let sheet = model.approvals.shown()?;
    let place = sheet::draw(
        canvas,
        &sheet::Sheet {
            heading: &title(sheet),
            footer: &footer(model, sheet),
            detail: &detail(model, sheet, sheet::inner_width(model)),
            scrolled: sheet.scrolled,
            choices: choice_rows(sheet),
        },
    );
    let Rect { x, y, width, .. } = place;
    match &sheet.stage {
        Stage::Choosing => {
            for ((at, choice), y) in CHOICES.iter().enumerate().zip(y..place.bottom()) {
                let line = choice_line(model, sheet, *choice, at == sheet.marked);
                canvas.put(x, y, width, &line.cut(usize::from(width), model.glyphs.ellipsis));
            }
            None
        }
        Stage::EditingRule(field) => Some(draw_field(canvas, x, y, width, "rule: ", field)),
        Stage::SayingWhy(field) => Some(draw_field(canvas, x, y, width, "why not: ", field)),
    }
}

fn choice_line(model: &Model, sheet: &Sheet, choice: Choice, marked: bool) -> Line {
    let mark = if marked { model.glyphs.folded } else { " " };
    let (key, words) = match choice {
        Choice::Once => ("y", "once"),
        Choice::Session => ("s", "for this session"),
        Choice::Always => ("a", "always in this project"),
        Choice::No => ("n", "no, and say why"),
    };
    let mut line = Line::of(&format!("{mark} "), Role::Accent)
        .and(&format!("{key}  "), Look::of(Role::Accent).with(Modifier::BOLD))
        .and(words, Role::Text);
    match (choice, &sheet.rule) {
        (Choice::Always, Some(rule)) => {
            line.push("   adds  ", Role::Dim);
            line.push(&rule_words(rule), Role::Code);
            line.push("   (e to edit)", Role::Dim);
        }
        (Choice::Session | Choice::Always, None) => {
            line.push("   no rule fits this call alone", Role::Dim);
        }
        (Choice::Once | Choice::Session | Choice::No, _) => {}
    }
    line
}

pub(super) fn draw_field(
    canvas: &mut Canvas<'_>,
    x: u16,
    y: u16,
    width: u16,
    label: &str,
    field: &Composer,
) -> (u16, u16) {
    let label_width = label.len() as u16;
    canvas.text(x, y, width, label, Role::Accent);
    let room = usize::from(width.saturating_sub(label_width)).max(2);
    let rows = field.rows(room);
    let (row, column) = rows.cursor;
    if let Some(row) = rows.all.get(row) {
        canvas.put(x + label_width, y, room as u16, &field.row_line(*row, room));
    }
    (x + label_width + column as u16, y)
}

fn footer(model: &Model, sheet: &Sheet) -> Line {
    let glyphs = model.glyphs;
    let (enter, dot) = (glyphs.enter, glyphs.dot);
    let words = match sheet.stage {
        Stage::Choosing => {
            let count = model.approvals.len();
            let queue = if count > 1 {
                format!("{} of {count} {dot} {} next {dot} ", model.approvals.number(), glyphs.tab)
            } else {
                String::new()
            };
            format!(" {queue}esc later ")
        }
        Stage::EditingRule(_) => format!(" {enter} keep {dot} esc back "),
        Stage::SayingWhy(_) => format!(" {enter} say no {dot} esc back "),
    };
    Line::of(&words, Role::Dim)
}
