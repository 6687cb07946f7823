//! Forks of journals: both go on, and neither knows of what the other does then.

use std::fs::File;
use std::io::Write as _;

use loon_api::event::SessionForked;
use loon_api::{AgentEvent, At, ExecutionId};

use super::super::super::tests::{first, journal, last, note, read};
use super::super::super::{JournalStore, MemoryStore, StoreError};
use super::super::FileStore;

fn now() -> At {
    At::from_unix_ms(1_800_000_000_000)
}

fn forks(store: &dyn JournalStore) {
    let (exec, records) = journal(store, 300);
    let fork = store.fork(exec, 280, now()).unwrap();
    let forked = read(store, fork);
    assert_eq!(forked.len(), 281);
    for (own, old) in forked[..280].iter().zip(&records) {
        assert_eq!((own.exec, own.seq, own.at, &own.event), (fork, old.seq, old.at, &old.event));
    }
    let said = AgentEvent::SessionForked(SessionForked { from: exec, records: 280 });
    assert_eq!((&forked[280].event, forked[280].at), (&said, now()));
    for (exec, seq) in [(exec, 301), (fork, 282)] {
        let mut writer = store.open(exec).unwrap().writer;
        writer.append(&[note(exec, seq, "on its own")]).unwrap();
        writer.sync().unwrap();
    }
    for (exec, count) in [(exec, 301), (fork, 282)] {
        let verified = store.verify(exec).unwrap();
        assert!(verified.is_sound());
        assert_eq!(verified.records, count);
    }
}

#[test]
fn a_fork_has_the_records_up_to_a_place_and_a_chain_of_its_own() {
    forks(&MemoryStore::default());
    let dir = tempfile::tempdir().unwrap();
    forks(&FileStore::new(dir.path()));
}

#[test]
fn what_was_cancelled_goes_on_in_its_fork() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
    let exec = ExecutionId::generate();
    let mut writer = store.create(exec).unwrap();
    writer.append(&[first(exec), note(exec, 2, "n"), last(exec, 3)]).unwrap();
    let fork = store.fork(exec, u64::MAX, now()).unwrap();
    let kinds: Vec<String> =
        read(&store, fork).iter().map(|record| record.event.kind().to_owned()).collect();
    assert_eq!(kinds, ["execution.started", "notice", "session.forked"]);
}

#[test]
fn payloads_come_along_and_outlive_the_first_journal() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
    let exec = ExecutionId::generate();
    let big = note(exec, 2, &"payload ".repeat(20_000));
    let mut writer = store.create(exec).unwrap();
    writer.append(&[first(exec), big.clone()]).unwrap();
    drop(writer);
    let fork = store.fork(exec, 2, now()).unwrap();
    std::fs::remove_dir_all(store.dir(exec)).unwrap();
    assert_eq!(read(&store, fork)[1].event, big.event);
    assert!(store.verify(fork).unwrap().is_sound());
}

#[test]
fn a_changed_journal_is_not_vouched_for() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
    let (exec, _) = journal(&store, 4);
    let text = std::fs::read_to_string(store.journal(exec)).unwrap();
    let mut file = File::create(store.journal(exec)).unwrap();
    file.write_all(text.replace("note 2", "note X").as_bytes()).unwrap();
    let error = store.fork(exec, 4, now()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { line: 2, .. }), "{error:?}");
    assert_eq!(store.list().unwrap(), [exec], "nothing is left of the fork");
    // What lies before the change is as it was written.
    assert!(store.fork(exec, 1, now()).is_ok());
}
