//! The painter against a terminal emulator.

use proptest::prelude::*;
use ratatui::style::Style;

use super::*;

const COLUMNS: u16 = 12;
const ROWS: u16 = 8;

fn picture(rows: &[String]) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, COLUMNS, ROWS));
    for (y, text) in rows.iter().enumerate().take(usize::from(ROWS)) {
        let mut x = 0;
        for (cluster, columns) in crate::safe::SafeText::new(text).clusters() {
            let columns = columns as u16;
            if x + columns > COLUMNS {
                break;
            }
            let style = match cluster {
                "r" => Style::new().fg(Color::Indexed(9)),
                "R" => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
                "b" => Style::new().bg(Color::Indexed(4)),
                _ => Style::new(),
            };
            let mut symbol = cluster;
            for at in x..x + columns {
                buffer[(at, y as u16)].set_symbol(symbol).set_style(style);
                symbol = "";
            }
            x += columns;
        }
    }
    buffer
}

fn terminal() -> vt100::Parser {
    let size = |cells: u16| std::num::NonZero::new(cells).unwrap();
    vt100::Parser::new(size(ROWS), size(COLUMNS), 0)
}

fn screen(parser: &vt100::Parser) -> Vec<String> {
    parser.screen().rows(0, COLUMNS).map(|row| row.trim_end().to_owned()).collect()
}

fn attributes(parser: &vt100::Parser) -> Vec<(vt100::Color, vt100::Color, bool)> {
    let cells = (0..ROWS).flat_map(|y| (0..COLUMNS).map(move |x| (y, x)));
    cells
        .filter_map(|(y, x)| parser.screen().cell(y, x))
        .map(|cell| {
            let blank = cell.contents().trim().is_empty();
            let fg = if blank { vt100::Color::Default } else { cell.fgcolor() };
            (fg, cell.bgcolor(), cell.inverse())
        })
        .collect()
}

fn shown_at_once(rows: &[String]) -> vt100::Parser {
    let mut parser = terminal();
    let mut painter = Painter::default();
    parser.process(painter.paint(&mut picture(rows), Rect::new(0, 0, COLUMNS, 6), Some((1, 1))));
    parser
}

#[test]
fn one_key_costs_one_byte() {
    let mut painter = Painter::default();
    painter.paint(&mut picture(&["xy".to_owned()]), Rect::default(), Some((2, 0)));
    let bytes = painter.paint(&mut picture(&["xyz".to_owned()]), Rect::default(), Some((3, 0)));
    assert_eq!(bytes, b"z");
}

#[test]
fn moved_rows_are_moved_by_the_terminal() {
    let rows =
        |from: usize| -> Vec<String> { (from..from + 6).map(|at| format!("line {at}")).collect() };
    let area = Rect::new(0, 0, COLUMNS, 6);
    let mut painter = Painter::default();
    let mut parser = terminal();
    parser.process(painter.paint(&mut picture(&rows(10)), area, None));
    let bytes = painter.paint(&mut picture(&rows(12)), area, None).to_vec();
    parser.process(&bytes);
    assert_eq!(screen(&parser)[..6], rows(12));
    assert!(String::from_utf8_lossy(&bytes).contains("\u{1b}[1;6r"), "{bytes:?}");
    assert!(!String::from_utf8_lossy(&bytes).contains("line 13"), "{bytes:?}");
    parser.process(painter.paint(&mut picture(&rows(11)), area, None));
    assert_eq!(screen(&parser)[..6], rows(11));
}

#[test]
fn halves_of_wide_characters_become_blanks() {
    let mut buffer = picture(&["你好".to_owned()]);
    buffer[(1, 0)].set_symbol("x");
    mend(&mut buffer);
    let symbols: Vec<&str> = (0..5).map(|x| buffer[(x, 0)].symbol()).collect();
    assert_eq!(symbols, [" ", "x", "好", "", " "]);
}

#[test]
fn what_a_terminal_draws_too_wide_overruns_nothing() {
    // The emulator draws the two characters of the hand beside each other.
    let mut painter = Painter::default();
    let mut parser = terminal();
    for (text, seen) in [
        ("a b c", "a b c"),
        ("👍🏽b c", "👍b c"),
        ("👍🏽", "👍"),
        ("你好 c", "你好 c"),
        ("你👍🏽c", "你👍c"),
    ] {
        parser.process(painter.paint(&mut picture(&[text.to_owned()]), Rect::default(), None));
        assert_eq!(screen(&parser)[0], seen);
    }
}

fn rows() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-c rRb你好👍é ]{0,12}|", 0..8)
}

proptest! {
    #[test]
    fn steps_lead_to_the_same_picture_as_painting_it_whole(steps in prop::collection::vec((rows(), 0usize..4), 1..6)) {
        let mut parser = terminal();
        let mut painter = Painter::default();
        let mut last: Vec<String> = Vec::new();
        for (mut rows, shift) in steps {
            // Often the next picture is the last one moved up.
            if shift > 0 {
                rows = last.iter().skip(shift).cloned().chain(rows).take(8).collect();
            }
            last.clone_from(&rows);
            let bytes = painter.paint(&mut picture(&rows), Rect::new(0, 0, COLUMNS, 6), Some((1, 1))).to_vec();
            parser.process(&bytes);
            let whole = shown_at_once(&rows);
            prop_assert_eq!(screen(&parser), screen(&whole));
            prop_assert_eq!(attributes(&parser), attributes(&whole));
            prop_assert_eq!(parser.screen().cursor_position(), (1, 1));
        }
    }
}
