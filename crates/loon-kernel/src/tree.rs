//! Executions that share a budget: one and those it started.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loon_api::event::{Notice, NoticeLevel, ResourcesUpdated};
use loon_api::{Bounds, BoxFuture, ExecutionId, Money, ReachedBound};

use crate::clock::millis;
use crate::fold::Resources;
use crate::recorder::{Recorder, WeakRecorder};

/// What a tree of executions may spend. An effect that reaches a bound still completes; the next one
/// is denied, or waits for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// US dollars.
    pub max_usd: Option<Money>,
    /// Input and output tokens.
    pub max_tokens: Option<u64>,
    /// Requests to models, repeated ones included. Bounds only those.
    pub max_requests: Option<u64>,
}

impl Budget {
    /// The bounds of both where only one has any, the higher where both have.
    fn or_higher(self, other: Self) -> Self {
        fn higher<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.max(other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            max_usd: higher(self.max_usd, other.max_usd),
            max_tokens: higher(self.max_tokens, other.max_tokens),
            max_requests: higher(self.max_requests, other.max_requests),
        }
    }

    /// The bound that `used` has reached, if any. Equality is reached. The number of requests bounds
    /// nothing but requests.
    pub fn reached(&self, used: &Resources, is_request: bool) -> Option<ReachedBound> {
        let Resources { cost, tokens, requests, .. } = *used;
        if let Some(limit) = self.max_usd.filter(|limit| cost.usd >= *limit) {
            return Some(ReachedBound::MaxUsd { limit, used: cost.usd });
        }
        if let Some(limit) = self.max_tokens.filter(|limit| tokens >= *limit) {
            return Some(ReachedBound::MaxTokens { limit, used: tokens });
        }
        let limit = self.max_requests.filter(|limit| is_request && requests >= *limit)?;
        Some(ReachedBound::MaxRequests { limit, used: requests })
    }
}

impl From<Bounds> for Budget {
    fn from(bounds: Bounds) -> Self {
        let Bounds { max_usd, max_tokens, max_requests, deadline_ms: _ } = bounds;
        Self { max_usd, max_tokens, max_requests }
    }
}

impl From<Budget> for Bounds {
    fn from(budget: Budget) -> Self {
        let Budget { max_usd, max_tokens, max_requests } = budget;
        Self { max_usd, max_tokens, max_requests, deadline_ms: None }
    }
}

/// Brings a reached bound to a person. Every effect of a tree waits at the same desk.
pub trait QuotaDesk: Send + Sync {
    /// Waits until the bounds may have changed or somebody refused. Dropping the future takes the
    /// wait back.
    fn wait<'a>(&'a self, reached: &'a ReachedBound) -> BoxFuture<'a, QuotaAnswer>;
}

/// What came of a wait at a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaAnswer {
    /// The bounds may have changed.
    LookAgain,
    /// They stay: the effect is denied.
    Refused,
}

/// Executions that share a budget. Clones are the same tree. A member counts while it is open; what
/// it used is in the records of the execution that started it from then on. The first member is the
/// root, whose stream tells what all of them use.
#[derive(Clone, Default)]
pub struct Tree(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Nobody is there to ask if there is none: a reached bound denies at once.
    desk: Option<Arc<dyn QuotaDesk>>,
}

#[derive(Default)]
struct State {
    members: Vec<Member>,
    /// What the settings say.
    settings: Budget,
    /// What a person set for this tree.
    raised: Budget,
    /// Models whose requests were reported as not counted in dollars.
    unpriced: BTreeSet<String>,
    /// Models whose tokens were reported as estimated.
    uncounted: BTreeSet<String>,
}

#[derive(Clone)]
struct Member {
    exec: ExecutionId,
    recorder: WeakRecorder,
    /// What it had used in all when it was left.
    left: Option<Resources>,
}

impl Tree {
    /// A tree with this budget. At a bound its effects wait at the desk; without one they are denied.
    pub fn new(settings: Budget, desk: Option<Arc<dyn QuotaDesk>>) -> Self {
        let state = State { settings, ..State::default() };
        Self(Arc::new(Shared { state: Mutex::new(state), desk }))
    }

    /// The bounds that the settings set from now on.
    pub fn set_budget(&self, settings: Budget) {
        self.state().settings = settings;
    }

    /// The bounds that were set for this tree beside the settings, from now on.
    pub fn raise(&self, raised: Budget) {
        self.state().raised = raised;
    }

