//! Events in a sentence, as every front end tells them.

use super::{CircuitChanged, CircuitState, EffectRerouted};
use crate::money::Cost;

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
