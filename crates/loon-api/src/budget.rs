//! Bounds on what a session tree may spend, and the bound that is reached.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Money;

/// Bounds of a session with everything it starts. An absent one is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<Money>,
    /// Input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Requests to models, repeated ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u64>,
    /// Milliseconds at work, counted from the beginning of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// A bound that is reached, with what was used when that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "bound", rename_all = "snake_case")]
pub enum ReachedBound {
    /// US dollars.
    MaxUsd {
        /// The bound.
        limit: Money,
        /// What was used, as far as its price is known.
        used: Money,
    },
    /// Input and output tokens.
    MaxTokens {
        /// The bound.
        limit: u64,
        /// What was used.
        used: u64,
    },
    /// Requests to models.
    MaxRequests {
        /// The bound.
        limit: u64,
        /// What was used.
        used: u64,
    },
}

impl fmt::Display for ReachedBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxUsd { limit, used } => {
                write!(f, "the budget of ${limit} is spent (${used} used)")
            }
            Self::MaxTokens { limit, used } => {
                write!(f, "the budget of {limit} tokens is spent ({used} used)")
            }
            Self::MaxRequests { limit: 1, .. } => f.write_str("the budget of 1 request is spent"),
            Self::MaxRequests { limit, .. } => {
                write!(f, "the budget of {limit} requests is spent")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reached_bound_names_itself() {
        let reached = ReachedBound::MaxTokens { limit: 10, used: 12 };
        let json = serde_json::to_string(&reached).unwrap();
        assert_eq!(json, r#"{"bound":"max_tokens","limit":10,"used":12}"#);
        assert_eq!(reached.to_string(), "the budget of 10 tokens is spent (12 used)");
    }
}