    /// The bounds that were set for this tree beside the settings.
    pub fn raised(&self) -> Budget {
        self.state().raised
    }

    /// The bounds in force: of the settings' and the tree's own, the higher.
    pub fn budget(&self) -> Budget {
        self.budget_with(self.raised())
    }

    /// The bounds that would be in force if these were set for the tree.
    pub fn budget_with(&self, raised: Budget) -> Budget {
        self.state().settings.or_higher(raised)
    }

    /// What all members used together.
    pub fn used(&self) -> Resources {
        // Looking into a member takes its lock, which must not be taken under this one.
        let members = self.state().members.clone();
        let mut used = Resources::default();
        let mut counted = BTreeSet::new();
        for member in members {
            // The root comes first, and knows which of its children it has counted.
            if counted.contains(&member.exec) {
                continue;
            }
            match (member.recorder.upgrade(), member.left) {
                (Some(recorder), _) => recorder.with_state(|state| {
                    used += &state.resources;
                    counted.extend(state.counted_children.iter().copied());
                }),
                (None, Some(left)) => used += &left,
                (None, None) => {}
            }
        }
        used.exceeded |= self.budget().reached(&used, true).is_some();
        used
    }

    /// Which bound is reached, if any, for a model request or for another effect.
    pub fn reached(&self, is_request: bool) -> Option<ReachedBound> {
        self.reached_with(&Resources::default(), is_request)
    }

    /// The same if `more` were used.
    pub(crate) fn reached_with(&self, more: &Resources, is_request: bool) -> Option<ReachedBound> {
        let mut used = self.used();
        used += more;
        self.budget().reached(&used, is_request)
    }

    /// Keeps what a member used until its parent has recorded that, after the member itself is gone.
    pub fn leave(&self, exec: ExecutionId, used: Resources) {
        let mut state = self.state();
        if let Some(member) = state.members.iter_mut().find(|member| member.exec == exec) {
            member.left = Some(used);
        }
    }

    /// Counts an execution from now on.
    pub(crate) fn join(&self, recorder: &Recorder) {
        let mut state = self.state();
        state.members.retain(|member| member.recorder.is_open() || member.left.is_some());
        let (exec, recorder) = (recorder.exec(), recorder.downgrade());
        state.members.push(Member { exec, recorder, left: None });
    }

    pub(crate) fn desk(&self) -> Option<&dyn QuotaDesk> {
        self.0.desk.as_deref()
    }

    /// Tells the reader of the root what was used so far.
    pub async fn tell(&self) {
        let Some(root) = self.root() else { return };
        let Resources { tokens, usage, cost, ms, count, requests, exceeded } = self.used();
        let (turn, deadline) = root.with_state(|state| (state.turn, state.deadline));
        let bounds = Bounds { deadline_ms: deadline.map(millis), ..self.budget().into() };
        let updated =
            ResourcesUpdated { tokens, usage, cost, ms, count, requests, exceeded, bounds };
        root.pass(turn, updated).await;
    }

    /// Says once for each model that a budget in dollars does not count it.
    pub(crate) async fn tell_unpriced(&self, model: &str) {
        let Some(limit) = self.budget().max_usd else { return };
        let Some(root) = self.root() else { return };
        if !self.state().unpriced.insert(model.to_owned()) {
            return;
        }
        let notice = Notice {
            level: NoticeLevel::Warning,
            message: format!(
                "A request to {model} has no known cost, so the budget of ${limit} does not count it."
            ),
            hints: vec![
                "Set the model's `price` in the settings, or bound tokens or requests as well."
                    .to_owned(),
            ],
        };
        root.pass(root.with_state(|state| state.turn), notice).await;
    }

    /// Says once for each model that a budget in tokens counts it by an estimate.
    pub(crate) async fn tell_uncounted(&self, model: &str) {
        let Some(limit) = self.budget().max_tokens else { return };
        let Some(root) = self.root() else { return };
        if !self.state().uncounted.insert(model.to_owned()) {
            return;
        }
        let notice = Notice {
            level: NoticeLevel::Warning,
            message: format!(
                "The server of {model} does not say how many tokens a request takes, so the budget of \
                 {limit} tokens counts an estimate from the bytes sent and received."
            ),
            hints: vec!["Bound requests or the time as well where that is not enough.".to_owned()],
        };
        root.pass(root.with_state(|state| state.turn), notice).await;
    }

    fn root(&self) -> Option<Recorder> {
        self.state().members.first()?.recorder.upgrade()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
