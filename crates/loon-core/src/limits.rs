//! Limits of a turn.

use std::time::Duration;

/// Limits of a turn and of the effects in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most model requests of one turn.
    pub max_steps: u32,
    /// Most time of a tool call that sets no timeout of its own.
    pub tool_timeout: Duration,
}
