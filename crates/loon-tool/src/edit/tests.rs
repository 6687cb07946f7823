//! Tests of `edit` on real files.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::fixture::{Fixture, run, run_under};
use crate::workspace::ContentHash;

fn edit(fixture: &Fixture, arguments: Value) -> ToolOutput {
    run(&Edit::new(&fixture.workspace), arguments)
}

fn done(fixture: &Fixture, arguments: Value) -> String {
    let output = edit(fixture, arguments);
    assert!(!output.result.is_error, "{}", output.result.text);
    output.result.text
}

fn refused(fixture: &Fixture, arguments: Value) -> String {
    let before = fixture.names();
    let output = edit(fixture, arguments);
    assert!(output.result.is_error, "{}", output.result.text);
    assert_eq!(output.changes, []);
    assert_eq!(fixture.names(), before);
    output.result.text
}

#[test]
fn the_result_tells_what_changed_and_where() {
    let fixture = Fixture::new();
    fixture.put_seen("src/a.rs", "one\ntwo\nthree\nfour\n");
    let output = edit(&fixture, json!({"path": "src/a.rs", "old": "two\n", "new": "2\n2b\n"}));
    assert_eq!(
        output.result.text,
        "Edited src/a.rs: 1 replacement, +2 -1 lines.\n1\tone\n2\t2\n3\t2b\n4\tthree"
    );
    assert_eq!(output.summary, "+2 -1");
    let [change] = output.changes.as_slice() else { panic!("{:?}", output.changes) };
    assert_eq!(change.path, "src/a.rs");
    let before = ContentHash::of(b"one\ntwo\nthree\nfour\n").to_string();
    assert_eq!(fixture.snapshots(), std::slice::from_ref(&before));
    assert_eq!(change.before, Some(before));
    assert_eq!(change.after, Some(ContentHash::of(b"one\n2\n2b\nthree\nfour\n").to_string()));
    assert_eq!((change.added, change.removed), (2, 1));
    assert_eq!(
        change.diff,
        "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,4 +1,5 @@\n one\n-two\n+2\n+2b\n three\n four\n"
    );
}

#[test]
fn one_exact_hit_is_unique_whatever_looks_alike() {
    let fixture = Fixture::new();
    let rest = "name = \u{201c}on\u{201d}\n\tname = \"on\" # deeper\n";
    fixture.put_seen("a", format!("name = \"on\"\n{rest}"));
    done(&fixture, json!({"path": "a", "old": "name = \"on\"\n", "new": "name = \"off\"\n"}));
    assert_eq!(fixture.text("a"), format!("name = \"off\"\n{rest}"));
}

#[test]
fn byte_order_mark_and_line_endings_stay_over_several_edits() {
    let fixture = Fixture::new();
    fixture.put_seen("a.ini", "\u{feff}title = \"na\u{ef}ve\"\r\ncount = 1\r\n");
    done(
        &fixture,
        json!({"path": "a.ini", "old": "title = \"na\u{ef}ve\"", "new": "title = \"\u{fc}\""}),
    );
    done(&fixture, json!({"path": "a.ini", "old": "count = 1\n", "new": "count = 2\nmore = 3\n"}));
    assert_eq!(fixture.text("a.ini"), "\u{feff}title = \"\u{fc}\"\r\ncount = 2\r\nmore = 3\r\n");
    // A mark in the model's own text is not doubled.
    done(&fixture, json!({"path": "a.ini", "old": "\u{feff}title", "new": "\u{feff}name"}));
    assert!(fixture.text("a.ini").starts_with("\u{feff}name"));
}

#[test]
fn line_endings_of_a_mixed_file_stay_line_by_line() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "1\r\n2\n3\r\n4\n");
    let args = json!({"path": "a", "old": "1\n2\n3\n4\n", "new": "1\nzwei\nzwei b\n3\nvier\n"});
    done(&fixture, args);
    assert_eq!(fixture.text("a"), "1\r\nzwei\nzwei b\n3\r\nvier\n");
}

#[test]
fn carriage_returns_are_written_where_the_file_has_none_and_they_are_asked_for() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "one\ntwo\n");
    done(&fixture, json!({"path": "a", "old": "one\n", "new": "one\r\n"}));
    assert_eq!(fixture.text("a"), "one\r\ntwo\n");
}

