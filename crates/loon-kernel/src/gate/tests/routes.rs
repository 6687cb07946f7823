//! Requests along a route, and the circuits they go through.

#![expect(
    clippy::result_large_err,
    clippy::unnecessary_wraps,
    reason = "outcomes of a fake model are of the port's type"
)]

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use loon_api::event::{CircuitState, EffectRerouted, EffectStatus};
use loon_api::{AgentEvent, Answer, Cost, ErrorCode, ModelError, ModelErrorKind, Usage};

use super::super::{EffectFailure, ModelEffect, ModelOutcome, RetryPolicy};
use super::{FakeModel, House, answer, cents, house, options, request, said, tokens};
use crate::gate::GateOptions;
use crate::port::Progress;
use crate::{Budget, Circuits, Gate, Member, Route, Tree};

type Outcome = Result<Answer, ModelError>;

fn error(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, format!("{kind:?}"))
}

fn ok(text: &str) -> Outcome {
    Ok(answer(text, tokens(4, 1)))
}

fn model(name: &str, outcomes: impl IntoIterator<Item = Outcome>) -> FakeModel {
    let mut model = FakeModel::new(outcomes);
    name.clone_into(&mut model.info.name);
    model
}

fn window(tokens: u64, mut model: FakeModel) -> FakeModel {
    model.info.context_tokens = Some(tokens);
    model
}

/// A gate with a route through these models, none of which is asked again.
struct Bench {
    house: House,
    gate: Arc<Gate>,
    models: Vec<Arc<FakeModel>>,
    step: u32,
}

async fn bench(models: impl IntoIterator<Item = FakeModel>) -> Bench {
    let house = house(None).await;
    let circuits = Circuits::new(Arc::new(house.clock.clone()));
    let gate = house.gate(GateOptions { circuits, ..options(vec![]) });
    Bench { house, gate, models: models.into_iter().map(Arc::new).collect(), step: 0 }
}

impl Bench {
    fn route(&self, retries: Option<usize>) -> Arc<Route> {
        let member =
            |model: &Arc<FakeModel>| Member { model: Arc::<FakeModel>::clone(model), retries };
        Arc::new(Route::combo("combo/fast".to_owned(), self.models.iter().map(member)).unwrap())
    }

    async fn ask(&mut self) -> Result<ModelOutcome, EffectFailure> {
        self.ask_with(Some(0)).await
    }

    async fn ask_with(&mut self, retries: Option<usize>) -> Result<ModelOutcome, EffectFailure> {
        let request = request();
        let fake = Arc::clone(&self.models[0]);
        let step = self.step;
        self.step += 1;
        let effect =
            ModelEffect { model: self.route(retries), ..super::ask(step, &fake, &request) };
        self.gate.model(effect, said(step)).await
    }

    fn requests(&self) -> Vec<usize> {
        self.models.iter().map(|model| model.requests()).collect()
    }

    fn reroutes(&self) -> Vec<EffectRerouted> {
        let events = self.house.records().into_iter().map(|record| record.event);
        events
            .filter_map(|event| match event {
                AgentEvent::EffectRerouted(event) => Some(event),
                _ => None,
            })
            .collect()
    }

    /// From, to and why of all reroutes.
    fn ways(&self) -> Vec<(String, String, ErrorCode)> {
        self.reroutes().into_iter().map(|event| (event.from, event.to, event.error.code)).collect()
    }

    /// The circuits that changed, of those told by now.
    fn circuits(&mut self) -> Vec<(String, CircuitState)> {
        let mut changes = Vec::new();
        while let Ok(envelope) = self.house.events.try_recv() {
            if let AgentEvent::CircuitChanged(change) = &envelope.event {
                changes.push((change.target.clone(), change.state));
            }
        }
        changes
    }
}

fn way(from: &str, to: &str, code: ErrorCode) -> (String, String, ErrorCode) {
    (from.to_owned(), to.to_owned(), code)
}

