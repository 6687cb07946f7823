//! Durable flows: plain asynchronous code that goes on where it stood.
//!
//! A [`Flow`] does everything that touches the world through its [`FlowContext`], under names that
//! stay the same: steps, decisions, sleeps, waits for signals. Each is recorded. To go on after a
//! crash, or after a wait of days, the code is run again from its beginning and gets what was
//! recorded; the first thing that was not is done. A step that was begun and whose end nobody
//! recorded is *unknown*; it is handed to the code as such and never repeated behind its back.
//!
//! A [`FlowRunner`] starts, resumes, signals and cancels flows. While a flow sleeps, its process goes
//! on; while it waits for a signal, the process lets it go, and `signal` and `resume` may come from
//! another one. Deadlines cancel a flow while a process runs it, or when one resumes it too late;
//! timers are kept in the journal and fire in both cases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loon_api::{BoxFuture, EffectKey, ErrorCode, ErrorInfo};
use serde_json::Value;

use crate::error::KernelError;
use crate::gate::EffectFailure;

mod context;
mod replay;
mod runner;
mod state;
mod timers;

pub use context::FlowContext;
pub use replay::Divergence;
pub use runner::{FlowRunner, GateMaker, RunError, Signal, SignalError, Start};
pub use state::{FlowEnd, FlowState, Operation, OperationKind, Suspension, Timer, Woken};

/// Work whose steps are recorded.
pub trait Flow: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Version of its code. An execution goes on only with the version that began it.
    fn version(&self) -> u32;

    /// How long an execution may take from its first record on, waits included.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    /// The JSON Schema of what the signal `on` brings; none for a signal that it does not know.
    fn signal_schema(&self, _on: &str) -> Option<Value> {
        None
    }

    /// The work. Runs again from its beginning when the execution is resumed.
    fn run<'a>(
        &'a self,
        cx: &'a FlowContext,
        input: Value,
    ) -> BoxFuture<'a, Result<Value, FlowError>>;
}

/// The flows that a process can run.
#[derive(Clone, Default)]
pub struct Flows {
    flows: BTreeMap<(String, u32), Arc<dyn Flow>>,
}

impl Flows {
    /// Adds a flow. Another one of its name and version gives way.
    #[must_use]
    pub fn with(mut self, flow: Arc<dyn Flow>) -> Self {
        self.flows.insert((flow.name().to_owned(), flow.version()), flow);
        self
    }

    /// The flow of this name and version; without a version the newest.
    pub fn get(&self, name: &str, version: Option<u32>) -> Option<&Arc<dyn Flow>> {
        match version {
            Some(version) => self.flows.get(&(name.to_owned(), version)),
            None => {
                let all = (name.to_owned(), 0)..=(name.to_owned(), u32::MAX);
                self.flows.range(all).next_back().map(|(_, flow)| flow)
            }
        }
    }
}

/// Why a flow's code cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// A step gave nothing. The code may go on with something else.
    #[error("{key}: {}", failure.error.message)]
    Step {
        /// Which.
        key: EffectKey,
        /// How it ended.
        failure: Box<EffectFailure>,
    },
    /// The code no longer does what its journal says it did.
    #[error(transparent)]
    Diverged(#[from] Divergence),
    /// The journal cannot be written.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// What the code itself says.
    #[error("{}", .0.message)]
    Failed(ErrorInfo),
}

impl From<ErrorInfo> for FlowError {
    fn from(error: ErrorInfo) -> Self {
        Self::Failed(error)
    }
}

impl FlowError {
    /// The error as records carry it.
    pub fn info(&self) -> ErrorInfo {
        match self {
            Self::Step { failure, .. } => {
                let error = &failure.error;
                ErrorInfo { message: self.to_string(), ..error.clone() }
            }
            Self::Diverged(_) => ErrorInfo::new(ErrorCode::Conflict, self.to_string()),
            Self::Kernel(error) => error.info(),
            Self::Failed(error) => error.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
