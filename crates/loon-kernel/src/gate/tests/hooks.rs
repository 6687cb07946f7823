//! Hooks around calls, and hooks as effects.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loon_api::event::{Decision, EffectKind, EffectStatus};
use loon_api::{AgentEvent, BoxFuture, EffectKey, ErrorCode, ToolCallStatus, ToolClass};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::{
    CallHooks, Gate, GateOptions, HookedCall, HooksSay, StepEffect, StepOutput, Verdict,
};
use super::{Behaviour, FakeTool, Fixed, House, Person, call, house, of, options, text};
use crate::tree::{Budget, Tree};

/// Says what it is told to say, and keeps what it was asked.
struct Saying {
    says: HooksSay,
    asked: Mutex<Vec<String>>,
}

impl Saying {
    fn new(says: HooksSay) -> Arc<Self> {
        Arc::new(Self { says, asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl CallHooks for Saying {
    fn before<'a>(&'a self, call: HookedCall<'a>) -> BoxFuture<'a, HooksSay> {
        self.asked.lock().unwrap().push(format!("before {}", call.call.tool));
        Box::pin(async { self.says.clone() })
    }

    fn after<'a>(&'a self, call: HookedCall<'a>) -> BoxFuture<'a, ()> {
        self.asked.lock().unwrap().push(format!("after {:?}", call.call.status));
        Box::pin(std::future::ready(()))
    }
}

fn hooked(house: &House, options: GateOptions, hooks: &Arc<Saying>) -> Gate {
    Gate::new(&house.execution, options).hooked(Arc::<Saying>::clone(hooks))
}

fn judged(tool: &Arc<FakeTool>, verdict: Verdict, person: &Arc<Person>) -> GateOptions {
    GateOptions {
        authorities: vec![Arc::new(Fixed(verdict))],
        approver: Arc::<Person>::clone(person),
        ..options(vec![Arc::<FakeTool>::clone(tool)])
    }
}

fn asks() -> Verdict {
    Verdict::Ask { reasons: vec!["no rule".to_owned()], always: None }
}

fn person(decision: Decision) -> Arc<Person> {
    Arc::new(Person::new(Some(decision)))
}

#[tokio::test]
async fn h201_hooks_are_not_even_asked_about_a_denied_call() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Writes, Behaviour::Answers);
    let hooks = Saying::new(HooksSay::Nothing);
    let denied = Verdict::Deny { reasons: vec!["a rule".to_owned()] };
    let gate = hooked(&house, judged(&tool, denied, &person(Decision::Approved)), &hooks);
    let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!((of(&item).status, tool.runs()), (ToolCallStatus::Denied, 0));
    assert_eq!(hooks.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_hook_that_denies_is_heard_before_a_person_is_asked() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Writes, Behaviour::Answers);
    let hooks = Saying::new(HooksSay::Deny("Not on a Friday.".to_owned()));
    let someone = person(Decision::Approved);
    let gate = hooked(&house, judged(&tool, asks(), &someone), &hooks);
    let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!((of(&item).status, tool.runs()), (ToolCallStatus::Denied, 0));
    assert!(text(&item).ends_with("Not on a Friday."), "{}", text(&item));
    assert!(someone.asked.lock().unwrap().is_empty());
    // What did not run has no end to tell of.
    assert_eq!(hooks.asked(), ["before t"]);
}

#[tokio::test]
async fn h201_a_hook_without_objection_skips_no_question() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Writes, Behaviour::Answers);
    let hooks = Saying::new(HooksSay::Nothing);
    let someone = person(Decision::Denied);
    let gate = hooked(&house, judged(&tool, asks(), &someone), &hooks);
    let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!((of(&item).status, tool.runs()), (ToolCallStatus::Denied, 0));
    assert_eq!(someone.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_hook_can_have_a_person_asked_about_what_is_allowed() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Writes, Behaviour::Answers);
    let hooks = Saying::new(HooksSay::Ask(vec!["Sure?".to_owned()]));
    let someone = person(Decision::Approved);
    let gate = hooked(&house, judged(&tool, Verdict::Allow, &someone), &hooks);
    let item = gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!((of(&item).status, tool.runs()), (ToolCallStatus::Done, 1));
    let asked = someone.asked.lock().unwrap();
    assert_eq!((asked.len(), asked[0].reasons.as_slice()), (1, ["Sure?".to_owned()].as_slice()));
    assert_eq!(hooks.asked(), ["before t", "after Done"]);
}

#[tokio::test]
async fn what_the_user_asks_for_passes_no_hooks() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Writes, Behaviour::Fails);
    let hooks = Saying::new(HooksSay::Deny("never".to_owned()));
    let someone = person(Decision::Approved);
    let gate = hooked(&house, judged(&tool, Verdict::Allow, &someone), &hooks);
    let mut effect = call(0, "t", json!({"line": "x"}));
    effect.by_user = true;
    gate.tool(effect).await.unwrap();
    assert_eq!((tool.runs(), hooks.asked().len()), (1, 0));
}

fn effect(timeout: Option<Duration>) -> StepEffect {
    StepEffect {
        key: EffectKey::new("t1/hook/Stop/0"),
        target: "Stop: ./check".to_owned(),
        timeout,
        cancel: CancellationToken::new(),
    }
}

#[tokio::test]
async fn a_hook_is_a_recorded_effect_of_its_own_kind_that_no_budget_stops() {
    let house = house(None).await;
    let budget = Budget { max_tokens: Some(0), ..Budget::default() };
    let options = GateOptions { tree: Tree::new(budget, None), ..options(vec![]) };
    let gate = house.gate(options);
    let done = gate
        .hook(Some(1), effect(None), |_, _| async { Ok(StepOutput::from(json!({"a": 1}))) })
        .await
        .unwrap();
    assert_eq!(done.value, json!({"a": 1}));
    let records = house.records();
    let AgentEvent::EffectStarted(started) = &records[0].event else { panic!("{records:?}") };
    assert_eq!((started.kind, started.target.as_str()), (EffectKind::Hook, "Stop: ./check"));
    assert_eq!((records[0].turn, records[1].turn), (Some(1), Some(1)));
    assert_eq!(house.end().status, EffectStatus::Completed);
}

#[tokio::test]
async fn h193_a_hook_past_its_time_is_told_to_end() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let told = Arc::new(Mutex::new(false));
    let hears = Arc::clone(&told);
    let hook = gate.hook(None, effect(Some(Duration::from_secs(3))), |_, stop| async move {
        stop.cancelled().await;
        *hears.lock().unwrap() = true;
        Ok(StepOutput::default())
    });
    let later = async {
        while !house.clock.is_sleeper(Duration::from_secs(3)) {
            tokio::task::yield_now().await;
        }
        house.clock.advance(Duration::from_secs(3));
    };
    let (done, ()) = tokio::join!(hook, later);
    let failure = done.unwrap_err();
    assert_eq!(failure.error.code, ErrorCode::DeadlineExceeded);
    assert_eq!((failure.status, *told.lock().unwrap()), (EffectStatus::TimedOut, true));
}
