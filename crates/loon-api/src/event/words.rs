//! Events in a sentence, as every front end tells them.

use std::fmt::Write as _;

use super::{CircuitChanged, CircuitState, EffectRerouted, SubagentFinished, SubagentStarted};
use crate::money::{Cost, Money};

impl EffectRerouted {
    /// Who gave way to whom and why, and what it cost.
    pub fn words(&self) -> String {
        let Self { from, to, error, cost, .. } = self;
        let why = error.message.trim_end_matches('.');
        let cost = if *cost == Cost::default() {
            String::new()
        } else if cost.unpriced > 0 {
            " (at unknown cost)".to_owned()
        } else {
            format!(" (for ${})", cost.usd)
        };
        format!("{from} gave no answer{cost}: {why}. Asking {to} instead.")
    }
}

impl CircuitChanged {
    /// What a person should know of it; a trial is nothing to know of.
    pub fn words(&self) -> Option<String> {
        let Self { target, state, until } = self;
        match (state, until) {
            (CircuitState::Open, Some(until)) => Some(format!(
                "{target} failed too often in a row; nothing is sent to it until {until}."
            )),
            (CircuitState::Open, None) => {
                Some(format!("{target} failed too often in a row; nothing is sent to it for now."))
            }
            (CircuitState::HalfOpen, _) => None,
            (CircuitState::Closed, _) => Some(format!("{target} answers again.")),
        }
    }
}

impl SubagentStarted {
    /// Who works on what, with which model.
    pub fn words(&self) -> String {
        let Self { id, agent, model, effort, .. } = self;
        let effort = effort.map(|effort| format!(", {} effort", effort.name())).unwrap_or_default();
        let where_to = if self.worktree.is_some() { " in a worktree of its own" } else { "" };
        format!("agent {id} ({agent}) begins{where_to} with {model}{effort}")
    }
}

impl SubagentFinished {
    /// How it ended, why, and what it used.
    pub fn words(&self) -> String {
        let Self { id, agent, status, steps, usage, cost, .. } = self;
        let why = self.error.as_ref().map(|error| error.message.trim_end_matches('.'));
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let plural = if *steps == 1 { "" } else { "s" };
        let mut used = format!("{steps} step{plural}, {} tokens", usage.total());
        if cost.usd != Money::ZERO {
            let _ = write!(used, ", ${}", cost.usd);
        }
        let mut words = format!("agent {id} ({agent}) {}{why} ({used})", status.words());
        if let Some(worktree) = &self.worktree {
            let dirty = worktree.dirty == Some(true);
            let unmerged = worktree.unmerged.is_some_and(|commits| commits > 0);
            let holds = match (dirty, unmerged) {
                (true, true) => ", with uncommitted changes and commits on no branch",
                (true, false) => ", with uncommitted changes",
                (false, true) => ", with commits on no branch",
                (false, false) => "",
            };
            let _ = write!(words, "; its worktree {} is kept{holds}", worktree.path);
        }
        words
    }
}
