//! Metering and budgets: what is counted, what waits at a bound, and who counts together.

use std::sync::{Arc, Mutex};

use loon_api::event::{EffectStatus, ResourcesUpdated, SubagentFinished};
use loon_api::{
    AgentEvent, BoxFuture, Cost, ErrorCode, ModelErrorKind, ReachedBound, SubagentStatus,
    ToolCallStatus,
};
use serde_json::json;
use tokio::sync::{Notify, watch};

use super::tools::spawn;
use super::*;
use crate::tree::{Budget, QuotaAnswer, QuotaDesk, Tree};
use crate::{CallEnd, CircuitPolicy, Circuits, ExecutionState, Member, Resources, Route};

/// A desk whose person says what the channel holds.
struct Desk {
    answer: watch::Receiver<Option<QuotaAnswer>>,
    asked: Mutex<Vec<ReachedBound>>,
    waits: Notify,
}

impl QuotaDesk for Desk {
    fn wait<'a>(&'a self, reached: &'a ReachedBound) -> BoxFuture<'a, QuotaAnswer> {
        self.asked.lock().unwrap().push(*reached);
        let mut answer = self.answer.clone();
        Box::pin(async move {
            self.waits.notify_one();
            answer.wait_for(Option::is_some).await.unwrap().unwrap()
        })
    }
}

fn desk() -> (Arc<Desk>, watch::Sender<Option<QuotaAnswer>>) {
    let (sender, answer) = watch::channel(None);
    (Arc::new(Desk { answer, asked: Mutex::default(), waits: Notify::new() }), sender)
}

fn of_tokens(max_tokens: u64) -> Budget {
    Budget { max_tokens: Some(max_tokens), ..Budget::default() }
}

fn attended(
    house: &House,
    budget: Budget,
) -> (Arc<Gate>, Tree, Arc<Desk>, watch::Sender<Option<QuotaAnswer>>) {
    let (desk, answer) = desk();
    let tree = Tree::new(budget, Some(Arc::<Desk>::clone(&desk) as Arc<dyn QuotaDesk>));
    let gate = house.gate(GateOptions { tree: tree.clone(), ..options(vec![]) });
    (gate, tree, desk, answer)
}

fn ends(house: &House) -> Vec<loon_api::event::EffectFinished> {
    let ends = house.records().into_iter().filter_map(|record| match record.event {
        AgentEvent::EffectFinished(end) => Some(end),
        _ => None,
    });
    ends.collect()
}

fn passed(house: &mut House) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Ok(envelope) = house.events.try_recv() {
        if envelope.seq.is_none() {
            events.push(envelope.event.clone());
        }
    }
    events
}

#[tokio::test]
async fn k001_every_effect_is_metered_whatever_its_end() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::EndsWhenAsked);
    let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&tool)]));
    let failed =
        ModelError { usage: tokens(3, 0), ..ModelError::new(ModelErrorKind::Invalid, "no") };
    let model = Arc::new(FakeModel::new([Ok(answer("a", tokens(10, 2))), Err(failed)]));
    let request = request();
    gate.model(ask(0, &model, &request), said(0)).await.unwrap();
    gate.model(ask(1, &model, &request), said(1)).await.unwrap_err();
    // One that is stopped, one that was stopped before it began, one that is not known.
    let effect = call(0, "t", json!({"line": "x"}));
    let cancel = effect.cancel.clone();
    let running = spawn(&gate, effect);
    tool.running.notified().await;
    house.clock.advance(Duration::from_millis(250));
    cancel.cancel();
    running.await.unwrap();
    let late = ToolEffect { cancel, ..call(1, "t", json!({"line": "x"})) };
    gate.tool(late).await.unwrap();
    gate.tool(call(2, "nope", json!({}))).await.unwrap();
    let told: Vec<_> = ends(&house)
        .iter()
        .map(|end| (end.status, end.usage.total(), end.cost.usd, end.ms))
        .collect();
    assert_eq!(
        told,
        [
            (EffectStatus::Completed, 12, cents(12), 0),
            (EffectStatus::Failed, 3, cents(3), 0),
            (EffectStatus::Aborted, 0, cents(0), 250),
            (EffectStatus::Aborted, 0, cents(0), 0),
            (EffectStatus::Denied, 0, cents(0), 0),
        ]
    );
    let Resources { tokens, cost, ms, count, requests, .. } = house.execution.state().resources;
    assert_eq!((tokens, cost.usd, ms, count, requests), (15, cents(15), 250, 4, 2));
}

