//! Model requests.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::EffectStatus;
use loon_api::{
    AgentEvent, AnswerPart, BoxFuture, Cost, ErrorCode, ModelError, ModelErrorKind, StopReason,
    Usage,
};

use super::super::{EffectFailure, ModelOutcome, RetryPolicy};
use super::{FakeModel, House, answer, ask, cents, house, options, request, said, tokens};
use crate::gate::GateOptions;
use crate::port::{Follow, Progress};
use crate::tree::{Budget, Tree};

fn busy() -> ModelError {
    ModelError::new(ModelErrorKind::Overloaded, "busy")
}

fn second(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn items_and_end_are_recorded_together_and_the_price_is_known() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let mut reply = answer("hello", tokens(10, 2));
    reply.parts.push(AnswerPart::Text("again".to_owned()));
    let model = Arc::new(FakeModel::new([Ok(reply)]));
    let outcome = gate.model(ask(0, &model, &request()), said(0)).await.unwrap();
    assert_eq!(outcome.items.len(), 2);
    assert_eq!((outcome.stop, outcome.usage), (StopReason::End, tokens(10, 2)));
    assert_eq!(outcome.cost, Cost { usd: cents(12), unpriced: 0 });
    assert_eq!(
        house.kinds(),
        ["effect.started", "item.completed", "item.completed", "effect.finished"]
    );
    let resources = house.execution.state().resources;
    assert_eq!((resources.tokens, resources.cost.usd, resources.requests), (12, cents(12), 1));
}

#[tokio::test]
async fn a_finished_key_gives_back_what_was_recorded() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let model = Arc::new(FakeModel::new([Ok(answer("hello", tokens(10, 2)))]));
    let first = gate.model(ask(0, &model, &request()), said(0)).await.unwrap();
    let second = gate.model(ask(0, &model, &request()), said(0)).await.unwrap();
    assert_eq!(first, second);
    assert_eq!((model.requests(), house.kinds().len()), (1, 3));

    let refused = ModelError::new(ModelErrorKind::Refused, "no");
    let model = Arc::new(FakeModel::new([Err(refused)]));
    let first = gate.model(ask(1, &model, &request()), said(1)).await.unwrap_err();
    let second = gate.model(ask(1, &model, &request()), said(1)).await.unwrap_err();
    assert_eq!(first, second);
    assert_eq!(model.requests(), 1);
}

#[tokio::test]
async fn a_passing_fault_is_retried_after_one_and_two_seconds_and_then_given_up() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let wasted = ModelError { usage: tokens(3, 0), ..busy() };
    let model = Arc::new(FakeModel::new([Err(wasted), Err(busy()), Err(busy())]));
    let asking = {
        let model = Arc::clone(&model);
        tokio::spawn(async move { gate.model(ask(0, &model, &request()), said(0)).await })
    };
    for (requests, wait) in [(1, 1), (2, 2)] {
        house.clock.sleeper(second(wait)).await;
        assert_eq!(model.requests(), requests);
        house.clock.advance(second(wait));
    }
    let failure = asking.await.unwrap().unwrap_err();
    assert_eq!(model.requests(), 3);
    assert_eq!((failure.status, failure.error.code), (EffectStatus::Failed, ErrorCode::Overloaded));
    assert_eq!(
        failure.usage,
        Usage { input_tokens: Some(3), output_tokens: Some(0), ..Usage::default() }
    );
    let retries: Vec<_> = house
        .records()
        .into_iter()
        .filter_map(|record| match record.event {
            AgentEvent::EffectRetried(event) => Some((event.attempt, event.delay_ms)),
            _ => None,
        })
        .collect();
    assert_eq!(retries, [(1, 1000), (2, 2000)]);
    let end = house.end();
    assert_eq!((end.status, end.ms, end.cost.usd), (EffectStatus::Failed, 3000, cents(3)));
    assert_eq!(house.execution.state().resources.requests, 3);
}

