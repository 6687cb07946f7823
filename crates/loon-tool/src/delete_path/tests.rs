//! Tests of `delete_path`.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::*;
use crate::fixture::{Fixture, run};

fn delete(fixture: &Fixture, path: &str, recursive: bool) -> ToolOutput {
    run(&DeletePath::new(&fixture.workspace), json!({"path": path, "recursive": recursive}))
}

#[test]
fn a_file_goes_to_the_trash() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "1\n");
    let output = delete(&fixture, "a", false);
    assert_eq!(output.result.text, "Deleted a, a file, 2 bytes. undo brings it back.");
    assert_eq!(fixture.names(), [""; 0]);
    let kept = output.changes[0].kept.clone().unwrap();
    assert_eq!(std::fs::read(fixture.workspace.trash().join(kept)).unwrap(), b"1\n");
    assert!(fixture.workspace.read_state(&fixture.path("a")).is_none());
}

#[test]
fn a_folder_goes_whole_if_that_is_meant() {
    let fixture = Fixture::new();
    fixture.put("d/e/a", "1\n");
    let output = delete(&fixture, "d", false);
    assert!(output.result.text.contains("d is a folder with 2 entries, 2 bytes. Set recursive"));
    assert_eq!(fixture.names(), ["d", "d/e", "d/e/a"]);
    assert!(!delete(&fixture, "d", true).result.is_error);
    std::fs::create_dir(fixture.path("empty")).unwrap();
    assert!(!delete(&fixture, "empty", false).result.is_error);
    assert_eq!(fixture.names(), [""; 0]);
}

#[test]
fn of_a_link_only_the_link_goes() {
    let fixture = Fixture::new();
    fixture.put("d/a", "1\n");
    symlink("d", fixture.path("link")).unwrap();
    symlink("nowhere", fixture.path("dangling")).unwrap();
    assert_eq!(delete(&fixture, "link", true).changes[0].kind, EntryKind::Link);
    assert_eq!(delete(&fixture, "dangling", false).changes[0].kind, EntryKind::Link);
    assert_eq!(fixture.names(), ["d", "d/a"]);
}

#[test]
fn the_root_and_its_repository_stay() {
    let fixture = Fixture::new();
    fixture.put(".git/HEAD", "ref");
    fixture.put("d/.git/HEAD", "ref");
    symlink(".", fixture.path("d/here")).unwrap();
    for path in [".", "..", "/", "d/..", ".git", "./d/../.git/"] {
        let output = delete(&fixture, path, true);
        assert!(output.result.is_error, "{path}: {}", output.result.text);
        assert!(
            output.result.text.contains("neither be deleted nor moved"),
            "{}",
            output.result.text
        );
    }
    assert_eq!(fixture.names(), [".git", ".git/HEAD", "d", "d/.git", "d/.git/HEAD", "d/here"]);
    assert!(!delete(&fixture, "d/.git", true).result.is_error);
}

#[test]
fn the_preview_shows_the_lines() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n");
    let tool = DeletePath::new(&fixture.workspace);
    let preview = tool.preview(&Args { path: "a".into(), recursive: false }).unwrap();
    assert_eq!(
        preview,
        "a: deleted (a file, 2 bytes)\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
    );
}
