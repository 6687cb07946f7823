//! Giving back the outcome of an effect that ended before.

use std::collections::BTreeMap;
use std::sync::Arc;

use loon_api::event::EffectStatus;
use loon_api::{AgentEvent, EffectKey, ErrorCode, ErrorInfo, Item, Seq};

use super::model::{FailureNote, ModelNote, unrecorded};
use super::{EffectFailure, Gate, ModelOutcome};
use crate::blocking::off_runtime;
use crate::error::KernelError;
use crate::fold::EffectRecord;

impl Gate {
    /// What is recorded of a model request that was begun before; nothing if none was.
    pub async fn recorded(&self, key: &EffectKey) -> Option<Result<ModelOutcome, EffectFailure>> {
        let known =
            self.execution.recorder().with_state(|state| state.effects.get(key).cloned())?;
        Some(self.replay_model(key, &known).await)
    }

    pub(super) async fn replay_model(
        &self,
        key: &EffectKey,
        known: &EffectRecord,
    ) -> Result<ModelOutcome, EffectFailure> {
        let failure = |status, error| EffectFailure {
            status,
            error,
            usage: known.usage,
            cost: known.cost,
            streamed: false,
            model: known
                .output
                .clone()
                .and_then(|note| serde_json::from_value(note).ok())
                .map(|FailureNote { model }| model),
        };
        let Some((seq, status)) = known.finished else {
            return Err(failure(EffectStatus::Failed, under_way(key)));
        };
        let note = known.output.clone().and_then(|note| serde_json::from_value(note).ok());
        match (status, note) {
            (EffectStatus::Completed, Some(ModelNote { stop, items, model, words })) => {
                let items = self
                    .recorded_items(seq.saturating_sub(items), seq)
                    .await
                    .map_err(|error| unrecorded(&error))?;
                let (usage, cost) = (known.usage, known.cost);
                let unmasked = BTreeMap::new();
                Ok(ModelOutcome { items, words, unmasked, stop, usage, cost, model })
            }
            (status, _) => {
                let error = known.error.clone().unwrap_or_else(|| no_outcome(key));
                Err(failure(status, error))
            }
        }
    }

    /// The items of the records from `from` up to but without `to`.
    pub(super) async fn recorded_items(
        &self,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<Item>, KernelError> {
        if from >= to {
            return Ok(Vec::new());
        }
        let store = Arc::clone(self.execution.store());
        let exec = self.execution.exec();
        let read = move || -> Result<Vec<Item>, KernelError> {
            let mut items = Vec::new();
            for envelope in store.read(exec)? {
                let envelope = envelope?;
                let Some(seq) = envelope.seq else { continue };
                if seq >= to {
                    break;
                }
                if let (true, AgentEvent::ItemCompleted(event)) = (seq >= from, envelope.event) {
                    items.push(event.item);
                }
            }
            Ok(items)
        };
        off_runtime(exec, "reading back items", read).await
    }
}

pub(super) fn under_way(key: &EffectKey) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::Conflict, format!("{key} is under way already"))
}

pub(super) fn no_outcome(key: &EffectKey) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::OutcomeUnknown, format!("the journal holds no outcome of {key}"))
}
