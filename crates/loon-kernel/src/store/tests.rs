//! Both stores keep the same promises; the file store keeps them through crashes as well.

use std::sync::Arc;

use loon_api::event::{ExecutionCancelled, ExecutionStarted, Notice, NoticeLevel};
use loon_api::{AgentEvent, At, Envelope, ErrorCode, ExecutionId, ExecutionKind, Seq, VERSION};

use super::{FileStore, JournalStore, MemoryStore, StoreError};

pub(super) fn record(exec: ExecutionId, seq: Seq, event: impl Into<AgentEvent>) -> Envelope {
    let at = At::from_unix_ms(1_796_040_000_000 + i64::try_from(seq).unwrap());
    Envelope { v: VERSION, seq: Some(seq), at, exec, turn: None, event: event.into() }
}

pub(super) fn first(exec: ExecutionId) -> Envelope {
    let started = ExecutionStarted {
        kind: ExecutionKind::Session,
        cwd: "/w".to_owned(),
        parent: None,
        deadline_ms: None,
        loon: "0".to_owned(),
    };
    record(exec, 1, started)
}

pub(super) fn note(exec: ExecutionId, seq: Seq, message: &str) -> Envelope {
    let notice = Notice {
        level: NoticeLevel::Info,
        message: message.to_owned(),
        hints: vec!["h".to_owned()],
    };
    record(exec, seq, notice)
}

pub(super) fn last(exec: ExecutionId, seq: Seq) -> Envelope {
    record(exec, seq, ExecutionCancelled { reason: None })
}

/// Begins a journal of `count` records, makes them durable and lets the lease go.
pub(super) fn journal(store: &dyn JournalStore, count: u64) -> (ExecutionId, Vec<Envelope>) {
    let exec = ExecutionId::generate();
    let mut records = vec![first(exec)];
    records.extend((2..=count).map(|seq| note(exec, seq, &format!("note {seq}"))));
    let mut writer = store.create(exec).unwrap();
    writer.append(&records).unwrap();
    writer.sync().unwrap();
    (exec, records)
}

pub(super) fn read(store: &dyn JournalStore, exec: ExecutionId) -> Vec<Envelope> {
    store.read(exec).unwrap().map(Result::unwrap).collect()
}

fn both(check: impl Fn(Arc<dyn JournalStore>)) {
    check(Arc::new(MemoryStore::default()));
    let dir = tempfile::tempdir().unwrap();
    check(Arc::new(FileStore::new(dir.path())));
}

#[test]
fn what_was_appended_is_read_in_order_and_goes_on_after_opening() {
    both(|store| {
        let (exec, mut records) = journal(store.as_ref(), 3);
        let mut opened = store.open(exec).unwrap();
        assert_eq!(opened.repaired_bytes, None);
        let more = [note(exec, 4, "ä"), note(exec, 5, "")];
        opened.writer.append(&more).unwrap();
        records.extend(more);
        assert_eq!(read(store.as_ref(), exec), records);
        opened.writer.sync().unwrap();
        let found = store.verify(exec).unwrap();
        assert_eq!((found.records, found.ended, found.damage), (5, false, None));
    });
}

#[test]
fn a_batch_must_go_on_where_the_journal_ends_and_leaves_nothing_otherwise() {
    both(|store| {
        let (exec, records) = journal(store.as_ref(), 2);
        let mut writer = store.open(exec).unwrap().writer;
        for (batch, found) in [
            (vec![note(exec, 4, "")], 4),
            (vec![note(exec, 3, ""), note(exec, 5, "")], 5),
            (vec![Envelope { seq: None, ..note(exec, 3, "") }], 0),
        ] {
            let error = writer.append(&batch).unwrap_err();
            let StoreError::Sequence { found: told, .. } = error else { panic!("{error}") };
            assert_eq!(told, found);
        }
        assert_eq!(read(store.as_ref(), exec), records);
    });
}

#[test]
fn there_is_one_writer_and_its_lease_ends_with_it() {
    both(|store| {
        let (exec, _) = journal(store.as_ref(), 2);
        assert!(!store.is_live(exec));
        let writer = store.open(exec).unwrap().writer;
        assert!(store.is_live(exec));
        let Err(StoreError::Busy { pid, .. }) = store.open(exec) else { panic!("two writers") };
        assert_eq!(pid, Some(std::process::id()));
        drop(writer);
        assert!(!store.is_live(exec));
        store.open(exec).unwrap();
    });
}

#[test]
fn who_was_taken_over_can_write_nothing_more() {
    both(|store| {
        let (exec, mut records) = journal(store.as_ref(), 2);
        let mut old = store.open(exec).unwrap().writer;
        old.append(&[note(exec, 3, "before")]).unwrap();
        old.check().unwrap();
        let mut new = store.take_over(exec).unwrap().writer;
        let refused = |result: Result<(), StoreError>| {
            assert_eq!(result.unwrap_err().code(), ErrorCode::Fenced);
        };
        refused(old.append(&[note(exec, 4, "zombie")]));
        refused(old.check());
        refused(old.sync());
        new.append(&[last(exec, 4)]).unwrap();
        new.sync().unwrap();
        refused(old.append(&[note(exec, 4, "zombie")]));
        records.extend([note(exec, 3, "before"), last(exec, 4)]);
        assert_eq!(read(store.as_ref(), exec), records);
        let found = store.verify(exec).unwrap();
        assert_eq!((found.records, found.ended, found.damage), (4, true, None));
    });
}

