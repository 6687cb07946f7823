//! Calls that only kept the working record: a word on one line, the rest when opened.

use loon_api::{RecordChange, ToolCallItem, ToolCallStatus, WorkStatus};

use super::Page;
use crate::line::{Break, Line, Span, wrap_text};
use crate::panel::{first_line, sign};
use crate::theme::Role;

/// The call went well and changed nothing but the record.
pub(super) fn is_record_only(call: &ToolCallItem) -> bool {
    call.status == ToolCallStatus::Done && !call.record.is_empty() && call.changes.is_empty()
}

/// What the changes come to, for a call that has no title of its own.
pub(super) fn title(changes: &[RecordChange]) -> String {
    match changes {
        [] => String::new(),
        [only] => change_words(only),
        [first, more @ ..] => format!("{} and {} more", change_words(first), more.len()),
    }
}

fn change_words(change: &RecordChange) -> String {
    match change {
        RecordChange::Checklist { steps } => {
            let done = steps.iter().filter(|step| step.status == WorkStatus::Completed).count();
            let current = steps.iter().find(|step| step.status == WorkStatus::InProgress);
            let words = current.map(|step| first_line(&step.step)).unwrap_or_default();
            format!("{done}/{} {words}", steps.len())
        }
        RecordChange::Task { task } => format!("{} {}", task.id, first_line(&task.title)),
        RecordChange::TaskRemoved { id } => format!("{id} removed"),
        RecordChange::Note { text } => first_line(text).to_owned(),
        RecordChange::Goal { goal: Some(goal) } => first_line(goal).to_owned(),
        RecordChange::Goal { goal: None } => "no goal".to_owned(),
        RecordChange::ToolsLoaded { names } => names.join(", "),
        RecordChange::SkillLoaded { name } => name.clone(),
    }
}

/// The changes as they read in the panel, whole.
pub(super) fn append_changes(
    changes: &[RecordChange],
    room: usize,
    page: &Page,
    lines: &mut Vec<Line>,
) {
    for change in changes {
        match change {
            RecordChange::Checklist { steps } => {
                for step in steps {
                    append_entry(step.status, first_line(&step.step), room, page, lines);
                }
            }
            RecordChange::Task { task } => {
                let words = format!("{} {}", task.id, first_line(&task.title));
                append_entry(task.status, &words, room, page, lines);
                lines.extend(wrap_text(&task.description, Role::Dim, room, Break::Words));
            }
            RecordChange::TaskRemoved { .. }
            | RecordChange::ToolsLoaded { .. }
            | RecordChange::SkillLoaded { .. } => {
                let words = change_words(change);
                lines.extend(wrap_text(&words, Role::Dim, room, Break::Words));
            }
            RecordChange::Note { text } => {
                lines.extend(wrap_text(text, Role::Text, room, Break::Words));
            }
            RecordChange::Goal { goal } => {
                let words = goal.as_deref().unwrap_or("no goal");
                lines.extend(wrap_text(words, Role::Text, room, Break::Words));
            }
        }
    }
}

fn append_entry(status: WorkStatus, words: &str, room: usize, page: &Page, lines: &mut Vec<Line>) {
    let (sign, sign_look, look) = sign(status, page.glyphs);
    let wrapped = wrap_text(words, look, room.saturating_sub(2), Break::Words);
    for (at, line) in wrapped.into_iter().enumerate() {
        let margin = if at == 0 { format!("{sign} ") } else { "  ".to_owned() };
        let mut whole = Line { spans: vec![Span::new(&margin, sign_look)] };
        whole.spans.extend(line.spans);
        lines.push(whole);
    }
}
