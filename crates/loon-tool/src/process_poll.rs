//! `process_poll`: what a process has said, waiting for it if need be.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::processes::{BURST, Processes};
use crate::text;

/// How long to wait unless the call says otherwise, seconds.
const WAIT: u64 = 10;
/// How long to wait at most, seconds.
const MAX_WAIT: u64 = 600;
/// What the gate allows beyond that, so that the wait ends by itself.
const GATE_MARGIN: Duration = Duration::from_secs(5);

/// Looks at processes.
pub struct ProcessPoll {
    processes: Arc<Processes>,
}

impl ProcessPoll {
    pub(crate) fn new(processes: &Arc<Processes>) -> Self {
        Self { processes: Arc::clone(processes) }
    }
}

/// Arguments of `process_poll`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    id: String,
    /// Default 10, at most 600.
    wait_secs: Option<u64>,
}

impl Args {
    fn wait(&self) -> Duration {
        Duration::from_secs(self.wait_secs.unwrap_or(WAIT).min(MAX_WAIT))
    }
}

impl NativeTool for ProcessPoll {
    type Args = Args;

    const NAME: &'static str = "process_poll";
    const DESCRIPTION: &'static str = "New output and state of a process. Waits until there is output or it ends: no sleep needed.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        text::visible_line(&args.id)
    }

    fn subjects(&self, _: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    fn timeout(&self, args: &Args) -> Option<Duration> {
        Some(args.wait() + BURST + GATE_MARGIN)
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let entry = match self.processes.find(&args.id) {
            Ok(entry) => entry,
            Err(text) => return ToolOutput::error(text),
        };
        if entry.news(args.wait(), &cx.cancel).await {
            self.processes.report(&entry)
        } else {
            // Its output stays for the next look.
            ToolOutput::error(format!("Cancelled; {} was left as it is.", entry.id()))
        }
    }
}