#[test]
fn what_is_not_there_is_told_apart_from_what_is() {
    both(|store| {
        let missing = ExecutionId::generate();
        assert_eq!(store.open(missing).err().unwrap().code(), ErrorCode::NotFound);
        assert_eq!(store.take_over(missing).err().unwrap().code(), ErrorCode::NotFound);
        assert_eq!(store.read(missing).err().unwrap().code(), ErrorCode::NotFound);
        assert_eq!(store.verify(missing).err().unwrap().code(), ErrorCode::NotFound);
        assert!(!store.is_live(missing));
        let (exec, _) = journal(store.as_ref(), 1);
        assert_eq!(store.create(exec).err().unwrap().code(), ErrorCode::Conflict);
    });
}

#[test]
fn executions_are_listed_newest_first_and_only_once_they_hold_a_record() {
    both(|store| {
        assert_eq!(store.list().unwrap(), []);
        let mut made: Vec<ExecutionId> = (0..5).map(|_| journal(store.as_ref(), 1).0).collect();
        let empty = store.create(ExecutionId::generate()).unwrap();
        made.sort_unstable();
        made.reverse();
        assert_eq!(store.list().unwrap(), made);
        drop(empty);
    });
}

#[test]
fn large_payloads_leave_the_line_and_come_back_unchanged() {
    both(|store| {
        let (exec, mut records) = journal(store.as_ref(), 1);
        let mut writer = store.open(exec).unwrap().writer;
        let large = note(exec, 2, &"line\n\u{1F600}\"".repeat(20_000));
        let looks_alike = note(exec, 3, r#"{"$blob":"00","bytes":2}"#);
        let batch = [large, looks_alike];
        writer.append(&batch).unwrap();
        writer.sync().unwrap();
        records.extend(batch);
        assert_eq!(read(store.as_ref(), exec), records);
        assert!(store.verify(exec).unwrap().is_sound());
    });
}

#[test]
fn a_copy_of_the_intact_records_can_be_continued() {
    both(|store| {
        let (exec, records) = journal(store.as_ref(), 3);
        let mut writer = store.open(exec).unwrap().writer;
        writer.append(&[note(exec, 4, &"x".repeat(100_000)), last(exec, 5)]).unwrap();
        drop(writer);
        let copy = store.salvage(exec).unwrap();
        assert_ne!(copy, exec);
        let mut expected = records;
        expected.push(note(exec, 4, &"x".repeat(100_000)));
        for record in &mut expected {
            record.exec = copy;
        }
        assert_eq!(read(store.as_ref(), copy), expected);
        store.open(copy).unwrap().writer.append(&[note(copy, 5, "on")]).unwrap();
        assert!(store.verify(copy).unwrap().is_sound());
        assert_eq!(read(store.as_ref(), exec).len(), 5);
    });
}

#[test]
fn a_take_over_loses_nothing_that_was_acknowledged() {
    both(|store| {
        let (exec, mut records) = journal(store.as_ref(), 1);
        let mut old = store.open(exec).unwrap().writer;
        let writing = std::thread::spawn(move || {
            let mut acknowledged = Vec::new();
            loop {
                let next = note(exec, acknowledged.len() as u64 + 2, "old");
                match old.append(std::slice::from_ref(&next)) {
                    Ok(()) => acknowledged.push(next),
                    Err(error) => return (acknowledged, error),
                }
            }
        });
        while read(store.as_ref(), exec).len() < 50 {
            std::thread::yield_now();
        }
        let mut new = store.take_over(exec).unwrap().writer;
        let next = read(store.as_ref(), exec).len() as u64 + 1;
        new.append(&[last(exec, next)]).unwrap();
        let (acknowledged, error) = writing.join().unwrap();
        assert_eq!(error.code(), ErrorCode::Fenced);
        records.extend(acknowledged);
        records.push(last(exec, next));
        assert_eq!(read(store.as_ref(), exec), records);
        assert!(store.verify(exec).unwrap().is_sound());
    });
}

#[test]
fn readers_beside_a_writer_see_whole_records_in_order() {
    both(|store| {
        let (exec, _) = journal(store.as_ref(), 1);
        let mut writer = store.open(exec).unwrap().writer;
        let writing = std::thread::spawn(move || {
            for seq in 2..=60 {
                let text = "x".repeat(usize::try_from(seq).unwrap() * 1200);
                writer.append(&[note(exec, seq, &text)]).unwrap();
            }
        });
        let mut seen = 0;
        while seen < 60 {
            let now = read(store.as_ref(), exec);
            let expected: Vec<_> = (1..=now.len() as u64).map(Some).collect();
            assert_eq!(now.iter().map(|record| record.seq).collect::<Vec<_>>(), expected);
            assert!(now.len() >= seen);
            seen = now.len();
            assert!(store.verify(exec).unwrap().is_sound());
        }
        writing.join().unwrap();
    });
}
