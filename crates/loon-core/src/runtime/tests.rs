//! Tests of whole sessions: a fake model and fake tools behind the real gate and journal.

mod combos;
mod compaction;
mod guidance;
mod record;
mod tools;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use loon_api::command::ApprovalScope;
use loon_api::event::{Decision, EffectStatus};
use loon_api::{
    Answer, AnswerPart, ApprovalId, BoxFuture, Item, ItemBody, ItemId, Message, Mode, ModelError,
    ModelErrorKind, ModelInfo, ModelRequest, PermissionRule, RuleSet, StopReason, Subject,
    ToolCallStatus, ToolClass, ToolSet, ToolSpec, TurnStatus,
};
use loon_kernel::{
    Admitted, Budget, Circuits, EffectContext, MemoryStore, Model, Pricing, Progress, Route,
    SystemClock, Tool, ToolOutput,
};
use loon_permission::Policy;
use serde_json::{Value, json};

use super::*;
use crate::deps::{Models, RuleKeeper, SessionOptions};
use crate::limits::Limits;

mod subagents;
mod ultra;

enum Step {
    Answer(Answer),
    Fail(ModelError),
    /// Streams some words, then breaks.
    Break(&'static str),
    /// Streams some words, then waits until it is stopped.
    Hang(&'static str),
    /// Answers once it is let go.
    Held(Arc<tokio::sync::Semaphore>, Answer),
}

struct FakeModel {
    info: ModelInfo,
    steps: Mutex<VecDeque<Step>>,
    /// Answers to requests for summaries.
    summaries: Mutex<VecDeque<Step>>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl Model for FakeModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn run<'a>(
        &'a self,
        _admitted: Admitted,
        request: &'a ModelRequest,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.requests.lock().unwrap().push(request.clone());
        let is_summary = request.system.starts_with("You write the handoff");
        let script = if is_summary { &self.summaries } else { &self.steps };
        let step = script.lock().unwrap().pop_front();
        Box::pin(async move {
            match step.unwrap_or_else(|| say("(script ended)")) {
                Step::Answer(answer) => {
                    for part in &answer.parts {
                        if let AnswerPart::Text(text) = part {
                            cx.progress.send(Progress::Text(text.clone())).await.unwrap();
                        }
                    }
                    Ok(answer)
                }
                Step::Fail(error) => Err(error),
                Step::Held(gate, answer) => {
                    gate.acquire().await.unwrap().forget();
                    Ok(answer)
                }
                Step::Break(text) => {
                    cx.progress.send(Progress::Text(text.into())).await.unwrap();
                    let error = ModelError::new(ModelErrorKind::Network, "connection lost");
                    Err(ModelError { streamed: true, ..error })
                }
                Step::Hang(text) => {
                    cx.progress.send(Progress::Text(text.into())).await.unwrap();
                    cx.cancel.cancelled().await;
                    Err(ModelError::new(ModelErrorKind::Network, "stopped"))
                }
            }
        })
    }
}

struct FakeTool {
    spec: ToolSpec,
    runs: Arc<Mutex<Vec<String>>>,
    barrier: Option<Arc<tokio::sync::Barrier>>,
}

impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, arguments: &Value) -> String {
        arguments["n"].to_string()
    }

    fn subjects(&self, _arguments: &Value) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    fn run<'a>(
        &'a self,
        _admitted: Admitted,
        arguments: &'a Value,
        _cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            if let Some(barrier) = &self.barrier {
                barrier.wait().await;
            }
            self.runs.lock().unwrap().push(format!("{}{}", self.spec.name, arguments["n"]));
            ToolOutput::ok(format!("ran {}", arguments["n"]), "ok")
        })
    }
}

struct OneModel(Arc<FakeModel>);

impl Models for OneModel {
    fn open(&self, _name: &str) -> Result<Arc<Route>, ErrorInfo> {
        Ok(Route::to(Arc::clone(&self.0) as Arc<dyn Model>))
    }

    fn names(&self) -> Vec<String> {
        vec!["lab/m".into()]
    }
}

struct NoRules;

impl RuleKeeper for NoRules {
    fn keep(&self, _rule: &PermissionRule) -> Result<PathBuf, ErrorInfo> {
        Ok(PathBuf::from("rules.toml"))
    }
}

struct NoPrices;

