//! The turn loop: ask the model, make the calls it wants, until it wants none.

mod answer;
mod briefing;
mod calls;
mod deadline;
mod failover;
mod hooks;
mod review;

use std::collections::BTreeMap;
use std::sync::Arc;

use loon_api::event::{EffectStatus, ItemCompleted, ItemStarted, TurnFinished, TurnStarted};
use loon_api::{
    Answer, ContextParts, Cost, EffectKey, ErrorCode, ErrorInfo, Item, ItemBody, ItemId,
    ModelRequest, ToolSpec, TurnNumber, TurnStatus, Usage,
};
use loon_kernel::{EffectFailure, ModelEffect, ModelOutcome, Route};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::failover::Failover;
use self::hooks::KeptGoing;
use crate::conversation::Window;
use crate::estimate;
use crate::load_skill::LoadSkill;
use crate::prompt::{PromptParts, RECORD_TOOLS, system_text};
use crate::repeat::RepeatGuard;
use crate::runtime::RuntimeError;
use crate::session::Session;
use crate::stream::{AnswerStream, items_of};

/// A turn under way.
pub(crate) struct RunningTurn {
    pub(crate) number: TurnNumber,
    pub(crate) cancel: CancellationToken,
    pub(crate) user_messages: u32,
    /// Fires when the user wants it stopped at the next step boundary.
    pub(crate) stop: CancellationToken,
    notices: u32,
    steps: u32,
    usage: Usage,
    cost: Cost,
    spoiled_answers: u32,
    asks_anew: bool,
    failover: Failover,
    /// The name that the turn began with.
    asked: Option<String>,
    schema_retried: bool,
    last_step_denied: bool,
    review: review::Rounds,
    repeats: RepeatGuard,
    /// Messages of the user that hooks were asked about.
    judged_messages: u32,
    kept_going: KeptGoing,
    /// Arguments of the newest answer's calls where the items show masks for secrets.
    unmasked: BTreeMap<ItemId, Value>,
}

/// How a turn ends.
pub(crate) struct TurnEnd {
    pub(crate) status: TurnStatus,
    pub(crate) error: Option<ErrorInfo>,
}

impl TurnEnd {
    fn because(status: TurnStatus, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status, error: Some(ErrorInfo::new(code, message)) }
    }

    pub(crate) fn completed() -> Self {
        Self { status: TurnStatus::Completed, error: None }
    }

    fn interrupted() -> Self {
        Self::because(TurnStatus::Interrupted, ErrorCode::Cancelled, "Interrupted.")
    }
}

enum StepResult {
    Continue,
    End(TurnEnd),
}

impl Session {
    /// Runs one turn from the user's words to its recorded end.
    pub(crate) async fn run_turn(&mut self, prompt: String) -> Result<(), RuntimeError> {
        let number = self.conversation.last_turn() + 1;
        self.turn = Some(RunningTurn {
            number,
            cancel: self.execution.cancel_token().child_token(),
            user_messages: 0,
            stop: CancellationToken::new(),
            notices: 0,
            steps: 0,
            usage: Usage::default(),
            cost: Cost::default(),
            spoiled_answers: 0,
            asks_anew: false,
            failover: Failover::default(),
            asked: self.model_name(),
            schema_retried: false,
            last_step_denied: false,
            review: review::Rounds::default(),
            repeats: RepeatGuard::new(self.deps.options.unattended),
            judged_messages: 0,
            kept_going: KeptGoing::default(),
            unmasked: BTreeMap::new(),
        });
        if !self.lineage.is_child() {
            self.budget.shared.desk.forget_refusal();
        }
        let opened = self.open_model();
        if let Some(children) = &self.children {
            children.use_model(self.model_name());
        }
        let name = self.model_name().unwrap_or_else(|| "none".to_owned());
        let started =
            TurnStarted { model: name, mode: self.authority.mode(), branch: self.branch.clone() };
        self.record(Some(number), started).await?;
        let blocked = self.take_prompt(prompt).await?;
        self.tell_leftovers().await?;
        let end = match (blocked, opened) {
            (Some(blocked), _) => blocked,
            (None, Ok(model)) => self.steps(&model).await?,
            (None, Err(error)) => TurnEnd { status: TurnStatus::Failed, error: Some(error) },
        };
        self.tell_stop_failure(&end).await?;
        self.finish_turn(end).await
    }

