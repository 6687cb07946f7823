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
        match self.0.ask_to_stop(&args.id, REASON).await {
            Ok(_) => {
                let text = format!("Agent {} stops when its present step ends.", args.id);
                ToolOutput::ok(text, "asked to stop")
            }
            Err(text) => ToolOutput::error(text),
        }
    }
}
