//! Archives of sessions: what comes in is what went out, or nothing.

use std::io::Cursor;

use loon_api::ExecutionId;

use super::super::super::tests::{first, journal, note, read};
use super::*;

fn stores() -> (tempfile::TempDir, FileStore, FileStore) {
    let dir = tempfile::tempdir().unwrap();
    let (here, there) = (dir.path().join("here"), dir.path().join("there"));
    (dir, FileStore::new(here), FileStore::new(there))
}

fn exported(store: &FileStore, execs: &[ExecutionId]) -> Vec<u8> {
    let mut out = Vec::new();
    store.export(execs, &mut out).unwrap();
    out
}

fn with_payload(store: &FileStore) -> ExecutionId {
    let exec = ExecutionId::generate();
    let mut writer = store.create(exec).unwrap();
    let big = "payload ".repeat(20_000);
    writer.append(&[first(exec), note(exec, 2, &big), note(exec, 3, &big)]).unwrap();
    writer.sync().unwrap();
    exec
}

#[test]
fn an_imported_session_is_the_same_to_the_byte() {
    let (_dir, here, there) = stores();
    let (one, _) = journal(&here, 3);
    let two = with_payload(&here);
    let archive = exported(&here, &[one, two]);
    let imported = there.import(&mut Cursor::new(&archive)).unwrap();
    let ids: Vec<_> = imported.iter().map(|it| (it.from, it.exec, it.records)).collect();
    assert_eq!(ids, [(one, one, 3), (two, two, 3)]);
    for exec in [one, two] {
        let bytes = |store: &FileStore| std::fs::read(store.journal(exec)).unwrap();
        assert_eq!(bytes(&here), bytes(&there));
        assert_eq!(here.verify(exec).unwrap(), there.verify(exec).unwrap());
        assert_eq!(read(&here, exec), read(&there, exec));
    }
    // It goes on there.
    let mut writer = there.open(one).unwrap().writer;
    writer.append(&[note(one, 4, "there")]).unwrap();
    writer.sync().unwrap();
    assert!(there.verify(one).unwrap().is_sound());
}

#[test]
fn an_id_that_is_taken_makes_a_new_one() {
    let (_dir, here, _) = stores();
    let exec = with_payload(&here);
    let imported = here.import(&mut Cursor::new(exported(&here, &[exec]))).unwrap();
    let copy = imported[0].exec;
    assert_ne!(copy, exec);
    let events = |exec| read(&here, exec).into_iter().map(|it| it.event).collect::<Vec<_>>();
    assert_eq!(events(copy), events(exec));
    assert!(here.verify(copy).unwrap().is_sound());
}

#[test]
fn whatever_was_changed_on_the_way_leaves_nothing_behind() {
    let (_dir, here, there) = stores();
    let (one, _) = journal(&here, 3);
    let two = with_payload(&here);
    let archive = String::from_utf8(exported(&here, &[one, two])).unwrap();
    let lines: Vec<&str> = archive.lines().collect();
    let cases = [
        archive.replace("note 2", "note X"),
        archive.replace("payload payload payload", "payload payloaX payload"),
        archive.replacen(lines[2], "", 1),
        archive.replacen("\"v\":1", "\"v\":99", 1),
        "no archive at all\n".to_owned(),
        String::new(),
        "{}\n".to_owned(),
    ];
    for case in cases {
        let error = there.import(&mut Cursor::new(&case)).unwrap_err();
        assert!(matches!(error, StoreError::Archive { .. }), "{error:?}");
        let left = there.list().unwrap();
        assert!(left.iter().all(|exec| there.verify(*exec).unwrap().is_sound()));
        assert!(!left.contains(&two), "{error}");
        if left.contains(&one) {
            std::fs::remove_dir_all(there.dir(one)).unwrap();
        }
    }
    // Nothing else is in the way of the right one either.
    assert_eq!(there.import(&mut Cursor::new(&archive)).unwrap().len(), 2);
}

#[test]
fn exported_events_come_in_with_a_new_chain() {
    let (_dir, here, there) = stores();
    let exec = with_payload(&here);
    let events: String = read(&here, exec)
        .iter()
        .map(|record| serde_json::to_string(record).unwrap() + "\n")
        .collect();
    let imported = there.import(&mut Cursor::new(&events)).unwrap();
    assert_eq!((imported[0].exec, imported[0].records), (exec, 3));
    assert_eq!(read(&there, exec), read(&here, exec));
    assert!(there.verify(exec).unwrap().is_sound());
    let gap = events.lines().next().unwrap().to_owned() + "\n" + events.lines().nth(2).unwrap();
    assert!(here.import(&mut Cursor::new(gap)).is_err());
}
