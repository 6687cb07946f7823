//! Asking a human: the desk where requests wait for the front end's decision, and what the session
//! does with the answer.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loon_api::command::ApprovalScope;
use loon_api::event::Decision;
use loon_api::{Approval, ApprovalId, BoxFuture, ErrorCode, ErrorInfo, PermissionRule, RuleOrigin};
use loon_kernel::{ApprovalAnswer, Approver};
use tokio::sync::oneshot;

use crate::session::Session;

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

/// How long the settings may take to keep a rule.
const KEEPING: Duration = Duration::from_secs(3);

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

impl Session {
    pub(crate) async fn approve(
        &mut self,
        approval: &ApprovalId,
        scope: ApprovalScope,
        rule: Option<PermissionRule>,
    ) {
        // A late or invented answer must not leave a rule behind.
        if !self.desk.waits(approval) {
            return self.warn_of_no_request(approval).await;
        }
        if scope != ApprovalScope::Once {
            let Some(rule) = &rule else {
                let message = "Approving for longer than once needs a rule; the call still waits.";
                return self.warn(ErrorInfo::new(ErrorCode::Invalid, message)).await;
            };
            let kept = match scope {
                ApprovalScope::Project => Some(self.keep_rule(rule.clone()).await),
                ApprovalScope::Once | ApprovalScope::Session => None,
            };
            match kept {
                Some(Ok(file)) => {
                    let source = file.display().to_string();
                    self.authority.allow(rule.clone(), RuleOrigin { source, line: None });
                }
                Some(Err(error)) => {
                    self.warn(error).await;
                    self.authority.allow_for_session(rule.clone());
                }
                None => self.authority.allow_for_session(rule.clone()),
            }
        }
        let answer = ApprovalAnswer { decision: Decision::Approved, reason: None, rule };
        self.settle(approval, answer).await;
    }

    /// Another process may hold the settings; that must not hold up the session for long.
    async fn keep_rule(&self, rule: PermissionRule) -> Result<PathBuf, ErrorInfo> {
        let rules = Arc::clone(&self.deps.rules);
        let keeping = tokio::task::spawn_blocking(move || rules.keep(&rule));
        let cut_off = |message: &str| {
            ErrorInfo::new(ErrorCode::Busy, format!("{message} It holds for this session."))
        };
        tokio::select! {
            kept = keeping => {
                kept.unwrap_or_else(|_| Err(cut_off("Keeping the rule was cut off.")))
            }
            () = self.deps.clock.sleep(KEEPING) => {
                Err(cut_off("Another process holds the settings, so the rule was not kept yet."))
            }
        }
    }

    pub(crate) async fn deny(&mut self, approval: &ApprovalId, reason: Option<String>) {
        let answer = ApprovalAnswer { decision: Decision::Denied, reason, rule: None };
        self.settle(approval, answer).await;
    }

    async fn settle(&mut self, approval: &ApprovalId, answer: ApprovalAnswer) {
        if !self.desk.answer(approval, answer) {
            self.warn_of_no_request(approval).await;
        }
    }

    async fn warn_of_no_request(&self, approval: &ApprovalId) {
        let message = format!("Nothing waits for approval {approval}.");
        self.warn(ErrorInfo::new(ErrorCode::NotFound, message)).await;
    }
}
