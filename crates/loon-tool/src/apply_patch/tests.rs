//! Tests of `apply_patch` on real files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::*;
use crate::fixture::{Fixture, run};

fn apply(fixture: &Fixture, patch: &str) -> ToolOutput {
    run(&ApplyPatch::new(&fixture.workspace), json!({"patch": patch}))
}

fn envelope(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

fn done(fixture: &Fixture, body: &str) -> ToolOutput {
    let output = apply(fixture, &envelope(body));
    assert!(!output.result.is_error, "{}", output.result.text);
    output
}

fn refused(fixture: &Fixture, body: &str) -> String {
    let names = fixture.names();
    let output = apply(fixture, &envelope(body));
    assert!(output.result.is_error, "{}", output.result.text);
    assert_eq!(output.changes, []);
    assert_eq!(fixture.names(), names);
    output.result.text
}

#[test]
fn a_patch_with_plain_newlines_keeps_crlf() {
    let fixture = Fixture::new();
    fixture.put("a", "eins\r\nzwei\r\ndrei\r\nvier\r\n");
    let output = done(&fixture, "*** Update File: a\n@@\n eins\n-zwei\n+ZWEI\n+und mehr\n drei\n");
    assert_eq!(fixture.text("a"), "eins\r\nZWEI\r\nund mehr\r\ndrei\r\nvier\r\n");
    assert_eq!((output.changes[0].added, output.changes[0].removed), (2, 1));
    assert_eq!(
        output.result.text,
        "The patch was applied.\na: updated, +2 -1 lines\n1\teins\n2\tZWEI\n3\tund mehr\n4\tdrei"
    );
}

#[test]
fn a_patch_with_crlf_fits_a_file_with_plain_newlines() {
    let fixture = Fixture::new();
    fixture.put("a", "eins\nzwei\n");
    let patch = envelope("*** Update File: a\n@@\n eins\n-zwei\n+ZWEI\n").replace('\n', "\r\n");
    let output = apply(&fixture, &patch);
    assert!(!output.result.is_error, "{}", output.result.text);
    assert_eq!(fixture.text("a"), "eins\nZWEI\n");
}

#[test]
fn all_problems_are_named_and_nothing_changes() {
    let fixture = Fixture::new();
    fixture.put("a", "eins\n");
    fixture.put("there", "keep\n");
    let text = refused(
        &fixture,
        "*** Update File: a\n-eins\n+EINS\n*** Add File: there\n+new\n*** Update File: missing\n-x\n\
         +y\n",
    );
    assert!(text.contains("there exists already"), "{text}");
    assert!(text.contains("missing does not exist"), "{text}");
    assert_eq!((fixture.text("a"), fixture.text("there")), ("eins\n".into(), "keep\n".into()));
}

#[test]
fn a_move_changes_and_never_overwrites() {
    let fixture = Fixture::new();
    fixture.put("old", "src\nmore\n");
    fixture.put("there", "keep\n");
    fs::set_permissions(fixture.path("old"), fs::Permissions::from_mode(0o755)).unwrap();
    let body = |to: &str| format!("*** Update File: old\n*** Move to: {to}\n-src\n+SRC\n more\n");
    let text = refused(&fixture, &body("there"));
    assert!(text.contains("there exists already and is not overwritten"), "{text}");
    assert_eq!(fixture.text("there"), "keep\n");

    let output = done(&fixture, &body("deep/new"));
    assert_eq!(fixture.names(), ["deep", "deep/new", "there"]);
    assert_eq!(fixture.text("deep/new"), "SRC\nmore\n");
    let mode = fs::metadata(fixture.path("deep/new")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let [left, arrived] = output.changes.as_slice() else { panic!("{:?}", output.changes) };
    assert_eq!((left.path.as_str(), left.added, left.removed), ("old", 0, 0));
    assert_eq!((&left.after, &arrived.before), (&None, &None));
    assert_eq!((arrived.path.as_str(), arrived.added, arrived.removed), ("deep/new", 1, 1));
    assert!(left.before.is_some() && arrived.after.is_some());
    assert!(output.result.text.contains("old: moved away"), "{}", output.result.text);
}

#[test]
fn a_move_without_changes_is_a_rename() {
    let fixture = Fixture::new();
    fixture.put("old", b"\xff\x00 bytes\r\n");
    done(&fixture, "*** Update File: old\n*** Move to: new\n");
    assert_eq!(fixture.names(), ["new"]);
    assert_eq!(fixture.bytes("new"), b"\xff\x00 bytes\r\n");
}

#[test]
fn a_read_only_file_stops_the_whole_patch() {
    let fixture = Fixture::new();
    fixture.put("a", "eins\n");
    fixture.put("ro/x", "x\n");
    fs::set_permissions(fixture.path("ro/x"), fs::Permissions::from_mode(0o444)).unwrap();
    let text =
        refused(&fixture, "*** Update File: a\n-eins\n+EINS\n*** Update File: ro/x\n-x\n+y\n");
    assert!(text.contains("ro/x is read-only"), "{text}");
    assert_eq!(fixture.text("a"), "eins\n");
}

#[test]
fn files_are_added_and_deleted() {
    let fixture = Fixture::new();
    fixture.put("gone", "bye\n");
    let output = done(&fixture, "*** Add File: d/new\n+one\n+\n+ two\n\n*** Delete File: gone\n");
    assert_eq!(fixture.names(), ["d", "d/new"]);
    assert_eq!(fixture.text("d/new"), "one\n\n two\n");
    assert_eq!(fixture.snapshots().len(), 1);
    assert_eq!(output.changes[1].diff, "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n");
    assert_eq!(output.summary, "+3 -1");
}

#[test]
fn a_link_is_neither_deleted_nor_moved() {
    let fixture = Fixture::new();
    fixture.put("real", "x\n");
    std::os::unix::fs::symlink("real", fixture.path("link")).unwrap();
    let text = refused(&fixture, "*** Delete File: link\n");
    assert!(text.contains("link is a link to real; name the file itself"), "{text}");
}

#[test]
fn what_was_read_and_changed_since_is_not_patched() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "one\ntwo\n");
    fixture.put("a", "one\ntwo\nthree\n");
    let text = refused(&fixture, "*** Update File: a\n-one\n+1\n");
    assert!(text.contains("a changed on disk since it was read"), "{text}");
}

