//! Tests of documents and splices.

use proptest::prelude::*;

use super::*;
use crate::write_path::Encoding;
use crate::write_path::document::Ending;

fn spliced(bytes: &[u8], find: &str, new: &str) -> Vec<u8> {
    let document = Document::decode(bytes.to_vec());
    let start = document.view().find(find).unwrap();
    let splice =
        Splice { span: start..start + find.len(), old: find.to_owned(), new: new.to_owned() };
    document.splice(&[splice]).unwrap()
}

#[test]
fn the_view_has_plain_newlines_and_no_mark() {
    let view = |bytes: &[u8]| Document::decode(bytes.to_vec()).view().to_owned();
    assert_eq!(view(b"\xef\xbb\xbfa\r\nb\nc"), "a\nb\nc");
    assert_eq!(view(b"a\rb\r"), "a\nb\n");
    assert_eq!(view(b"a\rb\n"), "a\rb\n");
    assert_eq!(view(b"caf\xe9"), "caf\u{e9}");
    assert_eq!(view(b"\xc3\xa9\xe9"), "\u{e9}\u{fffd}");
    assert_eq!(view(b"\xfe\xff\0a\0\r\0\n\xd8"), "a\n\u{fffd}");
}

#[test]
fn lines_know_their_endings() {
    let document = Document::decode(b"a\r\nb\nc".to_vec());
    assert_eq!(document.line_count(), 3);
    let endings: Vec<_> = (0..4).map(|line| document.ending(line)).collect();
    assert_eq!(endings, [Ending::CrLf, Ending::Lf, Ending::None, Ending::None]);
    assert_eq!(document.line_span(1), 2..4);
    assert_eq!(document.line_span(7), 5..5);
    assert_eq!(document.ending_near(2), Ending::Lf);
    assert_eq!(Document::decode(Vec::new()).dominant_ending(), Ending::Lf);
}

#[test]
fn new_lines_end_like_their_neighbours() {
    assert_eq!(spliced(b"a\r\nb\n", "a", "x\ny"), b"x\r\ny\r\nb\n");
    assert_eq!(spliced(b"a\r\nb\n", "b", "x\ny"), b"a\r\nx\ny\n");
    assert_eq!(spliced(b"a\r\nb", "b", "x\ny"), b"a\r\nx\r\ny");
    assert_eq!(spliced(b"a\rb\r", "b", "x\ny"), b"a\rx\ry\r");
    assert_eq!(spliced(b"a", "a", "x\ny"), b"x\ny");
}

#[test]
fn places_in_long_lines_are_exact() {
    let document = Document::decode(b"ab\xff\xc3\xa9".repeat(200));
    let mut byte = 0;
    for (view, ch) in document.view().char_indices() {
        assert_eq!(document.byte_at(view), byte);
        byte += if ch == char::REPLACEMENT_CHARACTER { 1 } else { ch.len_utf8() };
    }
    assert_eq!(byte, document.bytes().len());
}

fn encoded(encoding: Encoding, mark: bool, text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mark = if mark || encoding != Encoding::Utf8 { "\u{feff}" } else { "" };
    for ch in mark.chars().chain(text.chars()) {
        assert!(encoding.encode(ch, &mut bytes));
    }
    bytes
}

/// Files with all that can be in them: mixed endings, foreign bytes, marks, three encodings.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "a",
        "bc",
        " ",
        "\n",
        "\r\n",
        "\r",
        "\u{e9}",
        "e\u{301}",
        "\u{1f600}",
        "\u{fffd}",
        "\0",
    ]);
    let text = prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat());
    let encoding = prop::sample::select(vec![Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be]);
    let valid = (encoding, any::<bool>(), text)
        .prop_map(|(encoding, mark, text)| encoded(encoding, mark, &text));
    let chunk = prop::sample::select(vec![
        &b"a"[..],
        b"\xff",
        b"\r\n",
        b"\n",
        b"\xc3\xa9",
        b"\xe2\x82",
        b"\xef\xbb\xbf",
        b"\x93",
    ]);
    let damaged = prop::collection::vec(chunk, 0..20).prop_map(|chunks| chunks.concat());
    prop_oneof![valid, damaged, prop::collection::vec(any::<u8>(), 0..24)]
}

/// A part of the view between two characters.
fn part(view: &str, a: prop::sample::Index, b: prop::sample::Index) -> Range<usize> {
    let places: Vec<usize> = view.char_indices().map(|(at, _)| at).chain([view.len()]).collect();
    let (a, b) = (a.index(places.len()), b.index(places.len()));
    places[a.min(b)]..places[a.max(b)]
}

proptest! {
    #[test]
    fn bytes_outside_of_a_splice_never_change(
        bytes in file(),
        a in any::<prop::sample::Index>(),
        b in any::<prop::sample::Index>(),
        new in "[a-z\n ]{0,12}",
    ) {
        let document = Document::decode(bytes.clone());
        let span = part(document.view(), a, b);
        let (start, end) = (document.byte_at(span.start), document.byte_at(span.end));
        prop_assert!(start <= end && end <= bytes.len());
        let old = document.view()[span.clone()].to_owned();
        let made = document.splice(&[Splice { span, old, new }]).unwrap();
        prop_assert!(made.starts_with(&bytes[..start]));
        prop_assert!(made.ends_with(&bytes[end..]));
        prop_assert!(made.len() >= start + bytes.len() - end);
    }

    #[test]
    fn replacing_a_text_by_itself_changes_nothing(
        bytes in file(),
        a in any::<prop::sample::Index>(),
        b in any::<prop::sample::Index>(),
    ) {
        let document = Document::decode(bytes.clone());
        let span = part(document.view(), a, b);
        let old = document.view()[span.clone()].to_owned();
        let splice = Splice { span, new: old.clone(), old };
        prop_assert_eq!(document.splice(&[splice]).unwrap(), bytes);
    }

    #[test]
    fn the_view_after_a_splice_is_the_view_with_the_new_text(
        bytes in file(),
        a in any::<prop::sample::Index>(),
        b in any::<prop::sample::Index>(),
        new in "[a-z]{1,4}(\n[a-z]{1,4}){0,3}",
    ) {
        let document = Document::decode(bytes);
        // A lone CR beside the splice may join with a new LF; that is another text then.
        prop_assume!(!document.view().contains('\r') && document.dominant_ending() != Ending::Cr);
        let span = part(document.view(), a, b);
        let view = document.view();
        let expected = format!("{}{new}{}", &view[..span.start], &view[span.end..]);
        let old = view[span.clone()].to_owned();
        let made = Document::decode(document.splice(&[Splice { span, old, new }]).unwrap());
        // Damaged files may read as another encoding once their last valid character is gone.
        prop_assume!(made.encoding() == document.encoding());
        prop_assert_eq!(made.view(), expected);
    }

    #[test]
    fn lines_cover_the_view(bytes in file()) {
        let document = Document::decode(bytes);
        let mut at = 0;
        for line in 0..document.line_count() {
            let span = document.line_span(line);
            prop_assert_eq!(span.start, at);
            prop_assert_eq!(document.line_at(span.start), line);
            prop_assert_eq!(document.view()[span.clone()].ends_with('\n'), document.ending(line) != Ending::None);
            at = span.end;
        }
        prop_assert_eq!(at, document.view().len());
    }
}
