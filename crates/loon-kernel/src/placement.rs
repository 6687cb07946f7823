//! Placement: where an execution runs.
//!
//! A [`Dispatcher`] runs one execution to its rest, in this process or elsewhere, and forwards a
//! cancel to where it runs. How it came to rest is [`Settled`]; a [`DispatchError`] means that nobody
//! here can tell. A cancel is delivered as well as it can be. Where the journal lies in a store of
//! ours, [`cancel`] settles it by a newer fence in either case.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{At, BoxFuture, Clock, Envelope, ErrorCode, ErrorInfo, ExecutionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::error::KernelError;
use crate::execution::{Cancelled, cancel_now};
use crate::secrets::Redactor;
use crate::store::{JournalStore, StoreError};

mod child;
mod local;
mod supervising;
mod wire;

pub use child::ChildDispatcher;
pub use local::LocalDispatcher;
pub use supervising::SupervisingDispatcher;
pub use wire::{CancelRequest, FromWorker, MAX_LINE, ToWorker};

/// How long the place may take to answer a cancel before the store settles it without.
const FORWARD: Duration = Duration::from_secs(5);

/// An execution to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Its id, chosen by who asks.
    pub execution_id: ExecutionId,
    /// Name of the flow.
    pub flow: String,
    /// Version of the flow.
    pub version: u32,
    /// What it gets.
    pub input: Value,
    /// Milliseconds it may be at work, in place of the flow's own deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

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

impl Settled {
    /// A second dispatch of one that runs.
    fn under_way(exec: ExecutionId) -> Self {
        let message = format!("execution {exec} is under way already");
        Self::Failed { error: ErrorInfo::new(ErrorCode::Conflict, message) }
    }
}

/// Why nobody can tell how an execution came to rest. Who supervises may try the first again, and the
/// second only when it is known to be gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// It was not begun.
    #[error("{target} cannot be reached: {reason}")]
    Unreachable {
        /// Where it was to run.
        target: String,
        /// What is in the way.
        reason: String,
    },
    /// It was not begun: the place kept failing and is left alone for a while.
    #[error("{}", error.message)]
    LeftAlone {
        /// Until when, and why.
        error: ErrorInfo,
    },
    /// It was begun, and the way to it broke. It may be running still.
    #[error("the way to {target} broke: {reason}; the execution may be running there still")]
    Lost {
        /// Where it runs.
        target: String,
        /// What broke.
        reason: String,
    },
}

impl DispatchError {
    /// The error as events carry it.
    pub fn info(&self) -> ErrorInfo {
        let code = match self {
            Self::LeftAlone { error } => return error.clone(),
            Self::Unreachable { .. } => ErrorCode::Network,
            Self::Lost { .. } => ErrorCode::OutcomeUnknown,
        };
        ErrorInfo::new(code, self.to_string())
    }
}

/// Runs executions somewhere.
pub trait Dispatcher: Send + Sync {
    /// Runs one to its rest. Its events go to `events` as they come; a closed channel is no error, a
    /// full one slows it down. What becomes of it when the future is dropped is up to the place.
    fn dispatch(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> BoxFuture<'_, Result<Settled, DispatchError>>;

    /// Forwards a cancel to where it runs. False if it does not run there, or cannot be reached; never
    /// an error.
    fn cancel(&self, exec: ExecutionId, reason: Option<String>) -> BoxFuture<'_, bool>;

    /// Gets ready for a dispatch, if that saves time. Leaves no trace, and its failure is silent.
    fn warm(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Cancels an execution wherever it runs: tells its place, and settles it in the store if it has a
/// journal there, whether the place was reached or not. False if it was over before, or if neither
/// knows it. `redactor` masks the reason that is recorded.
pub async fn cancel(
    dispatcher: &dyn Dispatcher,
    store: &Arc<dyn JournalStore>,
    clock: &Arc<dyn Clock>,
    redactor: &Redactor,
    exec: ExecutionId,
    reason: Option<String>,
) -> Result<bool, KernelError> {
    let told = tokio::select! {
        biased;
        told = dispatcher.cancel(exec, reason.clone()) => told,
        () = clock.sleep(FORWARD) => false,
    };
    match cancel_now(store, clock, redactor, exec, reason).await {
        Ok(cancelled) => Ok(told || cancelled == Cancelled::Now),
        Err(KernelError::Store(StoreError::NotFound { .. })) => Ok(told),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