impl Pricing for NoPrices {
    fn price(&self, _model: &str, _usage: &Usage) -> Option<loon_api::Money> {
        None
    }
}

struct Bench {
    model: Arc<FakeModel>,
    runs: Arc<Mutex<Vec<String>>>,
    deps: Dependencies,
    _dir: tempfile::TempDir,
}

fn bench(steps: impl IntoIterator<Item = Step>) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let info = ModelInfo { name: "lab/m".into(), context_tokens: None, max_output_tokens: None };
    let model = Arc::new(FakeModel {
        info,
        steps: Mutex::new(steps.into_iter().collect()),
        summaries: Mutex::default(),
        requests: Mutex::default(),
    });
    let runs = Arc::new(Mutex::new(Vec::new()));
    let tool_runs = Arc::clone(&runs);
    let deps = Dependencies {
        store: Arc::new(MemoryStore::default()),
        index: crate::index::SessionIndex::in_memory(),
        clock: Arc::new(SystemClock),
        redactor: loon_kernel::Redactor::default(),
        models: Arc::new(OneModel(Arc::clone(&model))),
        tools: Arc::new(move |_| {
            let barrier = Arc::new(tokio::sync::Barrier::new(2));
            Ok(vec![
                tool("look", ToolClass::Reads, &tool_runs, Some(barrier)),
                tool("change", ToolClass::Writes, &tool_runs, None),
            ])
        }),
        remote: Arc::new(loon_kernel::NoRemoteTools),
        policy: Arc::new(Policy::new(RuleSet::default(), None, dir.path().to_path_buf())),
        rules: Arc::new(NoRules),
        pricing: Arc::new(NoPrices),
        circuits: Circuits::new(Arc::new(SystemClock)),
        branch: Arc::new(|| None),
        hooks: crate::hooks::tests::none(),
        worktrees: crate::Worktrees::new(loon_exec::Spawner::new([]), dir.path().join("worktrees")),
        options: SessionOptions {
            cwd: dir.path().to_path_buf(),
            model: Given { value: Some("lab/m".into()), explicit: false },
            mode: Given { value: Mode::Bypass, explicit: true },
            definitions: Vec::new(),
            user_guidance: None,
            limits: Limits { max_steps: 20, tool_timeout: Duration::from_secs(5) },
            context: crate::ContextLimits::default(),
            budget: Budget::default(),
            tools: ToolSet::Full,
            ultra: crate::UltraLoop::default(),
            deadline: Given { value: None, explicit: false },
            unattended: true,
            answer_schema: None,
            remarks: Vec::new(),
        },
        updates: tokio::sync::watch::channel(None).1,
    };
    Bench { model, runs, deps, _dir: dir }
}

fn tool(
    name: &str,
    class: ToolClass,
    runs: &Arc<Mutex<Vec<String>>>,
    barrier: Option<Arc<tokio::sync::Barrier>>,
) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {}}),
        class,
    };
    Arc::new(FakeTool { spec, runs: Arc::clone(runs), barrier })
}

fn answer(parts: Vec<AnswerPart>, stop: StopReason) -> Step {
    Step::Answer(Answer { parts, stop, usage: Usage::default() })
}

fn say(text: &str) -> Step {
    answer(vec![AnswerPart::Text(text.into())], StopReason::End)
}

fn call(name: &str, n: u32) -> AnswerPart {
    AnswerPart::Call { name: name.into(), arguments: json!({"n": n}) }
}

fn calls(parts: Vec<AnswerPart>) -> Step {
    answer(parts, StopReason::ToolCalls)
}

/// Runs prompts one after another, then closes. Gives all events.
async fn run(deps: &Dependencies, choice: SessionChoice, prompts: &[&str]) -> Vec<Envelope> {
    let mut runtime = Runtime::start(deps.clone(), choice);
    let mut left = prompts.iter();
    let mut events = Vec::new();
    if let Some(text) = left.next() {
        runtime.commands.send(Command::Prompt { text: (*text).into() }).await.unwrap();
    }
    while let Some(event) = runtime.events.recv().await {
        if matches!(event.event, AgentEvent::TurnFinished(_)) {
            let next =
                left.next().map_or(Command::Close, |text| Command::Prompt { text: (*text).into() });
            runtime.commands.send(next).await.unwrap();
        }
        events.push((*event).clone());
    }
    events
}

