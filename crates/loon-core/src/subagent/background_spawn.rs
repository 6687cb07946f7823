//! `background_spawn`: hands a task to a child that works beside the session.

use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::report::order_title;
use super::start::Order;
use super::{Subagents, session_words};

/// Hands a task to a child that works beside the session.
pub(super) struct BackgroundSpawn(pub(super) Arc<Subagents>);

/// Arguments of `background_spawn`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// general, or one you were told of.
    agent: String,
    task: String,
}

impl NativeTool for BackgroundSpawn {
    type Args = Args;

    const NAME: &'static str = "background_spawn";
    const DESCRIPTION: &'static str =
        "Start a subagent on a task and go on working; its report comes when it finishes.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        order_title(&args.agent, &args.task)
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let order = Order { agent: &args.agent, task: &args.task, background: true };
        match self.0.start(&order, &cx.cancel).await {
            Ok(agent) => {
                let session = session_words(agent.exec);
                let text = format!(
                    "Agent {} is at work ({session}). Its report comes to you when it finishes.",
                    agent.id
                );
                ToolOutput::ok(text, agent.id.clone())
            }
            Err(text) => ToolOutput::error(text),
        }
    }
}
