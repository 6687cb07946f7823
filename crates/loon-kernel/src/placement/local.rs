//! Flows that run in this process.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{BoxFuture, Envelope, ExecutionId};
use tokio::sync::mpsc;

use super::{Dispatch, DispatchError, Dispatcher, Settled};
use crate::error::KernelError;
use crate::flow::{FlowRunner, RunError, Start};
use crate::store::StoreError;

/// Runs flows in this process.
pub struct LocalDispatcher {
    runner: Arc<FlowRunner>,
    cwd: String,
}

impl LocalDispatcher {
    /// Flows of `runner`, which work in the absolute folder `cwd`.
    pub fn new(runner: Arc<FlowRunner>, cwd: impl Into<String>) -> Self {
        Self { runner, cwd: cwd.into() }
    }

    /// An execution that was begun before goes on, so that asking twice begins it once.
    async fn run(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> Result<Settled, RunError> {
        let exec = dispatch.execution_id;
        let start = Start {
            exec: Some(exec),
            flow: dispatch.flow,
            version: Some(dispatch.version),
            input: dispatch.input,
            cwd: self.cwd.clone(),
            parent: None,
            deadline: dispatch.deadline_ms.map(Duration::from_millis),
        };
        match self.runner.start(start, events.clone()).await {
            Err(RunError::Kernel(KernelError::Store(StoreError::Exists { .. }))) => {
                self.runner.resume(exec, events).await
            }
            settled => settled,
        }
    }
}

impl Dispatcher for LocalDispatcher {
    fn dispatch(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> BoxFuture<'_, Result<Settled, DispatchError>> {
        Box::pin(async move {
            Ok(match self.run(dispatch, events).await {
                Ok(settled) => settled,
                Err(RunError::Kernel(KernelError::Cancelled { reason, .. })) => {
                    Settled::Cancelled { reason }
                }
                Err(error) => Settled::Failed { error: error.info() },
            })
        })
    }

    fn cancel(&self, exec: ExecutionId, reason: Option<String>) -> BoxFuture<'_, bool> {
        Box::pin(async move { self.runner.cancel(exec, reason).await.unwrap_or(false) })
    }
}