fn finished(events: &[Envelope]) -> &StreamFinished {
    match &events.last().unwrap().event {
        AgentEvent::StreamFinished(finished) => finished,
        other => panic!("the stream ends with {}", other.kind()),
    }
}

fn items(events: &[Envelope]) -> Vec<Item> {
    let mut conversation = Conversation::default();
    for event in events {
        conversation.apply(event.turn, &event.event);
    }
    conversation.items().to_vec()
}

fn statuses(events: &[Envelope]) -> Vec<(String, ToolCallStatus)> {
    items(events)
        .into_iter()
        .filter_map(|item| match item.body {
            ItemBody::ToolCall(call) => Some((item.id.to_string(), call.status)),
            _ => None,
        })
        .collect()
}

fn approve_for_session(approval: ApprovalId) -> Command {
    let rule = PermissionRule {
        tool: "change".into(),
        path_prefix: None,
        command_prefix: None,
        host: None,
    };
    Command::Approve { approval, scope: ApprovalScope::Session, rule: Some(rule) }
}

#[tokio::test]
async fn reading_calls_run_beside_each_other_and_changing_ones_in_order() {
    // The two looks only end once both have begun.
    let bench = bench([
        calls(vec![call("look", 1), call("look", 2), call("change", 3), call("change", 4)]),
        say("done"),
    ]);
    let events = run(&bench.deps, SessionChoice::New, &["go"]).await;
    assert_eq!(finished(&events).outcome, Outcome::Completed);
    let runs = bench.runs.lock().unwrap().clone();
    assert_eq!(runs[2..], ["change3", "change4"]);
    let requests = bench.model.requests.lock().unwrap();
    let Message::Assistant(sent) = &requests[1].messages[1] else { panic!("an answer") };
    assert_eq!(sent.parts.len(), 4);
}

#[tokio::test]
async fn what_was_recorded_is_what_a_resume_sees() {
    let bench = bench([calls(vec![call("change", 1)]), say("one"), say("two")]);
    let first = run(&bench.deps, SessionChoice::New, &["go"]).await;
    let exec = first[0].exec;
    let second = run(&bench.deps, SessionChoice::Resume(exec), &["again"]).await;
    let AgentEvent::SessionOpened(opened) = &second[1].event else { panic!("opened second") };
    assert!(opened.session.resumed);
    assert_eq!(opened.session.items, items(&first));
    assert_eq!(opened.session.title.as_deref(), Some("go"));
    let requests = bench.model.requests.lock().unwrap();
    assert_eq!(requests[2].messages.len(), 4, "{:?}", requests[2].messages);
    assert_eq!(
        requests[2].messages[..3],
        requests[1].messages[..]
            .iter()
            .cloned()
            .chain([Message::Assistant(loon_api::AssistantMessage {
                parts: vec![loon_api::AssistantPart::Text("one".into())]
            })])
            .collect::<Vec<_>>()[..]
    );
    assert!(bench.deps.store.verify(exec).unwrap().is_sound());
}

#[tokio::test]
async fn no_call_of_a_cut_answer_runs_and_the_third_ends_the_turn() {
    let cut = || answer(vec![call("change", 1)], StopReason::Length);
    let bench = bench([cut(), cut(), cut(), cut()]);
    let events = run(&bench.deps, SessionChoice::New, &["go"]).await;
    assert!(bench.runs.lock().unwrap().is_empty());
    assert_eq!(bench.model.requests.lock().unwrap().len(), 3);
    assert_eq!(finished(&events).outcome, Outcome::Stopped);
    assert_eq!(finished(&events).error.as_ref().unwrap().code, ErrorCode::OutputLimit);
    assert!(statuses(&events).iter().all(|(_, status)| *status == ToolCallStatus::Cancelled));
}

#[tokio::test]
async fn an_interrupt_keeps_what_had_arrived_and_says_that_it_is_incomplete() {
    let bench = bench([Step::Hang("half a sen"), say("fine")]);
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::ItemDelta(_) => runtime.commands.send(Command::Interrupt).await.unwrap(),
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
        events.push((*event).clone());
    }
    assert_eq!(finished(&events).outcome, Outcome::Interrupted);
    let words = ItemBody::AssistantMessage { text: "half a sen".into(), incomplete: true };
    assert_eq!(items(&events)[1].body, words);
    let aborted = events.iter().any(|event| {
        matches!(&event.event, AgentEvent::EffectFinished(end) if end.status == EffectStatus::Aborted)
    });
    assert!(aborted);
}