#[tokio::test]
async fn k007_the_totals_are_told_after_each_effect_as_the_fold_has_them() {
    let mut house = house(None).await;
    let tree = Tree::new(of_tokens(12), None);
    let tool = FakeTool::new("t", ToolClass::Reads, Behaviour::Answers);
    let gate = house.gate(GateOptions { tree, ..options(vec![tool]) });
    let model = Arc::new(FakeModel::new([Ok(answer("a", tokens(10, 1)))]));
    gate.model(ask(0, &model, &request()), said(0)).await.unwrap();
    gate.tool(call(0, "t", json!({"line": "x"}))).await.unwrap();
    let told: Vec<ResourcesUpdated> = passed(&mut house)
        .into_iter()
        .filter_map(|event| match event {
            AgentEvent::ResourcesUpdated(told) => Some(told),
            _ => None,
        })
        .collect();
    let counts: Vec<_> = told.iter().map(|told| (told.count, told.tokens, told.exceeded)).collect();
    assert_eq!(counts, [(1, 11, false), (2, 11, false)]);
    let Resources { tokens, usage, cost, ms, count, requests, exceeded } =
        house.execution.state().resources;
    let last = told.last().unwrap();
    assert_eq!((last.tokens, last.usage, last.cost, last.ms), (tokens, usage, cost, ms));
    assert_eq!((last.count, last.requests, last.exceeded), (count, requests, exceeded));
    assert_eq!(last.bounds.max_tokens, Some(12));
}

#[tokio::test]
async fn at_a_bound_the_effect_waits_and_goes_on_once_it_is_raised() {
    let house = house(None).await;
    let (gate, tree, desk, answer) = attended(&house, of_tokens(12));
    let model = Arc::new(FakeModel::new([
        Ok(super::answer("a", tokens(10, 2))),
        Ok(super::answer("b", tokens(1, 0))),
    ]));
    let request = request();
    gate.model(ask(0, &model, &request), said(0)).await.unwrap();
    let raise = async {
        desk.waits.notified().await;
        house.clock.advance(Duration::from_mins(1));
        assert_eq!(model.requests(), 1);
        tree.raise(of_tokens(20));
        answer.send(Some(QuotaAnswer::LookAgain)).unwrap();
    };
    let (outcome, ()) =
        futures_util::future::join(gate.model(ask(1, &model, &request), said(1)), raise).await;
    assert_eq!(outcome.unwrap().usage, tokens(1, 0));
    let asked = desk.asked.lock().unwrap().clone();
    assert_eq!(asked, [ReachedBound::MaxTokens { limit: 12, used: 12 }]);
    assert_eq!(house.end().ms, 0, "waiting for a person is no part of the effect");
    // Of two bounds the higher holds, so that settings can free as well.
    tree.set_budget(of_tokens(50));
    assert_eq!((tree.budget(), tree.raised()), (of_tokens(50), of_tokens(20)));
}

