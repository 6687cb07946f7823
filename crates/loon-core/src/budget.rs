//! The budget of a session tree: the desk where effects wait at a bound that is reached, and what the
//! session does about it.

use std::sync::Arc;

use loon_api::event::{BudgetChanged, BudgetKept, BudgetReached, Decision};
use loon_api::{Bounds, BoxFuture, ErrorCode, ErrorInfo, ReachedBound, TurnStatus};
use loon_kernel::{Budget, Execution, QuotaAnswer, QuotaDesk, Tree};
use tokio::sync::watch;

use crate::runtime::RuntimeError;
use crate::session::Session;
use crate::turn::TurnEnd;

/// Where effects of the whole tree wait at a bound. There is one question at a time, however many
/// wait.
#[derive(Debug, Default)]
pub(crate) struct BudgetDesk {
    question: watch::Sender<Question>,
}

/// Where the question whether to raise a bound stands.
#[derive(Clone, Debug, Default)]
struct Question {
    /// Counts the questions asked so far.
    number: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is closed, like this; who comes may look whether a bound is reached.
    Closed(Decision),
    /// So many effects wait at this bound or another.
    Open { reached: ReachedBound, waiting: usize },
    /// Somebody said no. That holds until the next turn of the root, or until the bounds change.
    Refused(ReachedBound),
}

impl Default for Stage {
    fn default() -> Self {
        Self::Closed(Decision::Withdrawn)
    }
}

impl BudgetDesk {
    /// Lets those who wait look at the bounds again.
    fn look_again(&self) {
        self.question.send_if_modified(|question| {
            let closed = matches!(question.stage, Stage::Closed(_));
            question.stage = Stage::Closed(Decision::Approved);
            !closed
        });
    }

    /// Denies those who wait, and those who come before the next turn.
    pub(crate) fn refuse(&self) {
        self.question.send_if_modified(|question| {
            let Stage::Open { reached, .. } = question.stage else { return false };
            question.stage = Stage::Refused(reached);
            true
        });
    }

    /// Asks anew from now on.
    pub(crate) fn forget_refusal(&self) {
        self.question.send_if_modified(|question| {
            let refused = matches!(question.stage, Stage::Refused(_));
            if refused {
                question.stage = Stage::Closed(Decision::Denied);
            }
            refused
        });
    }

    /// Somebody waits for a person's answer.
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.question.borrow().stage, Stage::Open { .. })
    }

    fn refused(&self) -> Option<ReachedBound> {
        match self.question.borrow().stage {
            Stage::Refused(reached) => Some(reached),
            Stage::Closed(_) | Stage::Open { .. } => None,
        }
    }

    /// Joins those who wait. Gives the number of the question; nothing if it was refused.
    fn enter(&self, reached: &ReachedBound) -> Option<Place<'_>> {
        let mut number = None;
        self.question.send_if_modified(|question| {
            let asked = match &mut question.stage {
                Stage::Refused(_) => return false,
                Stage::Open { waiting, .. } => {
                    *waiting += 1;
                    false
                }
                stage @ Stage::Closed(_) => {
                    *stage = Stage::Open { reached: *reached, waiting: 1 };
                    question.number += 1;
                    true
                }
            };
            number = Some(question.number);
            asked
        });
        number.map(|number| Place { desk: self, number })
    }
}

impl QuotaDesk for BudgetDesk {
    fn wait<'a>(&'a self, reached: &'a ReachedBound) -> BoxFuture<'a, QuotaAnswer> {
        let mut questions = self.question.subscribe();
        Box::pin(async move {
            let Some(place) = self.enter(reached) else { return QuotaAnswer::Refused };
            let open = |question: &Question| {
                question.number == place.number && matches!(question.stage, Stage::Open { .. })
            };
            match questions.wait_for(|question| !open(question)).await.map(|now| now.stage) {
                Ok(Stage::Refused(_)) | Err(_) => QuotaAnswer::Refused,
                Ok(Stage::Closed(_) | Stage::Open { .. }) => QuotaAnswer::LookAgain,
            }
        })
    }
}

