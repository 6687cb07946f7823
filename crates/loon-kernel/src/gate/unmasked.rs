//! The arguments of calls as the model wrote them, where the record shows masks in their place: a tool
//! that writes a key writes the real one, and nobody else sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use loon_api::{AgentEvent, Envelope, ExecutionId, Item, ItemBody, ItemId, ToolClass};
use serde_json::Value;

use super::Gate;
use crate::blocking::off_runtime;
use crate::error::KernelError;
use crate::port::Tool;
use crate::store::JournalStore;

/// What a model reads that would write a mask into a file.
const WRITES_MASK: &str = "Not run: the arguments hold a mask like `[secret: ...]`, which stands for \
                           a secret that is kept from you. Written to a file, it would take the \
                           secret's place. Change only what is around it.";

/// The real arguments of the calls whose recorded ones have masks.
pub(super) fn unmasked(items: &[Item], recorded: &[Item]) -> BTreeMap<ItemId, Value> {
    let arguments = |item: &Item| match &item.body {
        ItemBody::ToolCall(call) => Some(call.arguments.clone()),
        _ => None,
    };
    items
        .iter()
        .zip(recorded)
        .filter_map(|(item, recorded)| {
            let real = arguments(item)?;
            (Some(&real) != arguments(recorded).as_ref()).then(|| (item.id.clone(), real))
        })
        .collect()
}

/// The items of records.
pub(super) fn items_of(records: &[Arc<Envelope>]) -> Vec<Item> {
    let completed = records.iter().filter_map(|record| match &record.event {
        AgentEvent::ItemCompleted(completed) => Some(completed.item.clone()),
        _ => None,
    });
    completed.collect()
}

impl Gate {
    /// The text for the model, if the call would put a mask into a file. One that stands for no secret
    /// of this session is a quotation, and may be written.
    pub(super) async fn writes_mask(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
    ) -> Result<Option<&'static str>, KernelError> {
        if tool.spec().class != ToolClass::Writes {
            return Ok(None);
        }
        let recorder = self.execution.recorder();
        let (redactor, text) = (recorder.redactor(), arguments.to_string());
        let masks = redactor.masks_in(&text);
        if masks.is_empty() {
            return Ok(None);
        }
        if masks.iter().any(|mask| redactor.has_placed(mask)) {
            return Ok(Some(WRITES_MASK));
        }
        let masks: Vec<String> = masks.into_iter().map(str::to_owned).collect();
        let (store, exec) = (Arc::clone(self.execution.store()), recorder.exec());
        let read_before = move || was_read_before(store.as_ref(), exec, &masks);
        let read = off_runtime(exec, "looking for masks", read_before).await?;
        Ok(read.then_some(WRITES_MASK))
    }
}

/// Whether a former process of the execution gave one of these masks to the model. What it stood for is
/// not known any more, so it counts as a secret.
fn was_read_before(
    store: &dyn JournalStore,
    exec: ExecutionId,
    masks: &[String],
) -> Result<bool, KernelError> {
    let holds = |text: &str| masks.iter().any(|mask| text.contains(mask.as_str()));
    let (mut former, mut present) = (false, false);
    for record in store.read(exec)? {
        match record?.event {
            AgentEvent::ExecutionResumed(_) => former |= std::mem::take(&mut present),
            AgentEvent::ItemCompleted(completed) => {
                present |= match &completed.item.body {
                    ItemBody::UserMessage { text, .. } => holds(text),
                    ItemBody::ToolCall(call) => {
                        call.result.as_ref().is_some_and(|result| holds(&result.text))
                    }
                    _ => false,
                };
            }
            _ => {}
        }
    }
    Ok(former)
}