#[test]
fn composed_text_finds_decomposed_text_and_changes_only_its_line() {
    let fixture = Fixture::new();
    fixture.put_seen("n", "u\u{308}ber: ja\nandere: u\u{308}\n");
    let text =
        done(&fixture, json!({"path": "n", "old": "\u{fc}ber: ja", "new": "\u{fc}ber: nein"}));
    assert_eq!(fixture.text("n"), "\u{fc}ber: nein\nandere: u\u{308}\n");
    assert!(text.contains("differs from `old` in Unicode normalisation"), "{text}");
}

#[test]
fn lines_that_only_serve_as_context_keep_their_own_form() {
    let fixture = Fixture::new();
    fixture.put_seen("n", "u\u{308}ber  \nja\n");
    done(&fixture, json!({"path": "n", "old": "\u{fc}ber\nja", "new": "\u{fc}ber\nnein"}));
    assert_eq!(fixture.text("n"), "u\u{308}ber  \nnein\n");
}

#[test]
fn new_text_is_taken_literally() {
    let odd = r"$& $1 $$ $` $' ${HOME} \1 \n %s \\ $(id) ";
    for replace_all in [false, true] {
        let fixture = Fixture::new();
        fixture.put_seen("t", "go\nstop\n");
        done(&fixture, json!({"path": "t", "old": "go", "new": odd, "replace_all": replace_all}));
        assert_eq!(fixture.text("t"), format!("{odd}\nstop\n"));
    }
}

#[test]
fn a_tab_is_no_blanks() {
    let fixture = Fixture::new();
    fixture.put_seen("Makefile", "all:\n\tcc x\n\t  y\n");
    done(&fixture, json!({"path": "Makefile", "old": "\tcc x", "new": "\tcc z"}));
    let text = refused(&fixture, json!({"path": "Makefile", "old": "        cc z", "new": "x"}));
    assert!(text.contains("Line 2 differs only in tab against blanks"), "{text}");
    assert_eq!(fixture.text("Makefile"), "all:\n\tcc z\n\t  y\n");
}

#[test]
fn what_was_not_read_is_not_edited() {
    let fixture = Fixture::new();
    fixture.put("a", "x\n");
    let text = refused(&fixture, json!({"path": "a", "old": "x", "new": "y"}));
    assert!(text.contains("a was not read in this session. Read it first"), "{text}");
    assert_eq!(fixture.text("a"), "x\n");
}

#[test]
fn what_changed_on_disk_is_not_edited_and_the_change_is_shown() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "one\ntwo\nthree\n");
    fixture.put("a", "one\nTWO\nthree\n");
    let text = refused(&fixture, json!({"path": "a", "old": "one", "new": "1"}));
    assert!(text.contains("a changed on disk since it was read"), "{text}");
    assert!(text.contains("2\tTWO\n"), "{text}");
    assert_eq!(fixture.text("a"), "one\nTWO\nthree\n");
}

#[test]
fn several_hits_are_named_by_line_or_replaced_together() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "x x\ny\nx\n");
    let text = refused(&fixture, json!({"path": "a", "old": "x", "new": "z"}));
    assert!(text.contains("3 times, at lines 1, 1 and 3"), "{text}");
    let text = done(&fixture, json!({"path": "a", "old": "x", "new": "zx", "replace_all": true}));
    assert!(text.contains("3 replacements"), "{text}");
    assert_eq!(fixture.text("a"), "zx zx\ny\nzx\n");
}

#[test]
fn overlapping_hits_are_ambiguous_and_replaced_apart() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "ababa\n");
    refused(&fixture, json!({"path": "a", "old": "aba", "new": "-"}));
    done(&fixture, json!({"path": "a", "old": "aba", "new": "-", "replace_all": true}));
    assert_eq!(fixture.text("a"), "-ba\n");
}

#[test]
fn tolerant_hits_must_be_unique_even_for_replacing_all() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "say \u{201c}hi\u{201d}\nsay \u{201c}hi\u{201d}\n");
    let args = json!({"path": "a", "old": "say \"hi\"", "new": "x", "replace_all": true});
    let text = refused(&fixture, args);
    assert!(text.contains("lines 1 and 2 differ from it only in typographic quotes"), "{text}");
}

#[test]
fn a_miss_shows_the_nearest_text_and_where_it_differs() {
    let fixture = Fixture::new();
    fixture.put_seen("a.rs", "fn a() {}\nfn main() {\n    let total = 1;\n    done(total)\n}\n");
    let old = "fn main() {\n    let total = 2;\n    done(total)\n";
    let text = refused(&fixture, json!({"path": "a.rs", "old": old, "new": "x"}));
    assert!(text.starts_with("Nothing was written. a.rs: `old` was not found."), "{text}");
    assert!(text.contains("2\tfn main() {\n3\t    let total = 1;\n"), "{text}");
    assert!(text.contains("It first differs in line 3, column 17"), "{text}");
}

