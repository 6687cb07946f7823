//! What each command of a front end does to the session.

use loon_api::event::{
    HistoryPage, ModeChanged, ModelChanged, ModelsListed, PromptQueued, QueueReturned,
    RecordChanged,
};
use loon_api::{Command, Mode, RecordChange};

use super::{Leave, Session};
use crate::compaction::Asked;
use crate::runtime::RuntimeError;

/// Most items in one page of history.
const MAX_PAGE: usize = 500;

impl Session {
    pub(super) async fn handle(&mut self, command: Command) -> Result<(), RuntimeError> {
        match command {
            Command::Prompt { text } => self.queue(text, false).await?,
            Command::Steer { text } => self.queue(text, true).await?,
            Command::Unqueue => self.unqueue().await?,
            Command::Interrupt => self.interrupt(),
            Command::StopAfterStep => {
                if let Some(turn) = &self.turn {
                    turn.stop.cancel();
                }
            }
            Command::Approve { approval, scope, rule } => {
                self.approve(&approval, scope, rule).await;
            }
            Command::Deny { approval, reason } => self.deny(&approval, reason).await,
            Command::RaiseBudget(bounds) => self.raise_budget(bounds).await?,
            Command::RefuseBudget => self.budget.shared.desk.refuse(),
            Command::SetMode { mode } => self.set_mode(mode).await?,
            Command::LeavePlan => {
                if self.authority.mode() == Mode::Plan {
                    self.set_mode(self.mode_before_plan).await?;
                }
            }
            Command::SetGoal { goal } => {
                let change = RecordChange::Goal { goal };
                self.record(self.turn_number(), RecordChanged { change }).await?;
            }
            Command::SetUltraLoop { on } => self.set_ultra_loop(on).await?,
            Command::ListSubagents => self.list_subagents().await,
            Command::SteerSubagent { id, text } => self.steer_subagent(&id, &text).await,
            Command::StopSubagent { id } => self.stop_subagent(&id).await,
            Command::WatchSubagent { id } => self.watch_subagent(id.as_deref()).await,
            Command::SetModel { model } => self.set_model(model).await?,
            Command::Rewind { to, files } => self.rewind(to, files).await?,
            Command::PreviewRewind { to } => self.preview_rewind(to).await?,
            Command::Undo { redo } => self.undo(redo).await?,
            Command::Compact { focus } => {
                let focus = focus.filter(|focus| !focus.trim().is_empty());
                self.context.asked = Some(Asked { focus });
            }
            Command::MeasureContext => self.measure_context().await?,
            Command::History { before, limit } => {
                self.read_all().await?;
                let limit = (limit as usize).min(MAX_PAGE);
                let (items, more) = self.conversation.page(Some(&before), limit);
                self.recorder.pass(None, HistoryPage { items, more }).await;
            }
            Command::ListSessions { all } => self.looks.list(&self.deps, all),
            Command::SearchSessions { query, all } => self.looks.search(&self.deps, query, all),
            Command::Fork { at } => self.fork(at).await?,
            Command::ListModels => {
                let models = self.deps.models.names();
                self.recorder.pass(None, ModelsListed { models }).await;
            }
            Command::Custom { name, arguments, steer } => {
                self.send_custom(name, &arguments, steer).await?;
            }
            Command::ListCommands => self.list_commands().await,
            Command::ListSkills => self.list_skills().await,
            Command::ListGuidance { path } => self.list_guidance(path).await?,
            Command::ListMcp => self.list_mcp().await,
            Command::OpenSession { exec, access } => self.open_other(exec, access).await,
            Command::Warm => self.warm(),
            Command::Close => self.leave_with(Leave::Close),
            Command::Terminate => self.leave_with(Leave::Terminate),
        }
        Ok(())
    }

    pub(super) fn leave_with(&mut self, leave: Leave) {
        self.interrupt();
        self.leave = Some(leave);
    }

    pub(super) fn interrupt(&self) {
        // First, so that what waits at a bound ends as interrupted, and not as refused.
        if let Some(turn) = &self.turn {
            turn.cancel.cancel();
        }
        if !self.lineage.is_child() {
            self.budget.shared.desk.refuse();
        }
        self.context.stop();
        self.hooks.stop();
    }

    pub(super) async fn queue(&mut self, text: String, steer: bool) -> Result<(), RuntimeError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        if self.is_busy() {
            let queued = PromptQueued { text: text.clone(), steer };
            self.record(self.turn_number(), queued).await?;
        }
        if steer && self.turn.is_some() {
            self.steering.push_back(text);
        } else {
            self.prompts.push_back(text);
        }
        Ok(())
    }

    async fn unqueue(&mut self) -> Result<(), RuntimeError> {
        let texts: Vec<String> = self.steering.drain(..).chain(self.prompts.drain(..)).collect();
        if !texts.is_empty() {
            self.record(self.turn_number(), QueueReturned { texts }).await?;
        }
        Ok(())
    }

    /// What to begin the next turn with. Steering that missed its turn comes first. Nothing begins
    /// after the front end asked to leave.
    pub(super) fn next_prompt(&mut self) -> Option<String> {
        self.steering.pop_front().or_else(|| self.prompts.pop_front())
    }

    pub(crate) fn has_steering(&self) -> bool {
        !self.steering.is_empty()
    }

    /// Puts the waiting steering messages into the transcript.
    pub(crate) async fn apply_steering(&mut self) -> Result<(), RuntimeError> {
        while let Some(text) = self.steering.pop_front() {
            self.take_user_message(text, true).await?;
        }
        Ok(())
    }

    async fn set_model(&mut self, model: String) -> Result<(), RuntimeError> {
        match self.deps.models.open(&model) {
            Ok(_) => {
                self.model = Some(model.clone());
                self.context.forget_model();
                self.record(self.turn_number(), ModelChanged { model }).await?;
            }
            Err(error) => self.warn(error).await,
        }
        Ok(())
    }

    /// Sets the mode that a person chose for this session.
    async fn set_mode(&mut self, mode: Mode) -> Result<(), RuntimeError> {
        self.follows_mode = false;
        self.change_mode(mode).await
    }

    pub(super) async fn change_mode(&mut self, mode: Mode) -> Result<(), RuntimeError> {
        let former = self.authority.mode();
        if mode == Mode::Plan && former != Mode::Plan {
            self.mode_before_plan = former;
        }
        self.authority.set_mode(mode);
        self.record(self.turn_number(), ModeChanged { mode }).await
    }

    /// Opens the connection to the model's server. Nobody waits for it, and nobody hears of it.
    fn warm(&self) {
        if let Ok(route) = self.open_model() {
            tokio::spawn(async move { route.warm().await });
        }
    }

    /// Starts what settings want started ahead, unless a rule denies it as a whole.
    pub(super) fn warm_tools(&self) {
        if !self.lineage.is_child() {
            let offered = self.tools.iter().filter(|tool| self.exposure.is_offered(tool.spec()));
            offered.for_each(|tool| tool.warm());
        }
    }
}
