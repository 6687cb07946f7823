//! Tests of the index over journals in memory and on disk.

use std::fs::File;
use std::io::Write as _;

use loon_api::event::{
    ExecutionCancelled, ExecutionStarted, ItemCompleted, SessionRewound, TurnFinished, TurnStarted,
};
use loon_api::{
    AgentEvent, At, CallId, Cost, Envelope, ExecutionKind, Item, ItemBody, ItemId, Mode,
    ToolCallItem, ToolCallStatus, ToolResult, TurnStatus, Usage, VERSION, WorkingRecord,
};
use loon_kernel::{FileStore, JournalWriter};

use super::*;

/// A journal that is written record by record.
struct Journal {
    exec: ExecutionId,
    writer: Box<dyn JournalWriter>,
    seq: u64,
}

impl Journal {
    fn begin(store: &dyn JournalStore, cwd: &str) -> Self {
        let exec = ExecutionId::generate();
        let mut journal = Self { exec, writer: store.create(exec).unwrap(), seq: 0 };
        journal.add(
            0,
            ExecutionStarted {
                kind: ExecutionKind::Session,
                cwd: cwd.to_owned(),
                parent: None,
                deadline_ms: None,
                loon: "0".to_owned(),
            },
        );
        journal
    }

    fn add(&mut self, turn: u32, event: impl Into<AgentEvent>) {
        self.seq += 1;
        let at = At::from_unix_ms(self.seq.cast_signed() * 1000);
        let turn = (turn > 0).then_some(turn);
        let event = event.into();
        let seq = Some(self.seq);
        let record = Envelope { v: VERSION, seq, at, exec: self.exec, turn, event };
        self.writer.append(&[record]).unwrap();
    }

    /// A turn in which the user says something and a tool answers.
    fn turn(&mut self, turn: u32, words: &str, result: &str) {
        let model = "lab/m".to_owned();
        self.add(turn, TurnStarted { model, mode: Mode::Auto, branch: Some("main".to_owned()) });
        let body = ItemBody::UserMessage { text: words.to_owned(), steer: false };
        self.item(turn, ItemId::user(turn, 0), body);
        let call = ToolCallItem {
            status: ToolCallStatus::Done,
            title: format!("call{turn}"),
            result: Some(ToolResult::ok(result)),
            ..ToolCallItem::waiting(CallId::of(turn, 0, 0), "bash", serde_json::json!({}))
        };
        self.item(turn, ItemId::call(turn, 0, 0), ItemBody::ToolCall(call));
        self.add(
            turn,
            TurnFinished {
                status: TurnStatus::Completed,
                error: None,
                steps: 1,
                usage: Usage::default(),
                cost: Cost::default(),
                models: vec![],
                receipt: None,
                review: None,
            },
        );
    }

    fn item(&mut self, turn: u32, id: ItemId, body: ItemBody) {
        self.add(turn, ItemCompleted { item: Item { id, turn, body } });
    }
}

fn put(path: &Path, bytes: &[u8]) {
    File::create(path).unwrap().write_all(bytes).unwrap();
}

fn search(
    index: &SessionIndex,
    store: &dyn JournalStore,
    query: &str,
) -> Vec<(ExecutionId, String)> {
    let search = Search { query: query.to_owned(), cwd: None, limit: 10 };
    let hits = index.search(store, &search).unwrap();
    hits.into_iter().map(|hit| (hit.exec, hit.item.as_str().to_owned())).collect()
}

fn titles(index: &SessionIndex, store: &dyn JournalStore, filter: &Filter) -> Vec<String> {
    let sessions = index.list(store, filter).unwrap();
    sessions.into_iter().map(|session| session.title).collect()
}

fn on_disk() -> (tempfile::TempDir, FileStore, SessionIndex) {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
    let index = SessionIndex::at(dir.path().join("index/sessions.db"));
    (dir, store, index)
}

#[test]
fn words_of_people_and_of_tools_are_found_as_they_come() {
    let (_dir, store, index) = on_disk();
    let mut journal = Journal::begin(&store, "/a");
    journal.turn(1, "fix the pager", "exit 0: all bananas counted");
    let exec = journal.exec;
    assert_eq!(search(&index, &store, "banan"), [(exec, "1.0.c0".to_owned())]);
    assert_eq!(search(&index, &store, "PAGER fix "), [(exec, "1.u0".to_owned())]);
    assert_eq!(search(&index, &store, "\"pager fix\""), []);
    assert_eq!(search(&index, &store, "cherry"), []);
    journal.turn(2, "and now", "a cherry");
    assert_eq!(search(&index, &store, "cherry"), [(exec, "2.0.c0".to_owned())]);
    // An item that comes again replaces what it was.
    let body = ItemBody::UserMessage { text: "fix the lexer".to_owned(), steer: false };
    journal.item(1, ItemId::user(1, 0), body);
    assert_eq!(search(&index, &store, "pager"), []);
    assert_eq!(search(&index, &store, "lexer"), [(exec, "1.u0".to_owned())]);
    // What left the conversation is not found.
    let (to, text, record) = (ItemId::user(2, 0), "and now".to_owned(), WorkingRecord::default());
    journal.add(0, SessionRewound { to, text, record });
    assert_eq!(search(&index, &store, "cherry"), []);
}

