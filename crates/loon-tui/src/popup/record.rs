//! Everything the session keeps of its work: goal, plan, tasks, notes and what was spent.

use loon_api::WorkStatus;

use super::{Kind, Popup, Row, Value};
use crate::glyphs::Glyphs;
use crate::panel::{first_line, sign};
use crate::session::{Session, waits_for};

/// The list, with the step in progress selected.
pub(crate) fn open(session: &Session, glyphs: &Glyphs) -> Popup {
    let mut popup =
        Popup::new(Kind::Record, "plan, tasks, notes", "nothing is written down yet", Vec::new());
    let rows = rows(session, glyphs);
    let current = rows.iter().position(|row| row.label.starts_with(glyphs.running)).unwrap_or(0);
    popup.renew_rows(rows);
    popup.step(current.cast_signed());
    popup
}

/// One row for each thing.
pub(crate) fn rows(session: &Session, glyphs: &Glyphs) -> Vec<Row> {
    let record = &session.record;
    let row = |label: String, note: String, about: &str| Row {
        label,
        note,
        about: about.to_owned(),
        value: Value::Nothing,
    };
    let label = |status: WorkStatus, number: &str, text: &str| {
        format!("{} {number}{}", sign(status, glyphs).0, first_line(text))
    };
    let goal = record.goal.iter().map(|goal| {
        row(format!("{} {}", glyphs.bullet, first_line(goal)), "goal".to_owned(), goal)
    });
    let steps = record
        .steps
        .iter()
        .map(|step| row(label(step.status, "", &step.step), "plan".to_owned(), &step.step));
    let tasks = record.tasks.iter().map(|task| {
        let note = match waits_for(record, task) {
            Some(after) => format!("task {after}"),
            None => "task".to_owned(),
        };
        let about = if task.description.is_empty() {
            task.title.clone()
        } else {
            format!("{}\n\n{}", task.title, task.description)
        };
        row(label(task.status, &format!("{} ", task.id), &task.title), note, &about)
    });
    let notes = record.notes.iter().rev().map(|note| {
        row(format!("{} {}", glyphs.bullet, first_line(note)), "note".to_owned(), note)
    });
    goal.chain(steps).chain(tasks).chain(notes).chain(spent(session)).collect()
}

fn spent(session: &Session) -> Option<Row> {
    if !session.has_spent() {
        return None;
    }
    let usage = &session.usage;
    let tokens = (usage.total() > 0).then(|| format!("{} tokens", session.tokens_used()));
    let short: Vec<String> = session.money_words().into_iter().chain(tokens).collect();
    let mut about: Vec<String> = [
        (usage.input_tokens, "tokens in"),
        (usage.cached_tokens, "of them from the cache"),
        (usage.output_tokens, "tokens out"),
        (usage.reasoning_tokens, "of them thinking"),
        (usage.estimated_tokens, "tokens by an estimate, which the server does not report"),
    ]
    .iter()
    .filter_map(|(count, words)| count.map(|count| format!("{count} {words}")))
    .collect();
    match session.cost.unpriced {
        0 => {}
        1 => about.push("1 request has no known price".to_owned()),
        more => about.push(format!("{more} requests have no known price")),
    }
    Some(Row {
        label: short.join(", "),
        note: "spent".to_owned(),
        about: about.join("\n"),
        value: Value::Nothing,
    })
}
