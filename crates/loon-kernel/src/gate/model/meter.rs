//! What the attempts of one request add up to.

use std::collections::BTreeSet;

use loon_api::{Cost, Usage};

use crate::fold::Resources;

/// Tokens and money.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) usage: Usage,
    pub(super) cost: Cost,
}

/// What the attempts of one request add up to.
#[derive(Default)]
pub(super) struct Meter {
    /// All of them.
    pub(super) all: Spent,
    /// Those at the model that is asked now.
    pub(super) here: Spent,
    /// Attempts that failed so far.
    pub(super) failed: u32,
    /// Some of the last answer had arrived.
    pub(super) streamed: bool,
    /// Models some attempt at which has no known cost.
    pub(super) unpriced: BTreeSet<String>,
    /// Models whose server did not say how many tokens some attempt took.
    pub(super) uncounted: BTreeSet<String>,
}

impl Meter {
    /// Adds one attempt.
    pub(super) fn add(&mut self, usage: Usage, cost: Cost) {
        for spent in [&mut self.all, &mut self.here] {
            spent.usage += usage;
            spent.cost += cost;
        }
    }

    /// The same as the budget counts it.
    pub(super) fn resources(&self) -> Resources {
        let Spent { usage, cost } = self.all;
        Resources { tokens: usage.total(), usage, cost, ..Resources::default() }
    }

    /// What was spent at the model that is left now.
    pub(super) fn leave(&mut self) -> Spent {
        std::mem::take(&mut self.here)
    }
}
