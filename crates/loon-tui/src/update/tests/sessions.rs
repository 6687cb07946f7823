//! Other sessions: searching them, branching off, watching, taking over.

use loon_api::event::{HistoryPage, SessionHeld, SessionReleased, SessionsFound};
use loon_api::{SessionHit, SessionHolder};

use super::*;

fn hit(exec: ExecutionId, snippet: &str) -> SessionHit {
    SessionHit {
        exec,
        item: ItemId::call(2, 0, 0),
        turn: 2,
        kind: "tool".to_owned(),
        snippet: snippet.to_owned(),
        title: "pager".to_owned(),
        cwd: "/work".to_owned(),
        updated: At::from_unix_ms(0),
        archived: false,
        parent: None,
    }
}

fn holder() -> SessionHolder {
    SessionHolder { pid: Some(4711), words: "process 4711 since 12:00 UTC".to_owned() }
}

fn labels(screen: &Screen) -> Vec<String> {
    let popup = screen.model.layers.last().unwrap();
    popup.shown_rows().map(|row| row.label.clone()).collect()
}

#[test]
fn what_is_typed_is_searched_in_all_sessions() {
    let mut screen = Screen::new();
    screen.type_text("/sessions");
    assert_eq!(screen.press(KeyCode::Enter), sent(Command::ListSessions { all: true }));
    let (listed, found) = (ExecutionId::generate(), ExecutionId::generate());
    let at = At::from_unix_ms(0);
    let session =
        SessionSummary { title: "the lexer".to_owned(), ..SessionSummary::begun(listed, at) };
    screen.tell(SessionsListed { sessions: vec![session] });
    assert_eq!(labels(&screen), ["the lexer"]);
    assert_eq!(screen.press(KeyCode::Down), [], "moving is no typing");
    screen.press(KeyCode::Char('p'));
    let asked = Command::SearchSessions { query: "pa".to_owned(), all: true };
    assert_eq!(screen.press(KeyCode::Char('a')), sent(asked));
    // An answer that comes too late belongs to other words.
    screen.tell(SessionsFound { query: "p".to_owned(), hits: vec![hit(found, "old")] });
    assert_eq!(labels(&screen), [""; 0]);
    let hits = vec![hit(found, "12 pages counted")];
    screen.tell(SessionsFound { query: "pa".to_owned(), hits });
    assert_eq!(labels(&screen), ["12 pages counted"]);
    assert_eq!(screen.press(KeyCode::Enter), sent(open(found, SessionAccess::Write)));
    assert_eq!(screen.model.sought, Some((found, ItemId::call(2, 0, 0))));
}

fn words(turn: u32, text: &str) -> Item {
    let body = ItemBody::UserMessage { text: text.to_owned(), steer: false };
    Item { id: ItemId::user(turn, 0), turn, body }
}

#[test]
fn opening_a_hit_asks_for_older_items_until_its_place_is_there() {
    let mut screen = Screen::new();
    let exec = screen.model.exec.unwrap();
    screen.type_text("/sessions");
    screen.press(KeyCode::Enter);
    screen.type_text("words");
    let first = SessionHit { item: ItemId::user(1, 0), ..hit(exec, "first words") };
    screen.tell(SessionsFound { query: "words".to_owned(), hits: vec![first] });
    // The newest items are here, and the place is none of them.
    let newest: Vec<Item> = (50..90).map(|turn| words(turn, "later")).collect();
    screen.model.transcript.open(&newest, true, 0);
    let older = |before: &Item| {
        sent(Command::History {
            before: before.id.clone(),
            limit: super::super::runtime::SOUGHT_PAGE,
        })
    };
    assert_eq!(screen.press(KeyCode::Enter), older(&newest[0]));
    let page: Vec<Item> = (10..50).map(|turn| words(turn, "earlier")).collect();
    let told = screen.tell(HistoryPage { items: page.clone(), more: true });
    assert_eq!(told, older(&page[0]));
    let page: Vec<Item> = (1..10).map(|turn| words(turn, "first words")).collect();
    assert_eq!(screen.tell(HistoryPage { items: page, more: false }), []);
    assert_eq!(screen.model.sought, None);
    assert!(screen.model.transcript.is_scrolled(), "the place is in view, and not the end");
}

#[test]
fn a_place_that_is_gone_is_told_and_not_looked_for_again() {
    let mut screen = Screen::new();
    let exec = screen.model.exec.unwrap();
    screen.model.sought = Some((exec, ItemId::user(7, 0)));
    assert_eq!(screen.tell(HistoryPage { items: vec![words(1, "all")], more: false }), []);
    assert!(screen.model.hint.as_ref().unwrap().contains("not in the session any more"));
    assert_eq!(screen.model.sought, None);
}

