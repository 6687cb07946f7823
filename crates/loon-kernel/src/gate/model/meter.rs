//! What the attempts of one request add up to.

use loon_api::{Cost, Usage};

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
}

impl Meter {
    /// Adds one attempt.
    pub(super) fn add(&mut self, usage: Usage, cost: Cost) {
        for spent in [&mut self.all, &mut self.here] {
            spent.usage += usage;
            spent.cost += cost;
        }
    }

    /// What was spent at the model that is left now.
    pub(super) fn leave(&mut self) -> Spent {
        std::mem::take(&mut self.here)
    }
}
