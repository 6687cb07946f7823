//! `background_list`: how the children of the session are getting on.

use std::sync::Arc;

use loon_api::event::SubagentFinished;
use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::agent::{Agent, Progress};
use super::report::{cost_words, count, end_words};
use super::{Subagents, session_words};

/// Most bytes of all reports together.
const REPORTS: usize = 48 * 1024;

/// Most bytes of one.
const REPORT: usize = 16 * 1024;

/// Shows how children are getting on.
pub(super) struct BackgroundList(pub(super) Arc<Subagents>);

/// It has no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {}

impl NativeTool for BackgroundList {
    type Args = Args;

    const NAME: &'static str = "background_list";
    const DESCRIPTION: &'static str =
        "Show the subagents of this session: status, steps, and the reports of finished ones.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, _args: &Args) -> String {
        String::new()
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, _args: Args, _cx: &EffectContext) -> ToolOutput {
        let (agents, past) = {
            let table = self.0.table();
            let agents = table.agents.iter().filter(|agent| agent.background);
            (agents.cloned().collect::<Vec<_>>(), table.past.clone())
        };
        if agents.is_empty() && past.is_empty() {
            return ToolOutput::ok("No agent was started in the background.", "no agents");
        }
        let states: Vec<Progress> =
            agents.iter().map(|agent| agent.progress.borrow().clone()).collect();
        let running = states.iter().filter(|progress| progress.end.is_none()).count();
        let ended = states.len() - running + past.len();
        let share = (REPORTS / ended.max(1)).min(REPORT);
        let mut parts: Vec<String> = past.iter().map(|end| ended_words(end, share)).collect();
        parts.extend(agents.iter().zip(&states).map(|(agent, progress)| match &progress.end {
            Some(end) => ended_words(end, share),
            None => running_words(agent, progress),
        }));
        let summary = format!("{running} running, {ended} finished");
        ToolOutput::ok(parts.join("\n\n"), summary)
    }
}

fn ended_words(end: &SubagentFinished, limit: usize) -> String {
    let status = end.status.words();
    format!("{} ({}): {status}\n{}", end.id, end.agent, end_words(end, limit))
}

fn running_words(agent: &Agent, progress: &Progress) -> String {
    let used = progress.used();
    let effort = agent.effort.map(|effort| format!(" with {} effort", effort.name()));
    let model = format!("{}{}", agent.model, effort.unwrap_or_default());
    let mut facts = vec![model, count(used.requests, "step"), count(used.tokens, "token")];
    facts.extend(cost_words(&used.cost));
    if !progress.call.is_empty() {
        facts.push(format!("last call: {}", progress.call));
    }
    // Whole minutes: a list that says nothing new should read the same.
    let quiet = agent.quiet(progress).as_secs() / 60;
    if quiet > 0 {
        facts.push(format!("no sign of life for {quiet} min"));
    }
    facts.push(session_words(agent.exec));
    let status = progress.state().words();
    format!("{} ({}): {status}; {}", agent.id, agent.profile, facts.join("; "))
}
