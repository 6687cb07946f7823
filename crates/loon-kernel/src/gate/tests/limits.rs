//! Time limits of single effects.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{EffectKind, EffectStarted, EffectStatus, TurnStarted};
use loon_api::{At, EffectKey, ErrorCode, Mode, ToolCallStatus, ToolClass};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::{Authority, AuthorityRequest, GateOptions, ModelEffect, Verdict};
use super::{Behaviour, FakeModel, FakeTool, ask, call, house, of, options, request, said};
use crate::tree::{Budget, Tree};

fn second(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn k041_the_limit_counts_from_the_first_record_of_the_start() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let key = EffectKey::new("step");
    let begin = gate.first_began(&key);
    for _ in 0..2 {
        let started = EffectStarted {
            key: key.clone(),
            kind: EffectKind::Tool,
            target: "t".to_owned(),
            item: None,
            timeout_ms: Some(30_000),
            request: None,
        };
        house.execution.recorder().record(None, started).await.unwrap();
        house.clock.advance(second(20));
    }
    assert_eq!(gate.first_began(&key), begin);
    assert_eq!(gate.first_began(&EffectKey::new("another")), begin.plus(second(40)));
}

#[tokio::test]
async fn k044_a_limit_that_passed_fails_the_step_and_not_the_execution() {
    let house = house(None).await;
    let slow = FakeTool::new("t", ToolClass::Executes, Behaviour::EndsWhenAsked);
    let quick = FakeTool::new("u", ToolClass::Executes, Behaviour::Answers);
    let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&slow), quick]));
    let running = {
        let gate = Arc::clone(&gate);
        tokio::spawn(async move {
            gate.tool(call(0, "t", json!({"line": "x", "seconds": 5}))).await.unwrap()
        })
    };
    house.clock.sleeper(second(5)).await;
    house.clock.advance(second(5));
    let item = running.await.unwrap();
    assert_eq!(of(&item).status, ToolCallStatus::Failed);
    assert_eq!(of(&item).error.as_ref().unwrap().code, ErrorCode::DeadlineExceeded);
    assert_eq!(house.end().status, EffectStatus::TimedOut);
    let next = gate.tool(call(1, "u", json!({"line": "x"}))).await.unwrap();
    assert_eq!(of(&next).status, ToolCallStatus::Done);
    assert!(!house.execution.stop_if_expired().await.unwrap());
}

#[tokio::test]
async fn k046_a_deadline_fires_while_an_effect_runs() {
    let house = house(Some(second(60))).await;
    let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::EndsWhenAsked);
    let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&tool)]));
    let running = tokio::spawn(async move {
        gate.tool(call(0, "t", json!({"line": "x", "seconds": 900}))).await.unwrap()
    });
    house.clock.sleeper(second(60)).await;
    house.clock.advance(second(60));
    running.await.unwrap();
    assert_eq!(house.end().error.unwrap().message, "the deadline of 60 s passed");
    assert!(house.execution.stop_if_expired().await.unwrap());
    assert_eq!(house.kinds().last().unwrap(), "execution.cancelled");
}

#[tokio::test]
async fn a_clock_that_jumps_ends_no_effect_early_or_late() {
    let begin = At::from_unix_ms(1_796_040_000_000);
    let (day_before, day_after) = (begin.unix_ms() - 86_400_000, begin.unix_ms() + 86_400_000);
    for jump in [day_before, day_after] {
        let house = house(Some(second(60))).await;
        let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::EndsWhenAsked);
        let gate = house.gate(options(vec![Arc::<FakeTool>::clone(&tool)]));
        let running = tokio::spawn(async move {
            gate.tool(call(0, "t", json!({"line": "x", "seconds": 5}))).await.unwrap()
        });
        house.clock.sleeper(second(5)).await;
        house.clock.set(At::from_unix_ms(jump));
        house.clock.advance(second(3));
        assert_eq!(house.execution.remaining(), Some(second(57)));
        house.clock.sleeper(second(2)).await;
        house.clock.advance(second(2));
        let item = running.await.unwrap();
        assert_eq!((house.end().status, house.end().ms), (EffectStatus::TimedOut, 5000));
        assert_eq!(of(&item).ms, Some(5000));
    }
}

#[tokio::test]
async fn k032_k035_an_abort_reaches_the_request_and_is_never_retried() {
    let house = house(None).await;
    let gate = house.gate(options(vec![]));
    let model = Arc::new(FakeModel::new([]));
    let cancel = CancellationToken::new();
    let asking = {
        let (model, cancel, gate) = (Arc::clone(&model), cancel.clone(), Arc::clone(&gate));
        tokio::spawn(async move {
            let request = request();
            let effect = ModelEffect { cancel, ..ask(0, &model, &request) };
            gate.model(effect, said(0)).await
        })
    };
    model.running.notified().await;
    house.clock.advance(second(3));
    cancel.cancel();
    house.clock.sleeper(Duration::from_millis(500)).await;
    house.clock.advance(Duration::from_millis(500));
    assert_eq!(asking.await.unwrap().unwrap_err().status, EffectStatus::Aborted);
    assert_eq!(model.requests(), 1);
    assert_eq!(house.end().ms, 3500, "stopped, and metered all the same");
    // The key has its end; performing it again sends nothing.
    let request = request();
    let again = gate.model(ask(0, &model, &request), said(0)).await.unwrap_err();
    assert_eq!((again.status, model.requests()), (EffectStatus::Aborted, 1));
}

/// Says no to everything.
struct Denies;

impl Authority for Denies {
    fn decide(&self, _: &AuthorityRequest<'_>) -> Verdict {
        Verdict::Deny { reasons: vec!["no".to_owned()] }
    }
}

#[tokio::test]
async fn k008_the_checks_come_in_one_order_and_the_outermost_answers() {
    let spent = Budget { max_tokens: Some(0), ..Budget::default() };
    // Cancelled, past the deadline, without a budget, denied: each without those before it.
    let stages = [
        (true, true, spent, ErrorCode::Cancelled),
        (false, true, spent, ErrorCode::DeadlineExceeded),
        (false, false, spent, ErrorCode::QuotaExceeded),
        (false, false, Budget::default(), ErrorCode::Denied),
    ];
    for (cancelled, expired, budget, code) in stages {
        let house = house(expired.then(|| second(1))).await;
        let turn = TurnStarted { model: "lab/m".to_owned(), mode: Mode::Default, branch: None };
        house.execution.recorder().record(Some(1), turn).await.unwrap();
        house.clock.advance(second(2));
        let tool = FakeTool::new("t", ToolClass::Executes, Behaviour::Answers);
        let gate = house.gate(GateOptions {
            authorities: vec![Arc::new(Denies)],
            tree: Tree::new(budget, None),
            ..options(vec![Arc::<FakeTool>::clone(&tool)])
        });
        let call = call(0, "t", json!({"line": "x"}));
        if cancelled {
            call.cancel.cancel();
        }
        let item = gate.tool(call).await.unwrap();
        assert_eq!((of(&item).error.as_ref().unwrap().code, tool.runs()), (code, 0));
    }
}
