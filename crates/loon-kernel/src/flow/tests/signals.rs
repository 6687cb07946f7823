//! Signals: checked, kept, delivered once.

use super::*;
use crate::flow::SignalError;

fn waits_twice(cx: &FlowContext, _: World) -> BoxFuture<'_, Result<Value, FlowError>> {
    Box::pin(async move {
        let mut seen = Vec::new();
        for _ in 0..2 {
            match cx.suspend("approval", "7", None).await? {
                Woken::Signal(payload) => seen.push(payload["by"].clone()),
                Woken::TimedOut => seen.push(Value::Null),
            }
        }
        Ok(json!(seen))
    })
}

fn by(name: &str) -> Signal {
    Signal { on: "approval".into(), correlation: "7".into(), payload: json!({"by": name}) }
}

#[tokio::test]
async fn a_payload_that_does_not_fit_is_refused_before_it_is_written() {
    let house = house();
    let runner = house.process(None, waits_twice);
    house.start(&runner).await.unwrap();
    let before = house.records();
    let wrong = Signal { payload: json!({"by": 3}), ..by("x") };
    let error = runner.signal(house.exec, wrong).await.unwrap_err();
    assert!(matches!(&error, SignalError::Invalid { on, .. } if on == "approval"), "{error}");
    let foreign = Signal { on: "rain".into(), ..by("x") };
    let error = runner.signal(house.exec, foreign).await.unwrap_err();
    assert_eq!(error.to_string(), "the flow coded knows no signal rain");
    assert_eq!(house.records(), before);
}

#[tokio::test]
async fn signals_are_delivered_in_order_and_early_ones_are_kept() {
    let house = house();
    let runner = house.process(None, waits_twice);
    house.start(&runner).await.unwrap();
    for name in ["ann", "bob"] {
        assert!(!runner.signal(house.exec, by(name)).await.unwrap());
    }
    assert_eq!(house.resume(&runner).await.unwrap(), completed(json!(["ann", "bob"])));
    let late = runner.signal(house.exec, by("cat")).await.unwrap_err();
    assert!(late.to_string().contains("came to its end"), "{late}");
}

#[tokio::test]
async fn a_signal_with_another_correlation_wakes_nobody() {
    let house = house();
    let runner = house.process(None, waits_twice);
    house.start(&runner).await.unwrap();
    let other = Signal { correlation: "8".into(), ..by("ann") };
    runner.signal(house.exec, other).await.unwrap();
    assert_eq!(house.resume(&runner).await.unwrap(), Settled::Suspended { due: None });
}

#[tokio::test]
async fn a_signal_for_a_parked_flow_is_masked_and_no_older_than_what_it_follows() {
    let house = house();
    let mut runner = house.process(None, waits_twice);
    Arc::get_mut(&mut runner)
        .unwrap()
        .redactor
        .learn([("LAB_KEY".to_owned(), "lab-secret-1".to_owned())]);
    house.start(&runner).await.unwrap();
    house.clock.set(At::from_unix_ms(1_000));
    assert!(!runner.signal(house.exec, by("lab-secret-1")).await.unwrap());
    let records = house.records();
    let [.., before, signal] = records.as_slice() else { panic!("{records:?}") };
    let AgentEvent::SignalReceived(received) = &signal.event else { panic!("{signal:?}") };
    assert_eq!(received.payload, json!({"by": "[secret: LAB_KEY]"}));
    assert_eq!(signal.at, before.at);
}

#[tokio::test]
async fn a_flow_at_work_is_told_at_once() {
    let house = house();
    let (began, gone) =
        (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (here, there) = (Arc::clone(&began), Arc::clone(&gone));
    let runner = house.process(None, move |cx, _| {
        let (here, there) = (Arc::clone(&here), Arc::clone(&there));
        Box::pin(async move {
            let busy = cx.perform("busy", "x", None, |_, _| async move {
                here.notify_one();
                there.notified().await;
                Ok(json!("busy"))
            });
            let waits = cx.suspend("approval", "7", None);
            let (busy, woken) = futures_util::future::join(busy, waits).await;
            let Woken::Signal(payload) = woken? else { panic!("no signal") };
            Ok(json!([busy?, payload["by"]]))
        })
    });
    let running = tokio::spawn({
        let (runner, start) = (Arc::clone(&runner), house.begin());
        async move { runner.start(start, unheard()).await }
    });
    began.notified().await;
    assert!(runner.signal(house.exec, by("ann")).await.unwrap());
    gone.notify_one();
    assert_eq!(running.await.unwrap().unwrap(), completed(json!(["busy", "ann"])));
    // It never came to rest.
    assert_eq!(house.count("execution.resumed"), 0);
}

#[tokio::test]
async fn a_wait_for_a_signal_that_the_flow_does_not_know_fails() {
    let house = house();
    let runner = house.process(None, |cx, _| {
        Box::pin(async move { cx.suspend("rain", "1", None).await.map(|_| Value::Null) })
    });
    let settled = house.start(&runner).await.unwrap();
    assert_eq!(failed_with(&settled).code, ErrorCode::Invalid);
}
