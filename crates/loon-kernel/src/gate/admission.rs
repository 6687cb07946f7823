//! What must hold before an effect may begin.

use std::time::Duration;

use loon_api::{PermissionRule, Subject, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{AuthorityRequest, Gate, Stop, Verdict};
use crate::fold::{ExecutionState, Resources};
use crate::tree::QuotaAnswer;

impl Gate {
    /// Cancelled? Past the deadline?
    pub(super) fn may_begin(&self, cancel: &CancellationToken) -> Result<(), Stop> {
        if cancel.is_cancelled() || self.execution.cancel_token().is_cancelled() {
            return Err(Stop::cancelled());
        }
        if self.execution.remaining() == Some(Duration::ZERO) {
            return Err(self.past_deadline());
        }
        Ok(())
    }

    /// The same, and: quota left? At a bound that is reached, the effect waits for a person if one is
    /// there to raise it.
    pub(super) async fn admit(
        &self,
        cancel: &CancellationToken,
        is_request: bool,
    ) -> Result<(), Stop> {
        self.admit_beside(cancel, is_request, &Resources::default()).await
    }

    /// The same for an effect under way that used so much itself, which is not counted yet.
    pub(super) async fn admit_beside(
        &self,
        cancel: &CancellationToken,
        is_request: bool,
        own: &Resources,
    ) -> Result<(), Stop> {
        loop {
            self.may_begin(cancel)?;
            let Some(reached) = self.tree.reached_with(own, is_request) else { return Ok(()) };
            let Some(desk) = self.tree.desk() else { return Err(Stop::budget_spent(&reached)) };
            let answer = tokio::select! {
                biased;
                answer = desk.wait(&reached) => answer,
                () = self.execution.cancel_token().cancelled() => return Err(Stop::cancelled()),
                () = cancel.cancelled() => QuotaAnswer::Refused,
            };
            if answer == QuotaAnswer::Refused {
                // Who interrupts refuses as well, and is told of as that.
                self.may_begin(cancel)?;
                return Err(Stop::budget_spent(&reached));
            }
        }
    }

    pub(super) fn past_deadline(&self) -> Stop {
        Stop::timed_out(self.execution.recorder().with_state(ExecutionState::past_deadline))
    }

    /// What all authorities say together.
    pub(super) fn judge(
        &self,
        tool: &ToolSpec,
        arguments: &Value,
        subjects: &[Subject],
    ) -> Verdict {
        let request = AuthorityRequest { tool, arguments, subjects };
        let mut asks = Vec::new();
        let mut denials = Vec::new();
        for authority in &self.authorities {
            match authority.decide(&request) {
                Verdict::Allow => {}
                Verdict::Ask { reasons, always } => asks.push((reasons, always)),
                Verdict::Deny { reasons } => denials.extend(reasons),
            }
        }
        if !denials.is_empty() {
            return Verdict::Deny { reasons: denials };
        }
        if asks.is_empty() {
            return Verdict::Allow;
        }
        let always = shared_rule(&asks);
        Verdict::Ask {
            reasons: asks.into_iter().flat_map(|(reasons, _)| reasons).collect(),
            always,
        }
    }
}

/// An "always" helps only if it satisfies everyone who asks.
fn shared_rule(asks: &[(Vec<String>, Option<PermissionRule>)]) -> Option<PermissionRule> {
    let (_, first) = asks.first()?;
    first.clone().filter(|_| asks.iter().all(|(_, rule)| rule == first))
}
