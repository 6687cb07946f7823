//! Cancelling by id, wherever the execution stands.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{EffectStatus, ExecutionCancelled, TurnFinished};
use loon_api::{AgentEvent, Cost, ErrorCode, ExecutionId, TurnStatus, Usage};

use super::{
    CancelMode, Cancelled, Fixture, begin_turn, begun, cancel_by_id, cancelled, fixture, kinds,
};
use crate::secrets::Redactor;
use crate::store::{FileStore, MemoryStore};

/// The check with both stores.
async fn with_both(check: impl AsyncFn(Fixture)) {
    check(fixture(MemoryStore::default())).await;
    let dir = tempfile::tempdir().unwrap();
    check(fixture(FileStore::new(dir.path()))).await;
}

fn ends(fixture: &Fixture, of: &super::Execution) -> Vec<Option<String>> {
    let records = fixture.records(of).into_iter();
    let ends = records.filter_map(|record| match record.event {
        AgentEvent::ExecutionCancelled(ExecutionCancelled { reason }) => Some(reason),
        _ => None,
    });
    ends.collect()
}

#[tokio::test]
async fn k026_an_id_is_enough_whether_it_is_at_work_waits_or_is_left() {
    with_both(async |fixture| {
        let at_work = fixture.start(None).await;
        begin_turn(&at_work).await;
        let waits = fixture.start(None).await;
        let left = fixture.start(None).await;
        begin_turn(&left).await;
        left.recorder().record(Some(1), begun("a")).await.unwrap();
        let left = left.exec();
        for exec in [at_work.exec(), waits.exec(), left] {
            let reason = Some("operator kill".to_owned());
            assert_eq!(cancelled(&fixture, exec, CancelMode::Now, reason.clone()), Cancelled::Now);
            let last = fixture.store.read(exec).unwrap().last().unwrap().unwrap();
            assert_eq!(last.event, ExecutionCancelled { reason }.into());
            assert!(fixture.store.verify(exec).unwrap().ended);
        }
    })
    .await;
}

