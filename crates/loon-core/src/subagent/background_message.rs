//! `background_message`: words for a child at work.

use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Subagents;
use super::report::order_title;

/// Steers a child.
pub(super) struct BackgroundMessage(pub(super) Arc<Subagents>);

/// Arguments of `background_message`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    id: String,
    message: String,
}

impl NativeTool for BackgroundMessage {
    type Args = Args;

    const NAME: &'static str = "background_message";
    const DESCRIPTION: &'static str =
        "Redirect a running subagent: it reads this at its next step.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        order_title(&args.id, &args.message)
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        match self.0.steer(&args.id, &args.message) {
            Ok(()) => {
                ToolOutput::ok(format!("Agent {} reads it at its next step.", args.id), "sent")
            }
            Err(text) => ToolOutput::error(text),
        }
    }
}
