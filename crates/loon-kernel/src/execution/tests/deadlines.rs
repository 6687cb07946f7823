//! Deadlines count from records, and only the time at work.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{Notice, NoticeLevel, TurnFinished};
use loon_api::{AgentEvent, At, Cost, ErrorCode, ExecutionId, TurnStatus, Usage};

use super::{Execution, Fixture, begin_turn, begun, fixture, kinds};
use crate::error::KernelError;
use crate::execution::{Opening, ResumeOptions};
use crate::secrets::Redactor;
use crate::store::MemoryStore;

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

fn second(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn end_turn(execution: &Execution) {
    let finished = TurnFinished {
        status: TurnStatus::Completed,
        error: None,
        steps: 1,
        usage: Usage::default(),
        cost: Cost::default(),
        models: vec![],
        receipt: None,
        review: None,
    };
    execution.recorder().record(Some(1), finished).await.unwrap();
}

async fn note(execution: &Execution) {
    let (message, hints) = (String::new(), vec![]);
    let note = Notice { level: NoticeLevel::Info, message, hints };
    execution.recorder().record(Some(1), note).await.unwrap();
}

impl Fixture {
    async fn reopen(
        &self,
        exec: ExecutionId,
        deadline: Option<Duration>,
    ) -> Result<Execution, KernelError> {
        let (store, clock) = (Arc::clone(&self.store), Arc::new(self.clock.clone()));
        let events = self.events.clone();
        let how = ResumeOptions { exec, opening: Opening::IfFree, deadline };
        let redactor = Redactor::default();
        Execution::resume_with(store, clock, redactor, how, events, &mut |_| {}).await
    }

    fn kinds(&self, exec: ExecutionId) -> Vec<String> {
        let records = self.store.read(exec).unwrap();
        records.map(|record| record.unwrap().event.kind().to_owned()).collect()
    }

    /// The times of all records, which must never go back.
    fn times(&self, exec: ExecutionId) -> Vec<At> {
        let records = self.store.read(exec).unwrap();
        let times: Vec<At> = records.map(|record| record.unwrap().at).collect();
        assert!(times.is_sorted(), "{times:?}");
        times
    }
}

#[tokio::test]
async fn k040_k042_a_crash_does_not_reset_the_clock() {
    let fixture = fixture(MemoryStore::default());
    let first = fixture.start(Some(MINUTE)).await;
    let exec = first.exec();
    begin_turn(&first).await;
    fixture.clock.advance(second(40));
    note(&first).await;
    drop(first);
    fixture.clock.advance(second(15));
    let second_life = fixture.reopen(exec, None).await.unwrap();
    assert_eq!(second_life.remaining(), Some(second(5)));
    fixture.clock.advance(second(4));
    assert_eq!(second_life.remaining(), Some(second(1)));
    assert!(!second_life.stop_if_expired().await.unwrap());
}

#[tokio::test]
async fn k043_a_deadline_given_for_one_dispatch_takes_the_place_of_the_former() {
    let fixture = fixture(MemoryStore::default());
    let first = fixture.start(Some(MINUTE)).await;
    let exec = first.exec();
    begin_turn(&first).await;
    fixture.clock.advance(DAY);
    drop(first);
    // The former one passed long ago.
    let again = fixture.reopen(exec, Some(second(5))).await.unwrap();
    assert_eq!(again.remaining(), Some(second(5)));
    fixture.clock.advance(second(5));
    assert!(again.stop_if_expired().await.unwrap());
    let last = fixture.records(&again).pop().unwrap();
    let AgentEvent::ExecutionCancelled(last) = last.event else { panic!("{last:?}") };
    assert_eq!(last.reason.as_deref(), Some("the deadline of 5 s passed"));
}

#[tokio::test]
async fn k045_a_deadline_that_passed_is_one_cancel_that_says_so() {
    let fixture = fixture(MemoryStore::default());
    let execution = fixture.start(Some(MINUTE)).await;
    begin_turn(&execution).await;
    execution.recorder().record(Some(1), begun("a")).await.unwrap();
    fixture.clock.advance(MINUTE);
    assert!(execution.is_expired());
    assert!(execution.stop_if_expired().await.unwrap());
    assert!(!execution.stop_if_expired().await.unwrap());
    assert!(!execution.cancel(None).await.unwrap());
    let records = fixture.records(&execution);
    let expected = [
        "execution.started",
        "turn.started",
        "effect.started",
        "effect.finished",
        "execution.cancelled",
    ];
    assert_eq!(kinds(&records), expected);
    let AgentEvent::ExecutionCancelled(last) = &records[4].event else { panic!("{records:?}") };
    assert_eq!(last.reason.as_deref(), Some("the deadline of 60 s passed"));
}

#[tokio::test]
async fn k047_an_execution_that_waits_for_a_person_is_not_cancelled_however_long() {
    let fixture = fixture(MemoryStore::default());
    let first = fixture.start(Some(MINUTE)).await;
    let exec = first.exec();
    begin_turn(&first).await;
    fixture.clock.advance(second(20));
    end_turn(&first).await;
    fixture.clock.advance(DAY * 30);
    assert!(!first.stop_if_expired().await.unwrap());
    drop(first);
    fixture.clock.advance(DAY * 30);
    let again = fixture.reopen(exec, None).await.unwrap();
    assert_eq!(again.remaining(), Some(second(40)));
}

#[tokio::test]
async fn k048_a_resume_past_the_deadline_cancels_at_once() {
    let fixture = fixture(MemoryStore::default());
    let first = fixture.start(Some(MINUTE)).await;
    let exec = first.exec();
    begin_turn(&first).await;
    first.recorder().record(Some(1), begun("a")).await.unwrap();
    drop(first);
    fixture.clock.advance(MINUTE);
    let error = fixture.reopen(exec, None).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::DeadlineExceeded);
    assert!(error.to_string().contains("the deadline of 60 s passed"), "{error}");
    let expected = [
        "execution.started",
        "turn.started",
        "effect.started",
        "effect.finished",
        "execution.cancelled",
    ];
    assert_eq!(fixture.kinds(exec), expected);
    // From now on it is a cancelled one, whatever time it would be given.
    for deadline in [None, Some(DAY)] {
        let error = fixture.reopen(exec, deadline).await.err().unwrap();
        assert_eq!(error.code(), ErrorCode::Cancelled);
    }
    assert_eq!(fixture.kinds(exec), expected);
}

