//! Tool calls.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{Decision, EffectStatus, TurnStarted};
use loon_api::{
    AgentEvent, Envelope, ErrorCode, Item, Mode, PermissionRule, ToolCallStatus, ToolClass,
    ToolResult,
};
use serde_json::json;

use super::super::tool::shortened;
use crate::tree::{Budget, Tree};

use super::super::{Authority, Gate, GateOptions, ToolEffect, Verdict};
use super::{
    Behaviour, FakeModel, FakeTool, Fixed, House, Person, answer, ask, call, cents, house, of,
    options, request, said, text, tokens,
};
use crate::error::KernelError;
use crate::execution::Execution;
use crate::fold::ExecutionState;
use crate::recorder::Recorder;
use crate::secrets::Redactor;
use crate::store::{JournalStore, JournalWriter, StoreError, SyncJob};

fn second(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn spawn(
    gate: &Arc<Gate>,
    effect: ToolEffect<'static>,
) -> tokio::task::JoinHandle<Item> {
    let gate = Arc::clone(gate);
    tokio::spawn(async move { gate.tool(effect).await.unwrap() })
}

fn ask_verdict(always: Option<&str>) -> Verdict {
    let always = always.map(|prefix| PermissionRule {
        tool: "t".to_owned(),
        path_prefix: None,
        command_prefix: Some(prefix.to_owned()),
        host: None,
    });
    Verdict::Ask { reasons: vec!["no rule".to_owned()], always }
}

fn asking(person: Person, tool: &Arc<FakeTool>) -> (GateOptions, Arc<Person>) {
    let person = Arc::new(person);
    let options = GateOptions {
        authorities: vec![Arc::new(Fixed(ask_verdict(Some("x"))))],
        approver: Arc::<Person>::clone(&person),
        ..options(vec![Arc::<FakeTool>::clone(tool)])
    };
    (options, person)
}

async fn begin_turn(house: &House) {
    let turn = TurnStarted { model: "lab/coder".to_owned(), mode: Mode::Default, branch: None };
    house.execution.recorder().record(Some(1), turn).await.unwrap();
}

#[tokio::test]
async fn a_changing_call_is_recorded_before_it_runs_and_a_reading_one_only_after() {
    for (class, kinds) in [
        (ToolClass::Writes, vec!["effect.started", "item.completed", "effect.finished"]),
        (ToolClass::Executes, vec!["effect.started", "item.completed", "effect.finished"]),
        (ToolClass::Session, vec!["effect.started", "item.completed", "effect.finished"]),
        (ToolClass::Reads, vec!["item.completed", "effect.finished"]),
        (ToolClass::Network, vec!["item.completed", "effect.finished"]),
    ] {
        let mut house = house(None).await;
        let tool = FakeTool::new("t", class, Behaviour::Answers);
        let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&tool)]));
        let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
        assert_eq!(house.kinds(), kinds, "{class:?}");
        let done = of(&item);
        assert_eq!((done.status, done.title.as_str()), (ToolCallStatus::Done, "x"));
        assert_eq!((done.summary.as_str(), done.ms), ("fine", Some(0)));
        assert_eq!(done.result, Some(ToolResult::ok("ok")));
        assert_eq!(house.end().status, EffectStatus::Completed);
        let mut shown = Vec::new();
        while let Ok(event) = house.events.try_recv() {
            if let AgentEvent::ItemStarted(event) = &event.event {
                shown.push(of(&event.item).status);
            }
        }
        assert_eq!(shown, [ToolCallStatus::Running]);
    }
}

#[tokio::test]
async fn a_failure_of_the_tool_itself_is_an_answer() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::Fails);
    let gate = house.gate(options(vec![tool]));
    let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!((of(&item).status, text(&item)), (ToolCallStatus::Failed, "exit 1"));
    assert_eq!(house.end().status, EffectStatus::Completed);
}