#[test]
fn a_final_newline_that_the_file_lacks_is_not_asked_for() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "one\ntwo");
    done(&fixture, json!({"path": "a", "old": "two\n", "new": "2\nthree\n"}));
    assert_eq!(fixture.text("a"), "one\n2\nthree");
    refused(&fixture, json!({"path": "a", "old": "2\n\n", "new": "x\n"}));
    refused(&fixture, json!({"path": "a", "old": "thre\n", "new": "x\n"}));
}

#[test]
fn line_numbers_in_the_text_are_recognised() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "one\ntwo\n");
    let text = refused(&fixture, json!({"path": "a", "old": "1\tone\n2\ttwo\n", "new": "x"}));
    assert!(text.contains("Its lines begin with line numbers"), "{text}");
}

#[test]
fn a_name_that_reads_the_same_is_the_same_file() {
    let fixture = Fixture::new();
    fixture.put_seen("re\u{301}sume\u{301}.md", "one\n");
    done(&fixture, json!({"path": "r\u{e9}sum\u{e9}.md", "old": "one", "new": "1"}));
    assert_eq!(fixture.text("re\u{301}sume\u{301}.md"), "1\n");
    assert_eq!(fixture.names().len(), 1);
}

#[test]
fn useless_edits_are_refused() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "x\n");
    let same = refused(&fixture, json!({"path": "a", "old": "x", "new": "x"}));
    assert!(same.contains("are the same"), "{same}");
    let empty = refused(&fixture, json!({"path": "a", "old": "", "new": "y"}));
    assert!(empty.contains("`old` is empty, but the file exists"), "{empty}");
    let missing = refused(&fixture, json!({"path": "b", "old": "x", "new": "y"}));
    assert!(missing.contains("b does not exist"), "{missing}");
    let nothing = refused(&fixture, json!({"path": "a"}));
    assert!(nothing.contains("Give either old and new"), "{nothing}");
    let back = json!({"path": "a", "edits": [{"old": "x", "new": "y"}, {"old": "y", "new": "x"}]});
    assert!(refused(&fixture, back).contains("undo each other"));
}

#[test]
fn an_empty_old_makes_a_missing_file() {
    let fixture = Fixture::new();
    let text = done(&fixture, json!({"path": "deep/new", "old": "", "new": "text\n"}));
    assert_eq!(text, "Created deep/new, 1 lines.");
    assert_eq!(fixture.text("deep/new"), "text\n");
    // What this session wrote counts as read.
    done(&fixture, json!({"path": "deep/new", "old": "text", "new": "more"}));
    assert_eq!(fixture.text("deep/new"), "more\n");
}

#[test]
fn several_edits_are_made_in_order_or_not_at_all() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "one\ntwo\n");
    let edits = json!([{"old": "one", "new": "two"}, {"old": "two\ntwo", "new": "four"}]);
    let both = done(&fixture, json!({"path": "a", "edits": edits}));
    assert!(both.contains("2 replacements"), "{both}");
    assert_eq!(fixture.text("a"), "four\n");
    let edits = json!([{"old": "four", "new": "4"}, {"old": "five", "new": "5"}]);
    let text = refused(&fixture, json!({"path": "a", "edits": edits}));
    assert!(text.contains("edit 2 of 2: `old` was not found"), "{text}");
    assert_eq!(fixture.text("a"), "four\n");
}

#[test]
fn uniform_indentation_is_followed() {
    let fixture = Fixture::new();
    fixture.put_seen("a.py", "class A:\n        if x:\n            y()\n\n        z()\n");
    let args = json!({
        "path": "a.py",
        "old": "    if x:\n        y()\n\n    z()\n",
        "new": "    if x:\n        yy()\n\n    zz()\n",
    });
    let text = done(&fixture, args);
    assert!(text.contains("line 2 differs from `old` in indentation"), "{text}");
    assert_eq!(fixture.text("a.py"), "class A:\n        if x:\n            yy()\n\n        zz()\n");
}

