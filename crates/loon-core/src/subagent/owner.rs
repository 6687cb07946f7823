//! The part of a session's owner that has to do with its children: it hears of them, records what
//! they came to, tells the model, and ends them with itself.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::SubagentFinished;
use loon_api::{ErrorCode, ErrorInfo, SubagentStatus, ToolSpec};
use loon_kernel::{Execution, NativeTool as _, Tool};
use tokio::sync::mpsc;

use super::agent::Progress;
use super::background_spawn::BackgroundSpawn;
use super::delegate::Delegate;
use super::report::{end_words, report};
use super::{News, Subagents};
use crate::approval::ApprovalDesk;
use crate::authority::PermissionAuthority;
use crate::budget::SharedBudget;
use crate::conversation::KnownChild;
use crate::deps::{Dependencies, Update};
use crate::profile::read_profiles;
use crate::runtime::RuntimeError;
use crate::session::Session;

/// How long a session that ends waits for its children to end.
const CLOSING: Duration = Duration::from_secs(5);

/// The tools that need to know them.
const HANDING_OVER: [&str; 2] = [Delegate::NAME, BackgroundSpawn::NAME];

/// Most agents that the model is told of before it asks.
const LISTED: usize = 30;

/// Most characters of what is said of one.
const DESCRIBED: usize = 160;

/// Most bytes of all the reports that go into one request.
const SHOWN: usize = 48 * 1024;

/// The children of a session as its owner holds them.
pub(crate) struct Children {
    subagents: Arc<Subagents>,
    news: mpsc::Receiver<News>,
    /// Those that began and whose end was not heard of.
    open: usize,
    /// Names of those whose silence the model has not heard of.
    pub(super) stalled: Vec<String>,
}

impl Children {
    pub(crate) fn new(
        deps: &Dependencies,
        parent: &Execution,
        authority: &Arc<PermissionAuthority>,
        desk: &Arc<ApprovalDesk>,
        budget: &SharedBudget,
        known: &[KnownChild],
    ) -> Self {
        let (subagents, news) = Subagents::new(deps, parent, authority, desk, budget, known);
        Self { subagents, news, open: 0, stalled: Vec::new() }
    }

    /// The tools over them.
    pub(crate) fn tools(&self) -> [Arc<dyn Tool>; 5] {
        self.subagents.tools()
    }

    /// Children whose profile names no model use this one.
    pub(crate) fn use_model(&self, name: Option<String>) {
        self.subagents.use_model(name);
    }

    /// Those that begin from now on have these settings.
    pub(crate) fn renew(&self, update: &Update) {
        self.subagents.deps().renew(update);
    }

    /// All of them.
    pub(super) fn subagents(&self) -> &Arc<Subagents> {
        &self.subagents
    }

    /// A question to a person was asked or answered.
    pub(crate) fn count_silence_anew(&self) {
        self.subagents.count_anew();
    }

    fn count(&mut self, news: &News) {
        match news {
            News::Started(_) => self.open += 1,
            News::Finished(_) => self.open = self.open.saturating_sub(1),
            News::Asks(_) | News::Passes(_) | News::Stalled(_) => {}
        }
    }
}

/// The next news of children; never any if there can be none. While children work, one timer runs for
/// the one that was heard of least lately.
pub(crate) async fn next_news(children: &mut Option<Children>) -> News {
    let Some(children) = children else { return std::future::pending().await };
    loop {
        let look = children.subagents.next_look();
        let clock = Arc::clone(&children.subagents.deps().clock);
        tokio::select! {
            biased;
            Some(news) = children.news.recv() => {
                children.count(&news);
                return news;
            }
            () = clock.sleep(look.unwrap_or_default()), if look.is_some() => {
                if let Some(agent) = children.subagents.newly_stalled() {
                    return News::Stalled(agent);
                }
            }
            else => return std::future::pending().await,
        }
    }
}

