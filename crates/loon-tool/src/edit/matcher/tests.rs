//! Tests of finding text.

use proptest::prelude::*;

use super::*;

fn found(text: &str, wanted: &str) -> Vec<(String, Tier)> {
    find(text, wanted).into_iter().map(|hit| (text[hit.span].to_owned(), hit.tier)).collect()
}

#[test]
fn tiers_are_tried_in_order_and_the_first_with_hits_is_all() {
    let text = "\u{e9} \u{2014} x\ne\u{301} - x  \n";
    assert_eq!(found(text, "\u{e9} \u{2014} x"), [("\u{e9} \u{2014} x".into(), Tier::Exact)]);
    assert_eq!(found(text, "\u{e9} - x"), [("e\u{301} - x".into(), Tier::Normalisation)]);
    assert_eq!(
        found(text, "e\u{301} \u{2014} x"),
        [("\u{e9} \u{2014} x".into(), Tier::Normalisation)]
    );
    let both = find(text, "\u{e9} \u{2013} x");
    assert_eq!(both.len(), 2);
    assert!(both.iter().all(|hit| hit.tier == Tier::Typography));
}

#[test]
fn blanks_at_line_ends_may_differ_but_not_within() {
    assert_eq!(found("a  \nb\t\nc", "a\nb\nc"), [("a  \nb\t\nc".into(), Tier::TrailingBlanks)]);
    assert_eq!(found("xa \nb", "a\nb"), [("a \nb".into(), Tier::TrailingBlanks)]);
    assert_eq!(found("foo\n", "foo  "), [("foo".into(), Tier::TrailingBlanks)]);
    assert_eq!(found("a\nb", "a\nb "), [("a\nb".into(), Tier::TrailingBlanks)]);
    assert_eq!(found("foobar\n", "foo "), []);
    assert_eq!(found("a\nbar", "a\nb "), []);
    assert_eq!(found("a  b\n", "a b\n"), []);
}

#[test]
fn a_match_never_cuts_a_character_from_its_marks() {
    // The mark would be left alone.
    assert_eq!(
        found("re\u{301}s\u{2019}", "re\u{301}s'"),
        [("re\u{301}s\u{2019}".into(), Tier::Typography)]
    );
    assert_eq!(found("e\u{301}\u{2019}", "e'"), []);
}

#[test]
fn indentation_may_differ_by_the_same_everywhere() {
    let hits = find("    if x:\n      y\n\n    z\n", "  if x:\n    y\n\n  z\n");
    assert_eq!(hits.len(), 1);
    assert_eq!((hits[0].span.clone(), &hits[0].indent), (0..25, &Indent::More("  ".into())));
    let less = find("x:\n  y\n", "    x:\n      y\n");
    assert_eq!(less[0].indent, Indent::Less("    ".into()));
    assert_eq!(less[0].indent.apply("    a\n\n      b\n").unwrap(), "a\n\n  b\n");
    assert_eq!(less[0].indent.apply("  a\n"), None);
    assert_eq!(find("  x:\n     y\n", "x:\n    y\n"), []);
    assert_eq!(find("\tx:\n\t\ty\n", "    x:\n        y\n"), []);
    assert_eq!(
        find("    x = 1;\n", "        x = 1"),
        [Hit { span: 0..9, tier: Tier::Indentation, indent: Indent::Less("    ".into()) }]
    );
}

#[test]
fn nothing_and_blanks_alone_are_nowhere() {
    assert_eq!(find("a\n", ""), []);
    assert_eq!(find("a\n \n", "\t\n\t\n"), []);
    assert_eq!(find_lines("a\n", &[]), []);
    assert_eq!(find_lines("", &["a"]), []);
}

#[test]
fn whole_lines_take_their_newline_along() {
    let hits = find_lines("a\nb\na", &["a"]);
    assert_eq!(hits.iter().map(|hit| hit.span.clone()).collect::<Vec<_>>(), [0..2, 4..5]);
    assert_eq!(find_lines("xa\n", &["a"]), []);
    assert_eq!(find_lines("a\n", &["a", ""]), []);
    assert_eq!(find_lines("a\n\n", &["a", ""])[0].span, 0..3);
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        " ",
        "  ",
        "\t",
        "\n",
        "\u{e9}",
        "e\u{301}",
        "\u{201c}",
        "\"",
        "-",
        "\u{2013}",
        "\u{a0}",
        "\u{301}",
        "\u{ac00}",
        "\u{1f600}",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn hits_lie_on_characters_in_order_and_hold_as_many_lines(text in text(), wanted in text()) {
        for hits in [find(&text, &wanted), find_lines(&text, &wanted.split('\n').collect::<Vec<_>>())] {
            let mut last = 0;
            for hit in hits {
                prop_assert!(text.is_char_boundary(hit.span.start));
                prop_assert!(text.is_char_boundary(hit.span.end));
                prop_assert!(hit.span.start >= last && hit.span.end >= hit.span.start);
                last = hit.span.start;
                prop_assert!(hit.indent.apply(&wanted).is_some());
            }
        }
        for hit in find(&text, &wanted) {
            let count = |text: &str| text.matches('\n').count();
            prop_assert_eq!(count(&text[hit.span]), count(&wanted));
        }
    }

    #[test]
    fn every_part_of_a_text_is_found_exactly(text in text(), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
        let chars: Vec<char> = text.chars().collect();
        let (a, b) = (a.index(chars.len() + 1), b.index(chars.len() + 1));
        let part: String = chars[a.min(b)..a.max(b)].iter().collect();
        prop_assume!(!part.is_empty());
        let hits = find(&text, &part);
        prop_assert!(!hits.is_empty());
        for hit in hits {
            prop_assert_eq!(hit.tier, Tier::Exact);
            prop_assert_eq!(&text[hit.span], &part);
        }
    }

    #[test]
    fn explaining_a_miss_never_fails(text in text(), wanted in text()) {
        prop_assert!(!super::super::nearest::explain(&text, &wanted).is_empty());
    }
}
