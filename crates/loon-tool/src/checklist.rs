//! What the tools of the working record share: the checklist, statuses and ids as models write
//! them, and bounds.

use std::borrow::Cow;

use loon_api::{ChecklistStep, RecordChange, WorkStatus};
use loon_kernel::ToolOutput;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::text;

/// Most steps of a checklist.
const MAX_STEPS: usize = 100;
/// Most bytes of what is to be done: a step, or the title of a task.
const MAX_LINE: usize = 300;

/// A status in any of the spellings that models use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) WorkStatus);

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        status(&written).map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "the status {written:?} is unknown: use pending, in_progress or completed"
            ))
        })
    }
}

fn status(written: &str) -> Option<WorkStatus> {
    let mut word = written.trim().to_lowercase();
    word.retain(char::is_alphabetic);
    Some(match word.as_str() {
        "pending" | "todo" | "open" | "notstarted" => WorkStatus::Pending,
        "inprogress" | "active" | "started" | "doing" | "current" => WorkStatus::InProgress,
        "completed" | "complete" | "done" | "finished" => WorkStatus::Completed,
        _ => return None,
    })
}

impl JsonSchema for Status {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Status".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["pending", "in_progress", "completed"] })
    }
}

/// What is to be done, as it is kept: one line without control characters. `what` names it in the
/// error.
pub(crate) fn one_line(what: &str, written: &str) -> Result<String, String> {
    let line = text::visible_line(&written.split_whitespace().collect::<Vec<_>>().join(" "));
    if line.is_empty() {
        return Err(format!("{what} is empty: say what is to be done."));
    }
    if line.len() > MAX_LINE {
        return Err(format!(
            "{what} has {} bytes, at most {MAX_LINE} fit: keep it to one short line; details belong \
             in a note or the description of a task.",
            line.len()
        ));
    }
    Ok(line)
}

/// Puts these steps in the place of the checklist.
pub(crate) fn replace(
    written: impl IntoIterator<Item = (String, Status)>,
) -> Result<ToolOutput, String> {
    let mut steps = Vec::new();
    for (index, (words, status)) in written.into_iter().enumerate() {
        if index == MAX_STEPS {
            return Err(format!(
                "A checklist has at most {MAX_STEPS} steps: merge some, or use `task`."
            ));
        }
        let step = one_line(&format!("Step {}", index + 1), &words)?;
        steps.push(ChecklistStep { step, status: status.0 });
    }
    let under_way: Vec<String> = (1..)
        .zip(&steps)
        .filter(|(_, step)| step.status == WorkStatus::InProgress)
        .map(|(number, _)| number.to_string())
        .collect();
    if under_way.len() > 1 {
        return Err(format!(
            "Only one step can be in progress, but {} are: leave one so and set the others to \
             pending or completed.",
            under_way.join(", ")
        ));
    }
    let change = RecordChange::Checklist { steps: steps.clone() };
    Ok(ToolOutput { record: vec![change], ..ToolOutput::ok(state(&steps), counts(&steps)) })
}

/// What to show beside the name of a call that writes the checklist.
pub(crate) fn title<'a>(steps: impl ExactSizeIterator<Item = (&'a str, Status)>) -> String {
    let number = steps.len();
    let mut steps = steps;
    match steps.find(|(_, status)| status.0 == WorkStatus::InProgress) {
        Some((words, _)) => text::visible_line(words),
        None => text::count(number, "step"),
    }
}

/// `2 of 5 done`.
fn counts(steps: &[ChecklistStep]) -> String {
    let done = steps.iter().filter(|step| step.status == WorkStatus::Completed).count();
    format!("{done} of {} done", steps.len())
}

/// How far the checklist has come and what to do now.
pub(crate) fn state(steps: &[ChecklistStep]) -> String {
    let first = |status| steps.iter().find(|step: &&ChecklistStep| step.status == status);
    if steps.is_empty() {
        return "The checklist is empty.".to_owned();
    }
    let counts = counts(steps);
    match (first(WorkStatus::InProgress), first(WorkStatus::Pending)) {
        (Some(now), _) => format!("{counts}; now: {}", now.step),
        (None, Some(next)) => format!("{counts}; next: {}", next.step),
        (None, None) => counts,
    }
}

#[cfg(test)]
mod tests;