#[tokio::test]
async fn what_one_model_cannot_answer_the_next_does_and_both_are_metered() {
    let wasted = ModelError { usage: tokens(3, 0), ..error(ModelErrorKind::Overloaded) };
    let mut bench = bench([model("lab/coder", [Err(wasted)]), model("other/b", [ok("hi")])]).await;
    let outcome = bench.ask().await.unwrap();
    assert_eq!((outcome.model.as_str(), outcome.usage), ("other/b", tokens(7, 1)));
    // `lab/coder` costs a cent a token, what `other/b` costs nobody knows.
    assert_eq!(outcome.cost, Cost { usd: cents(3), unpriced: 1 });
    assert_eq!(
        bench.house.kinds(),
        ["effect.started", "effect.rerouted", "item.completed", "effect.finished"]
    );
    let reroute = &bench.reroutes()[0];
    assert_eq!((&*reroute.from, &*reroute.to), ("lab/coder", "other/b"));
    assert_eq!(reroute.error.code, ErrorCode::Overloaded);
    assert_eq!((reroute.usage, reroute.cost), (tokens(3, 0), Cost { usd: cents(3), unpriced: 0 }));
    let resources = bench.house.execution.state().resources;
    assert_eq!((resources.requests, resources.tokens, resources.cost.usd), (2, 8, cents(3)));
    // Given back, it names the same model.
    bench.step = 0;
    assert_eq!(bench.ask().await.unwrap(), outcome);
    assert_eq!(bench.requests(), [1, 1]);
}

#[tokio::test]
async fn a_model_that_the_server_does_not_know_gives_way_and_opens_no_circuit() {
    let unknown = (0..6).map(|_| Err(error(ModelErrorKind::NotFound)));
    let answers = (0..6).map(|_| ok("hi"));
    let mut bench = bench([model("lab/a", unknown), model("other/b", answers)]).await;
    for _ in 0..6 {
        assert_eq!(bench.ask().await.unwrap().model, "other/b");
    }
    assert_eq!(bench.ways()[5], way("lab/a", "other/b", ErrorCode::NotFound));
    assert_eq!(bench.requests(), [6, 6]);
}

#[tokio::test]
async fn who_is_left_alone_says_what_went_wrong_last() {
    let lost = (0..5).map(|_| {
        let error = ModelError::new(ModelErrorKind::Network, "connection reset");
        Err(ModelError { streamed: true, ..error })
    });
    let mut bench = bench([model("lab/a", lost)]).await;
    for _ in 0..5 {
        bench.ask().await.unwrap_err();
    }
    let failure = bench.ask().await.unwrap_err();
    assert_eq!(failure.error.code, ErrorCode::CircuitOpen);
    assert!(failure.error.message.ends_with("its last error: connection reset"), "{failure}");
}

#[tokio::test]
async fn a_model_is_asked_again_as_often_as_it_may_before_the_next_is() {
    let busy = || Err(error(ModelErrorKind::Overloaded));
    let bench =
        bench([model("lab/a", [busy(), busy(), busy()]), model("other/b", [ok("hi")])]).await;
    let route = bench.route(Some(1));
    let (gate, fake) = (Arc::clone(&bench.gate), Arc::clone(&bench.models[0]));
    let asking = tokio::spawn(async move {
        let request = request();
        let effect = ModelEffect { model: route, ..super::ask(0, &fake, &request) };
        gate.model(effect, said(0)).await
    });
    bench.house.clock.sleeper(Duration::from_secs(1)).await;
    bench.house.clock.advance(Duration::from_secs(1));
    assert_eq!(asking.await.unwrap().unwrap().model, "other/b");
    assert_eq!(bench.requests(), [2, 1]);
    assert_eq!(bench.house.execution.state().resources.requests, 3);
}

