//! The turn loop: ask the model, make the calls it wants, until it wants none.

mod answer;
mod calls;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{
    ContextEstimated, EffectStatus, ItemCompleted, ItemStarted, Notice, NoticeLevel, TurnFinished,
    TurnStarted,
};
use loon_api::{
    Cost, EffectKey, ErrorCode, ErrorInfo, Item, ItemBody, ItemId, ModelRequest, ToolSpec,
    TurnNumber, TurnStatus, Usage,
};
use loon_kernel::{EffectFailure, Model, ModelEffect, ModelOutcome};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::estimate;
use crate::guidance::read_root_guidance;
use crate::load_skill::LoadSkill;
use crate::prompt::{PromptParts, RECORD_TOOLS, system_text};
use crate::repeat::RepeatGuard;
use crate::runtime::RuntimeError;
use crate::session::{Leave, Session};
use crate::stream::{AnswerStream, items_of};

/// Time between a broken answer and the new request.
const PAUSE: Duration = Duration::from_secs(1);

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
    schema_retried: bool,
    last_step_denied: bool,
    repeats: RepeatGuard,
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

    fn completed() -> Self {
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
            schema_retried: false,
            last_step_denied: false,
            repeats: RepeatGuard::new(self.deps.options.unattended),
            unmasked: BTreeMap::new(),
        });
        let opened = self.open_model();
        if let Some(children) = &self.children {
            children.use_model(self.model_name());
        }
        let name = self.model_name().unwrap_or_else(|| "none".to_owned());
        let started =
            TurnStarted { model: name, mode: self.authority.mode(), branch: self.branch.clone() };
        self.record(Some(number), started).await?;
        self.add_user_message(prompt, false).await?;
        let end = match opened {
            Ok(model) => self.steps(&model).await?,
            Err(error) => TurnEnd { status: TurnStatus::Failed, error: Some(error) },
        };
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
            receipt: self.conversation.receipt(),
        };
        self.record(Some(turn.number), finished).await?;
        self.summary.usage += turn.usage;
        self.summary.cost += turn.cost;
        self.summary.last = Some(end);
        self.recorder.make_durable().await?;
        if self.execution.is_asked_to_stop()? {
            self.close_children().await?;
        }
        if self.execution.stop_if_asked().await? {
            self.leave = Some(Leave::Terminate);
        }
        Ok(())
    }

    async fn steps(&mut self, model: &Arc<dyn Model>) -> Result<TurnEnd, RuntimeError> {
        loop {
            self.apply_steering().await?;
            self.deliver_reports().await?;
            let turn = self.running()?;
            let between_steps = turn.steps > 0;
            if turn.cancel.is_cancelled() || (turn.stop.is_cancelled() && between_steps) {
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
            if let StepResult::End(end) = self.step(model).await? {
                return Ok(end);
            }
        }
    }

    async fn step(&mut self, model: &Arc<dyn Model>) -> Result<StepResult, RuntimeError> {
        let request = self.request();
        self.tell_context(&request, model).await?;
        match self.ask(model, request).await? {
            Ok(outcome) => self.act_on(&outcome).await,
            Err(_) if self.running()?.asks_anew => {
                self.pause().await?;
                Ok(StepResult::Continue)
            }
            Err(failure) => Ok(StepResult::End(end_of_failure(&failure))),
        }
    }

    /// Performs one model effect. Items of the answer are recorded by the gate; what had arrived
    /// of a broken one is recorded here.
    async fn ask(
        &mut self,
        model: &Arc<dyn Model>,
        request: ModelRequest,
    ) -> Result<Result<ModelOutcome, EffectFailure>, RuntimeError> {
        let turn = self.running()?;
        let (number, step, cancel) = (turn.number, turn.steps, turn.cancel.clone());
        turn.steps += 1;
        let clock = Arc::clone(&self.deps.clock);
        let name = model.info().name.clone();
        let mut stream = AnswerStream::new(self.recorder.clone(), number, step, name, clock.now());
        let gate = Arc::clone(&self.gate);
        let tools = self.tools.clone();
        let model = Arc::clone(model);
        let effect = async move {
            let title = |name: &str, arguments: &serde_json::Value| {
                let tool = tools.iter().find(|tool| tool.spec().name == name);
                tool.map(|tool| tool.title(arguments)).unwrap_or_default()
            };
            let effect = ModelEffect {
                turn: number,
                key: EffectKey::model(number, step),
                model,
                request: &request,
                timeout: None,
                follow: &mut stream,
                cancel,
            };
            let performed =
                gate.model(effect, |answer| items_of(answer, number, step, &title)).await;
            (performed, stream, clock.now())
        };
        let (performed, stream, now) = self.attend(effect).await?;
        match performed {
            Ok(outcome) => {
                stream.finish_meter(outcome.usage.output_tokens, now).await;
                stream.drop_missing(&outcome.items).await;
                self.charge(outcome.usage, outcome.cost);
                self.take_items(number, outcome.items.clone());
                self.running()?.unmasked.clone_from(&outcome.unmasked);
                Ok(Ok(outcome))
            }
            Err(failure) => {
                self.charge(failure.usage, failure.cost);
                let kept = if self.asks_anew(&failure)? {
                    let message = format!("{} Asking anew.", sentence(&failure.error.message));
                    let level = NoticeLevel::Warning;
                    let notice = Notice { level, message, hints: Vec::new() };
                    self.recorder.pass(Some(number), notice).await;
                    Vec::new()
                } else {
                    stream.incomplete()
                };
                stream.drop_missing(&kept).await;
                for item in kept {
                    self.record(Some(number), ItemCompleted { item }).await?;
                }
                Ok(Err(failure))
            }
        }
    }

    /// A moment for a server that just broke down. An interrupt ends it.
    async fn pause(&mut self) -> Result<(), RuntimeError> {
        let cancel = self.running()?.cancel.clone();
        let moment = self.deps.clock.sleep(PAUSE);
        self.attend(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = moment => {}
            }
        })
        .await
    }

    /// The gate never repeats a request whose answer had begun to arrive. Where such a stream broke
    /// by a passing fault, the turn drops the piece and asks anew, once; a second break is final.
    fn asks_anew(&mut self, failure: &EffectFailure) -> Result<bool, RuntimeError> {
        let passing = matches!(
            failure.error.code,
            ErrorCode::Overloaded | ErrorCode::Network | ErrorCode::Protocol
        );
        let broken = failure.streamed && passing && failure.status == EffectStatus::Failed;
        let turn = self.running()?;
        turn.asks_anew = broken && !turn.asks_anew;
        Ok(turn.asks_anew)
    }

    /// Builds the next request from the fold.
    fn request(&self) -> ModelRequest {
        let options = &self.deps.options;
        let plan_mode = self.authority.mode() == loon_api::Mode::Plan;
        let branch = self.branch.as_deref();
        let tools = self.offered_tools();
        let with_skills = tools.iter().any(|tool| tool.name == LoadSkill::NAME);
        let system = system_text(&PromptParts {
            cwd: &options.cwd.display().to_string(),
            branch,
            date: &self.deps.clock.now().to_string()[..10],
            skills: if with_skills { self.skills.catalog() } else { "" },
            guidance: &read_root_guidance(&options.cwd),
            keeps_record: RECORD_TOOLS
                .iter()
                .all(|name| tools.iter().any(|tool| tool.name == *name)),
            instruction: self.lineage.instruction(),
            agents: &self.agents(),
            plan_mode,
        });
        // Guidance comes from files, past the journal.
        let system = self.recorder.redactor().text(system);
        let messages = self.conversation.request_messages();
        ModelRequest {
            system,
            messages,
            tools,
            max_output_tokens: None,
            effort: self.lineage.effort(),
            output_schema: self.schema.as_ref().map(|schema| schema.schema().clone()),
            cache_key: self.recorder.exec().to_string(),
        }
    }

    fn offered_tools(&self) -> Arc<[ToolSpec]> {
        self.tools
            .iter()
            .map(|tool| tool.spec())
            .filter(|spec| self.exposure.is_offered(spec))
            .cloned()
            .collect()
    }

    async fn tell_context(
        &mut self,
        request: &ModelRequest,
        model: &Arc<dyn Model>,
    ) -> Result<(), RuntimeError> {
        let number = self.running()?.number;
        let tokens =
            estimate::request(request).max(self.conversation.request_tokens().unwrap_or(0));
        let estimated = ContextEstimated { tokens, capacity: model.info().context_tokens };
        self.recorder.pass(Some(number), estimated).await;
        Ok(())
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
fn sentence(message: &str) -> String {
    format!("{}.", message.trim_end_matches('.'))
}
