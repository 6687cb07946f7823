//! A process that is stopped in the middle of a write and goes on after somebody took over.

use std::fs::File;
use std::io::Write as _;

use loon_api::{Envelope, ErrorCode, ExecutionId};
use tempfile::TempDir;

use super::super::super::tests::{journal, last, note, read};
use super::super::super::{JournalStore, JournalWriter};
use super::super::FileStore;
use super::super::open::Aim;
use super::FileWriter;

fn owned(records: u64) -> (TempDir, FileStore, ExecutionId, Vec<Envelope>, FileWriter) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
    let (exec, records) = journal(&store, records);
    let writer = store.open_writer(exec, Aim::Work).unwrap().writer;
    (dir, store, exec, records, writer)
}

#[test]
fn k028_a_writer_that_is_stopped_under_the_lock_is_fenced_all_the_same() {
    let (_dir, store, exec, mut records, mut stopped) = owned(3);
    let fence_file = std::sync::Arc::clone(&stopped.fence_file);
    let lock = fence_file.lock().unwrap();
    lock.check(stopped.fence).unwrap();
    // Stopped here, between its check and its write.
    let mut taker = store.take_over(exec).unwrap().writer;
    taker.append(&[last(exec, 4)]).unwrap();
    taker.sync().unwrap();
    // It goes on.
    let written = stopped.write(b"{\"v\":1,\"seq\":4}\n", &lock);
    assert_eq!(written.unwrap_err().code(), ErrorCode::Fenced);
    drop(lock);
    assert_eq!(stopped.append(&[note(exec, 4, "late")]).unwrap_err().code(), ErrorCode::Fenced);
    assert_eq!(stopped.sync().unwrap_err().code(), ErrorCode::Fenced);
    records.push(last(exec, 4));
    assert_eq!(read(&store, exec), records);
    let found = store.verify(exec).unwrap();
    assert_eq!((found.records, found.ended, found.damage), (4, true, None));
}

#[test]
fn what_a_stopped_writer_had_written_before_is_kept() {
    let (_dir, store, exec, mut records, mut stopped) = owned(2);
    stopped.append(&[note(exec, 3, "told")]).unwrap();
    let fence_file = std::sync::Arc::clone(&stopped.fence_file);
    let lock = fence_file.lock().unwrap();
    // Half of a line, as if it had been stopped in the write itself.
    (&*stopped.file).write_all(b"{\"v\":1,").unwrap();
    let opened = store.take_over(exec).unwrap();
    assert_eq!(opened.repaired_bytes, Some(7));
    let mut taker = opened.writer;
    taker.append(&[note(exec, 4, "on")]).unwrap();
    drop(lock);
    records.extend([note(exec, 3, "told"), note(exec, 4, "on")]);
    assert_eq!(read(&store, exec), records);
    // The lease of the old file is still held; the journal in its place is another one's.
    assert!(store.is_live(exec));
    drop(taker);
    assert!(!store.is_live(exec));
    drop(store.open(exec).unwrap());
    assert!(store.verify(exec).unwrap().is_sound());
}

#[test]
fn a_journal_with_a_stuck_lock_can_be_read_and_verified() {
    let (_dir, store, exec, records, stopped) = owned(3);
    let _lock = stopped.fence_file.lock().unwrap();
    assert_eq!(read(&store, exec), records);
    assert!(store.verify(exec).unwrap().is_sound());
}

#[test]
fn a_displacement_that_was_cut_off_is_finished_by_the_next_who_opens() {
    let (_dir, store, exec, mut records, mut stopped) = owned(3);
    let fence_file = std::sync::Arc::clone(&stopped.fence_file);
    let lock = fence_file.lock().unwrap();
    // Somebody displaces the fence file and dies.
    fence_file.displace().unwrap();
    let mut taker = store.take_over(exec).unwrap().writer;
    taker.append(&[last(exec, 4)]).unwrap();
    let written = stopped.write(b"{\"v\":1,\"seq\":4}\n", &lock);
    assert_eq!(written.unwrap_err().code(), ErrorCode::Fenced);
    drop(lock);
    records.push(last(exec, 4));
    assert_eq!(read(&store, exec), records);
    assert!(store.verify(exec).unwrap().is_sound());
    assert_eq!(stopped.append(&[note(exec, 4, "late")]).unwrap_err().code(), ErrorCode::Fenced);
}

#[test]
fn a_journal_whose_fence_file_is_gone_is_written_no_further() {
    let (_dir, store, exec, records, mut writer) = owned(2);
    std::fs::remove_file(store.dir(exec).join("fence")).unwrap();
    let error = writer.append(&[note(exec, 3, "beside whom?")]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Io, "{error}");
    assert_eq!(read(&store, exec), records);
}

#[test]
fn a_batch_that_the_disk_does_not_take_leaves_nothing_and_the_next_goes_on() {
    let (_dir, store, exec, mut records, mut writer) = owned(2);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let journal = std::mem::replace(&mut writer.file, std::sync::Arc::new(full));
    let error = writer.append(&[note(exec, 3, "too much")]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Io, "{error}");
    // What was half written could not be cut off there, so nothing more is written at all.
    assert!(writer.append(&[note(exec, 3, "again")]).is_err());
    drop(writer);
    drop(journal);
    let mut writer = store.open(exec).unwrap().writer;
    writer.append(&[note(exec, 3, "on")]).unwrap();
    records.push(note(exec, 3, "on"));
    assert_eq!(read(&store, exec), records);
}