#[test]
fn replaced_lines_are_literal() {
    let odd = r"a $& $1 $$ $` $' ${X} \1 \n %s \\ b";
    let fixture = Fixture::new();
    fixture.put("t", "go\nend\n");
    done(&fixture, &format!("*** Update File: t\n-go\n+{odd}\n end\n"));
    assert_eq!(fixture.text("t"), format!("{odd}\nend\n"));
}

#[test]
fn one_file_in_two_sections_is_changed_once() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n2\n3\n");
    let output = done(&fixture, "*** Update File: a\n-1\n+one\n*** Update File: a\n-3\n+three\n");
    assert_eq!(fixture.text("a"), "one\n2\nthree\n");
    assert_eq!(output.changes.len(), 1);
    let text = refused(&fixture, "*** Delete File: a\n*** Add File: a\n+x\n");
    assert!(text.contains("a is changed twice in one call"), "{text}");
}

#[test]
fn a_patch_that_changes_nothing_is_refused() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n");
    let text = refused(&fixture, "*** Update File: a\n-1\n+1\n");
    assert!(text.contains("a: the patch changes nothing"), "{text}");
}

#[test]
fn a_unified_diff_with_wrong_numbers_is_found_by_its_text() {
    let fixture = Fixture::new();
    fixture.put("src/a.c", "int a;\nint b;\nint c;\n");
    let patch = "diff --git a/src/a.c b/src/a.c\nindex 1..2 100644\n--- a/src/a.c\n+++ b/src/a.c\n\
                 @@ -40,9 +41,7 @@ int main\n int a;\n-int b;\n+long b;\n int c;\n";
    let output = apply(&fixture, patch);
    assert!(!output.result.is_error, "{}", output.result.text);
    assert_eq!(fixture.text("src/a.c"), "int a;\nlong b;\nint c;\n");
}

#[test]
fn a_unified_diff_makes_renames_and_removes_files() {
    let fixture = Fixture::new();
    fixture.put("from", "x\n");
    fixture.put("gone", "y\n");
    let patch = "diff --git a/from b/to\nsimilarity index 100%\nrename from from\nrename to to\n\
                 diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n\
                 +n\n\\ No newline at end of file\n\
                 diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n\
                 @@ -1 +0,0 @@\n-y\n\
                 diff --git a/empty b/empty\nnew file mode 100644\nindex 0..0\n";
    let output = apply(&fixture, patch);
    assert!(!output.result.is_error, "{}", output.result.text);
    assert_eq!(fixture.names(), ["empty", "new", "to"]);
    assert_eq!(fixture.text("new"), "n");
}

#[test]
fn subjects_name_every_path_the_patch_touches() {
    let fixture = Fixture::new();
    let tool = ApplyPatch::new(&fixture.workspace);
    let patch = envelope("*** Add File: a\n+x\n*** Update File: b\n*** Move to: ../c\n-x\n+y\n");
    let args = serde_json::from_value(json!({"patch": patch})).unwrap();
    let subject =
        |access, path: &str| Subject::Path { access, path: fixture.workspace.resolve(path) };
    assert_eq!(
        tool.subjects(&args).unwrap(),
        [
            subject(PathAccess::Write, "a"),
            subject(PathAccess::Read, "b"),
            subject(PathAccess::Write, "b"),
            subject(PathAccess::Write, "../c"),
        ]
    );
    assert_eq!(tool.title(&args), "a, b");
    let broken = serde_json::from_value(json!({"patch": "nonsense"})).unwrap();
    let problem = tool.subjects(&broken).unwrap_err();
    assert!(problem.starts_with("line 1 of the patch: expected `*** Begin Patch`"), "{problem}");
}
