//! A journal that is cut off at a thousand places, as sudden deaths would leave it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use loon_api::{AgentEvent, Envelope, ExecutionId};
use loon_kernel::{Execution, FileStore, JournalStore, Redactor, StoreError, SystemClock};
use loon_testkit::{Home, Loon, ModelServer, Repo, calls, text};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::scripts::{ask, bash, chat_setup, edit, read, write};

/// A journal with an effect of every kind, and the files beside it.
pub(super) struct Written {
    pub(super) exec: ExecutionId,
    pub(super) journal: Vec<u8>,
    fence: Vec<u8>,
    _home: Home,
    _repo: Repo,
}

impl Written {
    /// Two turns: requests, reading calls beside each other, changing calls, failed and denied ones.
    pub(super) fn new() -> Self {
        let mut step = 0;
        let server = ModelServer::answering(move |_| {
            step += 1;
            match step {
                1 => calls([read("a.txt"), read("b.txt")]),
                2 => ask(bash("echo one; exit 3")),
                3 => ask(edit("a.txt", "two", "2")),
                4 => ask(write("new.txt", "new\n")),
                5 => calls([("no_such_tool", json!({})), read("missing.txt")]),
                7 => ask(bash("echo again")),
                _ => text("done"),
            }
        });
        let (home, repo) = chat_setup(&server);
        let first = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
        let exec = first.exec();
        let arguments = ["--resume", &exec, "--mode", "bypass", "on"];
        let second = Loon::exec(&home, repo.path(), arguments).run();
        assert_eq!(second.terminal()["outcome"], "completed", "{}", second.text());
        let path = home.journal(&exec);
        let dir = path.parent().expect("a folder");
        Self {
            exec: exec.parse().expect("an id"),
            journal: fs::read(&path).expect("the journal"),
            fence: fs::read(dir.join("fence")).expect("the fence"),
            _home: home,
            _repo: repo,
        }
    }

    /// The lines with their ends.
    pub(super) fn lines(&self) -> Vec<&[u8]> {
        self.journal.split_inclusive(|byte| *byte == b'\n').collect()
    }

    /// A store that holds nothing but this journal with these bytes.
    pub(super) fn put(&self, journal: &[u8], with_fence: bool) -> (TempDir, FileStore) {
        // In memory where there is such a folder: what is tested is not the disk.
        let root = Some(Path::new("/dev/shm")).filter(|path| path.is_dir());
        let root = root.map_or_else(TempDir::new, TempDir::new_in).expect("a temporary folder");
        let store = FileStore::new(root.path());
        let dir = store.dir(self.exec);
        fs::create_dir_all(&dir).expect("the folder");
        write_file(&dir.join("journal.jsonl"), journal);
        if with_fence {
            write_file(&dir.join("fence"), &self.fence);
        }
        (root, store)
    }
}

#[expect(clippy::disallowed_methods, reason = "the test plays the damage")]
fn write_file(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file of the fixture");
}

