//! The gate with fake models, tools and people, in virtual time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loon_api::event::Decision;
use loon_api::{
    AgentEvent, Answer, AnswerPart, Approval, At, BoxFuture, CallId, EffectKey, Envelope,
    ExecutionKind, Item, ItemBody, ItemId, ModelError, ModelInfo, ModelRequest, Money, StopReason,
    Subject, ToolCallItem, ToolClass, ToolSpec, Usage,
};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    ApprovalAnswer, Approver, Authority, AuthorityRequest, Gate, GateOptions, ModelEffect, Pricing,
    RetryPolicy, ToolEffect, Verdict,
};
use crate::clock::ManualClock;
use crate::execution::{Execution, StartOptions};
use crate::port::{Admitted, EffectContext, Follow, Model, Progress, Tool, ToolOutput};
use crate::secrets::Redactor;
use crate::store::{JournalStore, MemoryStore};

mod budget;
mod hooks;
mod limits;
mod models;
mod routes;
mod tools;
mod words;

/// How a fake tool behaves.
#[derive(Clone, Copy, PartialEq)]
enum Behaviour {
    /// Gives `ok`.
    Answers,
    /// Gives an output with `is_error`.
    Fails,
    /// Waits for its cancel and then says so.
    EndsWhenAsked,
    /// Never ends.
    Hangs,
    /// Panics.
    Panics,
}

struct FakeTool {
    spec: ToolSpec,
    behaviour: Behaviour,
    runs: AtomicUsize,
    running: Notify,
}

impl FakeTool {
    fn new(name: &str, class: ToolClass, behaviour: Behaviour) -> Arc<Self> {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            class,
        };
        let (runs, running) = (AtomicUsize::new(0), Notify::new());
        Arc::new(Self { spec, behaviour, runs, running })
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, arguments: &Value) -> String {
        arguments["line"].as_str().unwrap_or_default().to_owned()
    }

    fn subjects(&self, arguments: &Value) -> Result<Vec<Subject>, String> {
        let line = arguments["line"].as_str().ok_or("`line` is missing")?;
        Ok(vec![Subject::Command { line: format!("exactly {line}"), cwd: "/w".into() }])
    }

    fn timeout(&self, arguments: &Value) -> Option<Duration> {
        arguments["seconds"].as_u64().map(Duration::from_secs)
    }

    fn run<'a>(
        &'a self,
        _admitted: Admitted,
        _arguments: &'a Value,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        self.running.notify_one();
        Box::pin(async move {
            match self.behaviour {
                Behaviour::Answers => ToolOutput::ok("ok", "fine"),
                Behaviour::Fails => ToolOutput::error("exit 1"),
                Behaviour::EndsWhenAsked => {
                    cx.cancel.cancelled().await;
                    ToolOutput::ok("half", "")
                }
                Behaviour::Hangs => std::future::pending().await,
                Behaviour::Panics => panic!("out of cheese"),
            }
        })
    }
}

/// Says what it is told to say.
struct Fixed(Verdict);

impl Authority for Fixed {
    fn decide(&self, _: &AuthorityRequest<'_>) -> Verdict {
        self.0.clone()
    }
}

/// Answers with a decision, or never.
struct Person {
    decision: Option<Decision>,
    asked: Mutex<Vec<Approval>>,
    asking: Notify,
    /// Holds the answer back until told.
    go: Notify,
    waits: bool,
}

