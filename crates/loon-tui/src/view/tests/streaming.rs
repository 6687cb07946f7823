//! What is written while an answer arrives.

use super::*;

/// Streams 200 short paragraphs beside what `prepare` puts into the panel. Gives the screen, and
/// how many bytes were written for one of them.
fn stream_beside(prepare: impl Fn(&mut Screen)) -> (String, usize) {
    let words = ["page", "suite", "end", "exclusive", "counts", "from", "one", "signature"];
    let word = |line: usize, at: usize| words[(line * 3 + at * (1 + line % 5)) % words.len()];
    let lines: Vec<String> = (0..200)
        .map(|line| (0..12).map(|at| word(line, at)).collect::<Vec<_>>().join(" ") + "\n\n")
        .collect();
    let begin = || {
        let mut screen = Screen::new(120, 30);
        prepare(&mut screen);
        let body = ItemBody::AssistantMessage { text: String::new(), incomplete: false };
        screen.tell(ItemStarted { item: Item { id: ItemId::text(1, 0, 0), turn: 1, body } });
        screen
    };
    let more = |text: String| ItemDelta { item: ItemId::text(1, 0, 0), of: DeltaKind::Text, text };
    let mut screen = begin();
    let mut written = 0;
    for line in &lines {
        screen.tell(more(line.clone()));
        screen.shown();
        written += screen.bytes;
    }
    let mut whole = begin();
    whole.tell(more(lines.concat()));
    let shown = screen.shown();
    assert_eq!(shown, whole.shown());
    (shown, written / lines.len())
}

#[test]
fn streaming_beside_the_panel_leaves_it_as_it_is() {
    let (_, alone) = stream_beside(|_| {});
    let (_, beside_little) = stream_beside(Screen::spend);
    let (shown, beside_much) = stream_beside(Screen::write_down);
    assert!(shown.contains("◐ change the bound"));
    assert!(alone < beside_little && beside_little < alone * 3, "{alone}, {beside_little}");
    assert!(beside_much < 1_200, "{beside_much}");
}

#[test]
fn streaming_moves_rows_instead_of_writing_them() {
    let mut screen = Screen::new(100, 30);
    screen.tell(TurnStarted {
        model: "lab/sonnet".to_owned(),
        mode: Mode::Default,
        branch: Some("main".into()),
    });
    screen.tell(PromptQueued { text: "then the docs".to_owned(), steer: false });
    let id = ItemId::text(1, 0, 0);
    let body = ItemBody::AssistantMessage { text: String::new(), incomplete: false };
    screen.tell(ItemStarted { item: Item { id: id.clone(), turn: 1, body } });
    let mut written = 0;
    let mut text = 0;
    for line in 0..400 {
        let more = format!(
            "line {line} of many words that go on and on until the row is nearly full of them\n\n"
        );
        text += more.len();
        screen.tell(ItemDelta { item: id.clone(), of: DeltaKind::Text, text: more });
        screen.tell(MeterUpdated { tokens: line * 20, ms: 1 + line * 30, estimated: true });
        screen.shown();
        written += screen.bytes;
    }
    assert!(written < text * 3, "{written} bytes were written for {text} bytes of text");
    insta::assert_snapshot!(screen.shown());
}