#[tokio::test]
async fn a_gates_policy_bounds_the_retries_of_a_member() {
    let house = house(None).await;
    let retry = RetryPolicy { delays: vec![], ..RetryPolicy::default() };
    let gate = house.gate(GateOptions { retry, ..options(vec![]) });
    let fake = Arc::new(model("lab/a", [Err(error(ModelErrorKind::Network)), ok("hi")]));
    let member = Member { model: Arc::<FakeModel>::clone(&fake), retries: Some(2) };
    let route = Arc::new(Route::combo("combo/x".to_owned(), [member]).unwrap());
    let request = request();
    let effect = ModelEffect { model: route, ..super::ask(0, &fake, &request) };
    assert_eq!(gate.model(effect, said(0)).await.unwrap_err().error.code, ErrorCode::Network);
}

#[tokio::test]
async fn a_wait_that_a_server_asks_for_is_not_worth_it_where_another_can_be_asked() {
    let waits = |kind| ModelError { retry_after: Some(Duration::from_secs(20)), ..error(kind) };
    let refusals = [
        error(ModelErrorKind::RateLimited),
        waits(ModelErrorKind::RateLimited),
        waits(ModelErrorKind::Overloaded),
        error(ModelErrorKind::Auth),
    ];
    for refusal in refusals {
        let code = refusal.info().code;
        let mut bench = bench([model("lab/a", [Err(refusal)]), model("lab/b", [ok("hi")])]).await;
        assert_eq!(bench.ask_with(None).await.unwrap().model, "lab/b");
        assert_eq!(bench.ways(), [way("lab/a", "lab/b", code)]);
    }
}

#[tokio::test]
async fn k017_no_answer_that_says_no_opens_a_circuit() {
    let kinds = [
        ModelErrorKind::RateLimited,
        ModelErrorKind::Auth,
        ModelErrorKind::Invalid,
        ModelErrorKind::Refused,
        ModelErrorKind::ContextOverflow,
    ];
    for kind in kinds {
        let mut bench = bench([model("lab/a", (0..6).map(|_| Err(error(kind))))]).await;
        for _ in 0..6 {
            assert_eq!(bench.ask().await.unwrap_err().error.code, error(kind).info().code);
        }
        assert_eq!((bench.requests(), bench.circuits()), (vec![6], vec![]));
    }
}

#[tokio::test]
async fn what_is_refused_or_wrong_stays_where_it_is() {
    for kind in [ModelErrorKind::Refused, ModelErrorKind::Invalid] {
        let mut bench =
            bench([model("lab/a", [Err(error(kind))]), model("other/b", [ok("hi")])]).await;
        let failure = bench.ask().await.unwrap_err();
        assert_eq!(failure.error, error(kind).info());
        assert_eq!((failure.model.as_deref(), bench.requests()), (Some("lab/a"), vec![1, 0]));
    }
}

#[tokio::test]
async fn an_answer_that_had_begun_to_arrive_is_not_sent_for_elsewhere() {
    let mut first = model("lab/a", [Err(error(ModelErrorKind::Network))]);
    first.tells = vec![Progress::Text("hel".to_owned())];
    let mut bench = bench([first, model("other/b", [ok("hi")])]).await;
    let failure = bench.ask().await.unwrap_err();
    assert!(failure.streamed);
    assert_eq!((failure.model.as_deref(), bench.requests()), (Some("lab/a"), vec![1, 0]));
}

#[tokio::test]
async fn a_request_that_is_too_long_goes_to_a_larger_window_only() {
    let long = || Err(error(ModelErrorKind::ContextOverflow));
    let mut larger = bench([
        window(100, model("lab/a", [long()])),
        window(100, model("lab/same", [ok("no")])),
        model("lab/unknown", [ok("no")]),
        window(200, model("lab/large", [ok("hi")])),
    ])
    .await;
    assert_eq!(larger.ask().await.unwrap().model, "lab/large");
    assert_eq!(larger.ways(), [way("lab/a", "lab/large", ErrorCode::ContextOverflow)]);
    let mut same =
        bench([window(100, model("lab/a", [long()])), window(100, model("lab/b", [ok("no")]))])
            .await;
    assert_eq!(same.ask().await.unwrap_err().error.code, ErrorCode::ContextOverflow);
    assert_eq!(same.requests(), [1, 0]);
}