#[tokio::test]
async fn a_stop_after_the_step_lets_its_calls_end() {
    let mut bench = bench([calls(vec![call("change", 1), call("change", 2)]), say("never asked")]);
    bench.deps.options.mode.value = Mode::Default;
    bench.deps.options.unattended = false;
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut status = None;
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::ApprovalRequested(request) => {
                runtime.commands.send(Command::StopAfterStep).await.unwrap();
                let approval = request.approval.id.clone();
                let approve = Command::Approve { approval, scope: ApprovalScope::Once, rule: None };
                runtime.commands.send(approve).await.unwrap();
            }
            AgentEvent::TurnFinished(finished) => {
                status = Some(finished.status);
                runtime.commands.send(Command::Close).await.unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(status, Some(TurnStatus::Interrupted));
    assert_eq!(*bench.runs.lock().unwrap(), ["change1", "change2"]);
    assert_eq!(bench.model.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn steering_reaches_the_model_at_the_next_step() {
    let bench = bench([calls(vec![call("change", 1)]), say("done")]);
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    runtime.commands.send(Command::Steer { text: "and test it".into() }).await.unwrap();
    let mut steered = false;
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::ItemCompleted(completed) => {
                steered |= completed.item.body
                    == ItemBody::UserMessage { text: "and test it".into(), steer: true };
            }
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
    }
    assert!(steered || bench.model.requests.lock().unwrap().len() >= 2);
    let requests = bench.model.requests.lock().unwrap();
    let last = requests.last().unwrap();
    assert!(format!("{:?}", last.messages).contains("and test it"));
}

fn offered(bench: &Bench, request: usize) -> Vec<String> {
    let requests = bench.model.requests.lock().unwrap();
    requests[request].tools.iter().map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn the_step_limit_stops_a_turn_that_would_go_on_for_ever() {
    let mut bench = bench((0..9).map(|n| calls(vec![call("change", n)])));
    bench.deps.options.limits.max_steps = 3;
    let events = run(&bench.deps, SessionChoice::New, &["go"]).await;
    assert_eq!(bench.runs.lock().unwrap().len(), 3);
    assert_eq!(finished(&events).error.as_ref().unwrap().code, ErrorCode::TurnLimit);
}

#[tokio::test]
async fn empty_answers_are_asked_again_and_never_stored() {
    let empty = || answer(Vec::new(), StopReason::End);
    let bench = bench([empty(), say("there")]);
    let events = run(&bench.deps, SessionChoice::New, &["go"]).await;
    assert_eq!(finished(&events).message.as_deref(), Some("there"));
    assert_eq!(items(&events).len(), 2);
}

#[tokio::test]
async fn a_wrong_structured_answer_is_sent_back_once_then_fails() {
    let schema = json!({"type": "object", "required": ["n"]});
    let mut right = bench([say("no"), say("{\"n\": 1}")]);
    right.deps.options.answer_schema = Some(schema.clone());
    let events = run(&right.deps, SessionChoice::New, &["go"]).await;
    assert_eq!(finished(&events).outcome, Outcome::Completed);
    let mut wrong = bench([say("no"), say("still no")]);
    wrong.deps.options.answer_schema = Some(schema);
    let events = run(&wrong.deps, SessionChoice::New, &["go"]).await;
    assert_eq!(finished(&events).outcome, Outcome::Failed);
    assert_eq!(finished(&events).error.as_ref().unwrap().code, ErrorCode::Invalid);
}

#[tokio::test]
async fn a_failed_request_ends_the_turn_with_its_kind_and_the_session_goes_on() {
    let refused = ModelError::new(ModelErrorKind::Auth, "bad key");
    let bench = bench([Step::Fail(refused), say("hello")]);
    let events = run(&bench.deps, SessionChoice::New, &["go", "again"]).await;
    let turns: Vec<TurnStatus> = events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::TurnFinished(finished) => Some(finished.status),
            _ => None,
        })
        .collect();
    assert_eq!(turns, [TurnStatus::Failed, TurnStatus::Completed]);
    let requests = bench.model.requests.lock().unwrap();
    assert_eq!(requests[1].messages.len(), 1, "two prompts are one message of the user");
}

#[tokio::test]
async fn a_broken_answer_is_dropped_and_asked_for_anew_once() {
    let once = bench([Step::Break("Hel"), say("Hello")]);
    let events = run(&once.deps, SessionChoice::New, &["go"]).await;
    assert_eq!(finished(&events).message.as_deref(), Some("Hello"));
    let words = ItemBody::AssistantMessage { text: "Hello".into(), incomplete: false };
    assert_eq!(items(&events).last().unwrap().body, words);
    assert_eq!(items(&events).len(), 2);
    let dropped = events.iter().any(|event| matches!(event.event, AgentEvent::ItemDropped(_)));
    assert!(dropped);
    let requests = once.model.requests.lock().unwrap().clone();
    assert_eq!(requests[0].messages, requests[1].messages);

    let twice = bench([Step::Break("Hel"), Step::Break("Hell"), say("Hello")]);
    let events = run(&twice.deps, SessionChoice::New, &["go"]).await;
    assert_eq!(finished(&events).outcome, Outcome::Failed);
    let words = ItemBody::AssistantMessage { text: "Hell".into(), incomplete: true };
    assert_eq!(items(&events).last().unwrap().body, words);
}

#[tokio::test]
async fn a_rewind_gives_the_text_back_and_the_model_forgets() {
    let bench = bench([say("one"), say("two"), say("three")]);
    let first = run(&bench.deps, SessionChoice::New, &["a", "b\nmore"]).await;
    let exec = first[0].exec;
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::Resume(exec));
    runtime.commands.send(Command::Rewind { to: ItemId::user(2, 0), files: false }).await.unwrap();
    runtime.commands.send(Command::Prompt { text: "c".into() }).await.unwrap();
    let mut draft = None;
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::SessionRewound(rewound) => draft = Some(rewound.text.clone()),
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
    }
    assert_eq!(draft.as_deref(), Some("b\nmore"));
    let requests = bench.model.requests.lock().unwrap();
    let sent = format!("{:?}", requests[2].messages);
    assert!(sent.contains("one") && !sent.contains("two"), "{sent}");
}

