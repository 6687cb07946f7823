//! The working record: what an agent keeps of its work outside the conversation. Checklist, tasks,
//! notes and goal survive compaction and resume because they are a fold of journaled changes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Notes kept; older ones stay in the journal only.
pub const MAX_NOTES: usize = 200;

/// Skills active at the same time; one more takes the place of the oldest.
pub const MAX_SKILLS: usize = 8;

/// How far a step or a task has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
}

impl WorkStatus {
    /// The box that stands before a step or a task in a list.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Completed => "[x]",
        }
    }
}

/// One step of the checklist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChecklistStep {
    /// What is to be done, one line.
    pub step: String,
    /// How far it has come.
    #[serde(default)]
    pub status: WorkStatus,
}

impl fmt::Display for ChecklistStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.status.mark(), self.step)
    }
}

/// One task of the task graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// From 1, never used twice in a session.
    pub id: u32,
    /// What is to be done, one line.
    pub title: String,
    /// What there is to know about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How far it has come.
    #[serde(default)]
    pub status: WorkStatus,
    /// Tasks that must be completed first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<u32>,
}

impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}: {}", self.status.mark(), self.id, self.title)?;
        for (index, id) in self.blocked_by.iter().enumerate() {
            write!(formatter, "{}{id}", if index == 0 { " (after " } else { ", " })?;
        }
        formatter.write_str(if self.blocked_by.is_empty() { "" } else { ")" })
    }
}

/// One change of the working record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum RecordChange {
    /// The checklist is replaced.
    Checklist {
        /// The new one, in order.
        steps: Vec<ChecklistStep>,
    },
    /// A task is added, or replaced by its id.
    Task {
        /// The task as it now stands.
        task: Task,
    },
    /// A task is taken out.
    TaskRemoved {
        /// Which.
        id: u32,
    },
    /// A note is added.
    Note {
        /// The words.
        text: String,
    },
    /// The goal changes.
    Goal {
        /// The new one; absent takes it away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
    },
    /// Tools that were found by search are offered from now on.
    ToolsLoaded {
        /// Their names.
        names: Vec<String>,
    },
    /// A skill becomes active.
    SkillLoaded {
        /// Its name.
        name: String,
    },
}

/// The working record of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkingRecord {
    /// What the whole work is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The ordered plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<ChecklistStep>,
    /// The tasks, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
    /// The newest notes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Tools offered since a search found them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loaded_tools: Vec<String>,
    /// Names of the active skills, the one loaded last at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// The highest task id ever given.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_task: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl WorkingRecord {
    /// Takes in one change.
    pub fn apply(&mut self, change: &RecordChange) {
        match change {
            RecordChange::Checklist { steps } => self.steps.clone_from(steps),
            RecordChange::Task { task } => {
                self.last_task = self.last_task.max(task.id);
                match self.tasks.binary_search_by_key(&task.id, |task| task.id) {
                    Ok(index) => self.tasks[index] = task.clone(),
                    Err(index) => self.tasks.insert(index, task.clone()),
                }
            }
            RecordChange::TaskRemoved { id } => {
                self.tasks.retain(|task| task.id != *id);
                self.tasks.iter_mut().for_each(|task| task.blocked_by.retain(|by| by != id));
            }
            RecordChange::Note { text } => {
                if self.notes.len() >= MAX_NOTES {
                    self.notes.remove(0);
                }
                self.notes.push(text.clone());
            }
            RecordChange::Goal { goal } => self.goal.clone_from(goal),
            RecordChange::ToolsLoaded { names } => {
                let new = names.iter().filter(|name| !self.loaded_tools.contains(name));
                let new: Vec<String> = new.cloned().collect();
                self.loaded_tools.extend(new);
            }
            RecordChange::SkillLoaded { name } => {
                self.skills.retain(|skill| skill != name);
                self.skills.push(name.clone());
                if self.skills.len() > MAX_SKILLS {
                    self.skills.remove(0);
                }
            }
        }
    }

    /// The task with this id.
    pub fn task(&self, id: u32) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// True if nothing was ever written down.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Steps and tasks that are not completed.
    pub fn unfinished(&self) -> usize {
        let open = |status: WorkStatus| status != WorkStatus::Completed;
        self.steps.iter().filter(|step| open(step.status)).count()
            + self.tasks.iter().filter(|task| open(task.status)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, blocked_by: &[u32]) -> Task {
        Task {
            id,
            title: format!("task {id}"),
            description: String::new(),
            status: WorkStatus::Pending,
            blocked_by: blocked_by.to_vec(),
        }
    }

    #[test]
    fn tasks_are_kept_by_id_and_ids_are_never_given_twice() {
        let mut record = WorkingRecord::default();
        for task in [task(2, &[1]), task(1, &[]), task(3, &[])] {
            record.apply(&RecordChange::Task { task });
        }
        record.apply(&RecordChange::TaskRemoved { id: 3 });
        record.apply(&RecordChange::TaskRemoved { id: 1 });
        assert_eq!(record.tasks, [task(2, &[])]);
        assert_eq!(record.last_task, 3);
        assert_eq!(record.unfinished(), 1);
    }

    #[test]
    fn steps_and_tasks_read_as_one_line() {
        let step = ChecklistStep { step: "measure".into(), status: WorkStatus::InProgress };
        assert_eq!(step.to_string(), "[>] measure");
        assert_eq!(task(1, &[]).to_string(), "[ ] 1: task 1");
        let done = Task { status: WorkStatus::Completed, ..task(3, &[1, 2]) };
        assert_eq!(done.to_string(), "[x] 3: task 3 (after 1, 2)");
    }

    #[test]
    fn old_notes_make_room() {
        let mut record = WorkingRecord::default();
        for number in 0..MAX_NOTES + 2 {
            record.apply(&RecordChange::Note { text: number.to_string() });
        }
        assert_eq!((record.notes.len(), record.notes[0].as_str()), (MAX_NOTES, "2"));
    }

    #[test]
    fn a_tool_is_loaded_once() {
        let mut record = WorkingRecord::default();
        for names in [vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()]] {
            record.apply(&RecordChange::ToolsLoaded { names });
        }
        assert_eq!(record.loaded_tools, ["a", "b"]);
    }

    #[test]
    fn the_skills_loaded_last_are_active() {
        let mut record = WorkingRecord::default();
        for name in ["a", "b", "a", "c", "d", "e", "f", "g", "h", "i"] {
            record.apply(&RecordChange::SkillLoaded { name: name.to_owned() });
        }
        assert_eq!(record.skills, ["a", "c", "d", "e", "f", "g", "h", "i"]);
    }
}
