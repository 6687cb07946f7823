//! What the user asks of the context while no turn runs.

use loon_api::{ErrorInfo, ModelInfo};

use super::Why;
use crate::runtime::RuntimeError;
use crate::session::Session;
use crate::turn::TurnEnd;

impl Session {
    /// A turn runs, or a compaction outside of one.
    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some() || self.context.is_compacting()
    }

    /// Compacts for the user while no turn runs. Commands keep being handled.
    pub(crate) async fn compact_for_user(
        &mut self,
        focus: Option<String>,
    ) -> Result<(), RuntimeError> {
        self.read_for_request().await?;
        let model = match self.open_model() {
            Ok(model) => model,
            Err(error) => {
                self.summary.compaction = Some(TurnEnd::of_context(error.clone()));
                return self.tell_failure(error, false).await;
            }
        };
        self.context.cancel = Some(self.execution.cancel_token().child_token());
        let compacted = Box::pin(self.compact(&model, Why::Asked(focus))).await;
        self.context.cancel = None;
        let compacted = compacted?;
        if compacted.is_ok() {
            self.tell_context(Some(model.info())).await;
        }
        self.summary.compaction = Some(match compacted {
            Ok(()) => TurnEnd::completed(),
            Err(error) => TurnEnd::of_context(error),
        });
        self.recorder.make_durable().await?;
        Ok(())
    }

    /// Says how full the window is as the conversation stands.
    pub(crate) async fn measure_context(&mut self) -> Result<(), RuntimeError> {
        if !self.is_busy() {
            self.read_for_request().await?;
        }
        let model: Result<_, ErrorInfo> = self.open_model();
        let info = model.as_ref().ok().map(|model| model.info());
        self.tell_context(info).await;
        Ok(())
    }

    async fn tell_context(&self, model: Option<&ModelInfo>) {
        let (_, parts) = self.request();
        let event = self.gauge(&parts, model).event();
        self.recorder.pass(self.turn_number(), event).await;
    }

    /// Reads what a request is made of, as it is read before a turn.
    async fn read_for_request(&mut self) -> Result<(), RuntimeError> {
        self.read_all().await?;
        if let Some(unusable) = self.skills.refresh().await {
            self.warn(unusable).await;
        }
        Ok(())
    }
}