#[tokio::test]
async fn a_session_that_is_not_there_is_a_usage_error() {
    let bench = bench([]);
    let missing = ExecutionId::generate();
    let events = run(&bench.deps, SessionChoice::Resume(missing), &[]).await;
    assert_eq!(finished(&events).outcome, Outcome::Usage);
    assert_eq!(finished(&events).error.as_ref().unwrap().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn lists_show_sessions_that_have_a_turn_newest_first() {
    let bench = bench([say("one"), say("two")]);
    let first = run(&bench.deps, SessionChoice::New, &["find the leak\nplease"]).await[0].exec;
    let second = run(&bench.deps, SessionChoice::New, &["again"]).await[0].exec;
    let mut empty = Runtime::start(bench.deps.clone(), SessionChoice::New);
    empty.commands.send(Command::Close).await.unwrap();
    while empty.events.recv().await.is_some() {}
    let cwd = bench.deps.options.cwd.display().to_string();
    let store = bench.deps.store.as_ref();
    let of = |cwd: &str| crate::index::Filter { cwd: Some(cwd.to_owned()), ..Default::default() };
    let listed = bench.deps.index.list(store, &of(&cwd)).unwrap();
    let shown: Vec<_> =
        listed.iter().map(|one| (one.exec, one.title.as_str(), one.turns)).collect();
    assert_eq!(shown, [(second, "again", 1), (first, "find the leak", 1)]);
    assert_eq!(crate::sessions::newest_session(store, &cwd).unwrap(), Some(second));
    assert!(bench.deps.index.list(store, &of("/elsewhere")).unwrap().is_empty());
}

#[tokio::test]
async fn a_long_session_opens_with_its_newest_items_and_asks_with_all() {
    let bench = bench((0..210).map(|n| say(&format!("answer {n}"))));
    let prompts: Vec<String> = (0..210).map(|n| format!("prompt {n}")).collect();
    let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let first = run(&bench.deps, SessionChoice::New, &prompts).await;
    let second = run(&bench.deps, SessionChoice::Resume(first[0].exec), &["more"]).await;
    let AgentEvent::SessionOpened(opened) = &second[1].event else { panic!("opened second") };
    assert_eq!(opened.session.items, items(&first)[220..]);
    assert!(opened.session.more);
    let requests = bench.model.requests.lock().unwrap();
    assert_eq!(requests.last().unwrap().messages.len(), 421);
}
