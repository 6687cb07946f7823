//! The receipt of a turn as a fold of its records.

mod check;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use loon_api::receipt::{NetChange, ProgramRun, Receipt, UnknownCause, UnknownWork};
use loon_api::{AgentEvent, FileChange, ItemBody, ToolCallItem, ToolCallStatus};

/// The tools whose calls say how a process stands that a call started.
const PROCESS: &str = "process_";
const START: &str = "process_start";
const STOP: &str = "process_stop";

/// What a turn, or a whole execution, did so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReceiptFold {
    changes: Vec<NetChange>,
    runs: Vec<ProgramRun>,
    runs_before: u32,
    unknown: Vec<UnknownWork>,
    /// Processes that were started and not seen to end, by name.
    processes: BTreeMap<String, Beside>,
    /// Children at work in the same tree, by name.
    agents: BTreeMap<String, Beside>,
}

/// Work that goes on beside the calls.
#[derive(Clone, Debug, PartialEq)]
struct Beside {
    /// The command of a process, the profile of a child.
    what: String,
    /// A child that nobody waits for.
    background: bool,
    /// Somebody else changed files since it began: what it ran may have met the files as they were
    /// before.
    overtaken: bool,
}

impl Beside {
    fn new(what: impl Into<String>, background: bool) -> Self {
        Self { what: what.into(), background, overtaken: false }
    }
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
                let agent = Beside::new(started.agent.clone(), started.background);
                self.agents.insert(started.id.clone(), agent);
            }
            AgentEvent::SubagentFinished(finished) => {
                // One with a tree of its own changes nothing here.
                let Some(agent) = self.agents.remove(&finished.id) else { return };
                match &finished.receipt {
                    Some(receipt) => self.take_receipt(receipt, &agent),
                    None if finished.status == loon_api::SubagentStatus::Unknown => {
                        let what = format!("agent {} ({})", finished.id, agent.what);
                        self.unknown
                            .push(UnknownWork { what, cause: UnknownCause::OutcomeUnknown });
                    }
                    None => {}
                }
            }
            // Nobody knows what became of processes that another process of Loom started.
            AgentEvent::ExecutionResumed(_) => {
                let lost = std::mem::take(&mut self.processes).into_iter();
                self.unknown.extend(lost.map(|(id, process)| UnknownWork {
                    what: format!("{id} ({})", process.what),
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
        let processes = self.processes.iter();
        let processes = processes.map(|(id, process)| running(format!("{id} ({})", process.what)));
        let agents = self.agents.iter();
        let agents = agents.map(|(id, agent)| running(format!("agent {id} ({})", agent.what)));
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
        let process = self.take_process(call);
        self.take_runs(
            call.runs.iter().map(check::judged),
            process.is_some_and(|process| process.overtaken),
        );
    }

    /// Takes in commands that ended. What was overtaken counts as run before the last edit.
    fn take_runs(&mut self, runs: impl ExactSizeIterator<Item = ProgramRun>, overtaken: bool) {
        if overtaken {
            self.runs_before += runs.len() as u32;
        } else {
            self.runs.extend(runs);
        }
    }

    /// Notes that a process began or ended. Gives the one that ended.
    fn take_process(&mut self, call: &ToolCallItem) -> Option<Beside> {
        let done = call.status == ToolCallStatus::Done;
        let tells_an_end = call.exit_code.is_some() || !call.runs.is_empty();
        if call.tool == START {
            if done && !tells_an_end {
                let id = call.summary.split(',').next().unwrap_or_default().to_owned();
                self.processes.insert(id, Beside::new(call.title.clone(), true));
            }
            return None;
        }
        let id = call.arguments.get("id").and_then(|id| id.as_str())?;
        if !call.tool.starts_with(PROCESS) || !(tells_an_end || call.tool == STOP && done) {
            return None;
        }
        self.processes.remove(id)
    }

    /// What a child did in the same tree. One that worked beside its parent is counted as if it had
    /// changed its files last: what it or the parent ran meanwhile proves nothing.
    fn take_receipt(&mut self, receipt: &Receipt, child: &Beside) {
        if !receipt.changes.is_empty() {
            self.edited();
        }
        for change in &receipt.changes {
            self.merge(change.clone());
        }
        self.runs_before += receipt.runs_before;
        let overtaken = child.overtaken || child.background && !receipt.changes.is_empty();
        self.take_runs(receipt.runs.iter().cloned(), overtaken);
        self.unknown.extend(receipt.unknown.iter().cloned());
    }

    /// Commands that ran until now, or run right now, say nothing of the files as they are from now
    /// on.
    fn edited(&mut self) {
        self.runs_before += self.runs.len() as u32;
        self.runs.clear();
        for beside in self.processes.values_mut().chain(self.agents.values_mut()) {
            beside.overtaken = true;
        }
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
