//! Error codes and the shape in which an error reaches a person or a program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The closed set of error codes. Programs branch on these; people read `message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The model's server has no capacity right now.
    Overloaded,
    /// The account may not send more requests right now.
    RateLimited,
    /// The request does not fit the model's context window.
    ContextOverflow,
    /// The model's server refused the content.
    Refused,
    /// The request, an argument or a setting is not valid.
    Invalid,
    /// A key is missing, wrong or lacks a right.
    Auth,
    /// The server could not be reached, or the connection broke.
    Network,
    /// The server answered something that is not its format.
    Protocol,
    /// The target failed too often in a row and is not asked for now.
    CircuitOpen,
    /// The answer was cut at the output limit.
    OutputLimit,
    /// A budget is spent.
    QuotaExceeded,
    /// A deadline or timeout passed.
    DeadlineExceeded,
    /// Stopped by a person, a signal or a cancel.
    Cancelled,
    /// A permission rule, a mode or a person said no.
    Denied,
    /// A limit on steps or turns was reached.
    TurnLimit,
    /// The model made the same call with the same result too often in a row.
    RepeatedCall,
    /// The model claimed completion, and no review accepted it.
    NotAccepted,
    /// An effect began and its end was never recorded.
    OutcomeUnknown,
    /// Another process writes this execution.
    Busy,
    /// A newer writer took this execution over.
    Fenced,
    /// A journal has damage that cannot be mended without losing records.
    Corrupt,
    /// The thing asked for is not there.
    NotFound,
    /// A file or record is not in the state the caller took for granted.
    Conflict,
    /// Reading or writing failed on this machine.
    Io,
    /// A fault in Loom itself.
    Internal,
}

/// An error as events carry it: what happened, where, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorInfo {
    /// What kind of error.
    pub code: ErrorCode,
    /// One sentence for a person; may name the place.
    pub message: String,
    /// What the person can do next, most useful first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

impl ErrorInfo {
    /// An error without hints.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hints: Vec::new() }
    }

    /// Adds one thing the person can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}
