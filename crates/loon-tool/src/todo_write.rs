//! `todo_write`: replaces the checklist.

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::checklist::{self, Status};

/// Replaces the checklist.
pub(crate) struct TodoWrite;

/// Arguments of `todo_write`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    todos: Vec<Todo>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Todo {
    #[serde(alias = "step", alias = "text", alias = "title")]
    content: String,
    #[serde(default)]
    status: Status,
}

impl NativeTool for TodoWrite {
    type Args = Args;

    const NAME: &'static str = "todo_write";
    const DESCRIPTION: &'static str =
        "Replace the checklist: send all steps, in order, at most one in_progress.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        checklist::title(args.todos.iter().map(|todo| (todo.content.as_str(), todo.status)))
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        let steps = args.todos.into_iter().map(|todo| (todo.content, todo.status));
        checklist::replace(steps).unwrap_or_else(ToolOutput::error)
    }
}