#[tokio::test]
async fn a_request_that_waits_for_a_person_holds_no_trial() {
    let house = house(None).await;
    let (desk, answer) = desk();
    let tree = Tree::new(
        Budget { max_requests: Some(1), ..Budget::default() },
        Some(Arc::<Desk>::clone(&desk) as Arc<dyn QuotaDesk>),
    );
    let circuits = Circuits::new(Arc::new(house.clock.clone()));
    let once = CircuitPolicy { threshold: 1, ..CircuitPolicy::default() };
    circuits.enter("provider:other", &once).unwrap().0.end(CallEnd::Failure).unwrap();
    house.clock.advance(once.cooldown);
    let gate = house.gate(GateOptions { tree, circuits: circuits.clone(), ..options(vec![]) });
    let wrong = ModelError::new(ModelErrorKind::Auth, "no");
    let mut other = FakeModel::new([Ok(super::answer("b", tokens(1, 0)))]);
    "other/b".clone_into(&mut other.info.name);
    let (model, other) = (Arc::new(FakeModel::new([Err(wrong)])), Arc::new(other));
    let member =
        |model: &Arc<FakeModel>| Member { model: Arc::<FakeModel>::clone(model), retries: Some(0) };
    let route = Route::combo("combo/fast".to_owned(), [member(&model), member(&other)]).unwrap();
    let request = request();
    let effect = ModelEffect { model: Arc::new(route), ..ask(0, &model, &request) };
    let refuse = async {
        desk.waits.notified().await;
        let (trial, _) = circuits.enter("provider:other", &once).expect("nobody holds the trial");
        drop(trial);
        answer.send(Some(QuotaAnswer::Refused)).unwrap();
    };
    let (outcome, ()) = futures_util::future::join(gate.model(effect, said(0)), refuse).await;
    assert_eq!(outcome.unwrap_err().error.code, ErrorCode::QuotaExceeded);
    assert_eq!(other.requests(), 0);
}

#[tokio::test]
async fn a_refusal_denies_what_waits_and_an_interrupt_stops_it() {
    for refuse in [true, false] {
        let house = house(None).await;
        let (gate, _, desk, answer) = attended(&house, of_tokens(1));
        let model = Arc::new(FakeModel::new([Ok(super::answer("a", tokens(1, 0)))]));
        let request = request();
        gate.model(ask(0, &model, &request), said(0)).await.unwrap();
        let effect = ask(1, &model, &request);
        let cancel = effect.cancel.clone();
        let stop = async {
            desk.waits.notified().await;
            if refuse {
                answer.send(Some(QuotaAnswer::Refused)).unwrap();
            } else {
                cancel.cancel();
            }
        };
        let (outcome, ()) = futures_util::future::join(gate.model(effect, said(1)), stop).await;
        let failure = outcome.unwrap_err();
        let wanted = if refuse {
            (EffectStatus::Denied, ErrorCode::QuotaExceeded)
        } else {
            (EffectStatus::Aborted, ErrorCode::Cancelled)
        };
        assert_eq!((failure.status, failure.error.code), wanted);
        assert_eq!(model.requests(), 1);
    }
}

#[tokio::test]
async fn what_the_user_does_by_hand_is_not_a_matter_of_the_budget() {
    let house = house(None).await;
    let tool = FakeTool::new("t", ToolClass::Reads, Behaviour::Answers);
    let tree = Tree::new(of_tokens(0), None);
    let gate = house.gate(GateOptions { tree, ..options(vec![tool]) });
    let by_hand = ToolEffect { by_user: true, ..call(0, "t", json!({"line": "x"})) };
    assert_eq!(of(&gate.tool(by_hand).await.unwrap()).status, ToolCallStatus::Done);
    let denied = gate.tool(call(1, "t", json!({"line": "x"}))).await.unwrap();
    assert_eq!(text(&denied), "Not run: the budget of 0 tokens is spent (0 used).");
}

#[tokio::test]
async fn k002_children_count_while_they_run_when_they_left_and_once_they_are_recorded() {
    let tree = Tree::new(of_tokens(100), None);
    let (root, child) = (house(None).await, house(None).await);
    let gate = root.gate(GateOptions { tree: tree.clone(), ..options(vec![]) });
    let childs = child.gate(GateOptions { tree: tree.clone(), ..options(vec![]) });
    let model =
        Arc::new(FakeModel::new([Ok(answer("a", tokens(10, 0))), Ok(answer("b", tokens(90, 0)))]));
    let request = request();
    gate.model(ask(0, &model, &request), said(0)).await.unwrap();
    childs.model(ask(0, &model, &request), said(0)).await.unwrap();
    let used = |tree: &Tree| (tree.used().tokens, tree.used().count, tree.used().requests);
    assert_eq!(used(&tree), (100, 2, 2));
    let failure = gate.model(ask(1, &model, &request), said(1)).await.unwrap_err();
    assert_eq!(failure.error.code, ErrorCode::QuotaExceeded, "the child spent it");

    let Resources { usage, cost, ms, count, .. } = child.execution.state().resources;
    let exec = child.execution.exec();
    tree.leave(exec, child.execution.state().resources);
    drop((childs, child));
    assert_eq!(used(&tree), (100, 2, 2), "it left");
    let finished = SubagentFinished {
        id: "a1".to_owned(),
        agent: "helper".to_owned(),
        child: exec,
        status: SubagentStatus::Completed,
        error: None,
        report: None,
        steps: 1,
        usage,
        cost,
        ms: Some(ms),
        effects: Some(count),
        worktree: None,
        receipt: None,
    };
    root.execution.recorder().record(Some(1), finished).await.unwrap();
    assert_eq!(used(&tree), (100, 2, 2), "it is recorded");
    let mut folded = ExecutionState::default();
    root.store.read(root.execution.exec()).unwrap().for_each(|r| folded.apply(&r.unwrap()));
    assert_eq!(folded.resources.tokens, 100);
}

