//! Deadlines, timers and cancels.

use loon_api::Clock as _;
use loon_api::event::EffectFinished;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::error::KernelError;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn hangs(cx: &FlowContext, world: World) -> BoxFuture<'_, Result<Value, FlowError>> {
    Box::pin(async move {
        let work = |_, _| async move {
            world.touch("hangs");
            std::future::pending::<Result<Value, _>>().await
        };
        cx.perform("hang", "x", None, work).await
    })
}

/// Lets `run` go on until the step of [`hangs`] has begun.
async fn until_it_hangs<T: std::fmt::Debug>(house: &House, run: impl Future<Output = T>) {
    let begun = async {
        while house.world.times("hangs") == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        settled = run => panic!("{settled:?}"),
        () = begun => {}
    }
}

fn waits(
    timeout: Option<Duration>,
) -> impl Fn(&FlowContext, World) -> BoxFuture<'_, Result<Value, FlowError>> + Send + Sync + 'static
{
    move |cx, world| {
        Box::pin(async move {
            let woken = cx.suspend("approval", "1", timeout).await?;
            touch(cx, &world, "after").await?;
            Ok(json!(woken == Woken::TimedOut))
        })
    }
}

/// Runs `run` and moves the clock by `step` each time somebody sleeps exactly until then.
async fn passing<T>(house: &House, step: Duration, run: impl Future<Output = T>) -> T {
    let mut run = std::pin::pin!(run);
    loop {
        tokio::select! {
            biased;
            done = &mut run => return done,
            () = house.clock.sleeper(step) => house.clock.advance(step),
        }
    }
}

#[tokio::test]
async fn k040_k042_a_deadline_counts_from_the_first_record_whatever_happens_between() {
    let house = house();
    let runner = house.process(Some(secs(10)), |cx, world| {
        Box::pin(async move {
            touch(cx, &world, "first").await?;
            cx.sleep("long", secs(100)).await?;
            Ok(Value::Null)
        })
    });
    {
        // The first process ends after four seconds, without a word.
        let mut run = std::pin::pin!(house.start(&runner));
        tokio::select! {
            biased;
            settled = &mut run => panic!("{settled:?}"),
            () = house.clock.sleeper(secs(100)) => {}
        }
    }
    house.clock.advance(secs(7));
    // Three of ten seconds are left.
    let settled = passing(&house, secs(3), house.resume(&runner)).await.unwrap();
    assert_eq!(reason(&settled), "the deadline of 10 s passed");
    assert_eq!((house.count("execution.cancelled"), house.world.times("first")), (1, 1));
    let began = house.records()[0].at;
    assert_eq!(house.clock.now().since(began), secs(10));
}

#[tokio::test]
async fn k043_a_deadline_given_at_the_start_goes_before_that_of_the_flow() {
    let house = house();
    let runner = house.process(Some(secs(1000)), hangs);
    let start = Start { deadline: Some(secs(2)), ..house.begin() };
    let run = passing(&house, secs(2), runner.start(start, unheard()));
    let settled = passing(&house, Duration::from_millis(500), run).await.unwrap();
    assert_eq!(reason(&settled), "the deadline of 2 s passed");
}

#[tokio::test]
async fn k041_k044_a_step_that_takes_too_long_fails_and_the_flow_may_try_again() {
    let house = house();
    let runner = house.process(None, |cx, world| {
        Box::pin(async move {
            let slow = cx
                .perform("slow", "x", Some(secs(3)), |_, _| {
                    std::future::pending::<Result<Value, _>>()
                })
                .await;
            match slow {
                Err(FlowError::Step { failure, .. })
                    if failure.status == EffectStatus::TimedOut =>
                {
                    touch(cx, &world, "again").await
                }
                other => panic!("{other:?}"),
            }
        })
    });
    let run = passing(&house, secs(3), house.start(&runner));
    let settled = passing(&house, Duration::from_millis(500), run).await.unwrap();
    assert_eq!(settled, completed(json!("again done")));
    let ends: Vec<(EffectStatus, bool)> = house
        .records()
        .into_iter()
        .filter_map(|record| match record.event {
            AgentEvent::EffectFinished(EffectFinished { status, ms, .. }) => {
                Some((status, ms >= 3000))
            }
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(EffectStatus::TimedOut, true), (EffectStatus::Completed, false)]);
}

#[tokio::test]
async fn k045_k046_a_deadline_cancels_a_flow_at_work_and_settles_its_step() {
    let house = house();
    let runner = house.process(Some(secs(5)), hangs);
    let mut run = std::pin::pin!(house.start(&runner));
    until_it_hangs(&house, run.as_mut()).await;
    let run = passing(&house, secs(5), run);
    let settled = passing(&house, Duration::from_millis(500), run).await.unwrap();
    assert_eq!(reason(&settled), "the deadline of 5 s passed");
    let kinds = house.kinds();
    assert_eq!(kinds[kinds.len() - 2..], ["effect.finished", "execution.cancelled"]);
    let Err(RunError::Kernel(KernelError::Cancelled { .. })) = house.resume(&runner).await else {
        panic!("a cancelled flow went on");
    };
}

#[tokio::test]
async fn k047_k048_a_flow_that_waits_is_not_cancelled_until_somebody_resumes_it() {
    let house = house();
    let runner = house.process(Some(secs(10)), waits(None));
    assert_eq!(house.start(&runner).await.unwrap(), Settled::Suspended { due: None });
    house.clock.advance(secs(100));
    let before = house.records();
    runner.tend(&fired(), |_, _| panic!("nothing is due")).await.unwrap();
    runner.signal(house.exec, approval("1")).await.unwrap();
    assert_eq!(house.records().len(), before.len() + 1);
    let settled = house.resume(&runner).await.unwrap();
    assert_eq!(reason(&settled), "the deadline of 10 s passed");
    assert_eq!(house.world.times("after"), 0);
}

