//! A process that ends after any record leaves a flow that comes to the same result.

use super::*;

const NIGHT: Duration = Duration::from_mins(1);

/// What a step gave, or that nobody knows.
fn known(step: Result<Value, FlowError>) -> Result<Value, FlowError> {
    match step {
        Err(error) if error.is_unknown() => Ok(json!("unknown")),
        step => step,
    }
}

fn six_steps(cx: &FlowContext, world: World) -> BoxFuture<'_, Result<Value, FlowError>> {
    Box::pin(async move {
        let first = known(touch(cx, &world, "first").await)?;
        let dice = cx.decide("dice", || {
            world.touch("thrown");
            json!(13)
        });
        let dice = dice.await?;
        let second = known(touch(cx, &world, "second").await)?;
        cx.sleep("night", NIGHT).await?;
        let by = match cx.suspend("approval", "42", None).await? {
            Woken::Signal(payload) => payload["by"].clone(),
            Woken::TimedOut => Value::Null,
        };
        let third = known(touch(cx, &world, "third").await)?;
        Ok(json!([first, dice, second, by, third]))
    })
}

/// Lets the night pass and gives the approval wherever the flow waits for it.
async fn bring_to_its_end(house: &House, runner: &FlowRunner) -> Settled {
    loop {
        let settled = {
            let mut run = std::pin::pin!(house.resume(runner));
            loop {
                tokio::select! {
                    biased;
                    settled = &mut run => break settled.unwrap(),
                    () = house.clock.sleeper(NIGHT) => house.clock.advance(NIGHT),
                }
            }
        };
        if !matches!(settled, Settled::Suspended { .. }) {
            return settled;
        }
        assert!(!runner.signal(house.exec, approval("42")).await.unwrap());
    }
}

/// The records of a run that nothing disturbed.
async fn undisturbed() -> Vec<Envelope> {
    let house = house();
    let runner = house.process(None, six_steps);
    let settled = {
        let mut run = std::pin::pin!(house.start(&runner));
        loop {
            tokio::select! {
                biased;
                settled = &mut run => break settled.unwrap(),
                () = house.clock.sleeper(NIGHT) => house.clock.advance(NIGHT),
            }
        }
    };
    assert_eq!(settled, Settled::Suspended { due: None });
    let settled = bring_to_its_end_after_signal(&house, &runner).await;
    assert_eq!(settled, completed(json!(["first done", 13, "second done", "ann", "third done"])));
    house.records()
}

async fn bring_to_its_end_after_signal(house: &House, runner: &FlowRunner) -> Settled {
    runner.signal(house.exec, approval("42")).await.unwrap();
    bring_to_its_end(house, runner).await
}

#[tokio::test]
async fn a_flow_killed_after_any_record_ends_the_same_and_does_nothing_twice() {
    let all = undisturbed().await;
    let kinds: Vec<&str> = all.iter().map(|record| record.event.kind()).collect();
    assert_eq!(
        kinds,
        [
            "execution.started",
            "flow.started",
            "effect.started",
            "effect.finished",
            "decision.recorded",
            "effect.started",
            "effect.finished",
            "timer.set",
            "timer.fired",
            "execution.suspended",
            "signal.received",
            "execution.resumed",
            "effect.started",
            "effect.finished",
            "execution.completed",
        ]
    );
    for kept in 2..=all.len() {
        let house = House { exec: all[0].exec, ..house() };
        let mut writer = house.store.create(house.exec).unwrap();
        writer.append(&all[..kept]).unwrap();
        drop(writer);
        let runner = house.process(None, six_steps);
        let settled = bring_to_its_end(&house, &runner).await;

        let began = |key: &str| {
            all[..kept].iter().any(
                |it| matches!(&it.event, AgentEvent::EffectStarted(e) if e.key.as_str() == key),
            )
        };
        let ended = |key: &str| {
            all[..kept].iter().any(
                |it| matches!(&it.event, AgentEvent::EffectFinished(e) if e.key.as_str() == key),
            )
        };
        let gives = |key: &str| match (began(key), ended(key)) {
            (true, false) => json!("unknown"),
            _ => json!(format!("{key} done")),
        };
        let decided = kinds[..kept].contains(&"decision.recorded");
        assert_eq!(
            settled,
            completed(json!([gives("first"), 13, gives("second"), "ann", gives("third")])),
            "after {kept} records"
        );
        for key in ["first", "second", "third"] {
            // Once in all: before the end of the first process, or after it.
            assert_eq!(
                house.world.times(key),
                u32::from(!began(key)),
                "{key} after {kept} records"
            );
        }
        assert_eq!(house.world.times("thrown"), u32::from(!decided), "after {kept} records");
        assert_eq!(house.count("signal.received"), 1, "after {kept} records");
        assert_eq!(house.count("execution.completed"), 1);
        let verified = house.store.verify(house.exec).unwrap();
        assert!(verified.is_sound() && verified.ended, "{verified:?}");
    }
}