fn records(store: &FileStore, exec: ExecutionId) -> Vec<Envelope> {
    store.read(exec).expect("a journal").map(|record| record.expect("a record")).collect()
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

/// Every byte of the last records, and as many places before them as make a thousand.
fn places(written: &Written) -> Vec<usize> {
    const PLACES: usize = 1000;
    let len = written.journal.len();
    let tail: usize = written.lines().iter().rev().take(2).map(|line| line.len()).sum();
    let tail = tail.min(PLACES / 2);
    let before = PLACES - tail;
    let spread = (0..before).map(|number| (len - tail) * number / before);
    spread.chain(len - tail..len).collect()
}

fn resume_after_cut(written: &Written, whole: &[Envelope], cut: usize) {
    let bytes = &written.journal[..cut];
    let (_root, store) = written.put(bytes, false);
    // A line that only lacks its end is a whole record.
    let ends = line_ends(bytes);
    let kept = ends + usize::from(written.journal[cut] == b'\n' && !bytes.ends_with(b"\n"));
    let (events, mut told) = mpsc::channel(1024);
    let (port, clock) = (Arc::new(store.clone()), Arc::new(SystemClock));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut seen = Vec::new();
    let mut each = |record: &Envelope| seen.push(record.clone());
    let resumed = runtime.block_on(Execution::resume(
        port,
        clock,
        Redactor::default(),
        written.exec,
        events,
        &mut each,
    ));
    let journal = store.dir(written.exec).join("journal.jsonl");
    if kept == 0 {
        let error = resumed.err().expect("nothing to go on from");
        assert!(error.to_string().contains("line 1"), "cut at {cut}: {error}");
        assert_eq!(fs::read(journal).expect("the journal"), bytes, "cut at {cut}");
        return;
    }
    let execution = resumed.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
    assert_eq!(seen, whole[..kept], "cut at {cut}");
    let now = records(&store, written.exec);
    assert_eq!(now[..kept], whole[..kept], "cut at {cut}");
    let AgentEvent::ExecutionResumed(resumed) = &now[kept].event else {
        panic!("cut at {cut}: {:?}", now[kept])
    };
    // What was begun and has no end before the cut is unknown, and nothing else is.
    let mut open = Vec::new();
    for record in &whole[..kept] {
        match &record.event {
            AgentEvent::EffectStarted(event) => open.push(event.key.clone()),
            AgentEvent::EffectFinished(event) => open.retain(|key| *key != event.key),
            _ => {}
        }
    }
    open.sort();
    assert_eq!(resumed.unknown, open, "cut at {cut}");
    assert_eq!(execution.state().running_effects(), [], "cut at {cut}");
    let torn = bytes.len() - bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let moved = (torn > 0 && kept == ends).then_some(torn as u64);
    assert_eq!(execution.repaired_bytes(), moved, "cut at {cut}");
    drop(execution);
    runtime.block_on(async { while told.recv().await.is_some() {} });
    let found = store.verify(written.exec).expect("an answer");
    assert!(found.is_sound(), "cut at {cut}: {found:?}");
}

#[test]
fn a_journal_goes_on_from_a_thousand_places() {
    let written = Written::new();
    let (_root, store) = written.put(&written.journal, true);
    let whole = records(&store, written.exec);
    assert!(store.verify(written.exec).expect("an answer").is_sound());
    let places = places(&written);
    assert_eq!(places.len(), 1000);
    thread::scope(|threads| {
        for half in places.chunks(places.len() / 2) {
            let (written, whole) = (&written, &whole);
            threads.spawn(move || {
                for cut in half {
                    resume_after_cut(written, whole, *cut);
                }
            });
        }
    });
}

#[test]
fn durable_records_that_are_gone_are_missed_wherever_the_cut_is() {
    let written = Written::new();
    let total = written.lines().len() as u64;
    for cut in places(&written).into_iter().step_by(10).filter(|cut| *cut > 0) {
        let bytes = &written.journal[..cut];
        let ends = line_ends(bytes) as u64;
        let kept = ends + u64::from(written.journal[cut] == b'\n' && !bytes.ends_with(b"\n"));
        let (_root, store) = written.put(bytes, true);
        let found = store.verify(written.exec).expect("an answer");
        assert_eq!(found.records, kept, "cut at {cut}: {found:?}");
        if kept == total {
            assert!(found.holds(), "cut at {cut}: {found:?}");
            continue;
        }
        assert!(!found.holds(), "cut at {cut}: {found:?}");
        let Err(StoreError::Corrupt { intact, .. }) = store.open(written.exec) else {
            panic!("cut at {cut}: opened without a word")
        };
        assert_eq!(intact, kept, "cut at {cut}");
        if kept > 0 {
            let repaired = store.repair(written.exec).expect("a repair");
            assert_eq!(repaired.missing_records, total - kept, "cut at {cut}");
            assert!(store.verify(written.exec).expect("an answer").is_sound(), "cut at {cut}");
        }
    }
}
