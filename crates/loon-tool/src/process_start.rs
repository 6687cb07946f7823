//! `process_start`: starts a shell line that goes on beside the conversation.

use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_exec::{Console, Spawner, WindowSize};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::bash;
use crate::processes::{BURST, Processes};
use crate::text;
use crate::workspace::Workspace;

/// Wide enough for the tables of most programs.
const WINDOW: WindowSize = WindowSize { rows: 40, columns: 120 };

/// Starts processes.
pub struct ProcessStart {
    workspace: Arc<Workspace>,
    spawner: Spawner,
    processes: Arc<Processes>,
}

impl ProcessStart {
    pub(crate) fn new(
        workspace: &Arc<Workspace>,
        spawner: &Spawner,
        processes: &Arc<Processes>,
    ) -> Self {
        let (workspace, processes) = (Arc::clone(workspace), Arc::clone(processes));
        Self { workspace, spawner: spawner.clone(), processes }
    }
}

/// Arguments of `process_start`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    command: String,
    cwd: Option<String>,
    #[serde(default)]
    pty: bool,
    name: Option<String>,
}

impl NativeTool for ProcessStart {
    type Args = Args;

    const NAME: &'static str = "process_start";
    const DESCRIPTION: &'static str =
        "Start a bash command that keeps running (server, watcher, long build, REPL).";
    const CLASS: ToolClass = ToolClass::Executes;

    fn title(&self, args: &Args) -> String {
        let command = bash::headline(&args.command);
        match &args.name {
            Some(name) => format!("{}: {command}", bash::headline(name)),
            None => command,
        }
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        bash::check_line(&args.command)?;
        let cwd = self.workspace.resolve(args.cwd.as_deref().unwrap_or("."));
        Ok(vec![Subject::Command { line: args.command.clone(), cwd }])
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let cwd = self.workspace.resolve(args.cwd.as_deref().unwrap_or("."));
        let spawn = self.spawner.bash(&args.command, &cwd);
        let (spawn, console) = if args.pty {
            (spawn.env("TERM", "xterm-256color"), Console::Terminal(WINDOW))
        } else {
            (spawn.unattended(), Console::Pipes)
        };
        let mut title = self.title(&args);
        if args.cwd.is_some() {
            title.push_str(" in ");
            title.push_str(&text::visible_line(&self.workspace.display(&cwd)));
        }
        match self.processes.start(spawn, console, args.command, title, cwd) {
            Ok(entry) => {
                // Who fails at once is told at once. A cancel does not take back the start.
                entry.news(BURST, &cx.cancel).await;
                let report = self.processes.report(&entry);
                let summary = format!("{}, {}", entry.id(), report.summary);
                ToolOutput { summary, ..report }
            }
            Err(text) => ToolOutput::error(text),
        }
    }
}
