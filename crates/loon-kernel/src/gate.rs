//! The one gate. Every model request, every tool call and every step of a flow passes it, in this order: cancelled? past
//! the deadline? quota left? do all authorities allow? what do hooks say? does a human, where one is asked? Then it
//! runs the effect under its timeout, meters it, records the outcome and tells hooks of it.
//!
//! An effect has a durable key. Performing a key that already ended gives back what was recorded.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use loon_api::event::{Decision, EffectStatus};
use loon_api::{
    Approval, BoxFuture, Cost, EffectKey, ErrorCode, ErrorInfo, Item, ItemId, ModelRequest, Money,
    PermissionRule, ReachedBound, StopReason, Subject, ToolSpec, TurnNumber, Usage,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::execution::Execution;
use crate::port::{Follow, Tool};
use crate::remote::RemoteTools;
use crate::route::Route;
use crate::supervision::Circuits;
use crate::tree::Tree;

mod admission;
mod digest;
mod model;
mod replay;
mod run;
mod step;
mod tool;
mod unmasked;

pub use digest::request_digest;
pub use tool::{CallHooks, HookedCall, HooksSay};

pub use step::{StepEffect, StepOutput};

/// What a gate is built from.
pub struct GateOptions {
    /// The tools that can be called, by the name in their spec.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Tools besides these, which come and go.
    pub remote: Arc<dyn RemoteTools>,
    /// Who must allow a tool call. All must; a denial beats a question, a question beats a yes.
    pub authorities: Vec<Arc<dyn Authority>>,
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// What tokens cost.
    pub pricing: Arc<dyn Pricing>,
    /// How failed requests are repeated.
    pub retry: RetryPolicy,
    /// How long a call may take whose tool names no time; absent is without bound.
    pub tool_timeout: Option<Duration>,
    /// What the ids of its requests for a decision begin with. Gates that share an approver each need
    /// another one.
    pub approval_prefix: String,
    /// The executions that share the budget with this one, and that budget.
    pub tree: Tree,
    /// The circuits of this process, which requests to models go through.
    pub circuits: Circuits,
}

/// Judges tool calls.
pub trait Authority: Send + Sync {
    /// Decides on one call.
    fn decide(&self, request: &AuthorityRequest<'_>) -> Verdict;

    /// Folders and files that the tool must not look at, absolute.
    fn hidden(&self, _tool: &ToolSpec) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// The call that an authority judges.
#[derive(Clone, Copy, Debug)]
pub struct AuthorityRequest<'a> {
    /// The tool.
    pub tool: &'a ToolSpec,
    /// Its arguments.
    pub arguments: &'a Value,
    /// What the call would touch.
    pub subjects: &'a [Subject],
}

/// What an authority says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A human decides.
    Ask {
        /// Why, one sentence each.
        reasons: Vec<String>,
        /// The rule an "always" would write.
        always: Option<PermissionRule>,
    },
    /// It must not run.
    Deny {
        /// Why, one sentence each.
        reasons: Vec<String>,
    },
}

/// Brings a question to a human.
pub trait Approver: Send + Sync {
    /// Waits for the decision. Dropping the future takes the question back.
    fn ask<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, ApprovalAnswer>;
}

/// A human's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// What was decided.
    pub decision: Decision,
    /// Words for the model.
    pub reason: Option<String>,
    /// The rule that was kept with it.
    pub rule: Option<PermissionRule>,
}

/// Knows what tokens cost.
pub trait Pricing: Send + Sync {
    /// The price of `usage` at `model` (`provider/model`), if known.
    fn price(&self, model: &str, usage: &Usage) -> Option<Money>;
}

/// How failed requests are repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The wait before each repetition; as many as there are repetitions.
    pub delays: Vec<Duration>,
    /// The longest wait a server may ask for; a longer one ends the effect.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            delays: vec![Duration::from_secs(1), Duration::from_secs(2)],
            longest_wait: Duration::from_secs(30),
        }
    }
}

