//! What happens to files: torn ends, foreign lines, stale locks, changed bytes.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use loon_api::{AgentEvent, Envelope, ErrorCode, ExecutionId};
use tempfile::TempDir;

use super::super::tests::{journal, note, read};
use super::super::{JournalStore, Repaired, StoreError};
use super::{FileStore, folders_with_new_entries};

fn store() -> (TempDir, FileStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
    (dir, store)
}

/// Replaces the bytes of a file, as a crash or a foreign program would.
fn put(path: PathBuf, bytes: &[u8]) {
    File::create(path).unwrap().write_all(bytes).unwrap();
}

fn bytes_of(store: &FileStore, exec: ExecutionId) -> Vec<u8> {
    std::fs::read(store.journal(exec)).unwrap()
}

fn add(store: &FileStore, exec: ExecutionId, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(store.journal(exec)).unwrap();
    file.write_all(bytes).unwrap();
}

fn every_line_is_json(store: &FileStore, exec: ExecutionId) -> usize {
    let text = String::from_utf8(bytes_of(store, exec)).unwrap();
    assert!(text.ends_with('\n'));
    let values: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    values.len()
}

/// One append, one more opening: everything must be there and sound.
fn goes_on(store: &FileStore, exec: ExecutionId, mut records: Vec<Envelope>) {
    let next = note(exec, records.len() as u64 + 1, "after the crash");
    let mut writer = store.open(exec).unwrap().writer;
    writer.append(std::slice::from_ref(&next)).unwrap();
    writer.sync().unwrap();
    drop(writer);
    records.push(next);
    assert_eq!(store.open(exec).unwrap().repaired_bytes, None);
    assert_eq!(read(store, exec), records);
    assert_eq!(every_line_is_json(store, exec), records.len());
    assert!(store.verify(exec).unwrap().is_sound());
}

#[test]
fn a_torn_end_is_moved_aside_wherever_the_cut_is() {
    let (_dir, store) = store();
    for end in ["", "\n", "\n\n"] {
        for cut in [1, 30, 150] {
            let (exec, records) = journal(&store, 3);
            let torn = bytes_of(&store, exec).split_off(0)[..cut].to_vec();
            let torn = [&torn, end.as_bytes()].concat();
            add(&store, exec, &torn);
            assert_eq!(read(&store, exec), records, "a reader passes over the torn end");
            let damage = store.verify(exec).unwrap().damage.unwrap();
            assert_eq!((damage.line, damage.mendable), (4, true));

            let opened = store.open(exec).unwrap();
            assert_eq!(opened.repaired_bytes, Some(torn.len() as u64));
            drop(opened);
            assert_eq!(std::fs::read(store.dir(exec).join("torn-1")).unwrap(), torn);
            goes_on(&store, exec, records);
        }
    }
}

#[test]
fn a_cut_inside_a_character_is_a_torn_end_too() {
    let (_dir, store) = store();
    let (exec, records) = journal(&store, 2);
    add(&store, exec, b"{\"v\":1,\"seq\":3,\"type\":\"notice\",\"message\":\"\xc3");
    assert_eq!(store.repair(exec).unwrap().moved_bytes, Some(43));
    goes_on(&store, exec, records);
}

#[test]
fn a_second_crash_gets_a_side_file_of_its_own() {
    let (_dir, store) = store();
    let (exec, records) = journal(&store, 2);
    for number in 1..=2 {
        add(&store, exec, b"{\"v\"");
        let repaired = store.repair(exec).unwrap();
        let moved_to = Some(store.dir(exec).join(format!("torn-{number}")));
        assert_eq!(
            repaired,
            Repaired { moved_bytes: Some(4), moved_to, closed_line: false, missing_records: 0 }
        );
    }
    goes_on(&store, exec, records);
}

#[test]
fn a_whole_record_that_only_lacks_its_line_end_is_kept() {
    let (_dir, store) = store();
    let (exec, records) = journal(&store, 3);
    let mut bytes = bytes_of(&store, exec);
    bytes.pop();
    put(store.journal(exec), &bytes);
    assert_eq!(read(&store, exec), records);
    assert!(store.verify(exec).unwrap().damage.unwrap().mendable);
    let repaired = store.repair(exec).unwrap();
    assert_eq!(repaired, Repaired { closed_line: true, ..Repaired::default() });
    goes_on(&store, exec, records);
}

