//! The receipt of a turn as a fold of its records.

mod check;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use loon_api::receipt::{NetChange, ProgramRun, Receipt, UnknownCause, UnknownWork};
use loon_api::{AgentEvent, FileChange, ItemBody, ToolCallItem, ToolCallStatus};

/// The tools whose calls say how a process stands that a call started.
const START: &str = "process_start";
const STOP: &str = "process_stop";

/// What a turn, or a whole execution, did so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReceiptFold {
    changes: Vec<NetChange>,
    runs: Vec<ProgramRun>,
    runs_before: u32,
    unknown: Vec<UnknownWork>,
    /// Commands of processes that were started and not seen to end, by the process's name.
    processes: BTreeMap<String, String>,
    /// Children at work, by name: their profile, and whether nobody waits for them.
    agents: BTreeMap<String, (String, bool)>,
}

impl ReceiptFold {
    /// Takes in one record.
    pub(crate) fn apply(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ItemCompleted(completed) => {
                if let ItemBody::ToolCall(call) = &completed.item.body
                    && call.status.is_final()
                {
                    self.take_call(call);
                }
            }
            AgentEvent::SubagentStarted(started) if started.worktree.is_none() => {
                let agent = (started.agent.clone(), started.background);
                self.agents.insert(started.id.clone(), agent);
            }
            AgentEvent::SubagentFinished(finished) => {
                // One with a tree of its own changes nothing here.
                let Some((agent, background)) = self.agents.remove(&finished.id) else { return };
                match &finished.receipt {
                    Some(receipt) => self.take_receipt(receipt, background),
                    None if finished.status == loon_api::SubagentStatus::Unknown => {
                        let what = format!("agent {} ({agent})", finished.id);
                        self.unknown
                            .push(UnknownWork { what, cause: UnknownCause::OutcomeUnknown });
                    }
                    None => {}
                }
            }
            // Nobody knows what became of processes that another process of Loom started.
            AgentEvent::ExecutionResumed(_) => {
                let lost = std::mem::take(&mut self.processes).into_iter();
                self.unknown.extend(lost.map(|(id, line)| UnknownWork {
                    what: format!("{id} ({line})"),
                    cause: UnknownCause::OutcomeUnknown,
                }));
            }
            // Who is at work there belongs to the session it came from.
            AgentEvent::SessionForked(_) => {
                self.processes.clear();
                self.agents.clear();
            }
            _ => {}
        }
    }

    /// What the next turn begins with: the work that still goes on.
    pub(crate) fn carried_over(&self) -> Self {
        Self { processes: self.processes.clone(), agents: self.agents.clone(), ..Self::default() }
    }

    /// The receipt as it stands; nothing if there is nothing to say.
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        let running = |what: String| UnknownWork { what, cause: UnknownCause::StillRunning };
        let processes = self.processes.iter().map(|(id, line)| running(format!("{id} ({line})")));
        let agents =
            self.agents.iter().map(|(id, (agent, _))| running(format!("agent {id} ({agent})")));
        let receipt = Receipt {
            changes: self.changes.iter().filter(|change| is_change(change)).cloned().collect(),
            runs: self.runs.clone(),
            runs_before: self.runs_before,
            unknown: self.unknown.iter().cloned().chain(processes).chain(agents).collect(),
        };
        (!receipt.is_empty()).then_some(receipt)
    }

    fn take_call(&mut self, call: &ToolCallItem) {
        if !call.changes.is_empty() {
            self.edited();
        }
        for change in &call.changes {
            self.take_change(change);
        }
        let runs = call.runs.iter().map(|run| ProgramRun {
            check: run.check.or_else(|| check::of_line(&run.line)),
            ..run.clone()
        });
        self.runs.extend(runs);
        let cause = match call.status {
            ToolCallStatus::Unknown => Some(UnknownCause::OutcomeUnknown),
            // A call that was stopped before it began has no time.
            ToolCallStatus::Cancelled if call.ms.is_some() => Some(UnknownCause::Stopped),
            _ => None,
        };
        if let Some(cause) = cause {
            let what = format!("{} {}", call.tool, call.title).trim_end().to_owned();
            self.unknown.push(UnknownWork { what, cause });
        }
        self.take_process(call);
    }

    fn take_process(&mut self, call: &ToolCallItem) {
        if call.tool == START && call.status == ToolCallStatus::Done && call.exit_code.is_none() {
            let id = call.summary.split(',').next().unwrap_or_default().to_owned();
            self.processes.insert(id, call.title.clone());
        } else if let Some(id) = call.arguments.get("id").and_then(|id| id.as_str())
            && (call.exit_code.is_some()
                || call.tool == STOP && call.status == ToolCallStatus::Done)
        {
            self.processes.remove(id);
        }
    }

    /// What a child did in the same tree. One that worked beside its parent is counted as if it had
    /// changed its files last: what it or the parent ran meanwhile proves nothing.
    fn take_receipt(&mut self, receipt: &Receipt, background: bool) {
        if !receipt.changes.is_empty() {
            self.edited();
        }
        for change in &receipt.changes {
            self.merge(change.clone());
        }
        self.runs_before += receipt.runs_before;
        if background && !receipt.changes.is_empty() {
            self.runs_before += receipt.runs.len() as u32;
        } else {
            self.runs.extend(receipt.runs.iter().cloned());
        }
        self.unknown.extend(receipt.unknown.iter().cloned());
    }

    /// Commands that ran until now say nothing of the files as they are from now on.
    fn edited(&mut self) {
        self.runs_before += self.runs.len() as u32;
        self.runs.clear();
    }

    fn take_change(&mut self, change: &FileChange) {
        let before = match (&change.from, &change.before) {
            // What was moved holds the same as before.
            (Some(_), None) => change.after.clone(),
            (_, before) => before.clone(),
        };
        self.merge(NetChange {
            path: change.path.clone(),
            before,
            after: change.after.clone(),
            from: change.from.clone().filter(|_| !change.copied),
        });
    }

    /// Joins a change to what is known of its path, or of the path it was moved from.
    fn merge(&mut self, mut change: NetChange) {
        if let Some(from) = &change.from {
            if let Some(former) = self.take_out(from) {
                change.before = former.before;
                change.from = former.from.or(change.from);
            }
            // What lay at the new place before is gone, which the move itself does not say.
            self.take_out(&change.path);
            if change.from.as_ref() == Some(&change.path) {
                change.from = None;
            }
        } else if let Some(former) = self.take_out(&change.path) {
            change.before = former.before;
            change.from = former.from;
        }
        self.changes.push(change);
    }

    fn take_out(&mut self, path: &str) -> Option<NetChange> {
        let index = self.changes.iter().position(|change| change.path == path)?;
        Some(self.changes.remove(index))
    }
}

fn is_change(change: &NetChange) -> bool {
    change.from.is_some() && change.after.is_some() || change.before != change.after
}
