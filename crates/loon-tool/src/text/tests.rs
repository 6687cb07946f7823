//! Tests of what makes foreign text safe to show.

use proptest::prelude::*;

use super::*;

fn is_unsafe(ch: char) -> bool {
    ch.is_control() && !matches!(ch, '\t' | '\n')
}

#[test]
fn hostile_output_keeps_its_text_in_order() {
    let bytes = b"a\0b\xffc\xed\xa0\x80d\x1b[31mred\x1b[0m\rEND\n";
    assert_eq!(Terminal::read(bytes), "a␀b\u{FFFD}c\u{FFFD}\u{FFFD}\u{FFFD}dred␍END\n");
}

#[test]
fn progress_is_reduced_to_its_last_state() {
    assert_eq!(Terminal::read(b"go\n 1%\r 2%\r 3%\ndone\r\n"), "go\n 3%\ndone\n");
    assert_eq!(Terminal::read(b"working\r\x1b[Kdone\n"), "done\n");
    assert_eq!(Terminal::read(b"working\x1b[2K\rdone\n"), "done\n");
    assert_eq!(Terminal::read(b"working\r\x1b[K\nnext"), "\nnext");
    assert_eq!(Terminal::read(b"|\x08/\x08-\x08ok"), "ok");
    assert_eq!(Terminal::read(b"50%\r100%\r"), "50%␍100%");
}

#[test]
fn sequences_of_all_kinds_leave_nothing() {
    let bytes = b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b(Bc\x1bPq\x1b\\d\x1b[?25le\x1b7f";
    assert_eq!(Terminal::read(bytes), "abcdef");
    // An unfinished string does not swallow the following lines.
    assert_eq!(Terminal::read(b"\x1b]0;oops\nline\x1b[31"), "\nline");
}

#[test]
fn live_text_is_only_ever_added() {
    let mut live = Terminal::default();
    live.push(b"one\nhal");
    assert_eq!(live.take(), "one\nhal");
    live.push(b"f\n1%\r2%");
    assert_eq!(live.take(), "f\n2%");
    live.push(b"\r3%\r4%\xe2\x82");
    assert_eq!(live.take(), "\n4%");
    live.push(b"\xac\n");
    assert_eq!(live.take(), "€\n");
    assert_eq!(live.take(), "");
}

#[test]
fn files_are_shown_character_by_character() {
    assert_eq!(visible("a\tb\u{1b}[0m\r\u{7f}\u{85}\n"), "a\tb␛[0m␍␡\u{FFFD}\n");
    assert!(matches!(visible("plain\n"), Cow::Borrowed(_)));
    assert_eq!(visible_line("a\nb\tc"), "a␊b␉c");
}

#[test]
fn what_is_omitted_is_counted_up_to_whole_lines() {
    let captured =
        Captured { head: b"one\ntw".to_vec(), omitted: 100, tail: b"o\nlast\n".to_vec() };
    assert_eq!(output(&captured), "one\n[... 104 bytes omitted ...]\nlast\n");
    let unbroken = Captured { head: b"xx".to_vec(), omitted: 7, tail: b"yy".to_vec() };
    assert_eq!(output(&unbroken), "xx\n[... 7 bytes omitted ...]\nyy");
}

#[test]
fn numbers_are_read_easily() {
    assert_eq!(size(1023), "1023 bytes");
    assert_eq!(size(1536), "1.5 KiB");
    assert_eq!(size(5 << 30), "5.0 GiB");
    assert_eq!(count(1, "entry"), "1 entry");
    assert_eq!(count(2, "entry"), "2 entries");
    assert_eq!(count(2, "key"), "2 keys");
    assert_eq!(count(0, "match"), "0 matches");
    assert_eq!(count(3, "line"), "3 lines");
}

proptest! {
    #[test]
    fn any_bytes_give_safe_text(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = Terminal::read(&bytes);
        prop_assert!(!text.chars().any(is_unsafe), "{text:?}");
        let lossy = String::from_utf8_lossy(&bytes).into_owned();
        prop_assert!(!visible(&lossy).chars().any(is_unsafe));
    }

    #[test]
    fn cuts_between_pieces_change_nothing(
        bytes in prop::collection::vec(prop_oneof![
            Just(0x1b_u8), Just(b'['), Just(b'K'), Just(b'\r'), Just(b'\n'), Just(b']'), Just(7), Just(8),
            Just(0xe2), Just(0x82), Just(0xac), Just(b'2'), Just(b'a'),
        ], 0..60),
        cut in 0usize..60,
    ) {
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        let mut terminal = Terminal::default();
        terminal.push(left);
        terminal.push(right);
        prop_assert_eq!(terminal.finish(), Terminal::read(&bytes));
    }
}