#[tokio::test]
async fn a_secret_in_the_reason_reaches_neither_the_journal_nor_who_is_asked_to_stop() {
    with_both(async |fixture| {
        let redactor = Redactor::default();
        redactor.learn([("LAB_KEY".to_owned(), "lab-secret-1".to_owned())]);
        for mode in [CancelMode::AfterStep, CancelMode::Now] {
            let owner = fixture.start(None).await;
            begin_turn(&owner).await;
            let (store, exec) = (fixture.store.as_ref(), owner.exec());
            let reason = Some("it has lab-secret-1".to_owned());
            cancel_by_id(store, &fixture.clock, &redactor, exec, mode, reason).unwrap();
            let masked = Some("it has [secret: LAB_KEY]".to_owned());
            if mode == CancelMode::AfterStep {
                assert_eq!(store.asked_to_stop(exec).unwrap().unwrap().reason, masked);
            } else {
                assert_eq!(ends(&fixture, &owner), [masked]);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn k027_an_owner_that_is_idle_hears_of_it_without_looking() {
    with_both(async |fixture| {
        let owner = fixture.start(None).await;
        // The clock stands still: nothing that looks again and again would ever look.
        let exec = owner.exec();
        assert_eq!(cancelled(&fixture, exec, CancelMode::Now, None), Cancelled::Now);
        owner.cancel_token().cancelled().await;
        assert!(owner.recorder().record(None, begun("late")).await.is_err());
        assert_eq!(ends(&fixture, &owner), [None]);
    })
    .await;
}

#[tokio::test]
async fn k028_a_newer_fence_is_taken_before_the_fact_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = fixture(FileStore::new(dir.path()));
    let owner = fixture.start(None).await;
    let exec = owner.exec();
    cancelled(&fixture, exec, CancelMode::Now, None);
    let journal = FileStore::new(dir.path()).dir(exec).join("journal.jsonl");
    let text = std::fs::read_to_string(journal).unwrap();
    let fences: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["fence"].as_u64())
        .map(Option::unwrap)
        .collect();
    assert_eq!(fences, [1, 2]);
}

#[tokio::test]
async fn k029_k058_a_zombie_that_nobody_could_reach_ends_fenced_out() {
    with_both(async |fixture| {
        let zombie = fixture.start(None).await;
        begin_turn(&zombie).await;
        zombie.recorder().record(Some(1), begun("a")).await.unwrap();
        let exec = zombie.exec();
        let reason = Some("unreachable".to_owned());
        assert_eq!(cancelled(&fixture, exec, CancelMode::Now, reason.clone()), Cancelled::Now);
        let settled = fixture.records(&zombie);
        for _ in 0..3 {
            let error = zombie.recorder().record(Some(1), begun("b")).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::Fenced);
            assert!(zombie.cancel(Some("its own".to_owned())).await.is_err());
        }
        assert!(zombie.recorder().make_durable().await.is_err());
        assert_eq!(fixture.records(&zombie), settled);
        assert_eq!(ends(&fixture, &zombie), [reason]);
    })
    .await;
}

#[tokio::test]
async fn k030_k031_it_is_terminal_and_happens_once() {
    with_both(async |fixture| {
        let owner = fixture.start(None).await;
        let exec = owner.exec();
        drop(owner);
        let reason = Some("first".to_owned());
        assert_eq!(cancelled(&fixture, exec, CancelMode::Now, reason.clone()), Cancelled::Now);
        let again = Some("second".to_owned());
        assert_eq!(cancelled(&fixture, exec, CancelMode::Now, again.clone()), Cancelled::Before);
        assert_eq!(cancelled(&fixture, exec, CancelMode::AfterStep, again), Cancelled::Before);
        let (store, clock) = (Arc::clone(&fixture.store), Arc::new(fixture.clock.clone()));
        let events = fixture.events.clone();
        let redactor = crate::Redactor::default();
        let refused =
            super::Execution::resume(store, clock, redactor, exec, events, &mut |_| {}).await;
        assert_eq!(refused.err().unwrap().code(), ErrorCode::Cancelled);
        let records: Vec<_> = fixture.store.read(exec).unwrap().map(Result::unwrap).collect();
        assert_eq!(kinds(&records), ["execution.started", "execution.cancelled"]);
    })
    .await;
}

#[tokio::test]
async fn an_id_that_nobody_has_is_an_error_and_not_a_no() {
    with_both(async |fixture| {
        let exec = ExecutionId::generate();
        for mode in [CancelMode::Now, CancelMode::AfterStep] {
            let store = fixture.store.as_ref();
            let error = cancel_by_id(store, &fixture.clock, &Redactor::default(), exec, mode, None)
                .unwrap_err();
            assert_eq!(error.code(), ErrorCode::NotFound);
        }
    })
    .await;
}

#[tokio::test]
async fn k025_k033_k034_what_ran_is_settled_and_its_time_is_metered() {
    with_both(async |fixture| {
        let owner = fixture.start(None).await;
        begin_turn(&owner).await;
        owner.recorder().record(Some(1), begun("runs")).await.unwrap();
        fixture.clock.advance(Duration::from_secs(7));
        cancelled(&fixture, owner.exec(), CancelMode::Now, None);
        let records = fixture.records(&owner);
        let [.., end, _] = records.as_slice() else { panic!("{records:?}") };
        let AgentEvent::EffectFinished(end) = &end.event else { panic!("{end:?}") };
        assert_eq!((end.status, end.ms), (EffectStatus::Aborted, 7000));
        let mut state = crate::fold::ExecutionState::default();
        for record in &records {
            state.apply(record);
        }
        assert_eq!((state.resources.ms, state.resources.count), (7000, 1));
    })
    .await;
}

#[tokio::test]
async fn k034_an_effect_of_a_dead_process_counts_until_its_last_sign() {
    with_both(async |fixture| {
        let owner = fixture.start(None).await;
        begin_turn(&owner).await;
        owner.recorder().record(Some(1), begun("a")).await.unwrap();
        fixture.clock.advance(Duration::from_secs(3));
        owner.recorder().record(Some(1), begun("b")).await.unwrap();
        let exec = owner.exec();
        drop(owner);
        fixture.clock.advance(Duration::from_hours(5));
        cancelled(&fixture, exec, CancelMode::Now, None);
        let ends: Vec<_> = fixture
            .store
            .read(exec)
            .unwrap()
            .filter_map(|record| match record.unwrap().event {
                AgentEvent::EffectFinished(end) => Some((end.status, end.ms)),
                _ => None,
            })
            .collect();
        assert_eq!(ends, [(EffectStatus::Unknown, 3000), (EffectStatus::Unknown, 0)]);
    })
    .await;
}

#[tokio::test]
async fn k059_a_cancelled_execution_is_an_end_and_no_fault_to_try_again_after() {
    let fixture = fixture(MemoryStore::default());
    let owner = fixture.start(None).await;
    owner.cancel(Some("enough".to_owned())).await.unwrap();
    let finished = TurnFinished {
        status: TurnStatus::Interrupted,
        error: None,
        steps: 0,
        usage: Usage::default(),
        cost: Cost::default(),
        models: vec![],
        receipt: None,
        review: None,
    };
    let error = owner.recorder().record(Some(1), finished).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Cancelled);
    assert!(error.to_string().ends_with("was cancelled: enough"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_cancels_at_once_leave_one_record_and_one_yes() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let fixture = fixture(FileStore::new(dir.path()));
        let owner = fixture.start(None).await;
        begin_turn(&owner).await;
        let exec = owner.exec();
        let own = tokio::spawn({
            let owner = owner.clone();
            async move { owner.cancel(Some("from inside".to_owned())).await.unwrap_or(false) }
        });
        let others: Vec<_> = (0..3)
            .map(|number| {
                let (store, clock) = (Arc::clone(&fixture.store), fixture.clock.clone());
                tokio::task::spawn_blocking(move || {
                    let reason = Some(format!("from outside, {number}"));
                    let redactor = Redactor::default();
                    cancel_by_id(store.as_ref(), &clock, &redactor, exec, CancelMode::Now, reason)
                        .unwrap()
                })
            })
            .collect();
        let mut yes = u32::from(own.await.unwrap());
        for other in others {
            yes += u32::from(other.await.unwrap() == Cancelled::Now);
        }
        assert_eq!((yes, ends(&fixture, &owner).len()), (1, 1), "round {round}");
        assert!(fixture.store.verify(exec).unwrap().is_sound(), "round {round}");
    }
}
