//! `todo_read`: the working record as it stands.

use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{Subject, Task, ToolClass, WorkingRecord};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;

use crate::checklist;
use crate::text;

/// Most bytes of descriptions in one result.
const DESCRIPTIONS: usize = 12 * 1024;
/// Most bytes of notes in one result.
const NOTES: usize = 12 * 1024;

/// Shows the working record.
pub(crate) struct TodoRead {
    record: watch::Receiver<Arc<WorkingRecord>>,
}

impl TodoRead {
    pub(crate) fn new(record: &watch::Receiver<Arc<WorkingRecord>>) -> Self {
        Self { record: record.clone() }
    }
}

/// Arguments of `todo_read`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Show older notes, from this one on.
    notes_from: Option<usize>,
}

impl NativeTool for TodoRead {
    type Args = Args;

    const NAME: &'static str = "todo_read";
    const DESCRIPTION: &'static str =
        "Show goal, checklist, tasks with descriptions, and notes. Read it before multi-step work.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, _args: &Args) -> String {
        String::new()
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        let record = Arc::clone(&self.record.borrow());
        shown(&record, args.notes_from)
    }
}

fn shown(record: &WorkingRecord, notes_from: Option<usize>) -> ToolOutput {
    let mut sections = Vec::new();
    if let Some(goal) = &record.goal {
        sections.push(format!("Goal: {}", text::visible(goal)));
    }
    if !record.steps.is_empty() {
        let mut section = format!("Checklist: {}", checklist::state(&record.steps));
        for step in &record.steps {
            let _ = write!(section, "\n{step}");
        }
        sections.push(section);
    }
    if !record.tasks.is_empty() {
        sections.push(tasks(&record.tasks));
    }
    if !record.notes.is_empty() {
        sections.push(notes(&record.notes, notes_from));
    }
    if sections.is_empty() {
        return ToolOutput::ok("Nothing is written down yet.", "empty");
    }
    ToolOutput::ok(sections.join("\n\n"), format!("{} unfinished", record.unfinished()))
}

fn tasks(tasks: &[Task]) -> String {
    let mut section = "Tasks:".to_owned();
    let mut room = DESCRIPTIONS;
    for task in tasks {
        let _ = write!(section, "\n{task}");
        if task.description.is_empty() {
            continue;
        }
        match room.checked_sub(task.description.len()) {
            Some(left) => {
                room = left;
                let _ = write!(section, "\n    {}", task.description.replace('\n', "\n    "));
            }
            None => section.push_str("\n    [description left out; task with op get shows it]"),
        }
    }
    section
}

/// The newest notes that fit, or those from one on.
fn notes(notes: &[String], from: Option<usize>) -> String {
    let mut room = NOTES;
    let mut fits = |note: &&String| {
        let left = room.checked_sub(note.len());
        room = left.unwrap_or(0);
        left.is_some()
    };
    let range = match from {
        Some(from) => {
            let start = from.saturating_sub(1).min(notes.len());
            start..start + notes[start..].iter().take_while(&mut fits).count()
        }
        None => notes.len() - notes.iter().rev().take_while(&mut fits).count()..notes.len(),
    };
    let mut section = format!("Notes ({}):", notes.len());
    if range.start > 0 {
        let _ = write!(section, "\n[{} older; notes_from 1 shows them]", range.start);
    }
    for index in range.clone() {
        let _ = write!(section, "\n{}. {}", index + 1, notes[index].replace('\n', "\n    "));
    }
    if range.end < notes.len() {
        let _ = write!(
            section,
            "\n[{} newer; notes_from {} shows them]",
            notes.len() - range.end,
            range.end + 1
        );
    }
    section
}

#[cfg(test)]
mod tests;
