//! Receipts of the turns of a conversation.

use std::collections::BTreeMap;

use loon_api::{AgentEvent, Receipt, TurnNumber};

use super::Conversation;
use crate::receipt::ReceiptFold;

/// What turns did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Receipts {
    /// The turn under way, or the last one.
    turn: ReceiptFold,
    /// All of them together.
    whole: ReceiptFold,
    /// As recorded with the ends of turns.
    recorded: BTreeMap<TurnNumber, Receipt>,
}

impl Receipts {
    pub(super) fn apply(&mut self, turn: Option<TurnNumber>, event: &AgentEvent) {
        match event {
            AgentEvent::TurnStarted(_) => self.turn = self.turn.carried_over(),
            AgentEvent::TurnFinished(finished) => {
                if let (Some(turn), Some(receipt)) = (turn, &finished.receipt) {
                    self.recorded.insert(turn, receipt.clone());
                }
            }
            event => {
                self.turn.apply(event);
                self.whole.apply(event);
            }
        }
    }
}

impl Conversation {
    /// The receipt of the turn under way.
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        self.receipts.turn.receipt()
    }

    /// The receipt of all turns together.
    pub(crate) fn whole_receipt(&self) -> Option<Receipt> {
        self.receipts.whole.receipt()
    }

    /// The receipt that was recorded with the end of a turn.
    pub fn receipt_of(&self, turn: TurnNumber) -> Option<&Receipt> {
        self.receipts.recorded.get(&turn)
    }
}