#[tokio::test]
async fn unknown_tools_and_wrong_arguments_are_told_to_the_model() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Reads, Behaviour::Answers);
    let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&tool)]));
    let cases = [
        (
            "u",
            json!({}),
            ErrorCode::NotFound,
            "There is no tool `u`. Call one of the tools you were given.",
        ),
        ("t", json!("{\"line\":"), ErrorCode::Invalid, "not valid JSON"),
        ("t", json!({}), ErrorCode::Invalid, "`line` is missing"),
    ];
    for (index, (name, arguments, code, words)) in (0..).zip(cases) {
        let item = gate.tool(call(index, name, arguments)).await.unwrap();
        assert_eq!(of(&item).status, ToolCallStatus::Failed);
        assert!(text(&item).contains(words), "{}", text(&item));
        assert!(of(&item).result.as_ref().unwrap().is_error);
        let end = house.end();
        assert_eq!((end.status, end.error.unwrap().code), (EffectStatus::Denied, code));
    }
    assert_eq!(tool.runs(), 0);
    assert_eq!(house.kinds(), ["item.completed", "effect.finished"].repeat(3));
}

#[tokio::test]
async fn all_authorities_must_allow() {
    let deny = || Verdict::Deny { reasons: vec!["deny rule".to_owned()] };
    let cases = [
        (vec![], true),
        (vec![Verdict::Allow, Verdict::Allow], true),
        (vec![Verdict::Allow, ask_verdict(None)], false),
        (vec![ask_verdict(None), deny(), Verdict::Allow], false),
    ];
    for (verdicts, runs) in cases {
        let house = house(None).await;
        let tool = FakeTool::new("t", ToolClass::Writes, Behaviour::Answers);
        let authorities =
            verdicts.iter().map(|verdict| Arc::new(Fixed(verdict.clone())) as Arc<dyn Authority>);
        let gate = house.gate(GateOptions {
            authorities: authorities.collect(),
            ..options(vec![Arc::<FakeTool>::clone(&tool)])
        });
        let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
        assert_eq!(tool.runs() == 1, runs);
        if verdicts.contains(&deny()) {
            assert_eq!(text(&item), "Not run: permission denied. deny rule");
            assert_eq!(house.kinds(), ["item.completed", "effect.finished"], "nobody was asked");
            assert_eq!(of(&item).status, ToolCallStatus::Denied);
        }
    }
}

#[tokio::test]
async fn an_approval_shows_exactly_what_will_run() {
    let mut house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::Answers);
    let (options, person) = asking(Person::new(Some(Decision::Approved)), &tool);
    let item = house.gate(options).tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!(of(&item).status, ToolCallStatus::Done);
    let asked = person.asked.lock().unwrap().pop().unwrap();
    assert_eq!((asked.detail.as_str(), asked.cwd.as_str()), ("exactly x", "~/w"));
    assert_eq!((asked.item, asked.reasons), (item.id, vec!["no rule".to_owned()]));
    assert_eq!(asked.always.unwrap().command_prefix.as_deref(), Some("x"));
    let kinds = [
        "approval.requested",
        "approval.resolved",
        "effect.started",
        "item.completed",
        "effect.finished",
    ];
    assert_eq!(house.kinds(), kinds);
    let mut shown = Vec::new();
    while let Ok(event) = house.events.try_recv() {
        if let AgentEvent::ItemStarted(event) = &event.event {
            shown.push(of(&event.item).status);
        }
    }
    assert_eq!(shown, [ToolCallStatus::Asking, ToolCallStatus::Running]);
}

#[tokio::test]
async fn a_rule_for_always_is_offered_only_if_it_satisfies_all_who_ask() {
    for (second, offered) in [(Some("x"), true), (Some("y"), false), (None, false)] {
        let house = house(None).await;
        let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::Answers);
        let (mut options, person) = asking(Person::new(Some(Decision::Approved)), &tool);
        options.authorities.push(Arc::new(Fixed(ask_verdict(second))));
        house.gate(options).tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
        assert_eq!(person.asked.lock().unwrap()[0].always.is_some(), offered);
    }
}