#[test]
fn empty_lines_at_the_end_are_taken_away() {
    let (_dir, store) = store();
    let (exec, records) = journal(&store, 2);
    add(&store, exec, b"\n\n");
    let damage = store.verify(exec).unwrap().damage.unwrap();
    assert_eq!((damage.line, damage.mendable), (4, true));
    assert_eq!(store.repair(exec).unwrap(), Repaired::default());
    goes_on(&store, exec, records);
}

#[test]
fn a_journal_without_a_whole_first_record_is_an_error_and_stays_as_it_is() {
    let (_dir, store) = store();
    for torn in [0, 10, 100] {
        let (exec, _) = journal(&store, 1);
        let bytes = bytes_of(&store, exec)[..torn].to_vec();
        put(store.journal(exec), &bytes);
        assert_eq!(store.open(exec).err().unwrap().code(), ErrorCode::Corrupt);
        assert_eq!(store.repair(exec).err().unwrap().code(), ErrorCode::Corrupt);
        let error = store.read(exec).unwrap().next().unwrap().unwrap_err();
        assert_eq!(error.code(), ErrorCode::Corrupt);
        assert_eq!(store.verify(exec).unwrap().damage.unwrap().line, 1);
        assert_eq!(bytes_of(&store, exec), bytes);
    }
}

#[test]
fn a_broken_middle_is_reported_and_its_beginning_can_be_copied() {
    let (_dir, store) = store();
    let (exec, mut records) = journal(&store, 5);
    let text = String::from_utf8(bytes_of(&store, exec)).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = "{\"v\":1,";
    let broken = lines.join("\n") + "\n";
    put(store.journal(exec), broken.as_bytes());

    let read_back: Vec<_> = store.read(exec).unwrap().collect();
    assert_eq!(read_back.len(), 3);
    let Err(StoreError::Corrupt { line, intact, mendable, .. }) = &read_back[2] else {
        panic!("not found")
    };
    assert_eq!((*line, *intact, *mendable), (3, 2, false));
    let found = store.verify(exec).unwrap();
    assert_eq!((found.records, found.damage.unwrap().line), (2, 3));
    assert_eq!(store.repair(exec).unwrap_err().code(), ErrorCode::Corrupt);

    std::fs::create_dir(store.dir(exec).join("snapshots")).unwrap();
    put(store.dir(exec).join("snapshots").join("ab"), b"before");
    let copy = store.salvage(exec).unwrap();
    assert_eq!(bytes_of(&store, exec), broken.as_bytes());
    assert_eq!(std::fs::read(store.dir(copy).join("snapshots").join("ab")).unwrap(), b"before");
    records.truncate(2);
    for record in &mut records {
        record.exec = copy;
    }
    goes_on(&store, copy, records);
}

#[test]
fn every_changed_byte_is_found() {
    let (_dir, store) = store();
    let (exec, _) = journal(&store, 3);
    let good = bytes_of(&store, exec);
    for place in 0..good.len() {
        for change in [good[place] ^ 1, b'\n', b' '] {
            if change == good[place] {
                continue;
            }
            let mut bytes = good.clone();
            bytes[place] = change;
            put(store.journal(exec), &bytes);
            let found = store.verify(exec).unwrap();
            let line = good[..place].split(|byte| *byte == b'\n').count() as u64;
            let damage = found.damage.unwrap_or_else(|| panic!("byte {place} as {change}"));
            assert!(damage.line <= line + 1, "byte {place} as {change}: {damage:?}");
            assert!(found.records < 3 || damage.mendable, "byte {place} as {change}: {damage:?}");
        }
    }
    put(store.journal(exec), &good);
    assert!(store.verify(exec).unwrap().is_sound());
}