/// One who waits. The last one who leaves takes the question back.
struct Place<'a> {
    desk: &'a BudgetDesk,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.desk.question.send_if_modified(|question| {
            let Stage::Open { waiting, .. } = &mut question.stage else { return false };
            if question.number != self.number {
                return false;
            }
            *waiting -= 1;
            let last = *waiting == 0;
            if last {
                question.stage = Stage::Closed(Decision::Withdrawn);
            }
            last
        });
    }
}

/// The budget that a session shares with its children. Clones are the same.
#[derive(Clone)]
pub(crate) struct SharedBudget {
    pub(crate) tree: Tree,
    pub(crate) desk: Arc<BudgetDesk>,
}

impl SharedBudget {
    /// The budget of a session that has no parent.
    pub(crate) fn of_root(settings: Budget, execution: &Execution, unattended: bool) -> Self {
        let desk = Arc::new(BudgetDesk::default());
        let port = (!unattended).then(|| Arc::clone(&desk) as Arc<dyn QuotaDesk>);
        let tree = Tree::new(settings, port);
        tree.raise(execution.recorder().with_state(|state| state.raised).into());
        Self { tree, desk }
    }
}

/// A session's view of the budget.
pub(crate) struct SessionBudget {
    pub(crate) shared: SharedBudget,
    questions: watch::Receiver<Question>,
    /// The question that is recorded as open.
    recorded: Option<u64>,
}

impl SessionBudget {
    pub(crate) fn new(shared: SharedBudget) -> Self {
        let questions = shared.desk.question.subscribe();
        Self { shared, questions, recorded: None }
    }