impl Session {
    /// Whom a task can be handed to, where there is a choice and a tool to do so.
    pub(crate) fn agents(&self) -> Vec<(String, String)> {
        let hands_over = |spec: &ToolSpec| HANDING_OVER.contains(&spec.name.as_str());
        let mut specs = self.tools.iter().map(|tool| tool.spec());
        if !specs.any(|spec| hands_over(spec) && self.exposure.is_offered(spec)) {
            return Vec::new();
        }
        let mut profiles = read_profiles(&self.deps.options.definitions);
        profiles.truncate(LISTED);
        if profiles.len() < 2 {
            return Vec::new();
        }
        let short = |text: &str| text.chars().take(DESCRIBED).collect();
        profiles.iter().map(|profile| (profile.name.clone(), short(&profile.description))).collect()
    }

    /// Takes in what a child tells.
    pub(crate) async fn hear(&mut self, news: News) -> Result<(), RuntimeError> {
        let turn = self.turn_number();
        match news {
            News::Started(started) => self.record(turn, *started).await,
            News::Finished(finished) => {
                self.summary.usage += finished.usage;
                self.summary.cost += finished.cost;
                self.record(turn, *finished).await?;
                self.budget.shared.tree.tell().await;
                Ok(())
            }
            News::Asks(event) => self.record(turn, *event).await,
            News::Passes(event) => {
                self.recorder.pass(turn, *event).await;
                Ok(())
            }
            News::Stalled(agent) => {
                self.report_stalled(&agent).await;
                Ok(())
            }
        }
    }

    /// Puts the reports of children that ended into the transcript, once each, so that the next
    /// request has them.
    pub(crate) async fn deliver_reports(&mut self) -> Result<(), RuntimeError> {
        self.hear_all().await?;
        self.deliver_silence().await?;
        let reports = self.conversation.untold_reports();
        let share = SHOWN / reports.len().max(1);
        for finished in reports {
            let words = end_words(&finished, share);
            let text = format!("Agent {} ({}) finished.\n{words}", finished.id, finished.agent);
            self.add_notice(text).await?;
        }
        Ok(())
    }

    async fn hear_all(&mut self) -> Result<(), RuntimeError> {
        while let Some(news) = self.waiting_news() {
            self.hear(news).await?;
        }
        Ok(())
    }

    fn waiting_news(&mut self) -> Option<News> {
        let children = self.children.as_mut()?;
        let news = children.news.try_recv().ok()?;
        children.count(&news);
        Some(news)
    }

    /// Ends all children and records their ends as far as they come in time.
    pub(crate) async fn close_children(&mut self) -> Result<(), RuntimeError> {
        let Some(children) = &self.children else { return Ok(()) };
        children.subagents.cancel.cancel();
        let mut recorded = self.hear_all().await;
        let mut patience = std::pin::pin!(self.deps.clock.sleep(CLOSING));
        while self.children.as_ref().is_some_and(|children| children.open > 0) {
            let news = tokio::select! {
                news = next_news(&mut self.children) => news,
                () = &mut patience => break,
            };
            // Where nothing can be recorded any more, they are waited for all the same.
            recorded = recorded.and(self.hear(news).await);
        }
        recorded
    }

    /// Records the ends of children that were at work when a former process ended.
    pub(crate) async fn settle_children(&mut self) -> Result<(), RuntimeError> {
        let children = self.conversation.children().iter();
        let open: Vec<_> = children
            .filter(|child| child.finished.is_none())
            .map(|child| child.started.clone())
            .collect();
        for started in open {
            let (store, exec) = (Arc::clone(&self.deps.store), started.child);
            let read = move || Progress::of_journal(store.as_ref(), exec);
            let progress = tokio::task::spawn_blocking(read).await.unwrap_or_default();
            let used = progress.used();
            let worktree = match &started.worktree {
                Some(path) => Some(self.deps.worktrees.found(path).look().await),
                None => None,
            };
            let message = "The process ended while it was at work.";
            let finished = SubagentFinished {
                id: started.id,
                agent: started.agent,
                child: started.child,
                status: SubagentStatus::Unknown,
                error: Some(ErrorInfo::new(ErrorCode::OutcomeUnknown, message)),
                report: progress.words.as_deref().map(report),
                steps: u32::try_from(used.requests).unwrap_or(u32::MAX),
                usage: used.usage,
                cost: used.cost,
                ms: Some(used.ms),
                effects: Some(used.count),
                worktree,
                receipt: None,
            };
            self.record(None, finished).await?;
        }
        Ok(())
    }
}
