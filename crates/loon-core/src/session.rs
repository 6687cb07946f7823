//! The owner of one session: its commands, its queue, and the future it attends to.

mod commands;
mod hooks;
mod leftovers;
pub(crate) mod listing;
mod opening;
mod shelf;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use loon_api::event::{Notice, NoticeLevel};
use loon_api::{
    AgentEvent, Command, Cost, ErrorCode, ErrorInfo, ItemBody, Mode, Receipt, TurnNumber, Usage,
    WorkingRecord,
};
use loon_kernel::{
    Approver, Authority, CallHooks, Execution, Gate, GateOptions, Recorder, RemoteTools,
    RetryPolicy, Route, Terms, Tool, native_tool,
};
use tokio::sync::{broadcast, mpsc, watch};

use crate::approval::ApprovalDesk;
use crate::authority::PermissionAuthority;
use crate::budget::{SessionBudget, SharedBudget};
use crate::compaction::ContextKeeper;
use crate::conversation::Conversation;
use crate::deps::{Dependencies, Given, ToolSession, Update, Updates, next_update};
use crate::exposure::Exposure;
use crate::guidance::GuidanceProblems;
use crate::hooks::SessionHooks;
use crate::load_skill::LoadSkill;
use crate::looks::Looks;
use crate::ongoing::Ongoing;
use crate::remote::{Definitions, next_notice, permitted};
use crate::runtime::{RuntimeError, SessionChoice};
use crate::skills::{SessionSkills, SkillShelf};
use crate::structured::AnswerSchema;
use crate::subagent::{Children, Lineage, next_news};
use crate::turn::{RunningTurn, TurnEnd};

/// Items of the past sent when a front end opens a session; older ones come on request.
pub(crate) const OPENING_ITEMS: usize = 200;

/// Why the owner stopped.
pub(crate) enum Leave {
    /// The front end asked, or is gone.
    Close,
    /// A signal asked.
    Terminate,
    /// On to another session, or a new one.
    Open(SessionChoice),
}

/// What a session gives back when it is left.
pub(crate) struct Served {
    /// The front end's line to the runtime, for the next session.
    pub(crate) commands: mpsc::Receiver<Command>,
    /// Changes of settings that the session did not hear of are still to come.
    pub(crate) updates: Updates,
    /// Why it was left.
    pub(crate) leave: Leave,
    /// What happened while it was served.
    pub(crate) summary: Result<Summary, RuntimeError>,
}

/// What happened while a session was served.
#[derive(Default)]
pub(crate) struct Summary {
    /// How the last turn ended.
    pub(crate) last: Option<TurnEnd>,
    /// How the last compaction that the user asked for outside of a turn ended.
    pub(crate) compaction: Option<TurnEnd>,
    /// The model's last words.
    pub(crate) message: Option<String>,
    /// Tokens of the turns served.
    pub(crate) usage: Usage,
    /// Money of the turns served.
    pub(crate) cost: Cost,
    /// What a child did, all its turns together.
    pub(crate) receipt: Option<Receipt>,
}

pub(crate) struct Session {
    pub(crate) deps: Dependencies,
    pub(crate) execution: Execution,
    pub(crate) recorder: Recorder,
    pub(crate) gate: Arc<Gate>,
    pub(crate) authority: Arc<PermissionAuthority>,
    pub(crate) tools: Arc<[Arc<dyn Tool>]>,
    pub(crate) remote: Arc<dyn RemoteTools>,
    remote_news: broadcast::Receiver<Notice>,
    pub(crate) exposure: Exposure,
    pub(crate) conversation: Conversation,
    pub(crate) context: ContextKeeper,
    pub(crate) skills: SessionSkills,
    pub(crate) guidance: GuidanceProblems,
    pub(crate) schema: Option<AnswerSchema>,
    pub(crate) turn: Option<RunningTurn>,
    pub(crate) branch: Option<String>,
    /// Claims of completion are reviewed.
    pub(crate) ultra: bool,
    pub(crate) summary: Summary,
    record: watch::Sender<Arc<WorkingRecord>>,
    mode_before_plan: Mode,
    /// The mode is that of the settings, and nobody chose another.
    follows_mode: bool,
    pub(crate) desk: Arc<ApprovalDesk>,
    pub(crate) hooks: Arc<SessionHooks>,
    pub(crate) budget: SessionBudget,
    model: Option<String>,
    steering: VecDeque<String>,
    prompts: VecDeque<String>,
    pub(crate) leave: Option<Leave>,
    pub(crate) lineage: Lineage,
    pub(crate) children: Option<Children>,
    resumed: bool,
    commands: mpsc::Receiver<Command>,
    /// Looks into the index of sessions, which the turn does not wait for.
    looks: Looks,
    leftovers: leftovers::LeftoverLook,
}