#[test]
fn lists_hold_what_journals_say_and_forget_what_is_gone() {
    let (_dir, store, index) = on_disk();
    let mut one = Journal::begin(&store, "/a");
    one.turn(1, "first", "r");
    let mut two = Journal::begin(&store, "/b");
    two.turn(1, "second", "r");
    two.turn(2, "more", "r");
    let empty = Journal::begin(&store, "/a");
    let all = index.list(&store, &Filter::default()).unwrap();
    assert_eq!(all.iter().map(|it| it.exec).collect::<Vec<_>>(), [two.exec, one.exec]);
    let newest = &all[0];
    assert_eq!((newest.turns, newest.title.as_str(), newest.cwd.as_str()), (2, "second", "/b"));
    assert_eq!(newest.branch.as_deref(), Some("main"));
    assert_eq!((newest.live, newest.pid), (true, Some(std::process::id())));
    let of = |cwd: &str| Filter { cwd: Some(cwd.to_owned()), ..Filter::default() };
    assert_eq!(titles(&index, &store, &of("/a")), ["first"]);
    drop((two, empty));
    let exec = one.exec;
    one.add(0, ExecutionCancelled { reason: None });
    drop(one);
    store.set_archived(exec, true).unwrap();
    assert_eq!(titles(&index, &store, &of("/a")), [""; 0]);
    let archived = Filter { archived: true, ..of("/a") };
    let found = index.list(&store, &archived).unwrap();
    assert!(found[0].archived && found[0].cancelled && !found[0].live);
    store.discard(exec, &[]).unwrap();
    assert_eq!(titles(&index, &store, &archived), [""; 0]);
    assert_eq!(search(&index, &store, "first"), []);
    store.recover(exec).unwrap();
    assert_eq!(titles(&index, &store, &archived), ["first"]);
}

#[test]
fn an_index_that_is_no_database_or_damaged_is_made_anew() {
    let (dir, store, index) = on_disk();
    let mut journal = Journal::begin(&store, "/a");
    journal.turn(1, "fix the pager", &"bananas ".repeat(500));
    assert_eq!(search(&index, &store, "bananas").len(), 1);
    let path = dir.path().join("index/sessions.db");
    let damage = |bytes: &[u8]| {
        let _ = std::fs::remove_file(path.with_extension("db-wal"));
        let _ = std::fs::remove_file(path.with_extension("db-shm"));
        put(&path, bytes);
    };
    damage(b"this is no database, whatever it may be called");
    assert_eq!(search(&SessionIndex::at(path.clone()), &store, "bananas").len(), 1);
    drop(index);
    let mut bytes = std::fs::read(&path).unwrap();
    let from = bytes.len().min(1024);
    bytes[from..].fill(0x5a);
    damage(&bytes);
    assert_eq!(search(&SessionIndex::at(path.clone()), &store, "bananas").len(), 1);
    // Also while it is in use.
    let index = SessionIndex::at(path.clone());
    assert_eq!(search(&index, &store, "bananas").len(), 1);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(search(&index, &store, "bananas").len(), 1);
    assert!(path.exists());
}

#[test]
fn two_may_use_it_at_once() {
    let (dir, store, _) = on_disk();
    for number in 0..20 {
        Journal::begin(&store, "/a").turn(1, &format!("prompt {number}"), "common words");
    }
    let path = dir.path().join("index/sessions.db");
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (store, index) = (store.clone(), SessionIndex::at(path.clone()));
            std::thread::spawn(move || titles(&index, &store, &Filter::default()).len())
        })
        .collect();
    for worker in workers {
        assert_eq!(worker.join().unwrap(), 20);
    }
    let index = SessionIndex::at(path);
    let search = Search { query: "common".to_owned(), cwd: None, limit: 100 };
    assert_eq!(index.search(&store, &search).unwrap().len(), 20);
}

#[test]
fn a_journal_that_breaks_off_stays_in_lists() {
    let (_dir, store, index) = on_disk();
    let mut journal = Journal::begin(&store, "/a");
    journal.turn(1, "fix the pager", "r");
    let exec = journal.exec;
    drop(journal);
    let path = store.dir(exec).join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let broken = text.replacen("\"turn.finished\"", "\"turn.fin", 1) + "{}\n";
    put(&path, broken.as_bytes());
    let listed = index.list(&store, &Filter::default()).unwrap();
    assert_eq!((listed[0].title.as_str(), listed[0].state()), ("fix the pager", "damaged"));
    // Mended by hand, it is taken in from its beginning.
    put(&path, text.as_bytes());
    let listed = index.list(&store, &Filter::default()).unwrap();
    assert_eq!((listed[0].turns, listed[0].state()), (1, "open"));
}
