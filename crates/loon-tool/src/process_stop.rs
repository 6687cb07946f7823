//! `process_stop`: ends a process with all its children.

use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::processes::Processes;
use crate::text;

/// Ends processes.
pub struct ProcessStop {
    processes: Arc<Processes>,
}

impl ProcessStop {
    pub(crate) fn new(processes: &Arc<Processes>) -> Self {
        Self { processes: Arc::clone(processes) }
    }
}

/// Arguments of `process_stop`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    id: String,
}

impl NativeTool for ProcessStop {
    type Args = Args;

    const NAME: &'static str = "process_stop";
    const DESCRIPTION: &'static str =
        "End a process and all its children; gives its last output and exit.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        text::visible_line(&args.id)
    }

    fn subjects(&self, _: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let entry = match self.processes.find(&args.id) {
            Ok(entry) => entry,
            Err(text) => return ToolOutput::error(text),
        };
        let exit = tokio::select! {
            exit = entry.process().stop() => exit,
            () = cx.cancel.cancelled() => {
                let id = entry.id();
                return ToolOutput::error(format!("Cancelled while {id} ends; process_poll tells."));
            }
        };
        let mut output = self.processes.report(&entry);
        let survivors = exit.is_none_or(|exit| exit.survivors > 0);
        output.result.is_error = survivors;
        if !survivors {
            output.result.text.push_str("\n[no process of it is left]");
        }
        output
    }
}
