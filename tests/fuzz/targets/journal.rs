//! Journals: any bytes are read, checked and mended without a panic; what `repair` mends is sound,
//! and reading gives as many records as checking counted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loon_kernel::store::{FileStore, JournalStore};

const EXEC: &str = "01937b4e-0000-7000-8000-000000000000";

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let store = FileStore::new(folder.path());
    let exec = EXEC.parse().expect("an id");
    std::fs::create_dir_all(store.dir(exec)).expect("the session's folder");
    std::fs::write(store.dir(exec).join("journal.jsonl"), bytes).expect("the journal");
    let Ok(verified) = store.verify(exec) else { return };
    if let Ok(records) = store.read(exec) {
        let whole = records.take_while(Result::is_ok).count() as u64;
        assert!(whole >= verified.records, "{whole} of {verified:?}");
    }
    if verified.damage.as_ref().is_none_or(|damage| damage.mendable) && store.repair(exec).is_ok() {
        assert!(store.verify(exec).expect("a readable journal").is_sound());
    }
});