    async fn finish_turn(&mut self, end: TurnEnd) -> Result<(), RuntimeError> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        let finished = TurnFinished {
            status: end.status,
            error: end.error.clone(),
            steps: turn.steps,
            usage: turn.usage,
            cost: turn.cost,
            models: turn.failover.models(turn.asked.as_deref()),
            receipt: self.conversation.receipt(),
            review: turn.review.outcome(),
        };
        self.record(Some(turn.number), finished).await?;
        self.summary.usage += turn.usage;
        self.summary.cost += turn.cost;
        self.summary.last = Some(end);
        self.recorder.make_durable().await?;
        self.stop_if_asked().await?;
        self.end_if_expired().await
    }

    async fn steps(&mut self, model: &Arc<Route>) -> Result<TurnEnd, RuntimeError> {
        loop {
            self.apply_steering().await?;
            self.deliver_reports().await?;
            if self.running()?.cancel.is_cancelled() {
                return Ok(TurnEnd::interrupted());
            }
            if let Some(end) = self.stopped_by_budget() {
                return Ok(end);
            }
            let turn = self.running()?;
            let between_steps = turn.steps > 0;
            if turn.stop.is_cancelled() && between_steps {
                return Ok(TurnEnd::interrupted());
            }
            if between_steps && self.execution.is_asked_to_stop()? {
                return Ok(TurnEnd::interrupted());
            }
            let limit = self.deps.options.limits.max_steps;
            if self.running()?.steps >= limit {
                let message = format!("The turn reached its limit of {limit} model requests.");
                let error = ErrorInfo::new(ErrorCode::TurnLimit, message)
                    .hint("Send another prompt to go on, or raise session.max_turns.");
                return Ok(TurnEnd { status: TurnStatus::Stopped, error: Some(error) });
            }
            if let StepResult::End(end) = self.step(model).await?
                && let Some(end) = self.stop_or_go_on(end).await?
            {
                return Ok(end);
            }
        }
    }

    async fn step(&mut self, model: &Arc<Route>) -> Result<StepResult, RuntimeError> {
        let model = &self.running()?.failover.next_route(model);
        let request = match self.fitting_request(model).await? {
            Ok(request) => request,
            Err(error) => return Ok(StepResult::End(TurnEnd::of_context(error))),
        };
        match Box::pin(self.ask(model, request)).await? {
            Ok(outcome) => {
                self.context.note_answer();
                self.act_on(&outcome).await
            }
            Err(_) if self.running()?.asks_anew => {
                self.pause().await?;
                Ok(StepResult::Continue)
            }
            Err(failure) if failure.error.code == ErrorCode::ContextOverflow => {
                Ok(match self.compact_after_overflow(model, &failure).await? {
                    Ok(()) => StepResult::Continue,
                    Err(error) => StepResult::End(TurnEnd::of_context(error)),
                })
            }
            Err(failure) => Ok(StepResult::End(end_of_failure(&failure))),
        }
    }

    /// Performs one model effect. Items of the answer are recorded by the gate; what had arrived
    /// of a broken one is recorded here.
    async fn ask(
        &mut self,
        model: &Arc<Route>,
        request: ModelRequest,
    ) -> Result<Result<ModelOutcome, EffectFailure>, RuntimeError> {
        let turn = self.running()?;
        let (number, step, cancel) = (turn.number, turn.steps, turn.cancel.clone());
        turn.steps += 1;
        let recorder = self.recorder.clone();
        let name = model.info().name.clone();
        let mut stream = AnswerStream::new(recorder.clone(), number, step, name);
        let gate = Arc::clone(&self.gate);
        let tools = self.tools_now();
        let model = Arc::clone(model);
        let key = EffectKey::model(number, step);
        let effect_key = key.clone();
        let effect = async move {
            let title = |name: &str, arguments: &serde_json::Value| {
                let tool = tools.iter().find(|tool| tool.spec().name == name);
                tool.map(|tool| tool.title(arguments)).unwrap_or_default()
            };
            let effect = ModelEffect {
                turn: number,
                key: effect_key,
                model,
                request: &request,
                timeout: None,
                follow: &mut stream,
                cancel,
            };
            // What the answer itself used, without failed attempts before it.
            let mut used = Usage::default();
            let items = |answer: &Answer| {
                used = answer.usage;
                items_of(answer, number, step, &title)
            };
            let performed = gate.model(effect, items).await;
            (performed, stream, used, recorder.now())
        };
        let (performed, stream, used, now) = self.attend(effect).await?;
        match performed {
            Ok(outcome) => {
                self.context.note_usage(used, &outcome.model);
                stream.finish_meter(used.output_tokens, now).await;
                stream.drop_missing(&outcome.items).await;
                self.charge(outcome.usage, outcome.cost);
                self.running()?.failover.note_answer(&outcome.model);
                self.take_items(number, outcome.items.clone());
                self.running()?.unmasked.clone_from(&outcome.unmasked);
                Ok(Ok(outcome))
            }
            Err(failure) => {
                self.charge(failure.usage, failure.cost);
                let anew = self.ask_anew(key, &failure).await?;
                let kept = if anew { Vec::new() } else { stream.incomplete() };
                stream.drop_missing(&kept).await;
                for item in kept {
                    self.record(Some(number), ItemCompleted { item }).await?;
                }
                Ok(Err(if anew { failure } else { self.running()?.failover.explained(failure) }))
            }
        }
    }

    /// Builds the next request from the fold, and says what it is made of.
    pub(crate) fn request(&self) -> (ModelRequest, ContextParts) {
        let options = &self.deps.options;
        let plan_mode = self.authority.mode() == loon_api::Mode::Plan;
        let branch = self.branch.as_deref();
        let tools = self.offered_tools();
        let with_skills = tools.iter().any(|tool| tool.name == LoadSkill::NAME);
        let skills = if with_skills { self.skills.catalog() } else { "" };
        let guidance = self.general_guidance();
        let system = system_text(&PromptParts {
            cwd: &options.cwd.display().to_string(),
            branch,
            date: &self.deps.clock.now().to_string()[..10],
            skills,
            guidance: &guidance,
            keeps_record: RECORD_TOOLS
                .iter()
                .all(|name| tools.iter().any(|tool| tool.name == *name)),
            instruction: self.lineage.instruction(),
            agents: &self.agents(),
            servers: &self.server_names(&tools),
            plan_mode,
        });
        // Guidance comes from files, past the journal.
        let system = self.recorder.redactor().text(system);
        let Window { messages, mut parts } = self.conversation.request_window();
        let told: u64 = guidance.iter().map(|(_, text)| estimate::text(text)).sum();
        let catalog = estimate::text(skills);
        parts.system = estimate::text(&system).saturating_sub(told + catalog);
        parts.guidance = told;
        parts.skills += catalog;
        parts.tools = estimate::tools(&tools);
        let request = ModelRequest {
            system,
            messages,
            tools,
            max_output_tokens: None,
            effort: self.lineage.effort(),
            output_schema: self.schema.as_ref().map(|schema| schema.schema().clone()),
            cache_key: self.recorder.exec().to_string(),
        };
        (request, parts)
    }

    fn offered_tools(&self) -> Arc<[ToolSpec]> {
        self.tools_now()
            .iter()
            .map(|tool| tool.spec())
            .filter(|spec| self.exposure.is_offered(spec))
            .cloned()
            .collect()
    }

    /// Puts words of the user into the transcript.
    pub(crate) async fn add_user_message(
        &mut self,
        text: String,
        steer: bool,
    ) -> Result<(), RuntimeError> {
        let turn = self.running()?;
        let (number, index) = (turn.number, turn.user_messages);
        turn.user_messages += 1;
        let id = ItemId::user(number, index);
        let item = Item { id, turn: number, body: ItemBody::UserMessage { text, steer } };
        self.record(Some(number), ItemCompleted { item }).await
    }

    pub(crate) async fn add_notice(&mut self, text: String) -> Result<(), RuntimeError> {
        self.add_words(text, false).await
    }

    async fn add_words(&mut self, text: String, about_call: bool) -> Result<(), RuntimeError> {
        let turn = self.running()?;
        let (number, index) = (turn.number, turn.notices);
        turn.notices += 1;
        let id = ItemId::notice(number, index);
        let item = Item { id, turn: number, body: ItemBody::Notice { text, about_call } };
        self.recorder.pass(Some(number), ItemStarted { item: item.clone() }).await;
        self.record(Some(number), ItemCompleted { item }).await
    }

    /// Counts what a summary used, in a turn or outside of one.
    pub(crate) fn charge_summary(&mut self, usage: Usage, cost: Cost) {
        match &mut self.turn {
            Some(turn) => {
                turn.usage += usage;
                turn.cost += cost;
            }
            None => {
                self.summary.usage += usage;
                self.summary.cost += cost;
            }
        }
        self.conversation.charge_summary(usage, cost);
    }

    fn charge(&mut self, usage: Usage, cost: Cost) {
        if let Some(turn) = &mut self.turn {
            turn.usage += usage;
            turn.cost += cost;
        }
        self.conversation.charge(usage, cost);
    }

    fn take_items(&mut self, turn: TurnNumber, items: Vec<Item>) {
        for item in items {
            self.fold(Some(turn), &ItemCompleted { item }.into());
        }
    }

    fn running(&mut self) -> Result<&mut RunningTurn, RuntimeError> {
        self.turn.as_mut().ok_or(RuntimeError::NoTurn)
    }
}

impl TurnEnd {
    /// A request does not fit, or a compaction came to no end.
    pub(crate) fn of_context(error: ErrorInfo) -> Self {
        let status = match error.code {
            ErrorCode::Cancelled => return Self::interrupted(),
            ErrorCode::QuotaExceeded => TurnStatus::Stopped,
            ErrorCode::DeadlineExceeded => TurnStatus::DeadlineExceeded,
            _ => TurnStatus::Failed,
        };
        Self { status, error: Some(error) }
    }
}

fn end_of_failure(failure: &EffectFailure) -> TurnEnd {
    let status = match (failure.status, failure.error.code) {
        (EffectStatus::Aborted, _) => return TurnEnd::interrupted(),
        (_, ErrorCode::DeadlineExceeded) => TurnStatus::DeadlineExceeded,
        (EffectStatus::Denied, _) => TurnStatus::Stopped,
        _ => TurnStatus::Failed,
    };
    TurnEnd { status, error: Some(failure.error.clone()) }
}

/// An error's words as a sentence.
pub(crate) fn sentence(message: &str) -> String {
    format!("{}.", message.trim_end_matches('.'))
}
