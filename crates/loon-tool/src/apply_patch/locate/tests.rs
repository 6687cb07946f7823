//! Tests of finding the places of hunks.

use proptest::prelude::*;

use super::*;
use crate::apply_patch::parse::{Action, parse};
use crate::diff::LineDiff;

fn apply_to(text: &str, body: &str) -> Result<String, Vec<String>> {
    let patch =
        parse(&format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch")).unwrap();
    let Action::Update { hunks, .. } = &patch.files[0].action else { panic!("{patch:?}") };
    let document = Document::decode(text.as_bytes().to_vec());
    let bytes = document.splice(&splices(&document, hunks)?).unwrap();
    Ok(String::from_utf8(bytes).unwrap())
}

fn applied(text: &str, body: &str) -> String {
    apply_to(text, body).unwrap()
}

fn problem(text: &str, body: &str) -> String {
    apply_to(text, body).unwrap_err().join("; ")
}

#[test]
fn headers_narrow_the_place() {
    let text = "class A:\n  def f():\n    x = 1\nclass B:\n  def f():\n    x = 1\n";
    let change = "-    x = 1\n+    x = 2\n";
    let ambiguous = problem(text, change);
    assert!(ambiguous.contains("fits 2 places, at lines 3 and 6"), "{ambiguous}");
    let in_b = "class A:\n  def f():\n    x = 1\nclass B:\n  def f():\n    x = 2\n";
    assert_eq!(applied(text, &format!("@@ class B:\n{change}")), in_b);
    assert_eq!(applied(text, &format!("@@ class B:\n@@ def f():\n{change}")), in_b);
    assert_eq!(applied(text, &format!("@@ -6 +6 @@\n{change}")), in_b);
    // Part of the line is enough, and the first place below an only header counts.
    assert!(
        applied(text, &format!("@@ class A\n{change}"))
            .starts_with("class A:\n  def f():\n    x = 2")
    );
    let unclear = problem(text, &format!("@@ def f():\n{change}"));
    assert!(unclear.contains("fits 2 places"), "{unclear}");
}

#[test]
fn a_header_that_is_not_there_is_an_error_and_so_is_text_above_it_only() {
    let missing = problem("a\nb\n", "@@ nowhere\n-b\n+c\n");
    assert!(missing.contains("names a line that is not in the file: `@@ nowhere`"), "{missing}");
    let above = problem("a\nb\nfn g\nc\n", "@@ fn g\n-b\n+x\n");
    assert!(above.contains("its lines are not in the file after `@@ fn g`"), "{above}");
}

#[test]
fn the_order_of_hunks_tells_places_apart() {
    let text = "x\none\nx\ntwo\n";
    assert_eq!(applied(text, "-one\n+1\n@@\n-x\n+y\n"), "x\n1\ny\ntwo\n");
}

#[test]
fn hunks_may_share_context_but_not_changes() {
    let text = "a\nb\nc\nd\ne\n";
    assert_eq!(applied(text, " a\n-b\n+B\n c\n@@\n c\n-d\n+D\n e\n"), "a\nB\nc\nD\ne\n");
    let overlap = problem(text, "-b\n-c\n+x\n@@\n-c\n-d\n+y\n");
    assert!(overlap.contains("two changes overlap at line 3"), "{overlap}");
}

#[test]
fn the_end_of_file_mark_ties_a_hunk_to_the_end() {
    assert_eq!(applied("x\ny\nx\n", " x\n+z\n*** End of File\n"), "x\ny\nx\nz\n");
    let not_there = problem("x\ny\n", "-x\n+z\n*** End of File\n");
    assert!(not_there.contains("not in the file at the end of the file"), "{not_there}");
}

#[test]
fn added_lines_alone_need_a_place() {
    assert_eq!(applied("a\n", "+b\n*** End of File\n"), "a\nb\n");
    assert_eq!(applied("a", "+b\n*** End of File\n"), "a\nb");
    assert_eq!(applied("", "+b\n"), "b\n");
    assert_eq!(applied("fn f\nx\n", "@@ fn f\n+y\n"), "fn f\ny\nx\n");
    let nowhere = problem("a\n", "+b\n");
    assert!(nowhere.contains("has only added lines"), "{nowhere}");
    let twice = problem("f\nf\n", "@@ f\n+b\n");
    assert!(twice.contains("follows an `@@` line that is there 2 times"), "{twice}");
}

#[test]
fn the_final_newline_changes_only_if_the_patch_says_so() {
    let mark = "\\ No newline at end of file\n";
    assert_eq!(applied("a\nb", "-b\n+c\n"), "a\nc");
    assert_eq!(applied("a\nb", " b\n+c\n"), "a\nb\nc");
    assert_eq!(applied("a\nb", &format!("-b\n{mark}+c\n")), "a\nc\n");
    assert_eq!(applied("a\nb\n", &format!("-b\n+c\n{mark}")), "a\nc");
    assert_eq!(applied("a\nb", "-b\n"), "a\n");
    assert_eq!(applied("a\n", "-a\n"), "");
}

#[test]
fn blank_lines_at_the_end_of_a_hunk_may_mean_nothing() {
    assert_eq!(applied("a\nb\n", "-a\n+A\n\n@@\n-b\n+B\n\n"), "A\nB\n");
    assert_eq!(applied("a\n\nb\n", "-a\n\n+x\n b\n"), "\nx\nb\n");
}

#[test]
fn tolerant_places_must_be_the_only_ones() {
    assert_eq!(applied("say \u{201c}a\u{201d}  \n", "-say \"a\"\n+b\n"), "b\n");
    let twice = problem("\u{201c}a\u{201d}\n\u{201c}a\u{201d}\n", "@@ -2 +2 @@\n-\"a\"\n+b\n");
    assert!(twice.contains("fits 2 places"), "{twice}");
    assert_eq!(applied("\tif x:\n\t\ty\n", "-if x:\n-\ty\n+if z:\n+\ty\n"), "\tif z:\n\t\ty\n");
    let tab = problem("\tx\n", "-    x\n+y\n");
    assert!(tab.contains("Line 1 differs only in tab against blanks"), "{tab}");
}

/// Two texts of few different lines, the second made from the first, as bytes.
fn pair() -> impl Strategy<Value = (String, String)> {
    let line =
        prop::sample::select(vec!["a", "b", "", "  a", "-- x", "++ y", "\u{e9}", "@@", "\\"]);
    let lines = || prop::collection::vec(line.clone(), 0..30);
    (
        lines(),
        lines(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<[bool; 3]>(),
    )
        .prop_map(|(before, new, from, to, [end_a, end_b, crlf])| {
            let (from, to) = (from.index(before.len() + 1), to.index(before.len() + 1));
            let mut after = before.clone();
            after.splice(from.min(to)..from.max(to), new);
            let newline = if crlf { "\r\n" } else { "\n" };
            let text = |lines: &[&str], end: bool| {
                let mut text = lines.join(newline);
                if end && !lines.is_empty() {
                    text.push_str(newline);
                }
                text
            };
            (text(&before, end_a), text(&after, end_b))
        })
}

proptest! {
    #[test]
    fn the_diff_of_two_texts_makes_the_second_from_the_first((before, after) in pair()) {
        let old = Document::decode(before.clone().into_bytes());
        let new = Document::decode(after.clone().into_bytes());
        // A diff does not tell line endings: a text without any cannot get CRLF from it.
        prop_assume!(before.contains('\r') || !after.contains('\r'));
        let diff = LineDiff::between(&old, &new).unified(Some("f"), Some("f"));
        prop_assume!(!diff.is_empty());
        let patch = parse(&diff).unwrap();
        let Action::Update { hunks, .. } = &patch.files[0].action else { panic!("{patch:?}") };
        let splices = splices(&old, hunks);
        prop_assert!(splices.is_ok(), "{splices:?}\n{diff}");
        let made = old.splice(&splices.unwrap()).unwrap();
        prop_assert_eq!(String::from_utf8(made).unwrap(), after);
    }
}

#[test]
fn many_hunks_that_fit_nowhere_are_not_all_looked_for() {
    let told = apply_to("one\n", &"@@\n-two\n+three\n".repeat(1000)).unwrap_err();
    assert_eq!(told.len(), PROBLEMS + 1);
    assert_eq!(told[PROBLEMS], "the changes from line 63 of the patch on were not looked at");
}