/// A token that has fired.
fn fired() -> CancellationToken {
    let stop = CancellationToken::new();
    stop.cancel();
    stop
}

#[tokio::test]
async fn k049_the_timeout_of_a_wait_fires_while_no_process_runs_the_flow() {
    let house = house();
    let runner = house.process(None, waits(Some(secs(30))));
    let due = At::from_unix_ms(house.clock.now().unix_ms() + 30_000);
    assert_eq!(house.start(&runner).await.unwrap(), Settled::Suspended { due: Some(due) });
    assert_eq!(runner.timers().unwrap(), [(due, house.exec)]);
    house.clock.advance(secs(31));
    // Another process finds it due when it starts.
    let other = house.process(None, waits(Some(secs(30))));
    let stop = CancellationToken::new();
    let mut seen = Vec::new();
    let tending = other.tend(&stop, |exec, settled| {
        seen.push((exec, settled.unwrap()));
        stop.cancel();
    });
    tending.await.unwrap();
    assert_eq!(seen, [(house.exec, completed(json!(true)))]);
    assert_eq!(house.count("timer.fired"), 1);
    // A signal that comes too late changes nothing.
    assert!(other.signal(house.exec, approval("1")).await.is_err());
}

#[tokio::test]
async fn k049_a_wait_that_begins_while_timers_are_tended_is_woken_in_time() {
    let house = house();
    let runner = house.process(None, waits(Some(secs(30))));
    let stop = CancellationToken::new();
    let tending = {
        let (runner, stop) = (Arc::clone(&runner), stop.clone());
        tokio::spawn(async move {
            let mut seen = Vec::new();
            runner
                .tend(&stop.clone(), |_, settled| {
                    seen.push(settled.unwrap());
                    stop.cancel();
                })
                .await
                .unwrap();
            seen
        })
    };
    tokio::task::yield_now().await;
    house.start(&runner).await.unwrap();
    house.clock.sleeper(secs(30)).await;
    house.clock.advance(secs(30));
    assert_eq!(tending.await.unwrap(), [completed(json!(true))]);
}

fn nap(cx: &FlowContext, world: World) -> BoxFuture<'_, Result<Value, FlowError>> {
    Box::pin(async move {
        cx.sleep("nap", secs(50)).await?;
        touch(cx, &world, "awake").await
    })
}

#[tokio::test]
async fn k049_a_sleep_that_is_over_when_the_flow_is_resumed_goes_on_at_once() {
    let house = house();
    let first = house.process(None, nap);
    {
        let mut run = std::pin::pin!(house.start(&first));
        tokio::select! {
            biased;
            settled = &mut run => panic!("{settled:?}"),
            () = house.clock.sleeper(secs(50)) => {}
        }
    }
    house.clock.advance(secs(60));
    assert_eq!(house.resume(&first).await.unwrap(), completed(json!("awake done")));
    assert_eq!((house.count("timer.set"), house.count("timer.fired")), (1, 1));
}

#[tokio::test]
async fn k027_k031_a_cancel_stops_the_step_and_is_recorded_once() {
    let house = house();
    let runner = house.process(None, |cx, world| {
        Box::pin(async move {
            cx.perform("polite", "x", None, |_, cancel| async move {
                world.touch("began");
                cancel.cancelled().await;
                world.touch("cleaned");
                Ok(Value::Null)
            })
            .await
        })
    });
    let running = tokio::spawn({
        let (runner, start) = (Arc::clone(&runner), house.begin());
        async move { runner.start(start, unheard()).await }
    });
    while house.world.times("began") == 0 {
        tokio::task::yield_now().await;
    }
    assert!(runner.cancel(house.exec, Some("enough".to_owned())).await.unwrap());
    let settled = running.await.unwrap().unwrap();
    assert_eq!((reason(&settled), house.world.times("cleaned")), ("enough", 1));
    assert!(!runner.cancel(house.exec, None).await.unwrap());
    assert_eq!(house.count("execution.cancelled"), 1);
    assert_eq!(house.kinds().last().map(String::as_str), Some("execution.cancelled"));
}

#[tokio::test]
async fn k028_k029_another_process_cancels_a_flow_by_a_newer_fence() {
    let house = house();
    let zombie = house.process(None, |cx, world| {
        Box::pin(async move {
            let gone = world.clone();
            cx.perform("stuck", "x", None, |_, _| async move {
                gone.touch("began");
                while gone.times("go on") == 0 {
                    tokio::task::yield_now().await;
                }
                Ok(Value::Null)
            })
            .await?;
            touch(cx, &world, "next").await
        })
    });
    let running = tokio::spawn({
        let (runner, start) = (Arc::clone(&zombie), house.begin());
        async move { runner.start(start, unheard()).await }
    });
    while house.world.times("began") == 0 {
        tokio::task::yield_now().await;
    }
    let other = house.process(None, hangs);
    assert!(other.cancel(house.exec, Some("dead node".to_owned())).await.unwrap());
    let before = house.records();
    house.world.touch("go on");
    let settled = running.await.unwrap().unwrap();
    assert_eq!((reason(&settled), house.world.times("next")), ("dead node", 0));
    assert_eq!(house.records(), before);
}