#[tokio::test]
async fn an_answer_after_a_retry_counts_all_attempts() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let wasted = ModelError { usage: tokens(3, 0), ..busy() };
    let model = Arc::new(FakeModel::new([Err(wasted), Ok(answer("a", tokens(4, 1)))]));
    let asking = tokio::spawn(async move { gate.model(ask(0, &model, &request()), said(0)).await });
    house.clock.sleeper(second(1)).await;
    house.clock.advance(second(1));
    let outcome = asking.await.unwrap().unwrap();
    assert_eq!((outcome.usage, outcome.cost.usd), (tokens(7, 1), cents(8)));
}

#[tokio::test]
async fn a_server_may_ask_for_a_longer_wait_but_not_for_any() {
    for (asked, waits) in [(20, Some(20)), (30, Some(30)), (0, Some(1)), (31, None), (3600, None)] {
        let house = house(None).await;
        let gate = house.gate(options(vec![]));
        let limited = ModelError {
            retry_after: Some(second(asked)),
            ..ModelError::new(ModelErrorKind::RateLimited, "slow down")
        };
        let model = Arc::new(FakeModel::new([Err(limited), Ok(answer("a", tokens(1, 1)))]));
        let asking =
            tokio::spawn(async move { gate.model(ask(0, &model, &request()), said(0)).await });
        if let Some(wait) = waits {
            house.clock.sleeper(second(wait)).await;
            house.clock.advance(second(wait));
            asking.await.unwrap().unwrap();
        } else {
            let failure = asking.await.unwrap().unwrap_err();
            assert_eq!(failure.error.code, ErrorCode::RateLimited);
            assert!(failure.error.message.contains(&format!("{asked} s")), "{failure}");
        }
    }
}

#[tokio::test]
async fn nothing_is_retried_that_must_not_be() {
    let streamed = ModelError { streamed: true, usage: Usage::default(), ..busy() };
    let kinds = [
        ModelErrorKind::Refused,
        ModelErrorKind::Invalid,
        ModelErrorKind::Auth,
        ModelErrorKind::ContextOverflow,
    ];
    let errors = kinds.map(|kind| ModelError::new(kind, "no"));
    for error in errors.into_iter().chain([streamed]) {
        let house = house(None).await;
        let gate = house.gate(options(vec![]));
        let model = Arc::new(FakeModel::new([Err(error.clone())]));
        let failure = gate.model(ask(0, &model, &request()), said(0)).await.unwrap_err();
        assert_eq!((model.requests(), failure.streamed), (1, error.streamed));
        assert_eq!(failure.error.code, error.info().code);
        // What a broken stream used is not known; a refusal before it used nothing.
        assert_eq!(house.end().cost.unpriced, u32::from(error.streamed));
    }
}

#[tokio::test]
async fn an_interrupt_ends_a_request_and_what_it_used_is_metered() {
    for returns in [true, false] {
        let house = house(None).await;
        let gate = house.gate(options(vec![]));
        let mut model = FakeModel::new([]);
        let cut = ModelError { streamed: true, usage: tokens(5, 1), ..busy() };
        model.on_cancel = returns.then_some(cut);
        let model = Arc::new(model);
        let (request, cancel) = (request(), tokio_util::sync::CancellationToken::new());
        let asking = {
            let (model, cancel) = (Arc::clone(&model), cancel.clone());
            tokio::spawn(async move {
                let effect = super::super::ModelEffect { cancel, ..ask(0, &model, &request) };
                gate.model(effect, said(0)).await
            })
        };
        model.running.notified().await;
        house.clock.advance(second(2));
        cancel.cancel();
        if !returns {
            house.clock.sleeper(Duration::from_millis(500)).await;
            house.clock.advance(Duration::from_millis(500));
        }
        let failure = asking.await.unwrap().unwrap_err();
        assert_eq!((failure.status, failure.streamed), (EffectStatus::Aborted, returns));
        let end = house.end();
        assert_eq!((end.status, model.requests()), (EffectStatus::Aborted, 1));
        if returns {
            assert_eq!((end.ms, end.usage, end.cost.usd), (2000, tokens(5, 1), cents(6)));
        } else {
            assert_eq!((end.ms, end.usage.is_unknown(), end.cost.unpriced), (2500, true, 1));
            assert!(end.usage.estimated_tokens.is_some(), "the server had the request");
        }
    }
}

