//! Editing: words, history, pastes and where the cursor stands.

use proptest::prelude::*;

use super::*;

fn typed(text: &str) -> Composer {
    let mut composer = Composer::default();
    for c in text.chars() {
        if c == '\n' { composer.new_line() } else { composer.type_char(c) }
    }
    composer
}

#[test]
fn editing_goes_by_whole_characters_and_words() {
    let mut composer = typed("one two 👍🏽");
    composer.delete(Move::Left);
    assert_eq!(composer.text(), "one two ");
    composer.delete(Move::WordLeft);
    assert_eq!(composer.text(), "one ");
    composer.go(Move::LineStart);
    composer.go(Move::WordRight);
    composer.type_char('!');
    assert_eq!(composer.text(), "one! ");
    composer.delete(Move::LineEnd);
    assert_eq!(composer.text(), "one!");
    assert!(!composer.delete(Move::LineEnd));
}

#[test]
fn undo_takes_back_words_and_redo_brings_them_again() {
    let mut composer = typed("one two");
    composer.undo();
    assert_eq!(composer.text(), "one");
    composer.undo();
    assert_eq!(composer.text(), "");
    composer.redo();
    assert_eq!(composer.text(), "one");
    composer.set("other");
    composer.undo();
    assert_eq!(composer.text(), "one");
}

#[test]
fn large_pastes_are_chips_and_are_sent_whole() {
    let mut composer = typed("see ");
    let long = "line\n".repeat(120);
    composer.paste_text(&long);
    composer.type_char('!');
    let rows = composer.rows(40);
    assert_eq!(composer.row_line(rows.all[0], 40).text(), "see [pasted 120 lines]!");
    assert_eq!(composer.text(), format!("see {long}!"));
    composer.delete(Move::Left);
    composer.delete(Move::Left);
    assert_eq!(composer.text(), "see ");
    composer.undo();
    assert_eq!(composer.take(), format!("see {long}"));
    assert!(composer.is_empty());
}

#[test]
fn small_pastes_are_text_without_control_characters() {
    let mut composer = Composer::default();
    composer.paste_text("a\r\nb\rc\x1b[31m\td");
    assert_eq!(composer.text(), "a\nb\nc[31m\td");
}

#[test]
fn characters_that_look_like_chips_survive_a_paste() {
    let mut composer = Composer::default();
    composer.paste_text("x\u{10f000}y");
    assert_eq!(composer.take(), "x\u{10f000}y");
}

#[test]
fn history_is_at_the_edges_and_the_draft_comes_back() {
    let mut composer = Composer::default();
    composer.keep("older");
    composer.keep("old\nlines");
    composer.paste_text("draft");
    composer.up(20);
    assert_eq!(composer.text(), "old\nlines");
    composer.up(20);
    composer.up(20);
    assert_eq!(composer.text(), "older");
    composer.up(20);
    assert_eq!(composer.text(), "older");
    composer.down(20);
    assert_eq!(composer.text(), "old\nlines");
    composer.down(20);
    assert_eq!(composer.text(), "draft");
}

#[test]
fn the_cursor_stands_behind_wide_characters() {
    let composer = typed("你好ab");
    assert_eq!(composer.rows(20).cursor, (0, 6));
    let narrow = composer.rows(4);
    assert_eq!(narrow.all.len(), 2);
    assert_eq!(narrow.cursor, (1, 2));
    assert_eq!(typed("abcd").rows(4).cursor, (1, 0));
}

proptest! {
    #[test]
    fn rows_hold_the_whole_draft_and_the_cursor_is_inside(text in "[a-c 你👍\n]{0,60}", width in 2usize..12, back in 0usize..20) {
        let mut composer = typed(&text);
        for _ in 0..back {
            composer.go(Move::Left);
        }
        let rows = composer.rows(width);
        let joined: String = rows.all.iter().map(|row| &text[row.start..row.end]).collect();
        prop_assert_eq!(joined, text.replace('\n', ""));
        prop_assert!(rows.cursor.0 < rows.all.len());
        prop_assert!(rows.cursor.1 <= width);
        for row in &rows.all {
            prop_assert!(composer.row_line(*row, width).width() <= width);
        }
    }
}
