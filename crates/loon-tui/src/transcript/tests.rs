//! The transcript: what is in view, what is kept, and what each state says.

use loon_api::event::DeltaKind;
use loon_api::{CallId, ItemBody, ToolResult};

use super::*;
use crate::glyphs::UNICODE;

fn page(columns: u16) -> Page {
    Page::new(columns, &UNICODE, 0)
}

fn answer(id: u32, text: &str) -> Item {
    let body = ItemBody::AssistantMessage { text: text.to_owned(), incomplete: false };
    Item { id: ItemId::text(id, 0, 0), turn: id, body }
}

fn words(count: usize) -> String {
    let words: Vec<String> = (0..count).map(|at| format!("word{at}")).collect();
    words.join(" ")
}

fn filled(entries: u32) -> Transcript {
    let mut transcript = Transcript::default();
    let items: Vec<Item> = (0..entries).map(|id| answer(id, &format!("answer {id}"))).collect();
    transcript.open(&items, true, 0);
    transcript
}

fn shown(transcript: &Transcript) -> Vec<String> {
    transcript
        .view()
        .iter()
        .map(|row| transcript.line(*row).map_or(String::new(), |(line, ..)| line.text()))
        .collect()
}

fn call(status: ToolCallStatus, output: Option<&str>) -> Item {
    let body = ItemBody::ToolCall(ToolCallItem {
        status,
        title: "make".to_owned(),
        result: output.map(ToolResult::ok),
        ms: Some(2_130).filter(|_| status.is_final()),
        ..ToolCallItem::waiting(CallId::of(1, 0, 0), "bash", serde_json::Value::Null)
    });
    Item { id: ItemId::call(1, 0, 0), turn: 1, body }
}

#[test]
fn the_end_is_followed_until_someone_scrolls() {
    let mut transcript = filled(20);
    transcript.layout(&page(80), 5);
    assert_eq!(shown(&transcript), ["answer 17", "", "answer 18", "", "answer 19"]);
    transcript.complete(&answer(20, "answer 20"), 0);
    transcript.layout(&page(80), 5);
    assert_eq!(shown(&transcript).last().unwrap(), "answer 20");
    transcript.scroll(&page(80), -4);
    transcript.layout(&page(80), 5);
    let before = shown(&transcript);
    assert_eq!(before[0], "answer 16");
    transcript.complete(&answer(21, "answer 21"), 0);
    transcript.layout(&page(80), 5);
    assert_eq!(shown(&transcript), before);
    assert!(transcript.is_scrolled());
    transcript.scroll(&page(80), 100);
    transcript.layout(&page(80), 5);
    assert!(!transcript.is_scrolled());
    assert_eq!(shown(&transcript).last().unwrap(), "answer 21");
}

#[test]
fn older_items_are_asked_for_once_and_put_above() {
    let mut transcript = filled(20);
    assert_eq!(transcript.layout(&page(80), 5), None);
    transcript.scroll_to_start(&page(80));
    assert_eq!(transcript.layout(&page(80), 5), Some(ItemId::text(0, 0, 0)));
    assert_eq!(transcript.layout(&page(80), 5), None);
    let before = shown(&transcript);
    transcript.prepend(&[answer(100, "older"), answer(0, "answer 0")], false, 0);
    transcript.layout(&page(80), 5);
    assert_eq!(shown(&transcript)[1..], before[..4]);
    transcript.scroll(&page(80), -10);
    transcript.layout(&page(80), 5);
    assert_eq!(shown(&transcript)[0], "older");
}

#[test]
fn another_width_keeps_the_words_at_the_top() {
    let mut transcript = Transcript::default();
    transcript.open(&[answer(1, &words(300)), answer(2, "end")], false, 0);
    transcript.layout(&page(80), 6);
    transcript.scroll(&page(80), -12);
    transcript.layout(&page(80), 6);
    let first = shown(&transcript)[0].split(' ').next().unwrap().to_owned();
    transcript.layout(&page(40), 6);
    assert!(shown(&transcript)[0].contains(&first), "{first} is not in {:?}", shown(&transcript));
    transcript.layout(&page(80), 6);
    assert!(shown(&transcript)[0].contains(&first), "{first} is not in {:?}", shown(&transcript));
}

#[test]
fn another_width_keeps_a_line_without_letters_at_the_top() {
    let text = format!("{}\n\n```\nfn a() {{\n}}\n```\n\n{}", words(30), words(200));
    let mut transcript = Transcript::default();
    transcript.open(&[answer(1, &text)], false, 0);
    transcript.layout(&page(80), 6);
    transcript.scroll_to_start(&page(80));
    let mut rows = 0;
    while shown(&transcript)[0] != "  }" {
        transcript.scroll(&page(80), 1);
        rows += 1;
        assert!(rows < 20, "the line is not there");
    }
    for columns in [40, 80] {
        transcript.layout(&page(columns), 6);
        assert_eq!(shown(&transcript)[0], "  }");
    }
}

