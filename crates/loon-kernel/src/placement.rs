//! Placement: where an execution runs.
//!
//! A [`Dispatcher`] runs one execution to its rest, here or elsewhere, and forwards a cancel to where
//! it runs. How it ended comes back as [`Settled`]; an error means that nobody can tell.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use loon_api::{At, ErrorInfo};

/// How an execution came to rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Settled {
    /// It is done.
    Completed {
        /// What it gave.
        output: Value,
    },
    /// It failed.
    Failed {
        /// Why.
        error: ErrorInfo,
    },
    /// It was cancelled. A result like the others: nobody tries again.
    Cancelled {
        /// Why, in the words of who cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It waits for a signal and was let go.
    Suspended {
        /// When it goes on without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<At>,
    },
}