#[test]
fn encodings_other_than_utf8_stay() {
    let fixture = Fixture::new();
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    fixture.put_seen("wide", utf16("\u{feff}a \u{1f600}\r\nb\r\n"));
    done(&fixture, json!({"path": "wide", "old": "\u{1f600}\nb", "new": "\u{1f601}\nc\nd"}));
    assert_eq!(fixture.bytes("wide"), utf16("\u{feff}a \u{1f601}\r\nc\r\nd\r\n"));

    fixture.put_seen("latin", b"caf\xe9 one\nth\xe9 two\n");
    done(&fixture, json!({"path": "latin", "old": "th\u{e9} two", "new": "th\u{e9} \u{fc}"}));
    assert_eq!(fixture.bytes("latin"), b"caf\xe9 one\nth\xe9 \xfc\n");
    let text = refused(&fixture, json!({"path": "latin", "old": "one", "new": "\u{8a9e}"}));
    assert!(text.contains("Windows-1252, which has no '\u{8a9e}'"), "{text}");
}

#[test]
fn bytes_that_are_no_text_stay_or_the_edit_is_refused() {
    let fixture = Fixture::new();
    fixture.put_seen("mixed", b"\xc3\xa9 \xff and \xfe end\nnext\n");
    done(&fixture, json!({"path": "mixed", "old": "next", "new": "last"}));
    let args = json!({"path": "mixed", "old": "\u{fffd} and \u{fffd} end", "new": "<\u{fffd} or \u{fffd}>"});
    done(&fixture, args);
    assert_eq!(fixture.bytes("mixed"), b"\xc3\xa9 <\xff or \xfe>\nlast\n");
    let text = refused(
        &fixture,
        json!({"path": "mixed", "old": "\u{fffd} or \u{fffd}", "new": "\u{fffd}"}),
    );
    assert!(text.contains("line 1 holds bytes that are no UTF-8"), "{text}");
    done(&fixture, json!({"path": "mixed", "old": "<\u{fffd} or \u{fffd}>", "new": "none"}));
    assert_eq!(fixture.bytes("mixed"), b"\xc3\xa9 none\nlast\n");
}

#[test]
fn mode_and_link_stay_and_the_target_changes() {
    let fixture = Fixture::new();
    fixture.put_seen("real.sh", "echo 1\n");
    fs::set_permissions(fixture.path("real.sh"), fs::Permissions::from_mode(0o4755)).unwrap();
    std::os::unix::fs::symlink("real.sh", fixture.path("link")).unwrap();
    let output = edit(&fixture, json!({"path": "link", "old": "1", "new": "2"}));
    assert_eq!(output.changes[0].path, "real.sh");
    assert!(fixture.path("link").is_symlink());
    assert_eq!(fixture.text("real.sh"), "echo 2\n");
    assert_eq!(fs::metadata(fixture.path("real.sh")).unwrap().mode() & 0o7777, 0o4755);
}

#[test]
fn read_only_files_folders_and_dangling_links_are_named_as_such() {
    let fixture = Fixture::new();
    fixture.put_seen("ro", "x\n");
    fs::set_permissions(fixture.path("ro"), fs::Permissions::from_mode(0o444)).unwrap();
    let text = refused(&fixture, json!({"path": "ro", "old": "x", "new": "y"}));
    assert!(text.contains("ro is read-only"), "{text}");
    fs::create_dir(fixture.path("folder")).unwrap();
    let text = refused(&fixture, json!({"path": "folder", "old": "x", "new": "y"}));
    assert!(text.contains("folder is a folder, not a file"), "{text}");
    std::os::unix::fs::symlink("nowhere", fixture.path("dangling")).unwrap();
    let text = refused(&fixture, json!({"path": "dangling", "old": "x", "new": "y"}));
    assert!(text.contains("dangling is a link to nowhere, which does not exist"), "{text}");
}

#[test]
fn a_cancelled_call_changes_nothing() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "x\n");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let tool = Edit::new(&fixture.workspace);
    let output = run_under(&tool, json!({"path": "a", "old": "x", "new": "y"}), &cancel);
    assert!(output.result.is_error);
    assert_eq!((fixture.text("a"), fixture.names()), ("x\n".to_owned(), vec!["a".to_owned()]));
}

#[test]
fn a_preview_shows_the_diff_and_changes_nothing() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "x\n");
    let tool = Edit::new(&fixture.workspace);
    let args = serde_json::from_value(json!({"path": "a", "old": "x", "new": "y"})).unwrap();
    let diff = tool.preview(&args);
    assert_eq!(diff.as_deref(), Some("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"));
    assert_eq!(fixture.text("a"), "x\n");
    let path = fixture.path("a");
    assert_eq!(
        tool.subjects(&args).unwrap(),
        [
            Subject::Path { access: PathAccess::Read, path: path.clone() },
            Subject::Path { access: PathAccess::Write, path },
        ]
    );
}