#[tokio::test]
async fn an_interrupt_ends_the_wait_before_a_retry() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let model = Arc::new(FakeModel::new([Err(busy())]));
    let cancel = tokio_util::sync::CancellationToken::new();
    let asking = {
        let (model, cancel) = (Arc::clone(&model), cancel.clone());
        tokio::spawn(async move {
            let request = request();
            let effect = super::super::ModelEffect { cancel, ..ask(0, &model, &request) };
            gate.model(effect, said(0)).await
        })
    };
    house.clock.sleeper(second(1)).await;
    cancel.cancel();
    assert_eq!(asking.await.unwrap().unwrap_err().status, EffectStatus::Aborted);
    assert_eq!(model.requests(), 1);
}

#[tokio::test]
async fn a_timeout_covers_all_attempts_together() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let model = Arc::new(FakeModel::new([Err(busy())]));
    let asking = {
        let model = Arc::clone(&model);
        tokio::spawn(async move {
            let request = request();
            let timeout = Some(second(5));
            let effect = super::super::ModelEffect { timeout, ..ask(0, &model, &request) };
            gate.model(effect, said(0)).await
        })
    };
    model.running.notified().await;
    house.clock.sleeper(second(1)).await;
    house.clock.advance(second(1));
    model.running.notified().await;
    house.clock.sleeper(second(4)).await;
    house.clock.advance(second(4));
    house.clock.sleeper(Duration::from_millis(500)).await;
    house.clock.advance(Duration::from_millis(500));
    let failure = asking.await.unwrap().unwrap_err();
    assert_eq!(failure.status, EffectStatus::TimedOut);
    assert_eq!(failure.error.message, "the time limit of 5 s passed");
    assert_eq!(model.requests(), 2);
}

#[tokio::test]
async fn k002_k003_the_effect_that_reaches_a_bound_completes_and_the_next_is_denied() {
    let bounds = [
        Budget { max_usd: Some(cents(12)), ..Budget::default() },
        Budget { max_tokens: Some(12), ..Budget::default() },
        Budget { max_requests: Some(1), ..Budget::default() },
    ];
    for budget in bounds {
        let house = house(None).await;
        let tree = Tree::new(budget, None);
        let gate = house.gate(GateOptions { tree, ..options(vec![]) });
        let model = Arc::new(FakeModel::new([Ok(answer("a", tokens(10, 2)))]));
        gate.model(ask(0, &model, &request()), said(0)).await.unwrap();
        let failure = gate.model(ask(1, &model, &request()), said(1)).await.unwrap_err();
        assert_eq!(failure.status, EffectStatus::Denied);
        assert_eq!(failure.error.code, ErrorCode::QuotaExceeded);
        assert_eq!((model.requests(), house.end().status), (1, EffectStatus::Denied));
        assert!(house.execution.state().resources.exceeded);
    }
}

#[tokio::test]
async fn k003_attempts_count_one_by_one() {
    let second = Duration::from_secs(1);
    let budgets = [
        Budget { max_requests: Some(2), ..Budget::default() },
        Budget { max_tokens: Some(6), ..Budget::default() },
        Budget { max_usd: Some(cents(6)), ..Budget::default() },
    ];
    for budget in budgets {
        let house = house(None).await;
        let retry = RetryPolicy { delays: vec![second; 5], ..RetryPolicy::default() };
        let tree = Tree::new(budget, None);
        let gate = house.gate(GateOptions { retry, tree, ..options(vec![]) });
        let busy = ModelError {
            usage: tokens(3, 0),
            ..ModelError::new(ModelErrorKind::Overloaded, "busy")
        };
        let model = Arc::new(FakeModel::new(vec![Err(busy); 5]));
        let asking = tokio::spawn({
            let (gate, model) = (Arc::clone(&gate), Arc::clone(&model));
            async move { gate.model(ask(0, &model, &request()), said(0)).await }
        });
        house.clock.sleeper(second).await;
        house.clock.advance(second);
        let failure = asking.await.unwrap().unwrap_err();
        assert_eq!(
            (failure.status, failure.error.code),
            (EffectStatus::Denied, ErrorCode::QuotaExceeded)
        );
        assert_eq!((model.requests(), failure.usage.total()), (2, 6));
    }
}

