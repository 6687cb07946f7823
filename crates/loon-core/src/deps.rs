//! What the session needs from outside, as ports and plain values.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loon_api::event::Notice;
use loon_api::{Clock, ErrorInfo, ExecutionId, Mode, PermissionRule, ToolSet, WorkingRecord};
use loon_kernel::{Budget, Circuits, JournalStore, Pricing, Redactor, RemoteTools, Route, Tool};
use loon_permission::Policy;
use serde_json::Value;
use tokio::sync::watch;

use crate::conversation::Past;
use crate::hooks::Hooks;
use crate::index::SessionIndex;
use crate::limits::{ContextLimits, Limits};
use crate::subagent::Worktrees;
use crate::ultra::UltraLoop;

/// The models that settings name.
pub trait Models: Send + Sync {
    /// The way to the model called `provider/model`, or to those of `combo/name`. The error says what
    /// is wrong and what to do.
    fn open(&self, name: &str) -> Result<Arc<Route>, ErrorInfo>;

    /// All names, in the order of the settings.
    fn names(&self) -> Vec<String>;
}

/// Where an "always" decision is kept.
pub trait RuleKeeper: Send + Sync {
    /// Adds an allow rule to the project's local settings. Gives back the file it went to.
    fn keep(&self, rule: &PermissionRule) -> Result<PathBuf, ErrorInfo>;
}

/// What tools may know of the session they are made for.
pub struct ToolSession<'a> {
    /// The execution.
    pub exec: ExecutionId,
    /// Absolute folder it works in.
    pub cwd: &'a Path,
    /// What its calls did before.
    pub past: &'a Past,
    /// The working record as it stands.
    pub record: watch::Receiver<Arc<WorkingRecord>>,
}

/// Makes the tools of one session.
pub type ToolFactory =
    dyn Fn(&ToolSession<'_>) -> Result<Vec<Arc<dyn Tool>>, ErrorInfo> + Send + Sync;

/// Tells the branch that is checked out in a folder.
pub type BranchReader = dyn Fn() -> Option<String> + Send + Sync;

/// Everything a runtime is wired from.
#[derive(Clone)]
pub struct Dependencies {
    /// Where journals live.
    pub store: Arc<dyn JournalStore>,
    /// The index over them.
    pub index: SessionIndex,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Masks secrets in what is recorded and told.
    pub redactor: Redactor,
    /// The models.
    pub models: Arc<dyn Models>,
    /// The tools.
    pub tools: Arc<ToolFactory>,
    /// The tools of servers elsewhere.
    pub remote: Arc<dyn RemoteTools>,
    /// The permission rules in force.
    pub policy: Arc<Policy>,
    /// Where "always" goes.
    pub rules: Arc<dyn RuleKeeper>,
    /// What models cost.
    pub pricing: Arc<dyn Pricing>,
    /// Targets that failed too often, for all sessions of this process and their children.
    pub circuits: Circuits,
    /// The branch shown and told to the model.
    pub branch: Arc<BranchReader>,
    /// The lifecycle hooks.
    pub hooks: Hooks,
    /// Makes the Git worktrees of children.
    pub worktrees: Worktrees,
    /// Values that hold for every session of this process.
    pub options: SessionOptions,
    /// Settings that changed since. The last one counts; absent if none did.
    pub updates: Updates,
}

/// Where changed settings arrive.
pub type Updates = watch::Receiver<Option<Arc<Update>>>;

/// What changed settings bring to a session under way and to those that follow it in this process.
/// Models and prices renew themselves behind their ports.
#[derive(Clone, Debug)]
pub struct Update {
    /// The permission rules. Rules kept for the session alone are added to them.
    pub policy: Arc<Policy>,
    /// The model of later sessions, and of one that has none.
    pub model: Option<String>,
    /// The mode of later sessions, and of one for which nobody chose another.
    pub mode: Mode,
    /// Limits of a turn.
    pub limits: Limits,
    /// The user's own limits of the context window.
    pub context: ContextLimits,
    /// Budget of the execution.
    pub budget: Budget,
    /// Which tools a model is told of.
    pub tools: ToolSet,
    /// Whether later sessions begin with Ultra Loop, and who reviews.
    pub ultra: UltraLoop,
    /// What a person should know before later sessions begin.
    pub remarks: Vec<String>,
    /// What a person should know now.
    pub notices: Vec<Notice>,
}

impl Dependencies {
    /// Takes over changed settings. What was named for this run stays.
    pub(crate) fn renew(&mut self, update: &Update) {
        self.policy = Arc::clone(&update.policy);
        let options = &mut self.options;
        if !options.model.explicit && (update.model.is_some() || options.model.value.is_none()) {
            options.model.value.clone_from(&update.model);
        }
        if !options.mode.explicit {
            options.mode.value = update.mode;
        }
        options.limits = update.limits;
        options.context = update.context;
        options.budget = update.budget;
        options.tools = update.tools;
        options.ultra.renew(&update.ultra);
        options.remarks.clone_from(&update.remarks);
    }

    /// Takes over what changed since the process began. Gives what a person should know of a change
    /// that no session heard of.
    pub(crate) fn catch_up(&mut self) -> Vec<String> {
        let is_new = self.updates.has_changed().unwrap_or(false);
        let Some(update) = self.updates.borrow_and_update().clone() else { return Vec::new() };
        self.renew(&update);
        let missed = update.notices.iter().filter(|_| is_new);
        missed.map(|notice| notice.message.clone()).collect()
    }
}

/// The next change of settings.
pub(crate) async fn next_update(updates: &mut Updates) -> Arc<Update> {
    while updates.changed().await.is_ok() {
        if let Some(update) = updates.borrow_and_update().clone() {
            return update;
        }
    }
    // Nobody watches the settings any more.
    std::future::pending().await
}

/// A value and how firmly it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// It was named for this run, not taken from the settings.
    pub explicit: bool,
}

/// Values that hold for every session of a process.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Absolute folder to work in.
    pub cwd: PathBuf,
    /// `provider/model`; absent if none is set up. From the settings, it gives way to what a resumed
    /// session used.
    pub model: Given<Option<String>>,
    /// Permission mode. From the settings, it gives way to that of a resumed session.
    pub mode: Given<Mode>,
    /// Which tools a model is told of.
    pub tools: ToolSet,
    /// Whether claims of completion are reviewed, and by whom.
    pub ultra: UltraLoop,
    /// Folders that hold definitions (skills, agent profiles, custom commands), weakest first.
    pub definitions: Vec<PathBuf>,
    /// The file of the user's own guidance, which need not be there.
    pub user_guidance: Option<PathBuf>,
    /// Limits of a turn.
    pub limits: Limits,
    /// The user's own limits of the context window.
    pub context: ContextLimits,
    /// Budget of the execution.
    pub budget: Budget,
    /// Time at work the execution may take. From the settings, it holds for new sessions only.
    pub deadline: Given<Option<Duration>>,
    /// Nobody is there to ask: what would ask is denied, visibly.
    pub unattended: bool,
    /// JSON Schema the last answer of a turn must match.
    pub answer_schema: Option<Value>,
    /// What a person should know before the work begins, told as notices.
    pub remarks: Vec<String>,
}
