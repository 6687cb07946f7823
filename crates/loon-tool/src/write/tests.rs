//! Tests of `write` on real files.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::{Value, json};

use super::*;
use crate::fixture::{Fixture, run};

fn write(fixture: &Fixture, arguments: Value) -> ToolOutput {
    run(&Write::new(&fixture.workspace), arguments)
}

#[test]
fn a_new_file_gets_its_folders_and_the_usual_mode() {
    let fixture = Fixture::new();
    fixture.put("usual", "");
    let output = write(&fixture, json!({"path": "a/b/c.txt", "content": "one\ntwo"}));
    assert_eq!(output.result.text, "Created a/b/c.txt, 2 lines.");
    assert_eq!(fixture.text("a/b/c.txt"), "one\ntwo");
    assert_eq!(fixture.names(), ["a", "a/b", "a/b/c.txt", "usual"]);
    let mode = |name| fs::metadata(fixture.path(name)).unwrap().mode();
    assert_eq!(mode("a/b/c.txt"), mode("usual"));
    assert_eq!(output.changes[0].before, None);
    assert!(output.changes[0].diff.starts_with("--- /dev/null\n+++ b/a/b/c.txt\n"));
}

#[test]
fn an_unread_file_is_not_overwritten() {
    let fixture = Fixture::new();
    fixture.put("a", "keep\n");
    let output = write(&fixture, json!({"path": "a", "content": "new\n"}));
    assert!(output.result.is_error);
    assert!(output.result.text.contains("a was not read in this session"));
    assert_eq!(fixture.text("a"), "keep\n");
    assert_eq!(fixture.snapshots(), [""; 0]);
}

#[test]
fn a_replaced_file_keeps_mark_endings_and_mode() {
    let fixture = Fixture::new();
    fixture.put_seen("a.ini", "\u{feff}a = 1\r\nb = 2\r\n");
    fs::set_permissions(fixture.path("a.ini"), fs::Permissions::from_mode(0o640)).unwrap();
    let output = write(&fixture, json!({"path": "a.ini", "content": "c = 3\nd = 4\n"}));
    assert_eq!(fixture.text("a.ini"), "\u{feff}c = 3\r\nd = 4\r\n");
    assert_eq!(fs::metadata(fixture.path("a.ini")).unwrap().mode() & 0o777, 0o640);
    assert_eq!(
        output.result.text,
        "Replaced a.ini, +2 -2 lines. Kept the file's byte order mark, CRLF line endings."
    );
    // With a mark of its own there is still one.
    write(&fixture, json!({"path": "a.ini", "content": "\u{feff}e\r\n"}));
    assert_eq!(fixture.text("a.ini"), "\u{feff}e\r\n");
}

#[test]
fn the_same_content_is_not_written_again() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "x\r\n");
    let output = write(&fixture, json!({"path": "a", "content": "x\n"}));
    assert!(!output.result.is_error);
    assert!(output.result.text.contains("exactly this content already"), "{}", output.result.text);
    assert_eq!(output.changes, []);
}

#[test]
fn text_that_the_old_encoding_lacks_makes_the_file_utf8() {
    let fixture = Fixture::new();
    fixture.put_seen("a", b"caf\xe9\n");
    let kept = write(&fixture, json!({"path": "a", "content": "th\u{e9}\n"}));
    assert_eq!(fixture.bytes("a"), b"th\xe9\n");
    assert!(kept.result.text.contains("Kept the file's Windows-1252"), "{}", kept.result.text);
    let changed = write(&fixture, json!({"path": "a", "content": "\u{8a9e}\n"}));
    assert_eq!(fixture.text("a"), "\u{8a9e}\n");
    assert!(changed.result.text.contains("The file is UTF-8 now"), "{}", changed.result.text);
}

#[test]
fn a_folder_or_a_file_in_the_way_is_named() {
    let fixture = Fixture::new();
    fixture.put("file", "x");
    fs::create_dir(fixture.path("folder")).unwrap();
    let folder = write(&fixture, json!({"path": "folder", "content": ""}));
    assert!(folder.result.text.contains("folder is a folder, not a file"));
    let below = write(&fixture, json!({"path": "file/new", "content": ""}));
    assert!(below.result.text.contains("a part of its path is a file"), "{}", below.result.text);
    assert_eq!(fixture.names(), ["file", "folder"]);
}