#[tokio::test]
async fn a_rule_for_always_that_would_be_recorded_masked_is_not_offered() {
    let house = house(None).await;
    let known = [("LAB_KEY".to_owned(), "lab-secret-1".to_owned())];
    house.execution.recorder().redactor().learn(known);
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::Answers);
    let (mut options, person) = asking(Person::new(Some(Decision::Approved)), &tool);
    options.authorities = vec![Arc::new(Fixed(ask_verdict(Some("login lab-secret-1"))))];
    house.gate(options).tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!(person.asked.lock().unwrap()[0].always, None);
}

#[tokio::test]
async fn a_no_reaches_the_model_with_its_reason() {
    let cases = [
        (Decision::Denied, "Not run: permission denied. The user said no: use rg"),
        (
            Decision::NobodyToAsk,
            "Not run: permission denied. It needs an approval, and nobody is there to give it. no rule",
        ),
    ];
    for (decision, words) in cases {
        let house = house(None).await;
        let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::Answers);
        let (options, _) = asking(Person::new(Some(decision)), &tool);
        let item = house.gate(options).tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
        assert_eq!((of(&item).status, text(&item)), (ToolCallStatus::Denied, words));
        assert_eq!(tool.runs(), 0);
        let end = house.end();
        assert_eq!(
            (end.status, end.error.unwrap().code),
            (EffectStatus::Denied, ErrorCode::Denied)
        );
    }
}

#[tokio::test]
async fn a_question_is_withdrawn_when_the_turn_is_stopped() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::Answers);
    let (options, person) = asking(Person::new(None), &tool);
    let gate = house.gate(options);
    let effect = call(0, "t", json!({"line": "x"}));
    let cancel = effect.cancel.clone();
    let running = spawn(&gate, effect);
    person.asking.notified().await;
    cancel.cancel();
    let item = running.await.unwrap();
    assert_eq!(of(&item).status, ToolCallStatus::Cancelled);
    assert_eq!(house.end().status, EffectStatus::Aborted);
    let resolved = house.records().into_iter().find_map(|record| match record.event {
        AgentEvent::ApprovalResolved(event) => Some(event.decision),
        _ => None,
    });
    assert_eq!(resolved, Some(Decision::Withdrawn));
}

#[tokio::test]
async fn waiting_for_a_person_costs_neither_timeout_nor_deadline() {
    let house = house(Some(second(60))).await;
    begin_turn(&house).await;
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::EndsWhenAsked);
    let mut person = Person::new(Some(Decision::Approved));
    person.waits = true;
    let (options, person) = asking(person, &tool);
    let gate = house.gate(options);
    let running = spawn(&gate, call(0, "t", json!({"line": "x", "seconds": 5})));
    person.asking.notified().await;
    house.clock.advance(second(3600));
    person.go.notify_one();
    tool.running.notified().await;
    house.clock.sleeper(second(5)).await;
    assert_eq!(house.execution.remaining(), Some(second(60)));
    house.clock.advance(second(5));
    let item = running.await.unwrap();
    assert_eq!((of(&item).status, of(&item).ms), (ToolCallStatus::Failed, Some(5000)));
    assert_eq!(house.end().status, EffectStatus::TimedOut);
    assert_eq!(
        text(&item),
        "half\n\nThe call was stopped before its end: the time limit of 5 s passed."
    );
}

#[tokio::test]
async fn the_time_limit_of_the_session_holds_where_a_tool_names_none() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Reads, Behaviour::EndsWhenAsked);
    let tool_timeout = Some(second(9));
    let gate = house.gate(GateOptions { tool_timeout, ..options(vec![tool]) });
    let running = spawn(&gate, call(0, "t", json!({"line": "x"})));
    house.clock.sleeper(second(9)).await;
    house.clock.advance(second(9));
    assert_eq!(
        of(&running.await.unwrap()).error.as_ref().unwrap().code,
        ErrorCode::DeadlineExceeded
    );
}