#[test]
fn who_took_a_watched_session_over_and_why_it_is_over_is_said() {
    let mut screen = Screen::new();
    let exec = screen.model.exec.unwrap();
    screen.model.session.watched = Some(holder());
    let taker = SessionHolder { pid: Some(4712), words: "process 4712".to_owned() };
    let held = SessionHeld { session: exec, holder: taker, from: Some(holder()) };
    screen.tell_of(exec, held);
    let over = loon_api::ErrorInfo::new(loon_api::ErrorCode::Cancelled, "it was cancelled");
    screen.tell_of(exec, SessionReleased { session: exec, over: Some(over) });
    let said = format!("{:?}", screen.model.transcript);
    assert!(said.contains("process 4712 took this session over from process 4711"), "{said}");
    assert!(said.contains("it was cancelled; /fork branches off") && !said.contains("/takeover"));
}

#[test]
fn without_words_no_hit_stays() {
    let mut screen = Screen::new();
    screen.type_text("/sessions");
    screen.press(KeyCode::Enter);
    screen.tell(SessionsListed { sessions: Vec::new() });
    screen.press(KeyCode::Char('p'));
    let hits = vec![hit(ExecutionId::generate(), "pages")];
    screen.tell(SessionsFound { query: "p".to_owned(), hits });
    assert_eq!(labels(&screen), ["pages"]);
    assert_eq!(screen.press(KeyCode::Backspace), []);
    assert_eq!(labels(&screen), [""; 0]);
}

#[test]
fn a_session_in_use_is_watched_or_taken_over() {
    let mut screen = Screen::new();
    let session = ExecutionId::generate();
    screen.tell(SessionHeld { session, holder: holder(), from: None });
    assert_eq!(labels(&screen), ["watch", "take over"]);
    let about = screen.model.layers.last().unwrap().selected_row().unwrap().about.clone();
    assert!(about.contains("process 4711 since 12:00 UTC"), "{about}");
    assert_eq!(screen.press(KeyCode::Enter), sent(open(session, SessionAccess::Watch)));
    screen.tell(SessionHeld { session, holder: holder(), from: None });
    screen.press(KeyCode::Down);
    assert_eq!(screen.press(KeyCode::Enter), sent(open(session, SessionAccess::TakeOver)));
}

#[test]
fn a_watched_session_keeps_the_draft_and_can_be_taken_over() {
    let mut screen = Screen::new();
    screen.type_text("/takeover");
    assert_eq!(screen.press(KeyCode::Enter), []);
    assert!(screen.model.hint.as_ref().unwrap().contains("yours already"));
    screen.model.session.watched = Some(holder());
    let exec = screen.model.exec.unwrap();
    screen.type_text("do it");
    assert_eq!(screen.press(KeyCode::Enter), []);
    assert_eq!(screen.draft(), "do it");
    assert!(screen.model.hint.as_ref().unwrap().contains("only watched, process 4711"));
    screen.tell(SessionReleased { session: exec, over: None });
    assert_eq!(screen.model.session.watched.as_ref().unwrap().words, "no process");
    screen.ctrl('u');
    screen.type_text("/takeover");
    assert_eq!(screen.press(KeyCode::Enter), sent(open(exec, SessionAccess::TakeOver)));
}

#[test]
fn a_turn_to_branch_off_from_is_named_or_chosen() {
    let mut screen = Screen::new();
    screen.type_text("/fork 2");
    assert_eq!(screen.press(KeyCode::Enter), sent(Command::Fork { at: Some(2) }));
    screen.type_text("/fork x");
    assert_eq!(screen.press(KeyCode::Enter), []);
    for turn in [1, 2] {
        let body = ItemBody::UserMessage { text: format!("words {turn}"), steer: false };
        screen.tell(ItemCompleted { item: Item { id: ItemId::user(turn, 0), turn, body } });
    }
    screen.type_text("/fork");
    assert_eq!(screen.press(KeyCode::Enter), []);
    assert_eq!(labels(&screen), ["here", "words 2", "words 1"]);
    screen.press(KeyCode::End);
    assert_eq!(screen.press(KeyCode::Enter), sent(Command::Fork { at: Some(1) }));
}

#[test]
fn what_is_asked_in_a_watched_session_is_told_and_takes_no_keys() {
    let mut screen = Screen::new();
    screen.model.session.watched = Some(holder());
    screen.ask("a1");
    assert!(screen.model.approvals.shown().is_none());
    screen.type_text("x");
    assert_eq!(screen.draft(), "x");
    screen.model.session.watched = None;
    screen.ask("a2");
    assert!(screen.model.approvals.shown().is_some());
    screen.model.session.watched = Some(holder());
    screen.tell(SessionReleased { session: ExecutionId::generate(), over: None });
    assert!(screen.model.approvals.shown().is_none(), "nobody waits for an answer any more");
}