impl Person {
    fn new(decision: Option<Decision>) -> Self {
        let (asked, asking, go) = (Mutex::new(Vec::new()), Notify::new(), Notify::new());
        Self { decision, asked, asking, go, waits: false }
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, ApprovalAnswer> {
        self.asked.lock().unwrap().push(approval.clone());
        self.asking.notify_one();
        Box::pin(async move {
            if self.waits {
                self.go.notified().await;
            }
            match self.decision {
                Some(decision) => {
                    let reason = (decision == Decision::Denied).then(|| "use rg".to_owned());
                    ApprovalAnswer { decision, reason, rule: None }
                }
                None => std::future::pending().await,
            }
        })
    }
}

/// One cent a token, for one model.
struct CentPerToken;

impl Pricing for CentPerToken {
    fn price(&self, model: &str, usage: &Usage) -> Option<Money> {
        (model == "lab/coder").then(|| cents(i64::try_from(usage.total()).unwrap()))
    }
}

fn cents(cents: i64) -> Money {
    Money::usd(Decimal::new(cents, 2))
}

/// A model that plays a list of outcomes; after them it hangs until it is cancelled.
struct FakeModel {
    /// What it tells with each request.
    tells: Vec<Progress>,
    info: ModelInfo,
    outcomes: Mutex<VecDeque<Result<Answer, ModelError>>>,
    requests: AtomicUsize,
    running: Notify,
    /// What it gives when cancelled; without it, it never returns.
    on_cancel: Option<ModelError>,
}

impl FakeModel {
    fn new(outcomes: impl IntoIterator<Item = Result<Answer, ModelError>>) -> Self {
        let info = ModelInfo {
            name: "lab/coder".to_owned(),
            context_tokens: None,
            max_output_tokens: None,
        };
        Self {
            tells: vec![],
            info,
            outcomes: Mutex::new(outcomes.into_iter().collect()),
            requests: AtomicUsize::new(0),
            running: Notify::new(),
            on_cancel: None,
        }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Model for FakeModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn run<'a>(
        &'a self,
        _admitted: Admitted,
        _request: &'a ModelRequest,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let outcome = self.outcomes.lock().unwrap().pop_front();
        self.running.notify_one();
        Box::pin(async move {
            for progress in &self.tells {
                cx.progress.send(progress.clone()).await.unwrap();
            }
            if let Some(outcome) = outcome {
                return outcome;
            }
            cx.cancel.cancelled().await;
            match &self.on_cancel {
                Some(error) => Err(error.clone()),
                None => std::future::pending().await,
            }
        })
    }
}

fn answer(text: &str, usage: Usage) -> Answer {
    let parts = vec![AnswerPart::Text(text.to_owned())];
    Answer { parts, stop: StopReason::End, usage }
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage { input_tokens: Some(input), output_tokens: Some(output), ..Usage::default() }
}

/// A running execution, its clock and its store.
struct House {
    store: Arc<MemoryStore>,
    clock: ManualClock,
    execution: Execution,
    events: mpsc::Receiver<Arc<Envelope>>,
}

async fn house(deadline: Option<Duration>) -> House {
    let store = Arc::new(MemoryStore::default());
    let clock = ManualClock::new(At::from_unix_ms(1_796_040_000_000));
    let (sender, events) = mpsc::channel(1024);
    let options = StartOptions {
        exec: None,
        kind: ExecutionKind::Session,
        cwd: "/w".to_owned(),
        parent: None,
        deadline,
    };
    let port: Arc<dyn JournalStore> = Arc::<MemoryStore>::clone(&store);
    let execution =
        Execution::start(port, Arc::new(clock.clone()), Redactor::default(), options, sender)
            .await
            .unwrap();
    House { store, clock, execution, events }
}

fn options(tools: Vec<Arc<dyn Tool>>) -> GateOptions {
    GateOptions {
        tools,
        authorities: vec![],
        approver: Arc::new(Person::new(Some(Decision::NobodyToAsk))),
        remote: Arc::new(crate::NoRemoteTools),
        pricing: Arc::new(CentPerToken),
        retry: RetryPolicy::default(),
        tool_timeout: None,
        approval_prefix: String::new(),
        tree: crate::Tree::default(),
        circuits: crate::Circuits::new(Arc::new(crate::SystemClock)),
    }
}

impl House {
    fn gate(&self, options: GateOptions) -> Arc<Gate> {
        Arc::new(Gate::new(&self.execution, options))
    }

    /// The types of the records after the first, with the status of ends.
    fn records(&self) -> Vec<Envelope> {
        let records = self.store.read(self.execution.exec()).unwrap();
        records.skip(1).map(Result::unwrap).collect()
    }

    fn kinds(&self) -> Vec<String> {
        self.records().iter().map(|record| record.event.kind().to_owned()).collect()
    }

    fn end(&self) -> loon_api::event::EffectFinished {
        match self.records().pop().unwrap().event {
            AgentEvent::EffectFinished(end) => end,
            other => panic!("{other:?}"),
        }
    }
}

/// Nobody follows.
struct Ignored;

impl Follow for Ignored {
    fn take(&mut self, _progress: Progress) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn call(index: u32, tool: &str, arguments: Value) -> ToolEffect<'static> {
    let call = ToolCallItem::waiting(CallId::of(1, 0, index), tool, arguments);
    let body = ItemBody::ToolCall(call);
    ToolEffect {
        turn: 1,
        key: EffectKey::call(1, 0, index),
        item: Item { id: ItemId::call(1, 0, index), turn: 1, body },
        unmasked: None,
        by_user: false,
        cwd: "~/w".to_owned(),
        follow: Box::leak(Box::new(Ignored)),
        cancel: CancellationToken::new(),
    }
}

fn of(item: &Item) -> &ToolCallItem {
    match &item.body {
        ItemBody::ToolCall(call) => call,
        other => panic!("{other:?}"),
    }
}

fn text(item: &Item) -> &str {
    &of(item).result.as_ref().unwrap().text
}

fn request() -> ModelRequest {
    ModelRequest {
        system: String::new(),
        messages: vec![],
        tools: Arc::from([]),
        max_output_tokens: None,
        effort: None,
        output_schema: None,
        cache_key: String::new(),
    }
}

fn ask<'a>(step: u32, model: &Arc<FakeModel>, request: &'a ModelRequest) -> ModelEffect<'a> {
    ModelEffect {
        turn: 1,
        key: EffectKey::model(1, step),
        model: crate::Route::to(Arc::<FakeModel>::clone(model)),
        request,
        timeout: None,
        follow: Box::leak(Box::new(Ignored)),
        cancel: CancellationToken::new(),
    }
}

fn said(step: u32) -> impl FnOnce(&Answer) -> Vec<Item> {
    move |answer| {
        let part = |(index, part): (u32, &AnswerPart)| match part {
            AnswerPart::Text(text) => Item {
                id: ItemId::text(1, step, index),
                turn: 1,
                body: ItemBody::AssistantMessage { text: text.clone(), incomplete: false },
            },
            other => panic!("{other:?}"),
        };
        (0..).zip(&answer.parts).map(part).collect()
    }
}
