//! `delegate`: hands a task to a child and waits for its report.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{SubagentStatus, Subject, ToolClass, ToolResult};
use loon_kernel::{EffectContext, NativeTool, Progress, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Subagents;
use super::agent::Agent;
use super::report::{count, end_words, order_title};
use super::start::Order;

/// The child has limits of its own, and the turn can be interrupted.
const TIMEOUT: Duration = Duration::from_hours(24);

/// Bytes of a report in a result.
const SHOWN: usize = 16 * 1024;

/// Hands a task to a child.
pub(super) struct Delegate(pub(super) Arc<Subagents>);

/// Arguments of `delegate`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// general, or one you were told of.
    agent: String,
    task: String,
}

impl NativeTool for Delegate {
    type Args = Args;

    const NAME: &'static str = "delegate";
    const DESCRIPTION: &'static str = "Hand a self-contained task to a subagent and wait for its report. It sees only the task text.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        order_title(&args.agent, &args.task)
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    fn timeout(&self, _args: &Args) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let order = Order { agent: &args.agent, task: &args.task, background: false };
        let agent = match self.0.start(&order, &cx.cancel).await {
            Ok(agent) => agent,
            Err(text) => return ToolOutput::error(text),
        };
        // Also when this call is dropped.
        let _stop = agent.cancel.clone().drop_guard();
        let ended = agent.ended();
        let mut ended = std::pin::pin!(ended);
        let finished = tokio::select! {
            finished = &mut ended => finished,
            () = show_calls(&agent, cx) => None,
            () = cx.cancel.cancelled() => {
                agent.cancel.cancel();
                ended.await
            }
        };
        let Some(finished) = finished else {
            return ToolOutput::error("The agent did not come to an end.");
        };
        let text = end_words(&finished, SHOWN);
        let is_error = finished.status != SubagentStatus::Completed;
        let summary = count(finished.steps.into(), "step");
        ToolOutput { result: ToolResult { text, is_error }, summary, ..ToolOutput::default() }
    }
}

/// Shows each call that the child makes, as output of this one, for as long as the child lives.
async fn show_calls(agent: &Agent, cx: &EffectContext) {
    let mut watch = agent.progress.subscribe();
    let mut shown = String::new();
    while watch.changed().await.is_ok() {
        let call = watch.borrow_and_update().call.clone();
        if call != shown {
            // Nobody has to look.
            let _ = cx.progress.send(Progress::Output(format!("{call}\n"))).await;
            shown = call;
        }
    }
}
