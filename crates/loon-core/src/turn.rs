//! The turn loop: ask the model, make the calls it wants, until it wants none.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{
    ContextEstimated, EffectStatus, ItemCompleted, ItemStarted, Notice, NoticeLevel, TurnFinished,
    TurnStarted,
};
use loon_api::{
    Cost, EffectKey, ErrorCode, ErrorInfo, Item, ItemBody, ItemId, Message, ModelRequest,
    StopReason, ToolCallStatus, ToolResult, ToolSpec, TurnNumber, TurnStatus, Usage, UserPart,
};
use loon_kernel::{EffectFailure, KernelError, Model, ModelEffect, ModelOutcome, ToolEffect};
use tokio_util::sync::CancellationToken;

use crate::conversation::effect_of;
use crate::estimate;
use crate::guidance::read_root_guidance;
use crate::load_skill::LoadSkill;
use crate::prompt::{PromptParts, RECORD_TOOLS, system_text};
use crate::repeat::{Repeat, RepeatGuard};
use crate::runtime::RuntimeError;
use crate::session::{Leave, Session};
use crate::stream::{AnswerStream, OutputStream, items_of};

/// Time between a broken answer and the new request.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers in a row that may be cut at the output limit, or be empty, before the turn ends.
const MAX_SPOILED_ANSWERS: u32 = 3;

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

    async fn act_on(&mut self, outcome: &ModelOutcome) -> Result<StepResult, RuntimeError> {
        let turn = self.running()?;
        turn.asks_anew = false;
        let number = turn.number;
        let calls = waiting_calls(&outcome.items);
        match outcome.stop {
            StopReason::Length => return self.cut_answer(number, calls).await,
            StopReason::Refused => {
                self.void_calls(number, calls, "The answer was refused; this call was not made.")
                    .await?;
                let message = "The model's server refused to answer.";
                let end = TurnEnd::because(TurnStatus::Failed, ErrorCode::Refused, message);
                return Ok(StepResult::End(end));
            }
            StopReason::End | StopReason::ToolCalls => {}
        }
        if !calls.is_empty() {
            self.running()?.spoiled_answers = 0;
            let repeat = self.make_calls(calls).await?;
            return self.answer_repeat(repeat).await;
        }
        let words = words_of(&outcome.items);
        if words.is_empty() {
            return self.empty_answer(&outcome.items);
        }
        if self.has_steering() {
            return Ok(StepResult::Continue);
        }
        self.judge_answer(&words).await
    }

    /// The model is done: hold its answer to the schema, and say so if it only ended because the
    /// last thing it wanted was denied.
    async fn judge_answer(&mut self, words: &str) -> Result<StepResult, RuntimeError> {
        if let Some(schema) = &self.schema
            && let Err(problem) = schema.check(words)
        {
            if self.running()?.schema_retried {
                let message = format!("The answer does not match the output schema: {problem}");
                let end = TurnEnd::because(TurnStatus::Failed, ErrorCode::Invalid, message);
                return Ok(StepResult::End(end));
            }
            self.running()?.schema_retried = true;
            let text = format!(
                "Your answer does not match the required JSON Schema: {problem}. Answer again with \
                 nothing but JSON that matches it."
            );
            self.add_notice(text).await?;
            return Ok(StepResult::Continue);
        }
        if self.running()?.last_step_denied {
            let message = "The last call the model asked for was denied.";
            let end = TurnEnd::because(TurnStatus::Stopped, ErrorCode::Denied, message);
            return Ok(StepResult::End(end));
        }
        Ok(StepResult::End(TurnEnd::completed()))
    }

    /// No call of an answer that was cut may run, even if it looks whole.
    async fn cut_answer(
        &mut self,
        number: TurnNumber,
        calls: Vec<Item>,
    ) -> Result<StepResult, RuntimeError> {
        let had_calls = !calls.is_empty();
        let text = "The answer was cut at the output limit, so this call was not made. Use smaller \
                    steps: write long files in several parts.";
        self.void_calls(number, calls, text).await?;
        let turn = self.running()?;
        turn.spoiled_answers += 1;
        if had_calls && turn.spoiled_answers < MAX_SPOILED_ANSWERS {
            return Ok(StepResult::Continue);
        }
        let error = ErrorInfo::new(
            ErrorCode::OutputLimit,
            "The model's answer was cut at the output limit.",
        )
        .hint("Ask for smaller steps, or raise the model's max_output_tokens.");
        Ok(StepResult::End(TurnEnd { status: TurnStatus::Stopped, error: Some(error) }))
    }

    fn empty_answer(&mut self, items: &[Item]) -> Result<StepResult, RuntimeError> {
        let turn = self.running()?;
        turn.spoiled_answers += 1;
        if turn.spoiled_answers < MAX_SPOILED_ANSWERS {
            return Ok(StepResult::Continue);
        }
        let message = if items.is_empty() {
            "The model gave an empty answer three times."
        } else {
            "The model only reasoned and gave no answer, three times."
        };
        let end = TurnEnd::because(TurnStatus::Failed, ErrorCode::Protocol, message);
        Ok(StepResult::End(end))
    }

    /// Makes the calls of one answer: runs of read-only ones beside each other, the others in
    /// order.
    async fn make_calls(&mut self, calls: Vec<Item>) -> Result<Option<Repeat>, RuntimeError> {
        self.running()?.last_step_denied = false;
        let mut repeat = None;
        let mut rest = calls.into_iter().peekable();
        while let Some(first) = rest.next() {
            let mut batch = vec![first];
            if self.is_read_only(&batch[0]) {
                while let Some(next) = rest.next_if(|item| self.is_read_only(item)) {
                    batch.push(next);
                }
            }
            let turn = self.running()?;
            let (number, cancel) = (turn.number, turn.cancel.clone());
            let effects: Vec<_> = batch
                .into_iter()
                .map(|item| self.call_effect(number, item, cancel.clone()))
                .collect();
            let done = self.attend(futures_util::future::join_all(effects)).await?;
            for item in done {
                let item = item?;
                if matches!(&item.body, ItemBody::ToolCall(call) if call.status == ToolCallStatus::Denied)
                {
                    self.running()?.last_step_denied = true;
                }
                repeat = self.running()?.repeats.look_at(&item).or(repeat);
                self.take_items(number, vec![item]);
            }
        }
        Ok(repeat)
    }

    /// A model that goes in circles hears of it, and is stopped if it does not listen.
    async fn answer_repeat(&mut self, repeat: Option<Repeat>) -> Result<StepResult, RuntimeError> {
        match repeat {
            None => Ok(StepResult::Continue),
            Some(Repeat::Tell(words)) => {
                self.add_words(words, true).await?;
                Ok(StepResult::Continue)
            }
            Some(Repeat::End(words)) => {
                let end = TurnEnd::because(TurnStatus::Stopped, ErrorCode::RepeatedCall, words);
                Ok(StepResult::End(end))
            }
        }
    }

    /// One tool effect with its live output. Borrows nothing of the session, so that commands can
    /// be handled while it runs.
    fn call_effect(
        &self,
        turn: TurnNumber,
        item: Item,
        cancel: CancellationToken,
    ) -> impl Future<Output = Result<Item, KernelError>> + use<> {
        let gate = Arc::clone(&self.gate);
        let recorder = self.recorder.clone();
        let cwd = self.deps.options.cwd.display().to_string();
        let key = effect_of(&item.id).unwrap_or_else(|| EffectKey::new(item.id.as_str()));
        async move {
            let mut output = OutputStream { recorder, turn, item: item.id.clone() };
            let effect =
                ToolEffect { turn, key, item, by_user: false, cwd, follow: &mut output, cancel };
            gate.tool(effect).await
        }
    }

    fn is_read_only(&self, item: &Item) -> bool {
        let ItemBody::ToolCall(call) = &item.body else { return false };
        let tool = self.tools.iter().find(|tool| tool.spec().name == call.tool);
        tool.is_some_and(|tool| tool.spec().class.is_read_only())
    }

    /// Ends calls that must not run.
    async fn void_calls(
        &mut self,
        turn: TurnNumber,
        calls: Vec<Item>,
        text: &str,
    ) -> Result<(), RuntimeError> {
        for mut item in calls {
            if let ItemBody::ToolCall(call) = &mut item.body {
                call.status = ToolCallStatus::Cancelled;
                call.result = Some(ToolResult::error(text));
            }
            self.record(Some(turn), ItemCompleted { item }).await?;
        }
        Ok(())
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
        let mut messages = self.conversation.messages();
        if !matches!(messages.last(), Some(Message::User(_)))
            && !matches!(messages.last(), Some(Message::Assistant(answer))
                if answer.parts.iter().any(|part| matches!(part, loon_api::AssistantPart::Call(_))))
        {
            let go_on = UserPart::Text("Go on.".to_owned());
            messages.push(Message::User(vec![go_on]));
        }
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

fn waiting_calls(items: &[Item]) -> Vec<Item> {
    items.iter().filter(|item| matches!(item.body, ItemBody::ToolCall(_))).cloned().collect()
}

fn words_of(items: &[Item]) -> String {
    let texts: Vec<&str> = items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::AssistantMessage { text, .. } => Some(text.trim()),
            _ => None,
        })
        .collect();
    texts.join("\n\n")
}