#[tokio::test]
async fn what_nobody_can_price_is_counted_as_that() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let mut model = FakeModel::new([Ok(answer("a", tokens(1, 1)))]);
    "lab/other".clone_into(&mut model.info.name);
    let model = Arc::new(model);
    let outcome = gate.model(ask(0, &model, &request()), said(0)).await.unwrap();
    assert_eq!(outcome.cost, Cost { usd: cents(0), unpriced: 1 });
    let model = Arc::new(FakeModel::new([Ok(answer("a", Usage::default()))]));
    let outcome = gate.model(ask(1, &model, &request()), said(1)).await.unwrap();
    assert_eq!(outcome.cost, Cost { usd: cents(0), unpriced: 1 });
}

#[tokio::test]
async fn an_adapter_that_panics_is_a_failure() {
    struct Broken(loon_api::ModelInfo);
    impl crate::port::Model for Broken {
        fn info(&self) -> &loon_api::ModelInfo {
            &self.0
        }
        fn run<'a>(
            &'a self,
            _: crate::port::Admitted,
            _: &'a loon_api::ModelRequest,
            _: &'a crate::port::EffectContext,
        ) -> loon_api::BoxFuture<'a, Result<loon_api::Answer, ModelError>> {
            Box::pin(async { panic!("no such arm") })
        }
    }
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let fake = Arc::new(FakeModel::new([]));
    let request = request();
    let model = crate::Route::to(Arc::new(Broken(fake.info.clone())));
    let effect = super::super::ModelEffect { model, ..ask(0, &fake, &request) };
    let failure: EffectFailure = gate.model(effect, said(0)).await.unwrap_err();
    assert_eq!(failure.error.code, ErrorCode::Internal);
    assert!(failure.error.message.contains("no such arm"));
}

#[tokio::test]
async fn without_delays_nothing_is_repeated() {
    let house = house(None).await;
    let retry = RetryPolicy { delays: vec![], ..RetryPolicy::default() };
    let gate = house.gate(GateOptions { retry, ..options(vec![]) });
    let model = Arc::new(FakeModel::new([Err(busy())]));
    let result: Result<ModelOutcome, _> = gate.model(ask(0, &model, &request()), said(0)).await;
    assert_eq!(result.unwrap_err().error.code, ErrorCode::Overloaded);
    assert_eq!(model.requests(), 1);
}

#[tokio::test]
async fn an_answer_of_which_anything_was_told_is_not_asked_for_again() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let mut model = FakeModel::new([Err(busy()), Ok(answer("a", tokens(1, 1)))]);
    model.tells = vec![Progress::Text("hel".to_owned())];
    let model = Arc::new(model);
    let failure = gate.model(ask(0, &model, &request()), said(0)).await.unwrap_err();
    assert!(failure.streamed);
    assert_eq!((model.requests(), house.end().cost.unpriced), (1, 1));
}

/// Takes progress only after a while, and notes how many records there were.
struct Slow<'a> {
    house: &'a House,
    taken: Vec<(Progress, usize)>,
}

impl Follow for Slow<'_> {
    fn take(&mut self, progress: Progress) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            self.taken.push((progress, self.house.records().len()));
        })
    }
}

#[tokio::test]
async fn the_end_is_recorded_after_all_that_was_told_was_taken() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let mut model = FakeModel::new([Ok(answer("a", tokens(1, 1)))]);
    let tells: Vec<Progress> = (0..5).map(|number| Progress::Text(number.to_string())).collect();
    model.tells.clone_from(&tells);
    let model = Arc::new(model);
    let mut slow = Slow { house: &house, taken: Vec::new() };
    let request = request();
    let effect = super::super::ModelEffect { follow: &mut slow, ..ask(0, &model, &request) };
    gate.model(effect, said(0)).await.unwrap();
    let expected: Vec<_> = tells.into_iter().map(|told| (told, 1)).collect();
    assert_eq!(slow.taken, expected);
    assert_eq!(house.records().len(), 3);
}
