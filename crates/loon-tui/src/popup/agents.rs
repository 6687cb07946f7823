//! The children of the session: what each does, what it uses, and what can be done about it.

use loon_api::{SubagentState, SubagentStatus};

use super::{Kind, Popup, Row, Value};
use crate::agents::{Agent, Agents};
use crate::glyphs::Glyphs;
use crate::panel::first_line;
use crate::session::count_words;

/// The list as far as it is known; the answer to the question that goes with it renews it.
pub(crate) fn open(agents: &Agents, glyphs: &Glyphs) -> Popup {
    Popup::new(Kind::Agents, "agents", "no agent was started yet", rows(agents, glyphs))
}

/// One row for each, oldest first.
pub(crate) fn rows(agents: &Agents, glyphs: &Glyphs) -> Vec<Row> {
    agents.list().iter().map(|agent| row(agent, glyphs)).collect()
}

fn row(agent: &Agent, glyphs: &Glyphs) -> Row {
    let summary = &agent.summary;
    let last = if summary.call.is_empty() { first_line(&agent.task) } else { &summary.call };
    Row {
        label: format!("{} {} {}  {last}", sign(agent, glyphs), summary.id, summary.agent),
        note: format!("{}, {}", agent.state_words(), used(agent).join(", ")),
        about: about(agent),
        value: Value::Agent(summary.id.clone()),
    }
}

fn sign(agent: &Agent, glyphs: &Glyphs) -> &'static str {
    match (agent.summary.state, agent.summary.status) {
        (SubagentState::Running | SubagentState::Stopping, _) => glyphs.running,
        (SubagentState::Asking | SubagentState::Stalled, _) => glyphs.waiting,
        (SubagentState::Ended, Some(SubagentStatus::Completed) | None) => glyphs.done,
        (SubagentState::Ended, Some(_)) => glyphs.failed,
    }
}

fn used(agent: &Agent) -> Vec<String> {
    let summary = &agent.summary;
    let plural = if summary.steps == 1 { "" } else { "s" };
    let mut used = vec![
        format!("{} step{plural}", summary.steps),
        format!("{} tokens", count_words(summary.tokens)),
    ];
    let usd = summary.cost.usd.amount();
    if !usd.is_zero() {
        let more = if summary.cost.unpriced > 0 { "+?" } else { "" };
        used.push(format!("${usd}{more}"));
    }
    used
}

fn about(agent: &Agent) -> String {
    let summary = &agent.summary;
    let effort = summary.effort.map(|effort| format!(", {} effort", effort.name()));
    let mut lines = vec![format!("{}{}", summary.model, effort.unwrap_or_default())];
    if !agent.task.is_empty() {
        lines.push(format!("Task: {}", agent.task));
    }
    if !summary.call.is_empty() {
        lines.push(format!("Last call: {}", summary.call));
    }
    if let Some(worktree) = &agent.worktree {
        lines.push(format!("Worktree, which is kept: {worktree}"));
    }
    lines.push(format!("Session: {}", summary.child));
    lines.join("\n")
}