impl Session {
    pub(crate) fn new(
        deps: Dependencies,
        lineage: Lineage,
        execution: Execution,
        conversation: Conversation,
        commands: mpsc::Receiver<Command>,
    ) -> Result<Self, ErrorInfo> {
        let options = &deps.options;
        let resumed = conversation.last_turn() > 0;
        let mode = starting_mode(options.mode, conversation.mode());
        let follows_mode = !options.mode.explicit && mode == options.mode.value;
        let former = conversation.model().filter(|_| !options.model.explicit).map(str::to_owned);
        let model = former.or_else(|| options.model.value.clone());
        let schema =
            options.answer_schema.as_ref().map(AnswerSchema::new).transpose().map_err(|error| {
                ErrorInfo::new(ErrorCode::Invalid, format!("The output schema is wrong: {error}"))
            })?;
        let recorder = execution.recorder().clone();
        let (record, watched) = watch::channel(Arc::clone(conversation.record()));
        let session = ToolSession {
            exec: recorder.exec(),
            cwd: &options.cwd,
            past: conversation.past(),
            record: watched,
        };
        let mut tools = (deps.tools)(&session)?;
        let shelf = SkillShelf::new(&options.cwd, &options.definitions);
        tools.push(native_tool(LoadSkill::new(shelf.clone())));
        let (authority, desk, budget, children) = match &lineage {
            Lineage::Root => {
                let policy = Arc::clone(&deps.policy);
                let authority = Arc::new(PermissionAuthority::new(policy, mode));
                let desk = Arc::new(ApprovalDesk::new(options.unattended));
                let known = conversation.children();
                let budget = SharedBudget::of_root(options.budget, &execution, options.unattended);
                let children = Children::new(&deps, &execution, &authority, &desk, &budget, known);
                tools.extend(children.tools());
                (authority, desk, budget, Some(children))
            }
            Lineage::Child(parent) => {
                let (authority, desk) = (Arc::clone(&parent.authority), Arc::clone(&parent.desk));
                (authority, desk, parent.budget.clone(), None)
            }
        };
        let is_allowed = |tool: &Arc<dyn Tool>| lineage.allows(&tool.spec().name);
        tools.retain(is_allowed);
        let exposure = Exposure::new(options.tools, &authority, record.subscribe());
        let remote = permitted(&deps.remote, &lineage);
        let tools = distinct(exposure.with_search(distinct(tools), &remote).to_vec());
        let tools: Arc<[Arc<dyn Tool>]> =
            tools.iter().filter(|tool| is_allowed(tool)).cloned().collect();
        let hooks = Arc::new(SessionHooks::of(&deps, &lineage, recorder.exec()));
        let gate = Gate::new(
            &execution,
            GateOptions {
                tools: tools.to_vec(),
                authorities: authorities(&authority, &remote),
                remote: Arc::clone(&remote),
                approver: Arc::clone(&desk) as Arc<dyn Approver>,
                pricing: Arc::clone(&deps.pricing),
                retry: RetryPolicy::default(),
                tool_timeout: Some(options.limits.tool_timeout),
                approval_prefix: lineage.approval_prefix(),
                tree: budget.tree.clone(),
                circuits: deps.circuits.clone(),
            },
        );
        let gate = Arc::new(gate.hooked(Arc::clone(&hooks) as Arc<dyn CallHooks>));
        let prompts = conversation.queued().iter().map(|queued| queued.text.clone()).collect();
        Ok(Self {
            branch: (deps.branch)(),
            ultra: !lineage.is_child() && deps.options.ultra.starting(conversation.ultra_loop()),
            deps,
            execution,
            recorder,
            gate,
            authority,
            tools,
            remote_news: remote.news(),
            remote,
            exposure,
            conversation,
            context: ContextKeeper::default(),
            skills: SessionSkills::new(shelf),
            guidance: GuidanceProblems::default(),
            schema,
            turn: None,
            summary: Summary::default(),
            record,
            mode_before_plan: Mode::Default,
            follows_mode,
            desk,
            hooks,
            budget: SessionBudget::new(budget),
            model,
            steering: VecDeque::new(),
            prompts,
            leave: None,
            lineage,
            children,
            resumed,
            commands,
            looks: Looks::default(),
            leftovers: leftovers::LeftoverLook::default(),
        })
    }