#[tokio::test]
async fn a_stopped_call_gets_half_a_second_and_is_then_dropped() {
    for behaviour in [Behaviour::EndsWhenAsked, Behaviour::Hangs] {
        let house = house(None).await;
        let tool = FakeTool::new("t", ToolClass::Executes, behaviour);
        let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&tool)]));
        let effect = call(0, "t", json!({"line": "x"}));
        let cancel = effect.cancel.clone();
        let running = spawn(&gate, effect);
        tool.running.notified().await;
        cancel.cancel();
        let words = if behaviour == Behaviour::Hangs {
            house.clock.sleeper(Duration::from_millis(500)).await;
            house.clock.advance(Duration::from_millis(500));
            "The call was stopped before its end, and what it had done until then stands"
        } else {
            "half\n\nThe call was stopped before its end"
        };
        let item = running.await.unwrap();
        assert_eq!(of(&item).status, ToolCallStatus::Cancelled);
        assert!(text(&item).starts_with(words), "{}", text(&item));
        let end = house.end();
        assert_eq!((end.status, end.ms), (EffectStatus::Aborted, of(&item).ms.unwrap()));
    }
}

#[tokio::test]
async fn a_cancel_of_the_execution_stops_a_call_in_the_middle_and_comes_last() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::EndsWhenAsked);
    let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&tool)]));
    let running = spawn(&gate, call(0, "t", json!({"line": "x"})));
    tool.running.notified().await;
    assert!(house.execution.cancel(Some("enough".to_owned())).await.unwrap());
    assert_eq!(of(&running.await.unwrap()).status, ToolCallStatus::Cancelled);
    let kinds = ["effect.started", "item.completed", "effect.finished", "execution.cancelled"];
    assert_eq!(house.kinds(), kinds);
    let late = gate.tool(call(1, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!((of(&late).status, tool.runs()), (ToolCallStatus::Cancelled, 1));
    assert_eq!(house.kinds(), kinds);
}

#[tokio::test]
async fn a_cancel_from_another_process_reaches_a_running_call() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::EndsWhenAsked);
    let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&tool)]));
    let running = spawn(&gate, call(0, "t", json!({"line": "x"})));
    tool.running.notified().await;
    let exec = house.execution.exec();
    let clock = house.clock.clone();
    let mode = crate::CancelMode::Now;
    let cancelled = crate::cancel_by_id(
        house.store.as_ref(),
        &clock,
        &crate::Redactor::default(),
        exec,
        mode,
        None,
    )
    .unwrap();
    assert_eq!(cancelled, crate::Cancelled::Now);
    let item = running.await.unwrap();
    assert!(of(&item).status.is_final());
    assert!(text(&item).contains("taken over"), "{}", text(&item));
    assert_eq!(house.kinds(), ["effect.started", "effect.finished", "execution.cancelled"]);
}

