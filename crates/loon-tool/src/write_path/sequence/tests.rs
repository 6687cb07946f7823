//! Tests of changes that build on each other.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;
use crate::fixture::{Fixture, call_anywhere};

fn intents(actions: Vec<Action>) -> Vec<Intent> {
    actions.into_iter().map(|action| Intent { action, change: None }).collect()
}

#[test]
fn a_failure_takes_back_all_that_was_done() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n");
    fixture.put("d/b", "2\n");
    fixture.put("in the way", "");
    std::fs::create_dir(fixture.path("empty")).unwrap();
    let path = |name: &str| fixture.path(name);
    let before = fixture.names();
    let bytes = |text: &str| text.as_bytes().to_vec();
    let actions = vec![
        Action::Write {
            path: path("a"),
            base: Some(bytes("1\n")),
            content: bytes("3\n"),
            mode: None,
        },
        Action::Write {
            path: path("x/y/new"),
            base: None,
            content: bytes("4\n"),
            mode: Some(0o640),
        },
        Action::Folder { path: path("z/made") },
        Action::RemoveEmpty { path: path("empty") },
        Action::Move { from: path("d"), to: path("moved/here") },
        Action::Copy { from: path("moved/here"), to: path("copy") },
        Action::Move { from: path("a"), to: path("in the way") },
    ];
    let error = perform(&fixture.workspace, &call_anywhere(), &intents(actions)).unwrap_err();
    assert_eq!(error.to_string(), "in the way exists already and is not overwritten.");
    assert_eq!(fixture.names(), before);
    assert_eq!((fixture.text("a"), fixture.text("d/b")), ("1\n".into(), "2\n".into()));
}

#[test]
fn a_file_that_changed_just_now_is_not_replaced() {
    let fixture = Fixture::new();
    fixture.put("a", "mine\n");
    let (path, base, content) = (fixture.path("a"), Some(b"1\n".to_vec()), b"2\n".to_vec());
    let actions = vec![Action::Write { path, base, content, mode: None }];
    let error = perform(&fixture.workspace, &call_anywhere(), &intents(actions)).unwrap_err();
    assert!(matches!(error, WriteError::Changed { .. }), "{error}");
    assert_eq!(error.to_string(), "a changed on disk since it was read. Read it again.");
    assert_eq!(fixture.text("a"), "mine\n");
}

#[test]
fn what_moves_to_another_file_system_is_the_same_there() {
    let fixture = Fixture::new();
    fixture.put("d/e/tool", b"\xff\0");
    symlink("e/tool", fixture.path("d/link")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o751);
    std::fs::set_permissions(fixture.path("d/e/tool"), mode).unwrap();
    let modified = |name: &str| {
        let metadata = std::fs::metadata(fixture.path(name)).unwrap();
        (metadata.mtime(), metadata.mtime_nsec(), metadata.mode())
    };
    let before = modified("d/e/tool");
    let (from, to) = (fixture.path("d"), fixture.path("there"));
    let (source, target) = (Anchor::at(&from).unwrap(), Anchor::at(&to).unwrap());
    let sequence = Sequence { workspace: &fixture.workspace, done: Vec::new() };
    sequence.across(&source, &target, &from, &to).unwrap();
    assert_eq!(fixture.names(), ["there", "there/e", "there/e/tool", "there/link"]);
    assert_eq!(fixture.bytes("there/e/tool"), b"\xff\0");
    assert_eq!(modified("there/e/tool"), before);
    assert_eq!(fixture.path("there/link").read_link().unwrap(), PathBuf::from("e/tool"));
}
