//! Starting a child: everything that can be wrong is found out before anybody is told of it.

use std::sync::Arc;

use loon_api::event::{Notice, NoticeLevel, SubagentStarted};
use loon_api::{Command, ErrorInfo, ExecutionId, ExecutionKind, Mode};
use loon_kernel::{Execution, StartOptions};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::agent::{Agent, Progress};
use super::child::Child;
use super::worktree::Worktree;
use super::{Lineage, News, Parentage, RUNNING, Subagents};
use crate::authority::PermissionAuthority;
use crate::conversation::Conversation;
use crate::deps::{Dependencies, Given};
use crate::profile::{AgentProfile, read_profiles};
use crate::session::Session;

/// Events of a child that may wait for its watcher.
const EVENT_CAPACITY: usize = 256;

/// Commands that may wait for a child.
const COMMAND_CAPACITY: usize = 64;

/// Longest task in bytes.
const TASK_LIMIT: usize = 64 * 1024;

/// A task for a child.
pub(super) struct Order<'a> {
    /// Name of a profile.
    pub(super) agent: &'a str,
    /// What to do.
    pub(super) task: &'a str,
    /// Nobody waits for it.
    pub(super) background: bool,
}

impl Subagents {
    /// Starts a child. The error is what the model reads.
    pub(super) async fn start(
        &self,
        order: &Order<'_>,
        cancel: &CancellationToken,
    ) -> Result<Arc<Agent>, String> {
        let profile = self.profile(order.agent)?;
        let task = order.task.trim();
        if task.is_empty() {
            return Err("The task is empty. Say what the agent is to do.".to_owned());
        }
        if task.len() > TASK_LIMIT {
            return Err(format!("The task is longer than {TASK_LIMIT} bytes. Put it in a file."));
        }
        let Chosen { model, remark } = self.model_of(&profile)?;
        if order.background {
            self.check_room()?;
        }
        let exec = ExecutionId::generate();
        let worktree = if profile.worktree {
            if self.authority.mode() == Mode::Plan {
                return Err(format!(
                    "Agent {} works in a Git worktree, and plan mode makes none. Use another agent, or \
                     wait until the user leaves plan mode.",
                    profile.name
                ));
            }
            let (worktrees, cwd) = {
                let deps = self.deps();
                (deps.worktrees.clone(), deps.options.cwd.clone())
            };
            Some(worktrees.add(&cwd, exec, cancel).await?)
        } else {
            None
        };
        let background = order.background;
        let plan = Plan { exec, profile, task, model, remark, worktree, background };
        let path = plan.worktree.as_ref().map(|worktree| worktree.path.display().to_string());
        self.launch(plan).await.map_err(|error| match path {
            Some(path) => format!("{} Its worktree {path} is left there.", error.message),
            None => error.message,
        })
    }

    fn profile(&self, name: &str) -> Result<AgentProfile, String> {
        let mut profiles = read_profiles(&self.deps().options.definitions);
        match profiles.iter().position(|profile| profile.name == name) {
            Some(at) => Ok(profiles.swap_remove(at)),
            None => {
                let known: Vec<&str> =
                    profiles.iter().map(|profile| profile.name.as_str()).collect();
                Err(format!("There is no agent called {name:?}. There are: {}.", known.join(", ")))
            }
        }
    }

    fn model_of(&self, profile: &AgentProfile) -> Result<Chosen, String> {
        // A name without a provider is one that another program understands.
        let (own, foreign) = match &profile.model {
            Some(model) if model.contains('/') => (Some(model.clone()), None),
            other => (None, other.as_ref()),
        };
        let model = own.or_else(|| self.parent_model());
        let model = model.ok_or_else(|| "No model is set up.".to_owned())?;
        let remark = foreign.map(|name| {
            format!(
                "Agent {} asks for the model {name:?}, which is no provider/model name; it uses {model}.",
                profile.name
            )
        });
        let models = Arc::clone(&self.deps().models);
        match models.open(&model) {
            Ok(_) => Ok(Chosen { model, remark }),
            Err(error) => Err(format!(
                "The model {model} of agent {} cannot be used: {}",
                profile.name, error.message
            )),
        }
    }

    fn check_room(&self) -> Result<(), String> {
        let running = |agent: &&Arc<Agent>| agent.background && !agent.has_ended();
        if self.table().agents.iter().filter(running).count() < RUNNING {
            return Ok(());
        }
        Err(format!(
            "{RUNNING} agents work in the background already, which is the most there may be. Wait for \
             one to finish or end one with background_kill."
        ))
    }

