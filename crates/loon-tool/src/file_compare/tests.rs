//! Tests of `file_compare`.

use serde_json::json;

use super::*;
use crate::fixture::{Fixture, run};
use crate::workspace::ContentHash;

fn compared(old: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> String {
    let fixture = Fixture::new();
    fixture.put("a", old);
    fixture.put("b", new);
    let output = run(&FileCompare::new(&fixture.workspace), json!({"old": "a", "new": "b"}));
    assert!(!output.result.is_error, "{}", output.result.text);
    output.result.text
}

#[test]
fn texts_are_compared_line_by_line() {
    assert_eq!(
        compared("one\ntwo\n", "one\n2\n"),
        "--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    );
    let hash = ContentHash::of(b"x\n");
    assert_eq!(compared("x\n", "x\n"), format!("a and b are identical: 2 bytes, sha256 {hash}."));
    assert_eq!(
        compared("x", "x\n"),
        "--- a/a\n+++ b/b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"
    );
}

#[test]
fn line_endings_and_encodings_are_told_and_hide_no_other_difference() {
    assert_eq!(
        compared("a\r\nb\r\n", "a\nb\n"),
        "[line endings: CRLF and LF]\nThe text is the same otherwise."
    );
    assert_eq!(
        compared("a\r\nb\r\n", "a\nc\n"),
        "[line endings: CRLF and LF]\n--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    );
    assert_eq!(
        compared(b"caf\xe9\n", "caf\u{e9}\n"),
        "[encoding: Windows-1252 and UTF-8]\nThe text is the same otherwise."
    );
    assert_eq!(
        compared("\u{FEFF}a\n", "a\n"),
        "[encoding: UTF-8 with byte order mark and UTF-8]\nThe text is the same otherwise."
    );
}

#[test]
fn binary_files_are_told_by_size_and_hash() {
    let text = compared(b"\0abc", b"\0abd\0");
    let (old, new) = (ContentHash::of(b"\0abc"), ContentHash::of(b"\0abd\0"));
    assert_eq!(
        text,
        format!(
            "The files differ from byte 3 on (binary).\na: 4 bytes, binary data, sha256 {old}\nb: 5 \
             bytes, binary data, sha256 {new}\n"
        )
    );
    assert!(compared(b"\0ab", b"\0abc").starts_with("The files differ from byte 3 on"));
}

#[test]
fn files_too_large_for_a_diff_are_still_compared() {
    let mut large = vec![b'x'; usize::try_from(LOADED).unwrap() + 1];
    let old = large.clone();
    large[LOADED as usize] = b'y';
    let text = compared(&old, &large);
    let hashes = [ContentHash::of(&old), ContentHash::of(&large)];
    assert_eq!(
        text,
        format!(
            "The files differ from byte {LOADED} on (too large for a diff).\na: {size} bytes, text, \
             sha256 {}\nb: {size} bytes, text, sha256 {}\n",
            hashes[0],
            hashes[1],
            size = LOADED + 1
        )
    );
}

#[test]
fn what_is_wrong_is_said() {
    let fixture = Fixture::new();
    fixture.put("a", "x");
    let tool = FileCompare::new(&fixture.workspace);
    let text = |old: &str, new: &str| run(&tool, json!({"old": old, "new": new})).result.text;
    assert_eq!(text("a", "./a"), "Both paths are the same file, a.");
    assert_eq!(text("a", "."), ". is a folder, not a file.");
    assert!(text("a", "zz").starts_with("zz does not exist"));
    let args = Args { old: "a".to_owned(), new: "../b".to_owned() };
    assert_eq!(
        tool.subjects(&args).unwrap(),
        ["a", "../b"].map(|path| Subject::Path {
            access: PathAccess::Read,
            path: fixture.workspace.resolve(path)
        })
    );
}
