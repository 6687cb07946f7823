//! The task that runs one child from its first event to its recorded end.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{Notice, NoticeLevel, SubagentFinished, SubagentShown};
use loon_api::{
    AgentEvent, Clock, Command, Envelope, ErrorCode, ErrorInfo, ExecutionId, Item, ItemBody,
    SubagentStatus, ToolCallStatus, TurnStatus,
};
use loon_kernel::{Execution, Tree};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinError;

use super::News;
use super::agent::Agent;
use super::report::report;
use super::worktree::Worktree;
use crate::ongoing::Ongoing;
use crate::session::{Served, Session};
use crate::turn::TurnEnd;

/// How long a child that is stopped may take to end its turn.
const STOPPING: Duration = Duration::from_secs(2);

/// A child with all it needs to run.
pub(super) struct Child {
    pub(super) agent: Arc<Agent>,
    pub(super) session: Session,
    pub(super) execution: Execution,
    pub(super) events: mpsc::Receiver<Arc<Envelope>>,
    pub(super) news: mpsc::Sender<News>,
    pub(super) clock: Arc<dyn Clock>,
    /// The child whose transcript is shown.
    pub(super) watched: watch::Receiver<Option<ExecutionId>>,
    /// Who shares its budget.
    pub(super) tree: Tree,
    pub(super) worktree: Option<Worktree>,
}

impl Child {
    /// Runs it in a task of its own to its end, of which the parent's owner hears before anybody who
    /// waits for it.
    pub(super) fn spawn(self) {
        let (agent, news) = (Arc::clone(&self.agent), self.news.clone());
        let running = tokio::spawn(Box::pin(self.run()));
        tokio::spawn(async move {
            let finished = running.await.unwrap_or_else(|error| broken(&agent, &error));
            let _ = news.send(News::Finished(Box::new(finished.clone()))).await;
            agent.progress.send_modify(|progress| progress.end = Some(finished));
        });
    }

    async fn run(self) -> SubagentFinished {
        let Self { agent, session, execution, events, news, clock, watched, tree, worktree } = self;
        let clock = clock.as_ref();
        let watcher = Watcher { agent: &agent, news: &news, clock, watched: &watched };
        let served = watcher.serve(session, events).await;
        if agent.cancel.is_cancelled() {
            // If the journal cannot be written, there is nobody left to tell.
            let _ = execution.cancel(Some("The parent stopped it.".to_owned())).await;
        }
        let state = execution.state();
        let receipt = served
            .as_ref()
            .and_then(|served| served.summary.as_ref().ok())
            .and_then(|summary| summary.receipt.clone());
        let (status, error) = match (&state.cancelled, served) {
            // Its turn says more precisely that the deadline cancelled it.
            (_, Some(served)) if ran_out_of_time(&served) => end_of(Some(served)),
            (Some(reason), _) => {
                let reason = reason.clone().unwrap_or_else(|| "It was cancelled.".to_owned());
                (SubagentStatus::Cancelled, Some(ErrorInfo::new(ErrorCode::Cancelled, reason)))
            }
            (None, served) => end_of(served),
        };
        let worktree = match &worktree {
            Some(worktree) => Some(worktree.look().await),
            None => None,
        };
        // It lets its journal go, and what it used counts until the parent has recorded it.
        tree.leave(agent.exec, state.resources.clone());
        drop(execution);
        let words = agent.progress.borrow().words.clone();
        SubagentFinished {
            id: agent.id.clone(),
            agent: agent.profile.clone(),
            child: agent.exec,
            status,
            error,
            report: words.as_deref().map(report),
            steps: u32::try_from(state.resources.requests).unwrap_or(u32::MAX),
            usage: state.resources.usage,
            cost: state.resources.cost,
            ms: Some(state.resources.ms),
            effects: Some(state.resources.count),
            worktree,
            receipt,
        }
    }
}

/// Follows what a child does.
struct Watcher<'a> {
    agent: &'a Agent,
    news: &'a mpsc::Sender<News>,
    clock: &'a dyn Clock,
    /// The child whose transcript is shown.
    watched: &'a watch::Receiver<Option<ExecutionId>>,
}