    async fn launch(&self, plan: Plan<'_>) -> Result<Arc<Agent>, ErrorInfo> {
        let (commands, receiver) = mpsc::channel(COMMAND_CAPACITY);
        let (sender, events) = mpsc::channel(EVENT_CAPACITY);
        let deps = self.dependencies(&plan);
        let clock = Arc::clone(&deps.clock);
        let start = StartOptions {
            exec: Some(plan.exec),
            kind: ExecutionKind::Subagent,
            cwd: deps.options.cwd.display().to_string(),
            parent: Some(self.parent.exec()),
            deadline: deps.options.deadline.value,
        };
        let store = Arc::clone(&deps.store);
        let redactor = deps.redactor.clone();
        let execution = Execution::start(store, Arc::clone(&clock), redactor, start, sender)
            .await
            .map_err(|error| error.info())?;
        let id = self.next_id();
        let parentage = Parentage {
            id: id.clone(),
            authority: self.authority_of(plan.worktree.as_ref()),
            desk: Arc::clone(&self.desk),
            budget: self.budget.clone(),
            profile: plan.profile.clone(),
        };
        let lineage = Lineage::Child(Box::new(parentage));
        let past = Conversation::default();
        let session = match Session::new(deps, lineage, execution.clone(), past, receiver) {
            Ok(session) => session,
            Err(error) => {
                // It has a journal already; that it never began belongs there. The answer tells more.
                let _ = execution.cancel(Some(error.message.clone())).await;
                return Err(error);
            }
        };
        // There is room: the line is new.
        let _ = commands.send(Command::Prompt { text: plan.task.to_owned() }).await;
        let agent = Arc::new(Agent {
            id,
            profile: plan.profile.name,
            exec: plan.exec,
            model: plan.model.clone(),
            effort: plan.profile.effort,
            background: plan.background,
            commands,
            clock: Arc::clone(&clock),
            cancel: self.cancel.child_token(),
            progress: watch::Sender::new(Progress::begin(clock.steady())),
        });
        self.table().agents.push(Arc::clone(&agent));
        let started = SubagentStarted {
            id: agent.id.clone(),
            agent: agent.profile.clone(),
            child: agent.exec,
            task: plan.task.to_owned(),
            model: plan.model,
            effort: agent.effort,
            background: agent.background,
            worktree: plan.worktree.as_ref().map(|tree| tree.path.display().to_string()),
        };
        // An owner that is gone takes its children with it.
        let _ = self.news.send(News::Started(Box::new(started))).await;
        if let Some(message) = plan.remark {
            let notice = Notice { level: NoticeLevel::Warning, message, hints: Vec::new() };
            let _ = self.news.send(News::Passes(Box::new(notice.into()))).await;
        }
        let child = Child {
            agent: Arc::clone(&agent),
            session,
            execution,
            events,
            news: self.news.clone(),
            clock,
            watched: self.watched.subscribe(),
            tree: self.budget.tree.clone(),
            worktree: plan.worktree,
        };
        child.spawn();
        Ok(agent)
    }

    fn dependencies(&self, plan: &Plan<'_>) -> Dependencies {
        let mut deps = self.deps().clone();
        let options = &mut deps.options;
        options.model = Given { value: Some(plan.model.clone()), explicit: true };
        options.limits.max_steps = plan.profile.max_steps;
        options.deadline = Given { value: self.parent.remaining(), explicit: false };
        options.answer_schema = None;
        // It keeps the settings it begins with, but for what it shares with its parent: rules, mode,
        // budget, models and prices.
        deps.updates = watch::channel(None).1;
        let options = &mut deps.options;
        options.remarks.clear();
        if plan.profile.tools.is_some() {
            // Whoever names tools wants them at hand.
            options.tools = loon_api::ToolSet::Full;
        }
        if let Some(worktree) = &plan.worktree {
            options.cwd.clone_from(&worktree.root);
            let root = worktree.root.clone();
            deps.branch = Arc::new(move || loon_exec::git::branch(&root));
        }
        deps
    }

    fn authority_of(&self, worktree: Option<&Worktree>) -> Arc<PermissionAuthority> {
        match worktree {
            Some(worktree) => Arc::new(self.authority.for_copy(worktree.root.clone())),
            None => Arc::clone(&self.authority),
        }
    }

    fn next_id(&self) -> String {
        let mut table = self.table();
        table.given += 1;
        format!("a{}", table.given)
    }
}

/// The model of a child.
struct Chosen {
    /// `provider/model`.
    model: String,
    /// Why it is not what its profile asks for.
    remark: Option<String>,
}

/// A child that can be started.
struct Plan<'a> {
    exec: ExecutionId,
    profile: AgentProfile,
    task: &'a str,
    model: String,
    remark: Option<String>,
    worktree: Option<Worktree>,
    background: bool,
}
