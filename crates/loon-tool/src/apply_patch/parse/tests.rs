//! Tests of reading patches.

use proptest::prelude::*;

use super::*;

fn line(kind: LineKind, text: &str) -> HunkLine {
    HunkLine { kind, text: text.to_owned(), no_newline: false, unsigned: false }
}

fn problem(text: &str) -> (usize, String) {
    let error = parse(text).unwrap_err();
    (error.line, error.problem)
}

#[test]
fn an_envelope_is_read_whole() {
    let patch = parse(
        "\n*** Begin Patch\n*** Add File: a b.txt\n+x\n+\n\n*** Update File: c\n*** Move to: d\n\
         @@ class C\n@@ def f():\n ctx\n-old\n+new\n@@ -7,2 +7,2 @@\n-e\n\\ No newline at end of \
         file\n+f\n*** End of File\n\n*** Delete File: g\n*** End Patch\n\n",
    )
    .unwrap();
    let no_newline = HunkLine { no_newline: true, ..line(LineKind::Remove, "e") };
    assert_eq!(
        patch.files,
        [
            FilePatch {
                line: 3,
                path: "a b.txt".into(),
                action: Action::Add { content: "x\n\n".into() },
            },
            FilePatch {
                line: 7,
                path: "c".into(),
                action: Action::Update {
                    move_to: Some("d".into()),
                    hunks: vec![
                        Hunk {
                            line: 9,
                            headers: vec!["class C".into(), "def f():".into()],
                            lines: vec![
                                line(LineKind::Context, "ctx"),
                                line(LineKind::Remove, "old"),
                                line(LineKind::Add, "new"),
                            ],
                            ..Hunk::default()
                        },
                        Hunk {
                            line: 14,
                            start: Some(7),
                            lines: vec![no_newline, line(LineKind::Add, "f")],
                            at_end: true,
                            ..Hunk::default()
                        },
                    ],
                },
            },
            FilePatch { line: 20, path: "g".into(), action: Action::Delete },
        ]
    );
}

#[test]
fn errors_name_the_line() {
    let body = |body: &str| problem(&format!("*** Begin Patch\n{body}"));
    assert_eq!(problem("").0, 1);
    assert_eq!(problem("hello\n*** Begin Patch\n").0, 1);
    assert_eq!(problem("*** Begin Patch\n*** End Patch\n").1, "the patch names no file");
    let (line, cut) = body("*** Add File: a\n+x\n");
    assert_eq!(line, 4);
    assert!(cut.contains("cut off"), "{cut}");
    assert_eq!(body("*** Add File: a\n+x\ny\n*** End Patch").0, 4);
    assert_eq!(body("*** Add File: a\n+x\n\n+y\n*** End Patch").0, 4);
    assert_eq!(body("*** Update File: a\n x\n!y\n*** End Patch").0, 4);
    let nothing = (3, "this change has no lines".to_owned());
    assert_eq!(body("*** Update File: a\n*** End Patch"), nothing);
    assert_eq!(body("*** Update File: a\n@@ f\n@@ g\n*** End Patch"), nothing);
    assert_eq!(body("*** Update File: \n*** End Patch"), (2, "the path is missing".into()));
    assert_eq!(body("*** Rename File: a\n*** End Patch").0, 2);
    assert_eq!(body("*** Delete File: a\n*** End Patch\nmore").0, 4);
    assert_eq!(body("*** Update File: a\n-x\n*** End of File\n-y\n*** End Patch").0, 5);
}

#[test]
fn blank_lines_between_sections_are_no_change() {
    let patch =
        parse("*** Begin Patch\n*** Update File: a\n-x\n\n*** Delete File: b\n*** End Patch");
    let files = patch.unwrap().files;
    let Action::Update { hunks, .. } = &files[0].action else { panic!("{files:?}") };
    assert_eq!(hunks.len(), 1);
    assert!(hunks[0].lines[1].unsigned);
    assert_eq!(files[1].action, Action::Delete);
}

#[test]
fn removed_dashes_are_not_the_next_file() {
    let patch = parse(
        "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ new comment\n x\n\
         --- a/r\t2026-01-01\n+++ b/r\t2026-01-02\n@@ -1 +1 @@\n-r\n+s\n",
    )
    .unwrap();
    assert_eq!(patch.files.len(), 2);
    assert_eq!(patch.files[1].path, "r");
    let Action::Update { hunks, .. } = &patch.files[0].action else { panic!("{patch:?}") };
    assert_eq!(
        hunks[0].lines,
        [
            line(LineKind::Remove, "-- old comment"),
            line(LineKind::Add, "++ new comment"),
            line(LineKind::Context, "x"),
        ]
    );
    assert_eq!(hunks[0].start, Some(1));
}

#[test]
fn quoted_names_of_git_are_read() {
    let patch = parse("--- \"a/caf\\303\\251 \\\"x\\\"\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    assert_eq!(patch.unwrap().files[0].path, "caf\u{e9} \"x\"");
    assert!(problem("--- \"a/\\9\"\n+++ b/x\n").1.contains("not well formed"));
}

#[test]
fn what_cannot_be_applied_is_refused() {
    let binary = "diff --git a/x b/x\nindex 1..2\nGIT binary patch\n";
    assert_eq!(problem(binary), (3, "binary changes cannot be applied".into()));
    let mode = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n";
    assert!(problem(mode).1.contains("modes are not changed"));
    let names = problem("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n");
    assert_eq!(names, (1, "the two sides name different files, x and y".into()));
    assert!(problem("--- a/x\n+++ b/x\n").1.contains("no `@@` part"));
    assert!(problem("--- a/x\n@@ -1 +1 @@\n").1.contains("expected a `+++` line"));
}

/// Text with the words that mean something to the parser, often enough at the start of a line.
fn patchish() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("*** Begin Patch"),
        Just("*** End Patch"),
        Just("*** Add File: a"),
        Just("*** Update File: b"),
        Just("*** Delete File: c"),
        Just("*** Move to: d"),
        Just("*** End of File"),
        Just("@@"),
        Just("@@ -1,2 +3 @@"),
        Just("--- a/x"),
        Just("+++ b/x"),
        Just("--- /dev/null"),
        Just("diff --git a/x b/x"),
        Just("rename from x"),
        Just("\\ No"),
        Just("+"),
        Just("-"),
        Just(" "),
        Just(""),
        Just("\r"),
        Just("\u{e9}"),
        Just("x"),
    ];
    prop::collection::vec(word, 0..24).prop_map(|words| words.join("\n"))
}

proptest! {
    #[test]
    fn any_text_is_a_patch_or_an_error(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn any_mix_of_marks_is_a_patch_or_an_error(text in patchish()) {
        if let Err(error) = parse(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.split('\n').count() + 1);
        }
        let _ = parse(&format!("*** Begin Patch\n{text}\n*** End Patch"));
    }
}