impl Watcher<'_> {
    /// Serves the session until its turn is over, or until it was stopped. Gives nothing if it did
    /// not stop in time.
    async fn serve(
        &self,
        session: Session,
        mut events: mpsc::Receiver<Arc<Envelope>>,
    ) -> Option<Served> {
        let mut serving = Box::pin(session.serve());
        let stopped = async {
            self.agent.cancel.cancelled().await;
            // Should its line be full, it is not waited for.
            let _ = self.agent.commands.try_send(Command::Terminate);
            self.clock.sleep(STOPPING).await;
        };
        let mut stopped = std::pin::pin!(stopped);
        let mut working = Ongoing::new(serving.as_mut());
        let served = loop {
            tokio::select! {
                biased;
                served = working.end() => break Some(served),
                // The parent may wait for what this child holds.
                Some(envelope) = events.recv() => working.beside(self.note(&envelope)).await,
                () = &mut stopped => break None,
            }
        };
        // Its processes end here.
        drop(serving);
        while let Ok(envelope) = events.try_recv() {
            self.note(&envelope).await;
        }
        served
    }

    async fn note(&self, envelope: &Envelope) {
        let was_stalled = self.agent.note(envelope);
        if let Some(item) = shown_item(&envelope.event)
            && *self.watched.borrow() == Some(self.agent.exec)
        {
            let shown = SubagentShown { id: self.agent.id.clone(), items: vec![item.clone()] };
            let _ = self.news.send(News::Passes(Box::new(shown.into()))).await;
        }
        if was_stalled || moves_on(&envelope.event) {
            let progressed = self.agent.summary().progressed();
            let _ = self.news.send(News::Passes(Box::new(progressed.into()))).await;
        }
        let news = match &envelope.event {
            AgentEvent::ApprovalRequested(requested) => {
                let mut requested = requested.clone();
                let who = format!("Agent {} ({}) asks.", self.agent.id, self.agent.profile);
                requested.approval.reasons.insert(0, who);
                News::Asks(Box::new(requested.into()))
            }
            AgentEvent::ApprovalResolved(resolved) => News::Asks(Box::new(resolved.clone().into())),
            // All sessions of the process share the circuits.
            AgentEvent::CircuitChanged(changed) => News::Passes(Box::new(changed.clone().into())),
            AgentEvent::EffectRerouted(rerouted) => {
                let Agent { id, profile, .. } = self.agent;
                let message = format!("Agent {id} ({profile}): {}", rerouted.words());
                let notice = Notice { level: NoticeLevel::Warning, message, hints: Vec::new() };
                News::Passes(Box::new(notice.into()))
            }
            _ => return,
        };
        let _ = self.news.send(news).await;
    }
}

/// The item that an event shows whole.
fn shown_item(event: &AgentEvent) -> Option<&Item> {
    match event {
        // Of words, only whole ones are shown.
        AgentEvent::ItemStarted(started) if matches!(started.item.body, ItemBody::ToolCall(_)) => {
            Some(&started.item)
        }
        AgentEvent::ItemCompleted(completed) => Some(&completed.item),
        _ => None,
    }
}

/// Whether a list of children would show something else after it. Words that arrive piece by piece are
/// not told of: with ten children they would drown the parent's own.
fn moves_on(event: &AgentEvent) -> bool {
    match event {
        AgentEvent::ItemStarted(started) => matches!(
            &started.item.body,
            ItemBody::ToolCall(call) if call.status == ToolCallStatus::Running
        ),
        AgentEvent::EffectFinished(_)
        | AgentEvent::ApprovalRequested(_)
        | AgentEvent::ApprovalResolved(_) => true,
        _ => false,
    }
}

/// The end of a child whose task broke down, as far as it could be seen from outside.
fn broken(agent: &Agent, error: &JoinError) -> SubagentFinished {
    let progress = agent.progress.borrow();
    let used = progress.used();
    let message = format!("It broke down; this is a fault in Loom: {error}");
    SubagentFinished {
        id: agent.id.clone(),
        agent: agent.profile.clone(),
        child: agent.exec,
        status: SubagentStatus::Failed,
        error: Some(ErrorInfo::new(ErrorCode::Internal, message)),
        report: progress.words.as_deref().map(report),
        steps: u32::try_from(used.requests).unwrap_or(u32::MAX),
        usage: used.usage,
        cost: used.cost,
        ms: Some(used.ms),
        effects: Some(used.count),
        worktree: None,
        receipt: None,
    }
}

fn ran_out_of_time(served: &Served) -> bool {
    let last = served.summary.as_ref().ok().and_then(|summary| summary.last.as_ref());
    last.is_some_and(|end| end.status == TurnStatus::DeadlineExceeded)
}

/// How a child ended that nobody cancelled.
fn end_of(served: Option<Served>) -> (SubagentStatus, Option<ErrorInfo>) {
    let failed = |error| (SubagentStatus::Failed, Some(error));
    let Some(served) = served else {
        return failed(ErrorInfo::new(ErrorCode::Internal, "It did not come to an end."));
    };
    match served.summary {
        Err(error) => failed(error.info()),
        Ok(summary) => match summary.last {
            None => failed(ErrorInfo::new(ErrorCode::Internal, "It never began.")),
            Some(TurnEnd { status, error }) => (
                match status {
                    TurnStatus::Completed => SubagentStatus::Completed,
                    TurnStatus::Stopped => SubagentStatus::Incomplete,
                    TurnStatus::Interrupted => SubagentStatus::Cancelled,
                    TurnStatus::Failed | TurnStatus::DeadlineExceeded => SubagentStatus::Failed,
                },
                error,
            ),
        },
    }
}