#[test]
fn lines_that_are_gone_are_missed_even_at_the_end() {
    let (_dir, store) = store();
    let (exec, mut records) = journal(&store, 4);
    let text = String::from_utf8(bytes_of(&store, exec)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for gone in 0..3 {
        let mut rest = lines.clone();
        rest.remove(gone);
        put(store.journal(exec), (rest.join("\n") + "\n").as_bytes());
        let damage = store.verify(exec).unwrap().damage.unwrap();
        assert!(!damage.mendable, "{gone}: {damage:?}");
    }
    put(store.journal(exec), (lines[..3].join("\n") + "\n").as_bytes());
    let Err(StoreError::Corrupt { intact, mendable, .. }) = store.open(exec) else {
        panic!("opened without a word")
    };
    assert_eq!((intact, mendable), (3, true));
    assert_eq!(store.repair(exec).unwrap().missing_records, 1);
    records.pop();
    goes_on(&store, exec, records);
}

#[test]
fn records_of_newer_versions_are_passed_over_and_stay_byte_for_byte() {
    let (_dir, store) = store();
    let (exec, records) = journal(&store, 3);
    let foreign = concat!(
        "{\"v\":99,\"type\":\"hologram\",\"seq\":4,\"payload\":{\"x\":1}}\n",
        "{\"v\":1,\"seq\":5,\"at\":\"2026-11-30T12:00:00.007Z\",\"type\":\"turn.finished\",",
        "\"status\":\"paused\"}\n",
    );
    add(&store, exec, foreign.as_bytes());
    let before = bytes_of(&store, exec);
    let mut writer = store.open(exec).unwrap().writer;
    writer.append(&[note(exec, 6, "on")]).unwrap();
    drop(writer);
    assert!(bytes_of(&store, exec).starts_with(&before));
    let back = read(&store, exec);
    assert_eq!(back[..3], records);
    assert_eq!(back[3].event, AgentEvent::Unknown { kind: "hologram".to_owned() });
    assert_eq!((back[3].seq, back[3].at, back[3].exec), (Some(4), records[2].at, exec));
    assert_eq!(back[4].event, AgentEvent::Unknown { kind: "turn.finished".to_owned() });
    assert_eq!(back[5], note(exec, 6, "on"));
}

#[test]
fn an_extra_member_of_a_known_type_is_passed_over() {
    let (_dir, store) = store();
    let (exec, records) = journal(&store, 2);
    let text = String::from_utf8(bytes_of(&store, exec)).unwrap();
    put(
        store.journal(exec),
        text.replace("\"message\":", "\"future\":true,\"message\":").as_bytes(),
    );
    assert_eq!(read(&store, exec), records);
}

#[test]
fn a_journal_that_only_a_newer_version_can_read_is_refused_with_that_version() {
    let (_dir, store) = store();
    let (exec, _) = journal(&store, 1);
    add(&store, exec, b"{\"v\":9,\"min_reader\":7,\"type\":\"hologram\",\"seq\":2}\n");
    let error = store.read(exec).unwrap().nth(1).unwrap().unwrap_err();
    let StoreError::NewerFormat { needed, line, .. } = error else { panic!("{error}") };
    assert_eq!((needed, line), (7, 2));
}

#[test]
fn a_changed_or_missing_payload_is_found() {
    let (_dir, store) = store();
    let (exec, _) = journal(&store, 1);
    let mut writer = store.open(exec).unwrap().writer;
    writer.append(&[note(exec, 2, &"y".repeat(70_000)), note(exec, 3, "")]).unwrap();
    drop(writer);
    let blobs = store.dir(exec).join("blobs");
    let blob = std::fs::read_dir(&blobs).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read(&blob).unwrap(), "y".repeat(70_000).as_bytes());
    assert!(bytes_of(&store, exec).len() < 2_000);

    put(blob.clone(), b"z");
    assert_eq!(store.verify(exec).unwrap().damage.unwrap().line, 2);
    let error = store.read(exec).unwrap().nth(1).unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Corrupt);
    std::fs::remove_file(&blob).unwrap();
    assert_eq!(store.verify(exec).unwrap().damage.unwrap().line, 2);
}

