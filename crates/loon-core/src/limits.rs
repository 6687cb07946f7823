//! Limits of a turn and of the context.

use std::time::Duration;

/// Limits of a turn and of the effects in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most model requests of one turn.
    pub max_steps: u32,
    /// Most time of a tool call that sets no timeout of its own.
    pub tool_timeout: Duration,
}

/// The user's own limits of the context window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextLimits {
    /// Most tokens of a request, if the model's window is not to be used up.
    pub max_tokens: Option<u64>,
    /// From how many tokens on the conversation is compacted.
    pub compact_at: Option<u64>,
}
