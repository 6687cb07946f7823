//! The arguments of calls as the model wrote them, where the record shows masks in their place: a tool
//! that writes a key writes the real one, and nobody else sees it.

use std::collections::BTreeMap;

use loon_api::{Envelope, Item, ItemBody, ItemId, ToolClass};
use serde_json::Value;
use std::sync::Arc;

use super::Gate;
use crate::port::Tool;

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
        loon_api::AgentEvent::ItemCompleted(completed) => Some(completed.item.clone()),
        _ => None,
    });
    completed.collect()
}

impl Gate {
    /// The text for the model, if the call would put a mask into a file.
    pub(super) fn writes_mask(&self, tool: &dyn Tool, arguments: &Value) -> Option<&'static str> {
        let redactor = self.execution.recorder().redactor();
        let writes = tool.spec().class == ToolClass::Writes;
        (writes && redactor.finds_mask(&arguments.to_string())).then_some(WRITES_MASK)
    }
}