#[tokio::test]
async fn a_route_on_which_nobody_answers_says_what_each_said() {
    let mut bench = bench([
        model("lab/a", [Err(error(ModelErrorKind::Overloaded))]),
        model("other/b", [Err(error(ModelErrorKind::Auth))]),
    ])
    .await;
    let failure = bench.ask().await.unwrap_err();
    assert_eq!((failure.status, failure.error.code), (EffectStatus::Failed, ErrorCode::Auth));
    assert_eq!(
        failure.error.message,
        "no model of combo/fast answered. lab/a: Overloaded; other/b: Auth"
    );
    assert_eq!(bench.house.end().error, Some(failure.error));
}

#[tokio::test]
async fn a_budget_that_the_first_model_spent_denies_the_second() {
    let house = house(None).await;
    let budget = Budget { max_requests: Some(1), ..Budget::default() };
    let gate = house.gate(GateOptions { tree: Tree::new(budget, None), ..options(vec![]) });
    let models = vec![
        Arc::new(model("lab/a", [Err(error(ModelErrorKind::Auth))])),
        Arc::new(model("other/b", [ok("hi")])),
    ];
    let mut bench = Bench { house, gate, models, step: 0 };
    let failure = bench.ask().await.unwrap_err();
    assert_eq!(
        (failure.status, failure.error.code),
        (EffectStatus::Denied, ErrorCode::QuotaExceeded)
    );
    assert_eq!((bench.requests(), bench.ways()), (vec![1, 0], vec![]));
}

#[tokio::test]
async fn the_model_whose_cost_is_not_known_is_named_though_another_answered() {
    let house = house(None).await;
    let budget = Budget { max_usd: Some(cents(100)), ..Budget::default() };
    let gate = house.gate(GateOptions { tree: Tree::new(budget, None), ..options(vec![]) });
    let wasted = ModelError { usage: tokens(3, 0), ..error(ModelErrorKind::Overloaded) };
    let models =
        vec![Arc::new(model("other/b", [Err(wasted)])), Arc::new(model("lab/coder", [ok("hi")]))];
    let mut bench = Bench { house, gate, models, step: 0 };
    assert_eq!(bench.ask().await.unwrap().model, "lab/coder");
    let mut told = Vec::new();
    while let Ok(envelope) = bench.house.events.try_recv() {
        if let AgentEvent::Notice(notice) = &envelope.event {
            told.push(notice.message.clone());
        }
    }
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("A request to other/b has no known cost"), "{told:?}");
}

#[tokio::test]
async fn k017_an_open_circuit_lets_no_request_out_and_costs_nothing() {
    let failures = (0..5).map(|_| Err(error(ModelErrorKind::Overloaded)));
    let mut bench = bench([model("lab/a", failures.chain([ok("hi")]))]).await;
    for _ in 0..5 {
        bench.ask().await.unwrap_err();
    }
    assert_eq!(bench.circuits(), [("provider:lab".to_owned(), CircuitState::Open)]);
    let before = bench.house.execution.state().resources;
    let failure = bench.ask().await.unwrap_err();
    assert_eq!(
        (failure.status, failure.error.code),
        (EffectStatus::Failed, ErrorCode::CircuitOpen)
    );
    assert_eq!(failure.error.hints, ["the next try is possible in 30 s"]);
    assert_eq!((failure.usage, failure.cost), (Usage::default(), Cost::default()));
    let after = bench.house.execution.state().resources;
    assert_eq!(bench.requests(), [5]);
    assert_eq!((after.requests, after.cost), (before.requests, before.cost));

    bench.house.clock.advance(Duration::from_secs(30));
    bench.ask().await.unwrap();
    let lab = || "provider:lab".to_owned();
    assert_eq!(bench.circuits(), [(lab(), CircuitState::HalfOpen), (lab(), CircuitState::Closed)]);
}