#[tokio::test]
async fn the_deadline_ends_a_running_call_and_denies_the_next() {
    let house = house(Some(second(60))).await;
    begin_turn(&house).await;
    house.clock.advance(second(20));
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::EndsWhenAsked);
    let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&tool)]));
    let running = spawn(&gate, call(0, "t", json!({"line": "x"})));
    house.clock.sleeper(second(40)).await;
    house.clock.advance(second(40));
    let item = running.await.unwrap();
    assert!(text(&item).contains("the deadline of 60 s passed"), "{}", text(&item));
    let next = gate.tool(call(1, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!(text(&next), "Not run: the deadline of 60 s passed.");
    assert_eq!(of(&next).error.as_ref().unwrap().code, ErrorCode::DeadlineExceeded);
    let model = Arc::new(FakeModel::new([]));
    let failure = gate.model(ask(1, &model, &request()), said(1)).await.unwrap_err();
    assert_eq!(failure.status, EffectStatus::TimedOut);
    assert_eq!((tool.runs(), model.requests()), (1, 0));
}

#[tokio::test]
async fn a_spent_budget_denies_tools_except_for_requests() {
    for (budget, runs) in [
        (Budget { max_usd: Some(cents(1)), ..Budget::default() }, 0),
        (Budget { max_requests: Some(1), ..Budget::default() }, 1),
    ] {
        let house = house(None).await;
        let tool = FakeTool::new("t", ToolClass::Reads, Behaviour::Answers);
        let tools: Vec<Arc<dyn crate::port::Tool>> = vec![Arc::<FakeTool>::clone(&tool)];
        let tree = Tree::new(budget, None);
        let gate = house.gate(GateOptions { tree, ..options(tools) });
        let model = Arc::new(FakeModel::new([Ok(answer("a", tokens(1, 0)))]));
        gate.model(ask(0, &model, &request()), said(0)).await.unwrap();
        let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
        assert_eq!(tool.runs(), runs);
        if runs == 0 {
            assert_eq!(text(&item), "Not run: the budget of $0.01 is spent ($0.01 used).");
            assert_eq!(of(&item).error.as_ref().unwrap().code, ErrorCode::QuotaExceeded);
        }
    }
}

#[tokio::test]
async fn reading_calls_run_beside_each_other() {
    let house = house(None).await;
    let tools: Vec<_> = ["a", "b", "c"]
        .map(|name| FakeTool::new(name, ToolClass::Reads, Behaviour::EndsWhenAsked))
        .into_iter()
        .collect();
    let ports = tools.iter().map(|tool| Arc::<FakeTool>::clone(tool) as Arc<dyn crate::port::Tool>);
    let gate = house.gate(options(ports.collect()));
    let cancel = tokio_util::sync::CancellationToken::new();
    let calls: Vec<_> = (0..)
        .zip(&tools)
        .map(|(index, tool)| {
            let effect = call(index, &tool.spec.name, json!({"line": "x"}));
            spawn(&gate, ToolEffect { cancel: cancel.clone(), ..effect })
        })
        .collect();
    for tool in &tools {
        tool.running.notified().await;
    }
    cancel.cancel();
    for call in calls {
        assert_eq!(of(&call.await.unwrap()).status, ToolCallStatus::Cancelled);
    }
    assert_eq!(house.kinds(), ["item.completed", "effect.finished"].repeat(3));
}

#[tokio::test]
async fn a_tool_that_panics_is_a_failed_call() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::Panics);
    let gate = house.gate(options(vec![tool]));
    let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!(of(&item).status, ToolCallStatus::Failed);
    assert_eq!(text(&item), "The call failed: the tool broke down: out of cheese.");
    assert_eq!(house.end().status, EffectStatus::Failed);
}

#[tokio::test]
async fn a_finished_call_is_not_run_again_even_after_a_restart() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Writes, Behaviour::Answers);
    let tools = || -> Vec<Arc<dyn crate::port::Tool>> { vec![Arc::<FakeTool>::clone(&tool)] };
    let gate = house.gate(options(tools()));
    let first = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    let denied = gate.tool(call(1, "u", json!({}))).await.unwrap();
    assert_eq!(gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap(), first);
    let (exec, store) = (house.execution.exec(), Arc::clone(&house.store));
    drop((gate, house));

    let clock = crate::ManualClock::new(loon_api::At::from_unix_ms(1_796_040_009_000));
    let (events, _reader) = tokio::sync::mpsc::channel(64);
    let port: Arc<dyn JournalStore> = store;
    let resumed =
        Execution::resume(port, Arc::new(clock), Redactor::default(), exec, events, &mut |_| {})
            .await
            .unwrap();
    let gate = Gate::new(&resumed, options(tools()));
    assert_eq!(gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap(), first);
    assert_eq!(gate.tool(call(1, "u", json!({}))).await.unwrap(), denied);
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn a_call_whose_end_is_unknown_is_shown_so_and_not_repeated() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Writes, Behaviour::Hangs);
    let tools = || -> Vec<Arc<dyn crate::port::Tool>> { vec![Arc::<FakeTool>::clone(&tool)] };
    let gate = house.gate(options(tools()));
    let running = spawn(&gate, call(0, "t", json!({"line": "x"})));
    tool.running.notified().await;
    // As if the process had been killed.
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let (exec, store) = (house.execution.exec(), Arc::clone(&house.store));
    drop((gate, house));

    let clock = crate::ManualClock::new(loon_api::At::from_unix_ms(1_796_040_009_000));
    let (events, _reader) = tokio::sync::mpsc::channel(64);
    let port: Arc<dyn JournalStore> = Arc::<crate::MemoryStore>::clone(&store);
    let resumed =
        Execution::resume(port, Arc::new(clock), Redactor::default(), exec, events, &mut |_| {})
            .await
            .unwrap();
    let gate = Gate::new(&resumed, options(tools()));
    let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!(of(&item).status, ToolCallStatus::Unknown);
    assert!(text(&item).contains("Look before you repeat it"));
    assert_eq!(tool.runs(), 1);
    let last = store.read(exec).unwrap().last().unwrap().unwrap();
    let AgentEvent::ItemCompleted(recorded) = last.event else { panic!("{last:?}") };
    assert_eq!(recorded.item, item);
}

