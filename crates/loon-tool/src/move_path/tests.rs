//! Tests of `move_path`.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::fixture::{Fixture, run};
use crate::workspace::ContentHash;

fn move_path(fixture: &Fixture, from: &str, to: &str) -> ToolOutput {
    run(&MovePath::new(&fixture.workspace), json!({"from": from, "to": to}))
}

#[test]
fn a_file_goes_with_what_is_known_of_it() {
    let fixture = Fixture::new();
    fixture.put_seen("a", "1\n");
    let output = move_path(&fixture, "a", "new/b");
    assert_eq!(output.result.text, "Moved a to new/b: a file, 2 bytes.");
    assert_eq!(
        (fixture.names(), fixture.text("new/b")),
        (vec!["new".into(), "new/b".into()], "1\n".into())
    );
    let seen = |name: &str| fixture.workspace.read_state(&fixture.path(name)).map(|seen| seen.hash);
    assert_eq!((seen("a"), seen("new/b")), (None, Some(ContentHash::of(b"1\n"))));
    let change = &output.changes[0];
    assert_eq!(
        (change.from.as_deref(), change.path.as_str(), change.folders),
        (Some("a"), "new/b", 1)
    );
    assert_eq!(change.before, change.after);
}

#[test]
fn a_link_moves_and_its_target_stays() {
    let fixture = Fixture::new();
    fixture.put("d/target", "1");
    symlink("d", fixture.path("link")).unwrap();
    move_path(&fixture, "link", "other");
    assert_eq!(fixture.names(), ["d", "d/target", "other"]);
    assert_eq!(fixture.path("other").read_link().unwrap(), PathBuf::from("d"));
    // What lies below a link is meant where it is.
    move_path(&fixture, "other/target", "t");
    assert_eq!(fixture.names(), ["d", "other", "t"]);
}

#[test]
fn nothing_is_overwritten_and_no_folder_goes_into_itself() {
    let fixture = Fixture::new();
    fixture.put("a", "1");
    fixture.put("d/b", "2");
    fixture.put(".git/HEAD", "");
    symlink("nowhere", fixture.path("dangling")).unwrap();
    let before = fixture.names();
    let refused = |from: &str, to: &str, why: &str| {
        let output = move_path(&fixture, from, to);
        assert!(
            output.result.is_error && output.result.text.contains(why),
            "{}",
            output.result.text
        );
        assert!(output.changes.is_empty());
    };
    refused("a", "d/b", "d/b exists already and is not overwritten");
    refused("a", "dangling", "dangling exists already");
    refused("a", "d", "d is a folder that exists already. Give the whole new path");
    refused("d", "d/e/f", "d/e/f lies in d");
    refused("a", "./a", "both source and target");
    refused(".", "../elsewhere", "is the workspace root or holds it");
    refused("..", "/elsewhere", "is the workspace root or holds it");
    refused(".git", "git", "is the repository of the workspace");
    refused("missing", "b", "missing does not exist");
    refused("a", "d/b/c", "a part of its path is a file");
    assert_eq!(fixture.names(), before);
}