#[test]
fn only_what_is_near_the_view_is_laid_out() {
    let mut transcript = filled(400);
    transcript.layout(&page(80), 20);
    let laid = transcript.entries.iter().filter(|entry| entry.laid.is_some()).count();
    assert!(laid < 30, "{laid} of 400 entries were laid out");
    for _ in 0..60 {
        transcript.scroll_page(&page(80), true);
        transcript.layout(&page(80), 20);
    }
    let laid = transcript.entries.iter().filter(|entry| entry.laid.is_some()).count();
    assert!(laid <= KEPT_LAYOUTS + 20, "{laid} layouts are kept");
}

#[test]
fn far_entries_are_given_up_while_the_end_is_followed() {
    let mut transcript = Transcript::default();
    transcript.open(&[], false, 0);
    for id in 0..1_000 {
        transcript.complete(&answer(id, "text"), 0);
        transcript.layout(&page(80), 10);
    }
    assert!(transcript.entries.len() <= KEPT_ENTRIES * 3 / 2);
    transcript.scroll_to_start(&page(80));
    assert!(transcript.layout(&page(80), 10).is_some());
}

#[test]
fn long_texts_are_given_up_earlier() {
    let mut transcript = Transcript::default();
    for id in 0..100 {
        transcript.complete(&answer(id, &"x".repeat(100_000)), 0);
    }
    let weight: usize = transcript.entries.iter().map(Entry::weight).sum();
    assert!(weight <= KEPT_BYTES, "{weight} bytes are kept");
    assert!(transcript.entries.len() >= LEAST_ENTRIES.min(41));
    assert!(transcript.more);
}

#[test]
fn entries_without_text_take_no_room() {
    let mut transcript = Transcript::default();
    transcript.open(&[answer(1, "one"), answer(2, ""), answer(3, "three")], false, 0);
    transcript.layout(&page(80), 10);
    assert_eq!(shown(&transcript), ["one", "", "three"]);
}

#[test]
fn calls_show_their_output_while_they_run_and_fold_when_done() {
    let mut transcript = Transcript::default();
    transcript.begin(&call(ToolCallStatus::Running, None), 0);
    transcript.extend(&ItemId::call(1, 0, 0), DeltaKind::Output, "one\ntwo\x1b[31m\n");
    transcript.layout(&page(40), 10);
    assert_eq!(
        shown(&transcript),
        ["bash   make                      0 s ▾", "  one", "  two\u{241b}[31m"]
            .map(str::to_owned)
            .to_vec()
    );
    transcript.complete(&call(ToolCallStatus::Done, Some("one\ntwo\n")), 0);
    transcript.layout(&page(80), 10);
    assert_eq!(shown(&transcript).len(), 1);
    assert!(shown(&transcript)[0].ends_with("2.1 s ▸"));
    transcript.toggle_row(0);
    transcript.layout(&page(80), 10);
    assert_eq!(shown(&transcript)[1..], ["  one", "  two"]);
}

#[test]
fn states_are_said_in_words() {
    for (status, word) in [
        (ToolCallStatus::Denied, "denied"),
        (ToolCallStatus::Unknown, "outcome unknown"),
        (ToolCallStatus::Asking, "asks you"),
        (ToolCallStatus::Cancelled, "cancelled"),
        (ToolCallStatus::Failed, "failed"),
    ] {
        let mut transcript = Transcript::default();
        transcript.complete(&call(status, None), 0);
        transcript.layout(&page(80), 10);
        assert!(shown(&transcript)[0].contains(word), "{:?}", shown(&transcript));
    }
}

#[test]
fn live_output_is_bounded() {
    let mut transcript = Transcript::default();
    transcript.begin(&call(ToolCallStatus::Running, None), 0);
    for _ in 0..1_000 {
        transcript.extend(&ItemId::call(1, 0, 0), DeltaKind::Output, &"é".repeat(100));
    }
    let Body::Tool { live, .. } = &transcript.entries[0].body else { panic!("a call") };
    assert!(live.len() <= 2 * LIVE_LIMIT + 200);
}

#[test]
fn dropped_and_rewound_items_leave() {
    let mut transcript = filled(3);
    transcript.drop_item(&ItemId::text(1, 0, 0));
    transcript.layout(&page(80), 10);
    assert_eq!(shown(&transcript), ["answer 0", "", "answer 2"]);
    transcript.rewind(&ItemId::text(2, 0, 0));
    transcript.layout(&page(80), 10);
    assert_eq!(shown(&transcript), ["answer 0"]);
}

#[test]
fn a_picture_that_only_answers_a_key_shows_what_grew_as_it_was() {
    let mut transcript = Transcript::default();
    transcript.begin(&answer(0, "answer"), 0);
    let whole = page(80);
    let key = Page { fresh: false, ..whole };
    transcript.layout(&whole, 5);
    transcript.extend(&ItemId::text(0, 0, 0), DeltaKind::Text, " and more");
    transcript.begin(&call(ToolCallStatus::Running, None), 0);
    transcript.layout(&key, 5);
    let lines = shown(&transcript);
    assert_eq!(lines[0], "answer");
    assert!(lines[2].contains("make"), "what is new shows at once: {lines:?}");
    transcript.layout(&whole, 5);
    assert_eq!(shown(&transcript)[0], "answer and more");
}
