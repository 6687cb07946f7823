//! Tests of `make_directory`.

use serde_json::json;

use super::*;
use crate::fixture::{Fixture, run};

#[test]
fn folders_are_made_with_those_above_and_an_existing_one_is_fine() {
    let fixture = Fixture::new();
    let tool = MakeDirectory::new(&fixture.workspace);
    let output = run(&tool, json!({"path": "a/b/c"}));
    assert_eq!(output.result.text, "Made a/b/c.");
    assert_eq!(fixture.names(), ["a", "a/b", "a/b/c"]);
    let change = &output.changes[0];
    assert_eq!(
        (change.kind, change.folders, change.path.as_str()),
        (EntryKind::Folder, 2, "a/b/c")
    );
    let again = run(&tool, json!({"path": "a/b/"}));
    assert_eq!(again.result.text, "a/b exists already.");
    assert!(!again.result.is_error && again.changes.is_empty());
}

#[test]
fn a_file_in_the_way_is_named() {
    let fixture = Fixture::new();
    fixture.put("a", "x");
    let tool = MakeDirectory::new(&fixture.workspace);
    let output = run(&tool, json!({"path": "a"}));
    assert_eq!(output.result.text, "Nothing was written. a exists already and is no folder.");
    let below = run(&tool, json!({"path": "a/b/c"}));
    assert!(below.result.is_error);
    assert!(below.result.text.contains("a part of its path is a file"), "{}", below.result.text);
    assert_eq!((fixture.names(), fixture.text("a")), (vec!["a".to_owned()], "x".to_owned()));
}
