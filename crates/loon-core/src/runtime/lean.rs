//! Opening a session reads the large texts of calls only where they are shown.

use std::collections::{HashMap, HashSet};

use loon_api::{AgentEvent, Envelope, ExecutionId, Item, ItemBody, ItemId, Seq};
use loon_kernel::{JournalStore, LEFT_OUT, StoreError};

use crate::conversation::Conversation;
use crate::session::OPENING_ITEMS;

/// Items that were read without their texts, with the records that have them.
#[derive(Default)]
pub(super) struct LeanItems(HashMap<ItemId, Seq>);

impl LeanItems {
    pub(super) fn look_at(&mut self, record: &Envelope) {
        let AgentEvent::ItemCompleted(completed) = &record.event else { return };
        match record.seq.filter(|_| is_lean(&completed.item)) {
            Some(seq) => drop(self.0.insert(completed.item.id.clone(), seq)),
            None => drop(self.0.remove(&completed.item.id)),
        }
    }

    /// Reads the texts of those that a front end sees first. The others come when the whole
    /// conversation is read.
    pub(super) fn refill(
        self,
        store: &dyn JournalStore,
        exec: ExecutionId,
        conversation: &mut Conversation,
    ) -> Result<(), StoreError> {
        if self.0.is_empty() {
            return Ok(());
        }
        conversation.is_lean();
        let (shown, _) = conversation.page(None, OPENING_ITEMS);
        let wanted: HashSet<Seq> =
            shown.iter().filter_map(|item| self.0.get(&item.id).copied()).collect();
        let is_wanted = wanted.clone();
        for record in store.read_lean(exec, Box::new(move |seq| is_wanted.contains(&seq)))? {
            let record = record?;
            if let AgentEvent::ItemCompleted(completed) = &record.event
                && record.seq.is_some_and(|seq| wanted.contains(&seq))
            {
                conversation.refill(&completed.item);
            }
        }
        Ok(())
    }
}

fn is_lean(item: &Item) -> bool {
    let ItemBody::ToolCall(call) = &item.body else { return false };
    call.result.as_ref().is_some_and(|result| result.text == LEFT_OUT)
        || call.changes.iter().any(|change| change.diff == LEFT_OUT)
}
