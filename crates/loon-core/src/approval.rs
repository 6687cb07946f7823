//! Asking a human: the desk where requests wait for the front end's decision.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    waiting: Mutex<Waiting>,
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

    /// True while a request waits for its answer.
    pub fn waits(&self, id: &ApprovalId) -> bool {
        self.waiting().contains_key(id)
    }

    fn take(&self, id: &ApprovalId) -> Option<oneshot::Sender<ApprovalAnswer>> {
        self.waiting().remove(id)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Waiting = HashMap<ApprovalId, oneshot::Sender<ApprovalAnswer>>;

/// Takes a request off the desk when nobody waits for its answer any more.
struct Request<'a> {
    desk: &'a ApprovalDesk,
    id: &'a ApprovalId,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.desk.take(self.id);
    }
}

impl Approver for ApprovalDesk {
    fn ask<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, ApprovalAnswer> {
        let without_words = |decision| ApprovalAnswer { decision, reason: None, rule: None };
        if self.unattended {
            return Box::pin(std::future::ready(without_words(Decision::NobodyToAsk)));
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting().insert(approval.id.clone(), sender);
        let request = Request { desk: self, id: &approval.id };
        Box::pin(async move {
            let _request = request;
            receiver.await.unwrap_or_else(|_| without_words(Decision::Withdrawn))
        })
    }
}
