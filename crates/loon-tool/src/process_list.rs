//! `process_list`: the processes there are.

use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::processes::Processes;
use crate::text;

/// Lists processes.
pub struct ProcessList {
    processes: Arc<Processes>,
}

impl ProcessList {
    pub(crate) fn new(processes: &Arc<Processes>) -> Self {
        Self { processes: Arc::clone(processes) }
    }
}

/// Arguments of `process_list`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {}

impl NativeTool for ProcessList {
    type Args = Args;

    const NAME: &'static str = "process_list";
    const DESCRIPTION: &'static str = "List started processes with their state.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, _: &Args) -> String {
        String::new()
    }

    fn subjects(&self, _: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    fn running(&self) -> Vec<String> {
        let entries = self.processes.all();
        entries.iter().filter(|entry| entry.exit().is_none()).map(|entry| entry.line()).collect()
    }

    async fn run(&self, _: Args, _: &EffectContext) -> ToolOutput {
        let entries = self.processes.all();
        let lines: Vec<String> = entries.iter().map(|entry| entry.line()).collect();
        let summary = text::count(lines.len(), "process");
        if lines.is_empty() {
            return ToolOutput::ok("No process was started, or all have ended.", summary);
        }
        ToolOutput::ok(lines.join("\n"), summary)
    }
}