#[tokio::test]
async fn k017_a_member_behind_an_open_circuit_is_passed_over() {
    let failures = (0..5).map(|_| Err(error(ModelErrorKind::Network)));
    let answers = (0..7).map(|_| ok("hi"));
    let mut bench = bench([model("lab/a", failures), model("other/b", answers)]).await;
    for _ in 0..7 {
        assert_eq!(bench.ask().await.unwrap().model, "other/b");
    }
    assert_eq!(bench.requests(), [5, 7]);
    let codes: Vec<ErrorCode> = bench.ways().into_iter().map(|(_, _, code)| code).collect();
    assert_eq!(codes[..5], [ErrorCode::Network; 5]);
    assert_eq!(codes[5..], [ErrorCode::CircuitOpen; 2]);
    assert_eq!(bench.house.execution.state().resources.requests, 12);
    let last = bench.reroutes().pop().unwrap();
    assert_eq!((last.usage, last.cost), (Usage::default(), Cost::default()));
}

#[tokio::test]
async fn k017_a_circuit_that_opens_between_the_attempts_ends_them_with_their_own_error() {
    let failures = (0..6).map(|_| Err(error(ModelErrorKind::Overloaded)));
    let mut bench = bench([model("lab/a", failures)]).await;
    for _ in 0..4 {
        bench.ask().await.unwrap_err();
    }
    let request = request();
    let effect = ModelEffect {
        model: bench.route(None),
        ..super::ask(9, &Arc::clone(&bench.models[0]), &request)
    };
    let failure = bench.gate.model(effect, said(9)).await.unwrap_err();
    assert_eq!(failure.error.code, ErrorCode::Overloaded);
    assert!(failure.error.hints[0].contains("provider:lab failed too often"), "{failure:?}");
    assert_eq!(bench.requests(), [5]);
}

#[tokio::test]
async fn k018_a_stopped_trial_leaves_the_trial_to_the_next_request() {
    let failures = (0..5).map(|_| Err(error(ModelErrorKind::Overloaded)));
    let mut bench = bench([model("lab/a", failures)]).await;
    for _ in 0..5 {
        bench.ask().await.unwrap_err();
    }
    bench.house.clock.advance(Duration::from_secs(30));
    let cancel = tokio_util::sync::CancellationToken::new();
    let (gate, fake, route) =
        (Arc::clone(&bench.gate), Arc::clone(&bench.models[0]), bench.route(Some(0)));
    let stopping = cancel.clone();
    let running = Arc::clone(&fake);
    while bench.models[0].running.notified().now_or_never().is_some() {}
    let asking = tokio::spawn(async move {
        let request = request();
        let effect = ModelEffect { model: route, cancel, ..super::ask(50, &fake, &request) };
        gate.model(effect, said(50)).await
    });
    running.running.notified().await;
    // Meanwhile nothing else passes.
    assert_eq!(bench.ask().await.unwrap_err().error.code, ErrorCode::CircuitOpen);
    stopping.cancel();
    bench.house.clock.sleeper(Duration::from_millis(500)).await;
    bench.house.clock.advance(Duration::from_millis(500));
    assert_eq!(asking.await.unwrap().unwrap_err().status, EffectStatus::Aborted);
    *bench.models[0].outcomes.lock().unwrap() = [ok("hi")].into();
    bench.ask().await.unwrap();
}

#[tokio::test]
async fn a_route_begins_with_whom_it_is_told_to_and_can_do_without_one() {
    let bench = bench([model("lab/a", []), model("lab/b", []), model("lab/c", [])]).await;
    let route = bench.route(None);
    let names = |route: &Route| -> Vec<String> {
        route.members().map(|member| member.name().to_owned()).collect()
    };
    assert_eq!(names(&route.led_by("lab/c")), ["lab/c", "lab/a", "lab/b"]);
    assert_eq!(names(&route.led_by("lab/x")), ["lab/a", "lab/b", "lab/c"]);
    let rest = route.without("lab/a").unwrap();
    assert_eq!((names(&rest).join(" "), rest.name()), ("lab/b lab/c".to_owned(), "combo/fast"));
    assert!(Route::to(Arc::<FakeModel>::clone(&bench.models[0])).without("lab/a").is_none());
}