#[tokio::test]
async fn a_clock_that_is_set_back_makes_no_record_older_and_no_deadline_longer() {
    let fixture = fixture(MemoryStore::default());
    let execution = fixture.start(Some(MINUTE)).await;
    let begin = At::from_unix_ms(1_796_040_000_000);
    begin_turn(&execution).await;
    fixture.clock.advance(second(10));
    fixture.clock.set(At::from_unix_ms(begin.unix_ms() - 86_400_000));
    assert_eq!(execution.remaining(), Some(second(50)));
    fixture.clock.advance(second(10));
    note(&execution).await;
    assert_eq!(execution.remaining(), Some(second(40)));
    end_turn(&execution).await;
    // Between turns the time stands still until the clock has caught up.
    fixture.clock.advance(second(3));
    begin_turn(&execution).await;
    fixture.clock.advance(second(1));
    assert_eq!(execution.remaining(), Some(second(39)));
    let at = |seconds| begin.plus(second(seconds));
    assert_eq!(fixture.times(execution.exec()), [at(0), at(0), at(20), at(20), at(20)]);
    let exec = execution.exec();
    drop(execution);
    let again = fixture.reopen(exec, None).await.unwrap();
    assert_eq!(again.remaining(), Some(second(40)));
    fixture.times(exec);
}

#[tokio::test]
async fn a_clock_that_is_set_forward_uses_up_no_deadline() {
    let fixture = fixture(MemoryStore::default());
    let execution = fixture.start(Some(MINUTE)).await;
    let begin = At::from_unix_ms(1_796_040_000_000);
    begin_turn(&execution).await;
    execution.recorder().record(Some(1), begun("a")).await.unwrap();
    fixture.clock.set(begin.plus(DAY));
    fixture.clock.advance(second(10));
    assert_eq!(execution.remaining(), Some(second(50)));
    assert!(!execution.stop_if_expired().await.unwrap());
    note(&execution).await;
    end_turn(&execution).await;
    assert_eq!(execution.remaining(), Some(second(50)));
    let at = |seconds| begin.plus(second(seconds));
    assert_eq!(fixture.times(execution.exec()), [at(0), at(0), at(0), at(10), at(10)]);
    assert!(execution.cancel(None).await.unwrap());
    let ended = fixture.records(&execution);
    let AgentEvent::EffectFinished(end) = &ended[5].event else { panic!("{ended:?}") };
    assert_eq!(end.ms, 10_000);
    fixture.times(execution.exec());
}

#[tokio::test]
async fn an_execution_follows_the_clock_again_once_it_is_not_at_work() {
    let fixture = fixture(MemoryStore::default());
    let execution = fixture.start(None).await;
    let begin = At::from_unix_ms(1_796_040_000_000);
    begin_turn(&execution).await;
    fixture.clock.set(begin.plus(DAY));
    end_turn(&execution).await;
    note(&execution).await;
    assert_eq!(fixture.times(execution.exec()), [begin, begin, begin, begin.plus(DAY)]);
}

#[tokio::test]
async fn a_cancel_from_a_process_whose_clock_is_behind_is_no_older_than_what_it_follows() {
    let fixture = fixture(MemoryStore::default());
    let execution = fixture.start(None).await;
    fixture.clock.set(At::from_unix_ms(0));
    let (exec, mode) = (execution.exec(), super::CancelMode::Now);
    super::cancelled(&fixture, exec, mode, None);
    assert_eq!(fixture.times(exec).len(), 2);
}
