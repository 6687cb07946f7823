//! Stamps, holders, the trash, and what is told of changes.

use std::time::Duration;

use super::super::super::tests::{first, journal, note, read, record};
use super::super::super::{Place, StoreError};
use super::*;

fn store() -> (tempfile::TempDir, FileStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path().join("data"));
    (dir, store)
}

#[test]
fn a_stamp_moves_on_with_each_record_and_with_the_shelf() {
    let (_dir, store) = store();
    let (exec, _) = journal(&store, 2);
    let before = store.stamp(exec).unwrap();
    assert_eq!(store.stamp(exec), Some(before));
    store.open(exec).unwrap().writer.append(&[note(exec, 3, "n")]).unwrap();
    let after = store.stamp(exec).unwrap();
    assert!(after.len > before.len);
    assert!(store.set_archived(exec, true).unwrap());
    assert!(!store.set_archived(exec, true).unwrap());
    assert_eq!(store.stamp(exec), Some(Stamp { archived: true, ..after }));
    assert!(store.set_archived(exec, false).unwrap());
    assert_eq!(store.stamp(exec), Some(after));
}

#[test]
fn the_holder_is_known_while_it_holds() {
    let (_dir, store) = store();
    let (exec, _) = journal(&store, 2);
    assert_eq!(store.holder(exec), None);
    let opened = store.open(exec).unwrap();
    let holder = store.holder(exec).unwrap();
    assert_eq!(holder.pid, std::process::id());
    assert!(holder.words().starts_with(&format!("process {} since 2", holder.pid)));
    let far = Holder { host: Some("elsewhere.example".to_owned()), ..holder.clone() };
    assert!(far.words().contains(" on elsewhere.example since "));
    drop(opened);
    assert_eq!(store.holder(exec), None);
}

#[test]
fn what_is_thrown_away_comes_back_with_its_children() {
    let (_dir, store) = store();
    let ((exec, records), (child, _)) = (journal(&store, 3), journal(&store, 2));
    let held = store.open(child).unwrap();
    assert!(matches!(store.discard(exec, &[child]), Err(StoreError::Busy { .. })));
    assert_eq!(store.list().unwrap().len(), 2, "all or none goes");
    drop(held);
    store.discard(exec, &[child]).unwrap();
    assert_eq!((store.list().unwrap().len(), store.discarded().unwrap()), (0, vec![exec]));
    assert!(matches!(store.open(exec), Err(StoreError::NotFound { .. })));
    assert_eq!(store.recover(exec).unwrap(), [exec, child]);
    assert_eq!(read(&store, exec), records);
    assert_eq!((store.list().unwrap().len(), store.discarded().unwrap().len()), (2, 0));
    store.discard(exec, &[child]).unwrap();
    store.destroy(exec).unwrap();
    assert!(matches!(store.recover(exec), Err(StoreError::NotFound { .. })));
    assert!(matches!(store.destroy(exec), Err(StoreError::NotFound { .. })));
}

#[test]
fn reading_goes_on_where_it_stopped() {
    let (_dir, store) = store();
    let (exec, records) = journal(&store, 3);
    let whole: Vec<_> = store.read_from(exec, Place(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(whole.iter().map(|(record, _)| record.clone()).collect::<Vec<_>>(), records);
    let place = whole[2].1;
    assert_eq!(store.read_from(exec, whole[0].1).unwrap().count(), 2);
    assert_eq!(store.read_from(exec, place).unwrap().count(), 0);
    // A line that is being written is none yet.
    let mut file = OpenOptions::new().append(true).open(store.journal(exec)).unwrap();
    file.write_all(b"{\"v\":1,\"seq\":4").unwrap();
    assert_eq!(store.read_from(exec, place).unwrap().count(), 0);
    store.open(exec).unwrap().writer.append(&[note(exec, 4, "next")]).unwrap();
    let next: Vec<_> = store.read_from(exec, place).unwrap().map(Result::unwrap).collect();
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].0, note(exec, 4, "next"));
}

#[test]
fn a_lean_reading_leaves_large_results_where_they_are() {
    let (_dir, store) = store();
    let exec = loon_api::ExecutionId::generate();
    let big = "result ".repeat(20_000);
    let call = |seq: u64, text: &str| {
        let (id, turn) = (loon_api::ItemId::call(1, 0, 0), 1);
        let waiting = loon_api::CallId::of(1, 0, 0);
        let call = loon_api::ToolCallItem {
            result: Some(loon_api::ToolResult::ok(text)),
            ..loon_api::ToolCallItem::waiting(waiting, "read", serde_json::Value::Null)
        };
        let item = loon_api::Item { id, turn, body: loon_api::ItemBody::ToolCall(call) };
        record(exec, seq, loon_api::event::ItemCompleted { item })
    };
    let records = [first(exec), call(2, &big), note(exec, 3, &big), call(4, &format!("{big}!"))];
    store.create(exec).unwrap().append(&records).unwrap();
    let lean = |whole: u64| -> Vec<_> {
        let read = store.read_lean(exec, Box::new(move |seq| seq == whole)).unwrap();
        read.map(Result::unwrap).collect()
    };
    let left = crate::store::LEFT_OUT;
    assert_eq!(lean(4), [first(exec), call(2, left), note(exec, 3, &big), records[3].clone()]);
    assert_eq!(lean(2)[1..2], records[1..2]);
    // It is not even looked at.
    let blobs = entries(&store.dir(exec).join("blobs")).unwrap();
    let last = blobs.iter().find(|blob| std::fs::read(blob).unwrap().ends_with(b"!")).unwrap();
    std::fs::remove_file(last).unwrap();
    assert_eq!(lean(0)[3], call(4, left));
    assert!(store.read(exec).unwrap().any(|record| record.is_err()));
}

#[tokio::test]
async fn changes_are_told_and_the_lease_of_who_was_shut_out_is_taken() {
    let (_dir, store) = store();
    let (exec, _) = journal(&store, 2);
    let mut first = store.open(exec).unwrap().writer;
    let mut changes = store.changes(exec).unwrap();
    first.append(&[note(exec, 3, "n")]).unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), changes.seen.changed()).await;
    told.expect("a change is told").unwrap();
    let mut second = store.take_over(exec).unwrap().writer;
    assert!(matches!(first.append(&[note(exec, 4, "m")]), Err(StoreError::Fenced { .. })));
    second.append(&[note(exec, 4, "mine")]).unwrap();
    drop(first);
    assert!(second.take_lease());
    assert!(matches!(store.open(exec), Err(StoreError::Busy { .. })));
    drop(second);
    assert!(store.open(exec).is_ok());
}