#[test]
fn what_checks_as_whole_can_be_read() {
    let (_dir, store) = store();
    let (exec, _) = journal(&store, 1);
    let good = String::from_utf8(bytes_of(&store, exec)).unwrap();
    std::fs::remove_file(store.dir(exec).join("fence")).unwrap();
    let latin = good.replace("\"/w\"", "\"/\u{1}\"").into_bytes();
    let latin: Vec<u8> = latin.iter().map(|byte| if *byte == 1 { 0xe4 } else { *byte }).collect();
    let timeless = good.replace("\"at\":", "\"when\":").into_bytes();
    for bytes in [latin, timeless] {
        put(store.journal(exec), &bytes);
        let found = store.verify(exec).unwrap();
        assert_eq!((found.records, found.damage.unwrap().line), (0, 1));
        assert!(store.read(exec).unwrap().next().unwrap().is_err());
    }
}

#[test]
fn files_that_stayed_behind_block_nobody() {
    let (dir, store) = store();
    let (exec, records) = journal(&store, 2);
    let held = store.open(exec).unwrap();
    // As a restored backup: the files of a process that was alive, without the process.
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = FileStore::new(elsewhere.path());
    std::fs::create_dir_all(copy.dir(exec)).unwrap();
    for name in ["journal.jsonl", "fence"] {
        std::fs::copy(store.dir(exec).join(name), copy.dir(exec).join(name)).unwrap();
    }
    assert!(!copy.is_live(exec));
    goes_on(&copy, exec, records);

    // Two paths to one folder are one journal.
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    assert_eq!(FileStore::new(&link).open(exec).err().unwrap().code(), ErrorCode::Busy);
    drop(held);
    FileStore::new(&link).open(exec).unwrap();
}

#[test]
fn a_lost_or_damaged_fence_file_never_lets_an_old_number_return() {
    let (_dir, store) = store();
    let (exec, _) = journal(&store, 1);
    for _ in 0..3 {
        let mut writer = store.open(exec).unwrap().writer;
        let next = read(&store, exec).len() as u64 + 1;
        writer.append(&[note(exec, next, "")]).unwrap();
    }
    for damaged in [None, Some("half a fi")] {
        let mut zombie = store.open(exec).unwrap().writer;
        let path = store.dir(exec).join("fence");
        std::fs::remove_file(&path).unwrap();
        if let Some(text) = damaged {
            put(path, text.as_bytes());
        }
        let next = read(&store, exec).len() as u64 + 1;
        let mut writer = store.take_over(exec).unwrap().writer;
        writer.append(&[note(exec, next, "")]).unwrap();
        writer.sync().unwrap();
        drop(writer);
        assert!(store.verify(exec).unwrap().is_sound());
        drop(zombie.sync());
    }
}

#[test]
fn the_folder_of_an_execution_is_named_by_the_day_it_was_made() {
    let store = FileStore::new("/d");
    let exec: ExecutionId = "01938a4e-8c00-7000-8000-000000000000".parse().unwrap();
    assert_eq!(
        store.dir(exec),
        PathBuf::from("/d/executions/2024/12/01938a4e-8c00-7000-8000-000000000000")
    );
    let old: ExecutionId = "00000000-0000-4000-8000-000000000000".parse().unwrap();
    assert!(store.dir(old).starts_with("/d/executions/1970/01"));
}

#[test]
fn nobody_else_can_read_what_is_written() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, store) = store();
    let (exec, _) = journal(&store, 1);
    let mut writer = store.open(exec).unwrap().writer;
    writer.append(&[note(exec, 2, &"y".repeat(70_000))]).unwrap();
    add(&store, exec, b"torn");
    drop(writer);
    store.repair(exec).unwrap();
    let dir = store.dir(exec);
    let blob = std::fs::read_dir(dir.join("blobs")).unwrap().next().unwrap().unwrap().path();
    let files = ["journal.jsonl", "fence", "torn-1"].map(|name| dir.join(name));
    for path in files.into_iter().chain([dir.clone(), dir.join("blobs"), blob]) {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn every_folder_that_gets_an_entry_is_made_durable() {
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("a").join("b");
    let expected = [new.clone(), dir.path().join("a"), dir.path().to_path_buf()];
    assert_eq!(folders_with_new_entries(&new), expected);
    let relative = folders_with_new_entries("no-such-folder/b".as_ref());
    assert_eq!(relative, [PathBuf::from("no-such-folder/b"), PathBuf::from("no-such-folder")]);
}
