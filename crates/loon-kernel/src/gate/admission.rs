//! What must hold before an effect may begin.

use std::time::Duration;

use loon_api::event::EffectStatus;
use loon_api::{ErrorCode, ErrorInfo, PermissionRule, Subject, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{AuthorityRequest, Gate, Stop, Verdict};
use crate::fold::ExecutionState;
use crate::tree::Used;

impl Gate {
    /// Cancelled? Past the deadline? Quota left?
    pub(super) fn admit(&self, cancel: &CancellationToken, is_request: bool) -> Result<(), Stop> {
        if cancel.is_cancelled() || self.execution.cancel_token().is_cancelled() {
            return Err(Stop::cancelled());
        }
        if self.execution.remaining() == Some(Duration::ZERO) {
            return Err(self.past_deadline());
        }
        match self.spent(is_request) {
            Some(error) => Err(Stop { status: EffectStatus::Denied, error }),
            None => Ok(()),
        }
    }

    pub(super) fn past_deadline(&self) -> Stop {
        Stop::timed_out(self.execution.recorder().with_state(ExecutionState::past_deadline))
    }

    /// Which bound of the budget is reached, if any.
    pub(super) fn spent(&self, is_request: bool) -> Option<ErrorInfo> {
        let Used { usd, tokens, requests } = self.tree.used();
        let budget = self.terms().budget;
        let message = if let Some(max) = budget.max_usd.filter(|max| usd >= *max) {
            format!("the budget of ${max} is spent (${usd} used)")
        } else if let Some(max) = budget.max_tokens.filter(|max| tokens >= *max) {
            format!("the budget of {max} tokens is spent ({tokens} used)")
        } else if let Some(max) = budget.max_requests.filter(|max| is_request && requests >= *max) {
            format!("the budget of {max} requests is spent")
        } else {
            return None;
        };
        let hint = "raise the bound under `[budget]` in the settings";
        Some(ErrorInfo::new(ErrorCode::QuotaExceeded, message).hint(hint))
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
