//! `task`: the tasks of the working record and what blocks them.

mod graph;

use std::borrow::Cow;
use std::sync::Arc;

use loon_api::{RecordChange, Subject, Task, ToolClass, WorkStatus, WorkingRecord};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use tokio::sync::watch;

use crate::checklist::{Status, one_line};
use crate::text;

/// Most tasks at a time.
const MAX_TASKS: usize = 100;
/// Most bytes of a description.
const MAX_DESCRIPTION: usize = 4000;

/// Keeps the tasks.
pub(crate) struct Tasks {
    record: watch::Receiver<Arc<WorkingRecord>>,
}

impl Tasks {
    pub(crate) fn new(record: &watch::Receiver<Arc<WorkingRecord>>) -> Self {
        Self { record: record.clone() }
    }
}

/// Arguments of `task`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    op: Op,
    id: Option<Id>,
    title: Option<String>,
    description: Option<String>,
    // Said so that the schema does not offer null.
    #[serde(default)]
    #[schemars(with = "Status")]
    status: Option<Status>,
    blocked_by: Option<Vec<Id>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Op {
    Create,
    Update,
    Get,
    List,
    Remove,
}

/// The id of a task, also as a text such as `3` or `#3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id(u32);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = serde_json::Value::deserialize(deserializer)?;
        let text = match &written {
            serde_json::Value::String(text) => text.trim().trim_start_matches('#').to_owned(),
            other => other.to_string(),
        };
        text.parse().map(Self).map_err(|_| {
            serde::de::Error::custom(format!("{written} is no id of a task: ids are whole numbers"))
        })
    }
}

impl JsonSchema for Id {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer" })
    }
}

impl NativeTool for Tasks {
    type Args = Args;

    const NAME: &'static str = "task";
    const DESCRIPTION: &'static str =
        "Keep tasks with dependencies: one starts only when all in its blocked_by are completed.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        let word = match args.op {
            Op::Create => "create",
            Op::Update => "update",
            Op::Get => "get",
            Op::List => "list",
            Op::Remove => "remove",
        };
        let id = args.id.map(|id| id.0.to_string());
        let about = args.title.as_ref().map(|title| text::visible_line(title));
        [Some(word.to_owned()), id, about].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        let record = Arc::clone(&self.record.borrow());
        perform(&record, &args).unwrap_or_else(ToolOutput::error)
    }
}

fn perform(record: &WorkingRecord, args: &Args) -> Result<ToolOutput, String> {
    match args.op {
        Op::Create => {
            let task = created(record, args)?;
            Ok(changed(record, &format!("Created {task}"), RecordChange::Task { task }))
        }
        Op::Update => {
            let task = updated(record, args)?;
            Ok(changed(record, &format!("Updated {task}"), RecordChange::Task { task }))
        }
        Op::Remove => {
            let id = named(record, args)?.id;
            graph::may_be_removed(&record.tasks, id)?;
            Ok(changed(record, &format!("Removed task {id}"), RecordChange::TaskRemoved { id }))
        }
        Op::Get => {
            let task = named(record, args)?;
            let text = match task.description.as_str() {
                "" => task.to_string(),
                description => format!("{task}\n{description}"),
            };
            Ok(ToolOutput::ok(text, ""))
        }
        Op::List => {
            let mut text = state(&record.tasks);
            for task in &record.tasks {
                text.push('\n');
                text.push_str(&task.to_string());
            }
            Ok(ToolOutput::ok(text, text::count(record.tasks.len(), "task")))
        }
    }
}

fn created(record: &WorkingRecord, args: &Args) -> Result<Task, String> {
    if record.tasks.len() >= MAX_TASKS {
        return Err(format!("There are {MAX_TASKS} tasks already: remove completed ones first."));
    }
    let Some(id) = record.last_task.checked_add(1) else {
        return Err("No id is left for another task: update an existing one.".to_owned());
    };
    let title = args.title.as_deref().ok_or("create needs a title.")?;
    let task = Task {
        id,
        title: one_line("The title", title)?,
        description: described(args.description.as_deref().unwrap_or_default())?,
        status: args.status.unwrap_or_default().0,
        blocked_by: ids(args.blocked_by.as_deref().unwrap_or_default()),
    };
    graph::may_stand(&record.tasks, &task)?;
    Ok(task)
}

fn updated(record: &WorkingRecord, args: &Args) -> Result<Task, String> {
    let mut task = named(record, args)?.clone();
    let before = task.clone();
    if let Some(title) = &args.title {
        task.title = one_line("The title", title)?;
    }
    if let Some(description) = &args.description {
        task.description = described(description)?;
    }
    if let Some(status) = args.status {
        task.status = status.0;
    }
    if let Some(blocked_by) = &args.blocked_by {
        task.blocked_by = ids(blocked_by);
    }
    if task == before {
        return Err(format!(
            "Nothing changes: give another title, description, status or blocked_by. It is\n{before}"
        ));
    }
    graph::may_stand(&record.tasks, &task)?;
    Ok(task)
}

fn named<'a>(record: &'a WorkingRecord, args: &Args) -> Result<&'a Task, String> {
    let Some(Id(id)) = args.id else {
        return Err(format!("An id is needed: {}", graph::known(&record.tasks)));
    };
    record.task(id).ok_or_else(|| format!("There is no task {id}: {}", graph::known(&record.tasks)))
}

fn described(written: &str) -> Result<String, String> {
    let description = text::visible(written.trim()).into_owned();
    if description.len() > MAX_DESCRIPTION {
        return Err(format!(
            "The description has {} bytes, at most {MAX_DESCRIPTION} fit: shorten it, or keep the \
             rest in notes.",
            description.len()
        ));
    }
    Ok(description)
}

fn ids(written: &[Id]) -> Vec<u32> {
    let mut ids: Vec<u32> = written.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The result of a change: what was done and how the tasks stand after it.
fn changed(record: &WorkingRecord, done: &str, change: RecordChange) -> ToolOutput {
    let mut after = record.clone();
    after.apply(&change);
    let text = format!("{done}\n{}", state(&after.tasks));
    ToolOutput { record: vec![change], ..ToolOutput::ok(text, counts(&after.tasks)) }
}

fn counts(tasks: &[Task]) -> String {
    let done = tasks.iter().filter(|task| task.status == WorkStatus::Completed).count();
    format!("{done} of {} done", tasks.len())
}

/// How far the tasks have come, which are under way and which can be started.
fn state(tasks: &[Task]) -> String {
    if tasks.is_empty() {
        return "There are no tasks.".to_owned();
    }
    let listed = |heading: &str, wanted: &dyn Fn(&&Task) -> bool| {
        let ids: Vec<String> =
            tasks.iter().filter(wanted).map(|task| task.id.to_string()).collect();
        if ids.is_empty() { String::new() } else { format!("; {heading}: {}", ids.join(", ")) }
    };
    let under_way = listed("in progress", &|task| task.status == WorkStatus::InProgress);
    let ready = listed("ready", &|task| {
        task.status == WorkStatus::Pending && graph::unfinished(tasks, task).is_empty()
    });
    format!("{}{under_way}{ready}", counts(tasks))
}

#[cfg(test)]
mod tests;