/// A model request to perform.
pub struct ModelEffect<'a> {
    /// The turn it belongs to.
    pub turn: TurnNumber,
    /// Its durable name.
    pub key: EffectKey,
    /// Whom to ask.
    pub model: Arc<Route>,
    /// What to ask.
    pub request: &'a ModelRequest,
    /// How long it may take, repetitions included; absent is without bound.
    pub timeout: Option<Duration>,
    /// Who is told of progress.
    pub follow: &'a mut dyn Follow,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// What a model request gave.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOutcome {
    /// The items that were recorded.
    pub items: Vec<Item>,
    /// The answer's text, where the request was for words alone.
    pub words: Option<String>,
    /// Arguments as the model wrote them, of calls whose recorded ones have masks for secrets.
    pub unmasked: BTreeMap<ItemId, Value>,
    /// Why the answer ended.
    pub stop: StopReason,
    /// What it used, failed attempts included.
    pub usage: Usage,
    /// What it cost, failed attempts included.
    pub cost: Cost,
    /// The model that answered, as `provider/model`.
    pub model: String,
}

/// How a model request failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", error.message)]
pub struct EffectFailure {
    /// As recorded.
    pub status: EffectStatus,
    /// Why.
    pub error: ErrorInfo,
    /// What it used as far as known, failed attempts included.
    pub usage: Usage,
    /// What that cost.
    pub cost: Cost,
    /// Some of the answer had arrived.
    pub streamed: bool,
    /// The model it failed at, as `provider/model`; absent if none was asked.
    pub model: Option<String>,
}

/// A tool call to perform.
pub struct ToolEffect<'a> {
    /// The turn it belongs to.
    pub turn: TurnNumber,
    /// Its durable name.
    pub key: EffectKey,
    /// The call, waiting.
    pub item: Item,
    /// Its real arguments, where the item has masks for secrets.
    pub unmasked: Option<Value>,
    /// The user asked for it, not the model: nobody is asked again.
    pub by_user: bool,
    /// Folder the call runs in, as an approval shows it.
    pub cwd: String,
    /// Who is told of progress.
    pub follow: &'a mut dyn Follow,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// The gate of one execution.
pub struct Gate {
    execution: Execution,
    tools: BTreeMap<String, Arc<dyn Tool>>,
    remote: Arc<dyn RemoteTools>,
    authorities: Vec<Arc<dyn Authority>>,
    approver: Arc<dyn Approver>,
    pricing: Arc<dyn Pricing>,
    retry: RetryPolicy,
    approval_prefix: String,
    tree: Tree,
    circuits: Circuits,
    terms: RwLock<Terms>,
    hooks: Option<Arc<dyn CallHooks>>,
}

/// What may change under a running gate. An effect goes by what held when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// How long a call may take whose tool names no time; absent is without bound.
    pub tool_timeout: Option<Duration>,
}

impl Gate {
    /// The gate of `execution`.
    pub fn new(execution: &Execution, options: GateOptions) -> Self {
        options.tree.join(execution.recorder());
        let tools =
            options.tools.into_iter().map(|tool| (tool.spec().name.clone(), tool)).collect();
        Self {
            execution: execution.clone(),
            tools,
            remote: options.remote,
            authorities: options.authorities,
            approver: options.approver,
            pricing: options.pricing,
            retry: options.retry,
            terms: RwLock::new(Terms { tool_timeout: options.tool_timeout }),
            approval_prefix: options.approval_prefix,
            tree: options.tree,
            circuits: options.circuits,
            hooks: None,
        }
    }

    /// The same with hooks around the calls of the model.
    #[must_use]
    pub fn hooked(self, hooks: Arc<dyn CallHooks>) -> Self {
        Self { hooks: Some(hooks), ..self }
    }

    /// Changes the terms; they hold for effects that begin later.
    pub fn set_terms(&self, terms: Terms) {
        *self.terms.write().unwrap_or_else(PoisonError::into_inner) = terms;
    }

    fn terms(&self) -> Terms {
        *self.terms.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an effect may not begin, or not go on.
struct Stop {
    /// As it is recorded.
    status: EffectStatus,
    /// Why.
    error: ErrorInfo,
}

impl Stop {
    fn cancelled() -> Self {
        let message = "stopped by a person, a signal or a cancel";
        let error = ErrorInfo::new(ErrorCode::Cancelled, message);
        Self { status: EffectStatus::Aborted, error }
    }

    fn budget_spent(reached: &ReachedBound) -> Self {
        let hint = "raise the bound with `/budget`, or under `[budget]` in the settings";
        let error = ErrorInfo::new(ErrorCode::QuotaExceeded, reached.to_string()).hint(hint);
        Self { status: EffectStatus::Denied, error }
    }

    fn timed_out(what: String) -> Self {
        let error = ErrorInfo::new(ErrorCode::DeadlineExceeded, what);
        Self { status: EffectStatus::TimedOut, error }
    }
}

#[cfg(test)]
mod tests;