    /// Serves commands until one asks to leave.
    pub(crate) async fn serve(mut self) -> Served {
        let mut served = self.serve_commands().await;
        if served.is_err() {
            served = served.and(self.close_children().await);
        }
        Served {
            leave: self.leave.take().unwrap_or(Leave::Close),
            summary: served.map(|()| self.summary),
            commands: self.commands,
            updates: self.deps.updates,
        }
    }

    async fn serve_commands(&mut self) -> Result<(), RuntimeError> {
        self.close_open_turn().await?;
        self.settle_children().await?;
        self.look_for_leftovers();
        self.tell_opened().await;
        self.begin_budget().await?;
        self.begin_ultra_loop().await?;
        if !self.lineage.is_child() {
            self.looks.neighbours(&self.deps, self.recorder.exec());
        }
        self.warm_tools();
        self.begin_remote();
        self.fire_session_start().await?;
        loop {
            if self.leave.is_some() {
                self.close_children().await?;
                self.fire_session_end().await?;
                self.recorder.make_durable().await?;
                self.summary.message = last_message(&self.conversation);
                if self.lineage.is_child() {
                    self.summary.receipt = self.conversation.whole_receipt();
                }
                return Ok(());
            }
            if self.stop_if_asked().await? {
                continue;
            }
            if let Some(asked) = self.context.asked.take() {
                self.compact_for_user(asked.focus).await?;
                continue;
            }
            if let Some(prompt) = self.next_prompt() {
                self.branch = (self.deps.branch)();
                self.read_all().await?;
                if let Some(unusable) = self.skills.refresh().await {
                    self.warn(unusable).await;
                }
                if let Some(unused) = self.guidance.refresh(self.guidance_shelf()).await {
                    self.warn(unused).await;
                }
                Box::pin(self.run_turn(prompt)).await?;
                continue;
            }
            if self.lineage.is_child() && self.summary.last.is_some() {
                self.end_with_turn().await?;
                continue;
            }
            tokio::select! {
                biased;
                update = next_update(&mut self.deps.updates) => self.renew(&update).await?,
                command = self.commands.recv() => match command {
                    Some(command) => self.handle(command).await?,
                    None => self.leave = Some(Leave::Close),
                },
                () = self.budget.question_changed() => self.note_question().await?,
                news = next_news(&mut self.children) => self.hear(news).await?,
                answer = self.looks.next() => self.tell(answer).await,
                notice = next_notice(&mut self.remote_news) => self.recorder.pass(None, notice).await,
            }
        }
    }

    /// Ends the execution if somebody asked for that, its children first: what they come to is still
    /// recorded.
    pub(crate) async fn stop_if_asked(&mut self) -> Result<bool, RuntimeError> {
        if self.execution.is_asked_to_stop()? {
            self.close_children().await?;
        }
        let stopped = self.execution.stop_if_asked().await?;
        if stopped {
            self.leave = Some(Leave::Terminate);
        }
        Ok(stopped)
    }

    /// Takes over changed settings: they hold for what begins from now on.
    async fn renew(&mut self, update: &Update) -> Result<(), RuntimeError> {
        self.deps.renew(update);
        if let Some(children) = &self.children {
            children.renew(update);
        }
        self.authority.replace_policy(Arc::clone(&update.policy));
        self.exposure.choose(update.tools);
        self.gate.set_terms(Terms { tool_timeout: Some(update.limits.tool_timeout) });
        self.renew_budget(update.budget).await?;
        if self.model.is_none() {
            self.model.clone_from(&self.deps.options.model.value);
        }
        if self.follows_mode && self.authority.mode() != update.mode {
            self.change_mode(update.mode).await?;
        }
        for notice in &update.notices {
            self.recorder.pass(self.turn_number(), notice.clone()).await;
        }
        Ok(())
    }

