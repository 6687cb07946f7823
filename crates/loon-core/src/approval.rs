//! Asking a human: the desk where requests wait for the front end's decision.

use std::collections::HashMap;
use std::sync::Mutex;

use loon_api::event::Decision;
use loon_api::{Approval, ApprovalId, BoxFuture};
use loon_kernel::{ApprovalAnswer, Approver};
use tokio::sync::oneshot;

/// Holds the requests that wait. The gate asks; the session's owner answers.
///
/// The lock is held only to put in or take out one entry: requests come from calls that run beside
/// each other, answers from the owner task.
#[derive(Debug, Default)]
pub struct ApprovalDesk {
    waiting: Mutex<HashMap<ApprovalId, oneshot::Sender<ApprovalAnswer>>>,
    unattended: bool,
}

impl ApprovalDesk {
    /// A desk; `unattended` answers every request with "nobody to ask".
    pub fn new(unattended: bool) -> Self {
        Self { waiting: Mutex::default(), unattended }
    }

    /// Gives the answer to a request. False if it does not wait (any more).
    pub fn answer(&self, id: &ApprovalId, answer: ApprovalAnswer) -> bool {
        self.take(id).is_some_and(|sender| sender.send(answer).is_ok())
    }

    fn take(&self, id: &ApprovalId) -> Option<oneshot::Sender<ApprovalAnswer>> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(id)
    }
}

impl Approver for ApprovalDesk {
    fn ask<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, ApprovalAnswer> {
        if self.unattended {
            let answer =
                ApprovalAnswer { decision: Decision::NobodyToAsk, reason: None, rule: None };
            return Box::pin(std::future::ready(answer));
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .insert(approval.id.clone(), sender);
        Box::pin(async move {
            let withdrawn =
                ApprovalAnswer { decision: Decision::Withdrawn, reason: None, rule: None };
            receiver.await.unwrap_or(withdrawn)
        })
    }
}