#[tokio::test]
async fn a_budget_in_tokens_counts_an_estimate_where_the_server_reports_nothing_and_says_so_once() {
    for (max_tokens, notices) in [(Some(1_000), 1), (None, 0)] {
        let mut house = house(None).await;
        let tree = Tree::new(Budget { max_tokens, ..Budget::default() }, None);
        let gate = house.gate(GateOptions { tree, ..options(vec![]) });
        let words = "w".repeat(3_500);
        let unreported = || answer(&words, Usage::default());
        let broken = ModelError::new(ModelErrorKind::Invalid, "no");
        let model = Arc::new(FakeModel::new([Ok(unreported()), Ok(unreported()), Err(broken)]));
        let request = request();
        let mut outcomes = Vec::new();
        for step in 0..2 {
            outcomes.push(gate.model(ask(step, &model, &request), said(step)).await);
        }
        let usage = outcomes[0].as_ref().unwrap().usage;
        // Seven bytes are two tokens.
        let estimated = usage.estimated_tokens.unwrap();
        assert!((1_000..1_100).contains(&estimated), "{estimated}");
        assert_eq!(usage, Usage { estimated_tokens: Some(estimated), ..Usage::default() });
        if max_tokens.is_some() {
            let failure = outcomes[1].as_ref().unwrap_err();
            assert_eq!(failure.error.code, ErrorCode::QuotaExceeded);
            let told = failure.error.message.clone();
            assert_eq!(told, format!("the budget of 1000 tokens is spent ({estimated} used)"));
        } else {
            outcomes[1].as_ref().unwrap();
            // What never reached the server took nothing.
            let failure = gate.model(ask(2, &model, &request), said(2)).await.unwrap_err();
            assert_eq!(failure.usage, Usage::default());
        }
        let told = passed(&mut house).into_iter().filter_map(|event| match event {
            AgentEvent::Notice(notice) => Some(notice.message),
            _ => None,
        });
        let told: Vec<String> = told.filter(|words| words.contains("estimate")).collect();
        assert_eq!(told.len(), notices, "{told:?}");
    }
}

#[tokio::test]
async fn an_unpriced_model_under_a_budget_in_dollars_is_told_once() {
    for (max_usd, notices) in [(Some(cents(100)), 1), (None, 0)] {
        let mut house = house(None).await;
        let tree = Tree::new(Budget { max_usd, ..Budget::default() }, None);
        let gate = house.gate(GateOptions { tree, ..options(vec![]) });
        let replies = [Ok(answer("a", tokens(1, 1))), Ok(answer("b", tokens(1, 1)))];
        let mut model = FakeModel::new(replies);
        "lab/other".clone_into(&mut model.info.name);
        let model = Arc::new(model);
        for step in [0, 1] {
            gate.model(ask(step, &model, &request()), said(step)).await.unwrap();
        }
        let told = passed(&mut house).into_iter().filter_map(|event| match event {
            AgentEvent::Notice(notice) => Some(notice.message),
            _ => None,
        });
        let told: Vec<String> = told.collect();
        assert_eq!(told.len(), notices, "{told:?}");
        assert!(told.iter().all(|words| words.contains("lab/other has no known cost")));
        let cost = house.execution.state().resources.cost;
        assert_eq!(cost, Cost { usd: cents(0), unpriced: 2 });
    }
}
