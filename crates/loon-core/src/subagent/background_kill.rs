//! `background_kill`: ends a child at its next step.

use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Subagents;
use super::report::order_title;

/// What the child's journal says of it.
const REASON: &str = "The parent ended it with background_kill.";

/// Ends a child.
pub(super) struct BackgroundKill(pub(super) Arc<Subagents>);

/// Arguments of `background_kill`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    id: String,
}

impl BackgroundKill {
    /// Leaves word for the child, which looks for it at each step and at its end.
    async fn ask(&self, id: &str) -> Result<(), String> {
        let agent = self.0.running(id)?;
        let (store, exec) = (Arc::clone(&self.0.deps().store), agent.exec);
        let asked =
            tokio::task::spawn_blocking(move || store.ask_to_stop(exec, Some(REASON))).await;
        match asked {
            Ok(Ok(())) => {
                agent.progress.send_modify(|progress| progress.stopping = true);
                Ok(())
            }
            Ok(Err(error)) => Err(format!("Agent {id} could not be asked to stop: {error}.")),
            Err(error) => Err(format!("Agent {id} could not be asked to stop: {error}.")),
        }
    }
}

impl NativeTool for BackgroundKill {
    type Args = Args;

    const NAME: &'static str = "background_kill";
    const DESCRIPTION: &'static str = "End a running subagent: it stops at its next step.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        order_title(&args.id, "")
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        match self.ask(&args.id).await {
            Ok(()) => {
                let text = format!("Agent {} stops when its present step ends.", args.id);
                ToolOutput::ok(text, "asked to stop")
            }
            Err(text) => ToolOutput::error(text),
        }
    }
}