    /// A child ends with its turn, unless a message came for it meanwhile. A later one fails.
    async fn end_with_turn(&mut self) -> Result<(), RuntimeError> {
        for last in [false, true] {
            if last {
                self.commands.close();
            }
            while let Ok(command) = self.commands.try_recv() {
                self.handle(command).await?;
            }
            if !self.prompts.is_empty() {
                return Ok(());
            }
        }
        self.leave.get_or_insert(Leave::Close);
        Ok(())
    }

    /// Awaits `work` while commands keep being handled. `work` borrows nothing of the session.
    pub(crate) async fn attend<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, RuntimeError> {
        let mut work = std::pin::pin!(work);
        let mut work = Ongoing::new(work.as_mut());
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                update = next_update(&mut self.deps.updates) => work.beside(Box::pin(self.renew(&update))).await?,
                command = self.commands.recv(), if open => match command {
                    Some(command) => work.beside(Box::pin(self.handle(command))).await?,
                    None => {
                        open = false;
                        // A child whose line is closed ends its turn before it goes.
                        if !self.lineage.is_child() {
                            self.leave_with(Leave::Close);
                        }
                    }
                },
                () = self.budget.question_changed() => work.beside(Box::pin(self.note_question())).await?,
                news = next_news(&mut self.children) => work.beside(Box::pin(self.hear(news))).await?,
                answer = self.looks.next() => work.beside(Box::pin(self.tell(answer))).await,
                notice = next_notice(&mut self.remote_news) => {
                    work.beside(Box::pin(self.recorder.pass(self.turn_number(), notice))).await;
                }
                done = work.end() => return Ok(done),
            }
        }
    }

    pub(crate) fn model_name(&self) -> Option<String> {
        self.model.clone()
    }

    pub(crate) fn open_model(&self) -> Result<Arc<Route>, ErrorInfo> {
        match &self.model {
            Some(name) => self.deps.models.open(name),
            None => Err(ErrorInfo::new(ErrorCode::Invalid, "No model is set up.")
                .hint("Set session.model and a [providers.NAME] section, or run `loon doctor`.")),
        }
    }

    pub(crate) async fn warn(&self, error: ErrorInfo) {
        let notice =
            Notice { level: NoticeLevel::Warning, message: error.message, hints: error.hints };
        self.recorder.pass(self.turn_number(), notice).await;
    }

    pub(crate) fn turn_number(&self) -> Option<TurnNumber> {
        self.turn.as_ref().map(|turn| turn.number)
    }

    /// Records an event and takes it into the fold.
    pub(crate) async fn record(
        &mut self,
        turn: Option<TurnNumber>,
        event: impl Into<AgentEvent>,
    ) -> Result<(), RuntimeError> {
        let recorded = self.recorder.record(turn, event).await?;
        self.fold(turn, &recorded.event);
        Ok(())
    }

    /// Takes a recorded event into the fold, and shows the tools the working record it leaves.
    pub(crate) fn fold(&mut self, turn: Option<TurnNumber>, event: &AgentEvent) {
        self.conversation.apply(turn, event);
        let now = self.conversation.record();
        if !Arc::ptr_eq(now, &self.record.borrow()) {
            self.record.send_replace(Arc::clone(now));
        }
    }
}

/// Who must allow a call of a tool.
fn authorities(
    permissions: &Arc<PermissionAuthority>,
    remote: &Arc<dyn RemoteTools>,
) -> Vec<Arc<dyn Authority>> {
    let (remote, rules) = (Arc::clone(remote), Arc::clone(permissions));
    vec![
        Arc::<PermissionAuthority>::clone(permissions),
        Arc::new(Definitions { remote, permissions: rules }),
    ]
}

/// Of tools with one name the last: those that only settings describe come first.
fn distinct(mut tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
    let mut seen = BTreeSet::new();
    tools.reverse();
    tools.retain(|tool| seen.insert(tool.spec().name.clone()));
    tools.reverse();
    tools
}

/// The mode a session begins in. A resumed one keeps its own, except that `bypass` must be asked
/// for again.
fn starting_mode(wanted: Given<Mode>, former: Option<Mode>) -> Mode {
    match former {
        Some(former) if !wanted.explicit && former != Mode::Bypass => former,
        _ => wanted.value,
    }
}

fn last_message(conversation: &Conversation) -> Option<String> {
    conversation.items().iter().rev().find_map(|item| match &item.body {
        ItemBody::AssistantMessage { text, .. } => Some(text.clone()),
        _ => None,
    })
}
