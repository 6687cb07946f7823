//! The working record in the words in which a model is shown it with a request.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use loon_api::{WorkStatus, WorkingRecord};

/// Most bytes of a goal, a step or a task that are shown.
const LINE: usize = 400;
/// Most steps shown, and most tasks.
const LINES: usize = 60;
/// Most notes told whole, and most bytes of one.
const NOTES: usize = 40;
const NOTE: usize = 1000;

/// What a conversation has shown of the working record so far.
#[derive(Default)]
pub(crate) struct ShownRecord {
    record: Arc<WorkingRecord>,
    text: Option<String>,
}

impl ShownRecord {
    /// This record was shown last.
    pub(crate) fn showing(record: &Arc<WorkingRecord>) -> Self {
        Self { record: Arc::clone(record), text: text_of(record) }
    }

    /// What to show now, if it differs from what was shown last.
    pub(crate) fn news(&mut self, record: &Arc<WorkingRecord>) -> Option<String> {
        if Arc::ptr_eq(&self.record, record) {
            return None;
        }
        self.record = Arc::clone(record);
        let text = text_of(record);
        if text == self.text {
            return None;
        }
        self.text.clone_from(&text);
        Some(text.unwrap_or_else(|| "Working record: nothing is written down any more.".to_owned()))
    }
}

/// The same with the notes themselves, for a conversation in which nothing else tells them any more.
pub(crate) fn whole_text(record: &WorkingRecord) -> Option<String> {
    let mut text = text_of(record)?;
    let older = record.notes.len().saturating_sub(NOTES);
    if older > 0 {
        let _ = write!(text, "\n[{older} older notes; todo_read gives all]");
    }
    for note in &record.notes[older..] {
        let end = note.floor_char_boundary(NOTE);
        let cut = if end < note.len() { "… [todo_read gives the rest]" } else { "" };
        let _ = write!(text, "\n- {}{cut}", &note[..end]);
    }
    Some(text)
}

/// Goal, checklist, tasks and the number of notes; absent if there is nothing of these.
fn text_of(record: &WorkingRecord) -> Option<String> {
    let mut text = "Working record:".to_owned();
    if let Some(goal) = &record.goal {
        let _ = write!(text, "\nGoal: {}", clipped(goal));
    }
    let steps = record.steps.iter().map(|step| (step.status, step));
    list(&mut text, "Checklist", steps);
    let tasks = record.tasks.iter().map(|task| (task.status, task));
    list(&mut text, "Tasks", tasks);
    if !record.notes.is_empty() {
        let _ = write!(text, "\nNotes kept: {}", record.notes.len());
    }
    text.contains('\n').then_some(text)
}

fn list<T: Display>(
    text: &mut String,
    heading: &str,
    entries: impl ExactSizeIterator<Item = (WorkStatus, T)> + Clone,
) {
    let number = entries.len();
    if number == 0 {
        return;
    }
    let done = entries.clone().filter(|(status, _)| *status == WorkStatus::Completed).count();
    let _ = write!(text, "\n{heading}, {done} of {number} done:");
    for (_, entry) in entries.take(LINES) {
        let _ = write!(text, "\n{}", clipped(&entry.to_string()));
    }
    if number > LINES {
        let _ = write!(text, "\n[{} more]", number - LINES);
    }
}

fn clipped(line: &str) -> String {
    if line.len() <= LINE {
        return line.to_owned();
    }
    format!("{}…", &line[..line.floor_char_boundary(LINE)])
}

#[cfg(test)]
mod tests {
    use loon_api::{ChecklistStep, Task};

    use super::*;

    fn record() -> WorkingRecord {
        let step = |step: &str, status| ChecklistStep { step: step.into(), status };
        WorkingRecord {
            goal: Some("faster search".into()),
            steps: vec![
                step("measure", WorkStatus::Completed),
                step("change the bound", WorkStatus::InProgress),
            ],
            tasks: vec![Task {
                id: 4,
                title: "write it up".into(),
                description: "not shown here".into(),
                status: WorkStatus::Pending,
                blocked_by: vec![2, 3],
            }],
            notes: vec!["a".into(), "b".into()],
            loaded_tools: Vec::new(),
            skills: Vec::new(),
            last_task: 4,
        }
    }

    #[test]
    fn goal_checklist_tasks_and_the_number_of_notes_are_shown() {
        assert_eq!(
            text_of(&record()).as_deref(),
            Some(
                "Working record:\nGoal: faster search\nChecklist, 1 of 2 done:\n[x] measure\n\
                 [>] change the bound\nTasks, 0 of 1 done:\n[ ] 4: write it up (after 2, 3)\n\
                 Notes kept: 2"
            )
        );
    }

    #[test]
    fn only_news_are_shown_and_so_is_the_end_of_all() {
        let mut shown = ShownRecord::default();
        assert_eq!(shown.news(&Arc::default()), None);
        let first = Arc::new(record());
        assert!(shown.news(&first).is_some());
        assert_eq!(shown.news(&first), None);
        let tools = WorkingRecord { loaded_tools: vec!["web".into()], ..record() };
        assert_eq!(shown.news(&Arc::new(tools)), None);
        let more = WorkingRecord { goal: None, ..record() };
        assert!(shown.news(&Arc::new(more)).is_some_and(|text| !text.contains("Goal")));
        let end = shown.news(&Arc::default());
        assert_eq!(end.as_deref(), Some("Working record: nothing is written down any more."));
        assert_eq!(shown.news(&Arc::default()), None);
    }

    #[test]
    fn long_records_are_cut_and_say_so() {
        let mut long = record();
        long.goal = Some("ü".repeat(LINE));
        long.steps = vec![long.steps[0].clone(); LINES + 5];
        let text = text_of(&long).unwrap();
        assert_eq!(text.matches("[x] measure").count(), LINES);
        assert!(text.contains("65 of 65 done") && text.contains("\n[5 more]\n"));
        assert!(text.contains(&format!("Goal: {}…\n", "ü".repeat(LINE / 2))));
    }
}
