//! Markdown: what shows for which text, and that pieces lay out as the whole.

use proptest::prelude::*;

use super::*;

fn shown(markdown: &mut Markdown, width: usize) -> Vec<String> {
    markdown.layout(width, &UNICODE);
    markdown.chunks().flat_map(|chunk| chunk.iter().map(Line::text)).collect()
}

fn lay(text: &str, width: usize) -> Vec<String> {
    shown(&mut Markdown::whole(text), width)
}

#[test]
fn blocks_keep_a_distance_and_lists_hang() {
    let text = "# Title\ntext *em* `code`\n- one two three\n  - nested\n- [x] done\n\n1. a\n2. b\n\n> quote\n> more\n\n[t](http://u) <http://v>";
    assert_eq!(
        lay(text, 14),
        [
            "Title",
            "",
            "text em code",
            "",
            "• one two",
            "  three",
            "  • nested",
            "• [x] done",
            "",
            "1. a",
            "2. b",
            "",
            "│ quote more",
            "",
            "t (http://u)",
            "http://v"
        ]
    );
}

#[test]
fn loose_lists_and_empty_items_show() {
    assert_eq!(lay("- a\n\n- b\n-\n", 20), ["• a", "", "• b", "", "• "]);
}

#[test]
fn code_is_kept_blank_by_blank() {
    assert_eq!(
        lay("```rust\nfn  a() {}\n\n  b\n```\nend", 40),
        ["  fn  a() {}", "  ", "    b", "", "end"]
    );
}

#[test]
fn tables_fit_their_width() {
    let text = "| a | bb |\n|---|---:|\n| 1 | 22 |\n| long words here | 3 |";
    assert_eq!(
        lay(text, 16),
        [
            "a           │ bb",
            "────────────┼───",
            "1           │ 22",
            "long words  │  3",
            "here        │   ",
        ]
    );
}

#[test]
fn an_open_fence_shows_line_by_line() {
    let mut markdown = Markdown::default();
    markdown.push("text\n\n```sh\nls\nec");
    assert_eq!(shown(&mut markdown, 20), ["text", "", "  ls", "  ec"]);
    markdown.push("ho\n");
    assert_eq!(shown(&mut markdown, 20), ["text", "", "  ls", "  echo"]);
    assert!(markdown.take_wanted().is_empty());
    markdown.push("```\nend");
    assert_eq!(shown(&mut markdown, 20), ["text", "", "  ls", "  echo", "", "end"]);
    assert_eq!(markdown.take_wanted().len(), 1);
    assert!(markdown.take_wanted().is_empty());
}

#[test]
fn deep_nesting_keeps_room_for_text() {
    let text = "> ".repeat(200) + "deep";
    let lines = lay(&text, 12);
    assert!(lines.iter().all(|line| crate::safe::text_width(line) <= 12), "{lines:?}");
    assert!(lines.concat().contains("deep"));
}

#[test]
fn a_list_without_end_is_cut_and_stays_cheap() {
    let mut pieces = Markdown::default();
    let mut text = String::new();
    for number in 1..4_000 {
        let line = format!("{number}. item\n   more of it\n");
        pieces.push(&line);
        text.push_str(&line);
    }
    let lines = shown(&mut pieces, 40);
    assert!(
        pieces.text.len() - pieces.tail < OPEN_LIMIT,
        "{} bytes are open",
        pieces.text.len() - pieces.tail
    );
    let items: Vec<&String> = lines.iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(items.len(), 3_999);
    assert_eq!(items[3_998], "3999. item more of it");
    let mut at_once = Markdown::default();
    at_once.push(&text);
    assert_eq!(shown(&mut at_once, 40), lines);
}

#[test]
fn blocks_longer_than_the_first_window_are_found_whole() {
    let long = "word ".repeat(2_000);
    let lines = lay(&format!("{long}\n\nend\n"), 100);
    assert_eq!(lines.last().map(String::as_str), Some("end"));
    assert_eq!(lines.iter().filter(|line| line.is_empty()).count(), 1);
}

const PIECES: &[&str] = &[
    "word",
    " ",
    "\n",
    "\n\n",
    "# ",
    "- ",
    "  - ",
    "1. ",
    "> ",
    "```\n",
    "```rs\n",
    "~~~\n",
    "| a | b |\n",
    "|---|---|\n",
    "    code\n",
    "---\n",
    "===\n",
    "*",
    "**",
    "`",
    "[x](u)",
    "[r]: u\n",
    "<div>\n",
    "</div>\n",
    "<!-- ",
    "-->",
    "\t",
    "你好",
    "\\",
    "&amp;",
];

fn document() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn pieces_lay_out_as_the_whole(text in document(), cuts in prop::collection::vec(0usize..200, 0..12), width in 6usize..40) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut.min(text.len()))).collect();
        cuts.push(text.len());
        cuts.sort_unstable();
        let mut pieces = Markdown::default();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&text[from..cut]);
            pieces.layout(width, &UNICODE);
            from = cut;
        }
        let mut at_once = Markdown::default();
        at_once.push(&text);
        prop_assert_eq!(shown(&mut pieces, width), shown(&mut at_once, width));
        pieces.finish(&text);
        let whole = lay(&text, width);
        prop_assert_eq!(shown(&mut pieces, width), whole.clone());
        for line in &whole {
            prop_assert!(crate::safe::text_width(line) <= width);
        }
        // A change of width and back changes nothing.
        shown(&mut pieces, width + 7);
        prop_assert_eq!(shown(&mut pieces, width), whole);
    }
}
