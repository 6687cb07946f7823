//! The approval sheet: exactly what would happen, why it is asked, and what each key does.

use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::canvas::Canvas;
use crate::approval::{CHOICES, Choice, Sheet, Stage, rule_words};
use crate::composer::Composer;
use crate::diff;
use crate::line::{Break, Line, Look, wrap_text};
use crate::model::Model;
use crate::theme::Role;

/// Most rows of the detail, however long it is.
const MOST_DETAIL: u16 = 24;

/// Rows wanted of the `rest` above the state line.
pub(super) fn height(model: &Model, rest: Rect) -> u16 {
    let Some(sheet) = model.approvals.shown() else { return 0 };
    let detail = detail(model, sheet, inner_width(model)).len() as u16;
    let fixed = choice_rows(sheet) + 2;
    // Some of the transcript stays in view.
    let most = if rest.height > 12 { rest.height * 3 / 4 } else { rest.height.saturating_sub(1) };
    (detail.min(MOST_DETAIL) + 1 + fixed).min(most)
}

fn choice_rows(sheet: &Sheet) -> u16 {
    match sheet.stage {
        Stage::Choosing => CHOICES.len() as u16,
        Stage::EditingRule(_) | Stage::SayingWhy(_) => 1,
    }
}

fn inner_width(model: &Model) -> usize {
    usize::from(model.size.0).saturating_sub(if model.is_roomy() { 8 } else { 4 }).max(4)
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
        diff::lay(&approval.detail, width)
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
    let Some(sheet) = model.approvals.shown() else { return 0 };
    let inside = model.places.bottom.height.saturating_sub(2);
    let room = usize::from(inside.saturating_sub(choice_rows(sheet))).max(1);
    detail(model, sheet, inner_width(model)).len().saturating_sub(room)
}

pub(super) fn draw(canvas: &mut Canvas<'_>) -> Option<(u16, u16)> {
    let model = canvas.model;
    let sheet = model.approvals.shown()?;
    let area = model.places.bottom;
    let margin = u16::from(model.is_roomy());
    let area = Rect { x: area.x + margin, width: area.width.saturating_sub(2 * margin), ..area };
    let heading = Line::of(&title(sheet), Look::of(Role::Warn).with(Modifier::BOLD));
    let inner = canvas.frame(area, &heading, &footer(model, sheet), Look::of(Role::Warn));
    let padding = if model.is_roomy() { 2 } else { 1 };
    let x = inner.x + padding;
    let width = inner.width.saturating_sub(2 * padding);
    let choices = choice_rows(sheet).min(inner.height);
    let lines = detail(model, sheet, usize::from(width));
    let room = usize::from(inner.height - choices);
    let first = sheet.scrolled;
    let below = lines.len().saturating_sub(first + room);
    for (y, line) in (inner.y..).zip(lines.iter().skip(first).take(room)) {
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
    let y = inner.bottom() - choices;
    match &sheet.stage {
        Stage::Choosing => {
            for ((at, choice), y) in CHOICES.iter().enumerate().zip(y..inner.bottom()) {
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

fn draw_field(
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
