//! A replay gets what was recorded, or says that the code changed.

use loon_api::event::EffectFinished;

use super::*;

fn divergence(settled: Result<Settled, RunError>) -> (String, String) {
    match settled {
        Err(RunError::Diverged { divergence, .. }) => (divergence.expected, divergence.found),
        other => panic!("{other:?}"),
    }
}

/// Runs `a` and `b` and waits for an approval.
fn two_steps(cx: &FlowContext, world: World) -> BoxFuture<'_, Result<Value, FlowError>> {
    Box::pin(async move {
        touch(cx, &world, "a").await?;
        touch(cx, &world, "b").await?;
        cx.suspend("approval", "1", None).await?;
        Ok(json!("done"))
    })
}

#[tokio::test]
async fn code_with_another_order_is_refused_and_does_nothing() {
    let house = house();
    assert_eq!(
        house.start(&house.process(None, two_steps)).await.unwrap(),
        Settled::Suspended { due: None }
    );
    let before = house.records();
    let other = house.process(None, |cx, world| {
        Box::pin(async move {
            touch(cx, &world, "b").await?;
            touch(cx, &world, "a").await?;
            touch(cx, &world, "c").await
        })
    });
    let (expected, found) = divergence(house.resume(&other).await);
    assert_eq!((expected.as_str(), found.as_str()), ("the step a on world", "the step b on world"));
    assert_eq!((house.world.times("b"), house.world.times("c")), (1, 0));
    // The journal holds no verdict: the right code goes on.
    assert_eq!(house.records().len(), before.len() + 1);
    let runner = house.process(None, two_steps);
    runner.signal(house.exec, approval("1")).await.unwrap();
    assert_eq!(house.resume(&runner).await.unwrap(), completed(json!("done")));
}

#[tokio::test]
async fn code_with_another_target_a_new_step_or_an_early_end_is_refused() {
    let house = house();
    house.start(&house.process(None, two_steps)).await.unwrap();
    let elsewhere = house.process(None, |cx, _| {
        Box::pin(
            async move { cx.perform("a", "moon", None, |_, _| async { Ok(Value::Null) }).await },
        )
    });
    let (expected, found) = divergence(house.resume(&elsewhere).await);
    assert_eq!((expected.as_str(), found.as_str()), ("the step a on world", "the step a on moon"));
    let more = house.process(None, |cx, world| {
        Box::pin(async move {
            touch(cx, &world, "a").await?;
            // Catching the error does not help.
            let _ = touch(cx, &world, "new").await;
            touch(cx, &world, "b").await
        })
    });
    let (expected, found) = divergence(house.resume(&more).await);
    assert_eq!(
        (expected.as_str(), found.as_str()),
        ("the step b on world", "the step new on world")
    );
    let less =
        house.process(None, |cx, world| Box::pin(async move { touch(cx, &world, "a").await }));
    let (expected, found) = divergence(house.resume(&less).await);
    assert_eq!((expected.as_str(), found.as_str()), ("the step b on world", "its end"));
    assert_eq!((house.world.times("new"), house.count("execution.completed")), (0, 0));
}

#[tokio::test]
async fn parts_beside_each_other_replay_in_their_recorded_order() {
    let house = house();
    let runner = house.process(None, side_by_side);
    // `slow` lets the other part get ahead.
    let settled = house.start(&runner).await.unwrap();
    assert_eq!(settled, Settled::Suspended { due: None });
    let began: Vec<String> = house
        .records()
        .iter()
        .filter_map(|record| match &record.event {
            AgentEvent::EffectStarted(event) => Some(event.key.as_str().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(began, ["slow", "b1", "b2", "b3", "a2"]);
    runner.signal(house.exec, approval("1")).await.unwrap();
    let again = house.process(None, side_by_side);
    assert_eq!(house.resume(&again).await.unwrap(), completed(json!("both")));
    for key in ["slow", "b1", "b2", "b3", "a2", "a3"] {
        assert_eq!(house.world.times(key), 1, "{key}");
    }
}

fn side_by_side(cx: &FlowContext, world: World) -> BoxFuture<'_, Result<Value, FlowError>> {
    Box::pin(async move {
        let gone = tokio::sync::Notify::new();
        let left = async {
            let slow = world.clone();
            let gone = &gone;
            cx.perform("slow", "world", None, |_, _| async move {
                gone.notified().await;
                Ok(slow.touch("slow"))
            })
            .await?;
            touch(cx, &world, "a2").await?;
            cx.suspend("approval", "1", None).await?;
            touch(cx, &world, "a3").await
        };
        let right = async {
            for key in ["b1", "b2", "b3"] {
                touch(cx, &world, key).await?;
            }
            gone.notify_one();
            Ok::<_, FlowError>(())
        };
        let (left, right) = futures_util::future::join(left, right).await;
        left?;
        right?;
        Ok(json!("both"))
    })
}

#[tokio::test]
async fn a_key_asked_for_again_gives_what_was_recorded() {
    let house = house();
    let runner = house.process(None, |cx, world| {
        Box::pin(async move {
            let first = touch(cx, &world, "a").await?;
            let second = touch(cx, &world, "a").await?;
            Ok(json!([first, second]))
        })
    });
    assert_eq!(house.start(&runner).await.unwrap(), completed(json!(["a done", "a done"])));
    assert_eq!(house.world.times("a"), 1);
}

#[tokio::test]
async fn only_the_version_that_began_it_goes_on() {
    let house = house();
    house.start(&house.process(None, two_steps)).await.unwrap();
    let without = FlowRunner::new(
        Arc::new(house.store.clone()),
        Arc::new(house.clock.clone()),
        crate::Redactor::default(),
        Flows::default(),
        Arc::new(|_| gate_options()),
    );
    let error = house.resume(&without).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no flow coded of version 1");
    assert_eq!(error.info().code, ErrorCode::NotFound);
}

fn tries_again(cx: &FlowContext, world: World) -> BoxFuture<'_, Result<Value, FlowError>> {
    Box::pin(async move {
        let counting = world.clone();
        let first = cx
            .perform("try/1", "world", None, |_, _| async move {
                counting.touch("try/1");
                Err::<Value, _>(ErrorInfo::new(ErrorCode::Network, "the line is dead"))
            })
            .await;
        let Err(FlowError::Step { failure, .. }) = &first else { panic!("{first:?}") };
        assert_eq!(failure.error.code, ErrorCode::Network);
        let second = touch(cx, &world, "try/2").await?;
        cx.suspend("approval", "1", None).await?;
        Ok(second)
    })
}

#[tokio::test]
async fn a_failed_step_is_recorded_and_may_be_tried_again_under_another_key() {
    let house = house();
    house.start(&house.process(None, tries_again)).await.unwrap();
    let runner = house.process(None, tries_again);
    runner.signal(house.exec, approval("1")).await.unwrap();
    assert_eq!(house.resume(&runner).await.unwrap(), completed(json!("try/2 done")));
    assert_eq!((house.world.times("try/1"), house.world.times("try/2")), (1, 1));
    let statuses: Vec<EffectStatus> = house
        .records()
        .into_iter()
        .filter_map(|record| match record.event {
            AgentEvent::EffectFinished(EffectFinished { status, .. }) => Some(status),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, [EffectStatus::Failed, EffectStatus::Completed]);
}
