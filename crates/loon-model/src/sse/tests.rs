//! Tests of the event decoder.

use proptest::prelude::*;

use super::*;

fn all(bytes: &[u8]) -> Vec<String> {
    decode_all(bytes).unwrap()
}

fn in_pieces<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<(String, bool)>, SseError> {
    let mut events = Vec::new();
    let mut decoder = Decoder::new();
    let mut keep = |event: Event<'_>| {
        events.push((event.data.to_owned(), event.is_error));
        Ok::<_, SseError>(Flow::More)
    };
    for piece in pieces {
        decoder.feed(piece, &mut keep)?;
    }
    decoder.finish(&mut keep)?;
    Ok(events)
}

#[test]
fn lines_may_end_in_cr_lf_or_both() {
    assert_eq!(all(b"data: a\n\ndata: b\r\rdata: c\r\n\r\n"), ["a", "b", "c"]);
    assert_eq!(all(b"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r\r\n"), ["a", "b", "c"]);
}

#[test]
fn data_lines_are_joined_and_other_lines_mean_nothing() {
    assert_eq!(all(b"data: a\ndata:b\ndata:  c\ndata\n\n"), ["a\nb\n c\n"]);
    assert_eq!(all(b": note\n:\nid: 7\nretry: 10\nfoo: bar\ndatabase: x\ndata: a\n\n\n\n"), ["a"]);
    assert_eq!(all(b"data:\n\n"), [""]);
    assert_eq!(all(b"data: a:b: c\n\n"), ["a:b: c"]);
    assert_eq!(all(b""), [""; 0]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    assert_eq!(all(b"\xEF\xBB\xBFdata: a\n\n"), ["a"]);
    assert_eq!(all(b"\xEF\xBB\xBF: hello\r\n\r\ndata: a\n\n"), ["a"]);
    assert_eq!(all("data: \u{FEFF}a\n\n\u{FEFF}data: b\n\n".as_bytes()), ["\u{FEFF}a"]);
    assert_eq!(all("\u{FEFF}\u{FEFF}data: a\n\ndata: b\n\n".as_bytes()), ["b"]);
}

#[test]
fn errors_are_told_apart_by_the_name_of_their_event() {
    let events = in_pieces([
        &b"event: error\ndata: x\n\ndata: y\n\nerror: z\n\nevent: error\n\ndata: w\n\n"[..],
    ]);
    let expected = [("x", true), ("y", false), ("z", true), ("w", false)];
    assert_eq!(events.unwrap(), expected.map(|(data, is_error)| (data.to_owned(), is_error)));
}

#[test]
fn an_unfinished_event_is_an_error() {
    for cut in ["data: a\n", "data: a", "data: a\n\ndata: \u{e9}", "dat", "id: 7"] {
        assert_eq!(decode_all(cut.as_bytes()), Err(SseError::CutShort), "{cut}");
    }
    assert_eq!(decode_all(b"data: a\n\ndata: \xC3"), Err(SseError::CutShort));
    assert_eq!(decode_all(b"data: \xC3\n\n"), Err(SseError::NotUtf8));
    assert_eq!(all(b"data: a\n\n: waiting"), ["a"]);
    assert_eq!(all(b"data: a\n\ndata: [DONE]"), ["a", "[DONE]"]);
    assert_eq!(all(b"data: a\n\ndata: [DONE]\n"), ["a", "[DONE]"]);
}

#[test]
fn an_event_has_a_largest_size_however_it_comes() {
    let line = [b"data: ".to_vec(), vec![b'x'; MAX_EVENT_BYTES]].concat();
    assert_eq!(in_pieces(line.chunks(1 << 20)), Err(SseError::TooLarge));
    let many = [b"data: ".to_vec(), vec![b'x'; 1 << 20], b"\n".to_vec()].concat();
    let pieces = std::iter::repeat_n(&many[..], (MAX_EVENT_BYTES >> 20) + 1);
    assert_eq!(in_pieces(pieces), Err(SseError::TooLarge));
    let comment = [b":".to_vec(), vec![b'\xC3'; 1 << 20], b"\n".to_vec()].concat();
    let comments = std::iter::repeat_n(&comment[..], (MAX_EVENT_BYTES >> 20) + 1);
    let event = in_pieces(comments.chain([&b"data: a\n\n"[..]]));
    assert_eq!(event, Ok(vec![("a".to_owned(), false)]));
}

#[test]
fn a_reader_that_is_done_hears_no_more() {
    let mut seen = Vec::new();
    let flow = Decoder::new().feed(b"data: a\n\ndata: b\n\n", |event| {
        seen.push(event.data.to_owned());
        Ok::<_, SseError>(Flow::Done)
    });
    assert_eq!((flow, seen), (Ok(Flow::Done), vec!["a".to_owned()]));
}

#[test]
fn an_event_may_have_any_number_of_lines() {
    let text = "data\n".repeat(100_000) + "\n";
    assert_eq!(all(text.as_bytes()), ["\n".repeat(99_999)]);
}

/// The data of the events of a text, read off the whole of it.
fn by_the_standard(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let event = |lines: &str| {
        let data: Vec<&str> = lines
            .split('\n')
            .filter_map(|line| match line.split_once(':') {
                Some(("data", value)) => Some(value.strip_prefix(' ').unwrap_or(value)),
                None if line == "data" => Some(""),
                _ => None,
            })
            .collect();
        (!data.is_empty()).then(|| data.join("\n"))
    };
    text.split("\n\n").filter_map(event).collect()
}

fn cut<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for size in sizes {
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}

proptest! {
    #[test]
    fn a_text_is_decoded_by_the_standard(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "data: a", "data:b", "data", "data:", "data:  c", ": note", ":", "event: x",
                "id: 1", "id", "retry: 5", "foo: bar", "foo", "", "", "", "data: \u{e9}\u{1F469}",
                "\u{FEFF}data: a", "\u{FEFF}", "\u{FEFF}\u{FEFF}data: a", "database", " data: a",
            ]),
            0..20,
        ),
        ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 20),
        size in 1usize..9,
    ) {
        let mut text: String = lines.iter().zip(&ends).flat_map(|(line, end)| [*line, *end]).collect();
        text.push_str("\n\n");
        let expected = by_the_standard(&text);
        let in_pieces = in_pieces(text.as_bytes().chunks(size)).unwrap();
        prop_assert!(in_pieces.iter().map(|(data, _)| data).eq(&expected), "{in_pieces:?}");
        prop_assert_eq!(all(text.as_bytes()), expected);
    }

    #[test]
    fn sizes_of_reads_mean_nothing(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                &b"data: "[..], b"data", b"event: error", b"\xEF\xBB\xBF", b"\r", b"\n", b"\r\n",
                b"\n\n", b"\r\r", b"\r\n\r\n", "\u{1F469}".as_bytes(), b"\xC3", b":", b" ", b"x",
            ]),
            0..30,
        ),
        sizes in prop::collection::vec(0usize..6, 0..40),
    ) {
        let bytes = parts.concat();
        prop_assert_eq!(in_pieces(cut(&bytes, &sizes)), in_pieces([&bytes[..]]));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_all(&bytes);
    }
}