/// A journal whose disk has no room for items, only for shorter records.
struct NearlyFull;

impl JournalWriter for NearlyFull {
    fn append(&mut self, batch: &[Envelope]) -> Result<(), StoreError> {
        if batch.iter().any(|record| matches!(record.event, AgentEvent::ItemCompleted(_))) {
            let source = std::io::ErrorKind::StorageFull.into();
            return Err(StoreError::Io { action: "write", path: "/j".into(), source });
        }
        Ok(())
    }

    fn sync_job(&mut self) -> SyncJob {
        Box::new(|| Ok(()))
    }

    fn take_lease(&mut self) -> bool {
        true
    }

    fn taken_over(&self) -> loon_api::BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_call_whose_end_cannot_be_recorded_is_an_error() {
    let house = house(None).await;
    let (events, _reader) = tokio::sync::mpsc::channel(64);
    let recorder = Recorder::new(
        house.execution.exec(),
        Arc::new(house.clock.clone()),
        Redactor::default(),
        events,
        Box::new(NearlyFull),
        ExecutionState::default(),
    );
    let port: Arc<dyn JournalStore> = Arc::<crate::MemoryStore>::clone(&house.store);
    let execution = Execution::new(recorder, port, None);
    let tool = FakeTool::new("t", ToolClass::Writes, Behaviour::Answers);
    let gate = Gate::new(&execution, options(vec![Arc::<FakeTool>::clone(&tool)]));
    let error = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap_err();
    assert_eq!(tool.runs(), 1);
    assert!(matches!(error, KernelError::Store(StoreError::Io { .. })), "{error}");
}

#[tokio::test]
async fn arguments_that_are_no_object_are_told_why() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Reads, Behaviour::Answers);
    let gate = house.gate(options(vec![tool]));
    let cases = [
        (json!("{\"a\": \"\\ud800\"}"), "not valid JSON: ", "Send a JSON object."),
        (json!([]), "not a JSON object.", "Send an object."),
        (json!("[]"), "not a JSON object.", "Send an object."),
    ];
    for (index, (arguments, what, remedy)) in (0..).zip(cases) {
        let item = gate.tool(call(index, "t", arguments)).await.unwrap();
        let text = of(&item).result.clone().unwrap().text;
        assert!(text.contains(what) && text.ends_with(remedy), "{text}");
    }
}

#[test]
fn a_long_text_keeps_its_beginning_and_its_end() {
    assert_eq!(shortened("short".to_owned(), 5), "short");
    let long = format!("begins {} ends", "é".repeat(1000));
    let text = shortened(long.clone(), 100);
    assert!(text.starts_with("begins é") && text.ends_with("é ends") && text.len() < 150, "{text}");
    assert!(text.contains("[... ") && text.contains(" bytes omitted ...]"), "{text}");
}