    /// Completes when the question opens or closes.
    pub(crate) async fn question_changed(&mut self) {
        if self.questions.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Session {
    /// Records that a question opened or closed.
    pub(crate) async fn note_question(&mut self) -> Result<(), RuntimeError> {
        let Question { number, stage } = self.budget.questions.borrow_and_update().clone();
        let turn = self.turn_number();
        if let Some(children) = &self.children {
            children.count_silence_anew();
        }
        match (self.budget.recorded.take(), stage) {
            (None, Stage::Closed(_) | Stage::Refused(_)) => {}
            (Some(recorded), Stage::Open { .. }) if recorded == number => {
                self.budget.recorded = Some(number);
            }
            (recorded, Stage::Open { reached, .. }) => {
                if recorded.is_some() {
                    self.record_bounds().await?;
                }
                self.budget.recorded = Some(number);
                self.record(turn, BudgetReached { reached }).await?;
            }
            (Some(_), Stage::Closed(Decision::Approved)) => self.record_bounds().await?,
            (Some(_), Stage::Closed(decision)) => {
                self.record(turn, BudgetKept { decision }).await?;
            }
            (Some(_), Stage::Refused(_)) => {
                self.record(turn, BudgetKept { decision: Decision::Denied }).await?;
            }
        }
        Ok(())
    }

    /// Records the bounds that are in force, where the journal does not say so yet, and tells them
    /// with what is used. Children leave that to the root.
    pub(crate) async fn begin_budget(&mut self) -> Result<(), RuntimeError> {
        if self.lineage.is_child() {
            return Ok(());
        }
        let known = self.recorder.with_state(|state| state.bounds);
        if Budget::from(known) != self.budget.shared.tree.budget() {
            self.record_bounds().await?;
        }
        self.budget.shared.tree.tell().await;
        Ok(())
    }

    /// Takes over the budget of changed settings. Who waits may look again.
    pub(crate) async fn renew_budget(&mut self, settings: Budget) -> Result<(), RuntimeError> {
        let SharedBudget { tree, desk } = self.budget.shared.clone();
        let former = tree.budget();
        tree.set_budget(settings);
        if tree.budget() != former {
            self.record_bounds().await?;
            self.budget.recorded = None;
            desk.look_again();
            tree.tell().await;
        }
        Ok(())
    }

    /// Sets bounds that a person asked for, all of them or none.
    pub(crate) async fn raise_budget(&mut self, wanted: Bounds) -> Result<(), RuntimeError> {
        let SharedBudget { tree, desk } = self.budget.shared.clone();
        let raised = match self.judge_bounds(&tree, &wanted) {
            Ok(raised) => raised,
            Err(reason) => {
                let reason = format!("The budget stays as it is: {reason}");
                self.warn(ErrorInfo::new(ErrorCode::Invalid, reason)).await;
                return Ok(());
            }
        };
        if let Some(deadline) = wanted.deadline_ms {
            // It counts from the beginning, and is recorded as what is left from now on.
            self.execution.set_deadline(self.time_left(deadline)).await?;
        }
        self.record_changed(tree.budget_with(raised), raised).await?;
        tree.raise(raised);
        self.budget.recorded = None;
        desk.look_again();
        tree.tell().await;
        Ok(())
    }

    /// What the tree's own bounds come to with `wanted` among them; or why that cannot be.
    fn judge_bounds(&self, tree: &Tree, wanted: &Bounds) -> Result<Budget, String> {
        if *wanted == Bounds::default() {
            return Err("name at least one bound.".to_owned());
        }
        let used = tree.used();
        if let Some(reached) = Budget::from(*wanted).reached(&used, true) {
            return Err(match reached {
                ReachedBound::MaxUsd { limit, used } => {
                    format!("${limit} is not above the ${used} already used.")
                }
                ReachedBound::MaxTokens { limit, used } => {
                    format!("{limit} is not above the {used} tokens already used.")
                }
                ReachedBound::MaxRequests { limit, used } => {
                    format!("{limit} is not above the {used} requests already made.")
                }
            });
        }
        if wanted.deadline_ms.is_some_and(|deadline| self.time_left(deadline).is_zero()) {
            return Err("the session was at work for longer than that already.".to_owned());
        }
        let former = tree.raised();
        let raised = Budget {
            max_usd: wanted.max_usd.or(former.max_usd),
            max_tokens: wanted.max_tokens.or(former.max_tokens),
            max_requests: wanted.max_requests.or(former.max_requests),
        };
        let now = tree.budget_with(raised);
        let holds = wanted.max_usd.is_none_or(|usd| now.max_usd == Some(usd))
            && wanted.max_tokens.is_none_or(|tokens| now.max_tokens == Some(tokens))
            && wanted.max_requests.is_none_or(|requests| now.max_requests == Some(requests));
        if holds {
            Ok(raised)
        } else {
            Err("the settings allow more than that. Lower it there, under `[budget]`.".to_owned())
        }
    }

    /// What would be left of a deadline that counts from the beginning.
    fn time_left(&self, deadline_ms: u64) -> std::time::Duration {
        let now = self.recorder.now();
        let worked = self.recorder.with_state(|state| state.worked(now));
        std::time::Duration::from_millis(deadline_ms).saturating_sub(worked)
    }

    async fn record_bounds(&mut self) -> Result<(), RuntimeError> {
        let tree = &self.budget.shared.tree;
        let (now, raised) = (tree.budget(), tree.raised());
        self.record_changed(now, raised).await
    }

    async fn record_changed(&mut self, now: Budget, raised: Budget) -> Result<(), RuntimeError> {
        let deadline = self.recorder.with_state(|state| state.deadline);
        let deadline_ms =
            deadline.map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX));
        let bounds = Bounds { deadline_ms, ..now.into() };
        self.record(self.turn_number(), BudgetChanged { bounds, raised: raised.into() }).await
    }

    /// How the turn ends if a person would not raise a bound that is reached.
    pub(crate) fn stopped_by_budget(&self) -> Option<TurnEnd> {
        let reached = self.budget.shared.desk.refused()?;
        let error = ErrorInfo::new(ErrorCode::QuotaExceeded, reached.to_string())
            .hint("Raise the bound with the `raise_budget` command, or under `[budget]`.");
        Some(TurnEnd { status: TurnStatus::Stopped, error: Some(error) })
    }
}

#[cfg(test)]
mod tests;
