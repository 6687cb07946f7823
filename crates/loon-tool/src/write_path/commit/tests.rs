//! Tests of putting several changes in place together.

use super::*;
use crate::fixture::{Fixture, call_anywhere};

fn commit_all(fixture: &Fixture, planned: &[Planned]) -> Result<Vec<Described>, WriteError> {
    commit(&fixture.workspace, planned, &call_anywhere())
}

fn modify(fixture: &Fixture, name: &str, content: &str) -> Planned {
    Planned::Modify {
        path: fixture.path(name),
        base: fixture.bytes(name),
        content: content.as_bytes().to_vec(),
    }
}

fn create(fixture: &Fixture, name: &str, content: &str) -> Planned {
    Planned::Create { path: fixture.path(name), content: content.as_bytes().to_vec() }
}

#[test]
fn all_changes_are_in_place_and_known() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n");
    fixture.put("gone", "2\n");
    let gone = Planned::Delete { path: fixture.path("gone"), base: fixture.bytes("gone") };
    let planned = [modify(&fixture, "a", "one\n"), create(&fixture, "d/e/new", "x"), gone];
    let described = commit_all(&fixture, &planned).unwrap();
    let done: Vec<_> = described.iter().map(|it| (it.change.path.as_str(), it.done)).collect();
    assert_eq!(done, [("a", "updated"), ("d/e/new", "created"), ("gone", "deleted")]);
    assert_eq!(fixture.names(), ["a", "d", "d/e", "d/e/new"]);
    let seen = |name: &str| fixture.workspace.read_state(&fixture.path(name)).map(|seen| seen.hash);
    assert_eq!(seen("a"), Some(ContentHash::of(b"one\n")));
    assert_eq!(seen("d/e/new"), Some(ContentHash::of(b"x")));
    assert_eq!(seen("gone"), None);
    assert_eq!(fixture.snapshots().len(), 2);
}

#[test]
fn a_failure_half_way_puts_everything_back() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n");
    fixture.put("gone", "2\n");
    fs::set_permissions(fixture.path("gone"), Permissions::from_mode(0o741)).unwrap();
    let planned = [
        modify(&fixture, "a", "one\n"),
        Planned::Move {
            from: fixture.path("gone"),
            to: fixture.path("x/y/moved"),
            base: fixture.bytes("gone"),
            content: b"two\n".to_vec(),
        },
        create(&fixture, "last", "new\n"),
    ];
    let steps: Vec<_> = planned.iter().flat_map(Step::of).collect();
    let mut transaction = Transaction::begin(&fixture.workspace);
    let staged = transaction.stage(&steps).unwrap();
    // Someone makes the last file while the others are being put in place.
    fixture.put("last", "theirs\n");
    let error = transaction.apply(staged, &call_anywhere()).unwrap_err();
    assert_eq!(transaction.done.len(), 3);
    let error = transaction.roll_back(error);

    assert_eq!(error.to_string(), "last exists already and is not overwritten.");
    assert_eq!(fixture.names(), ["a", "gone", "last"]);
    assert_eq!((fixture.text("a"), fixture.text("gone")), ("1\n".into(), "2\n".into()));
    assert_eq!(fixture.text("last"), "theirs\n");
    assert_eq!(fs::metadata(fixture.path("gone")).unwrap().mode() & 0o777, 0o741);
}

#[test]
fn folders_are_only_taken_back_if_nobody_uses_them() {
    let fixture = Fixture::new();
    let planned = [create(&fixture, "d/e/new", "x"), create(&fixture, "b", "x")];
    let steps: Vec<_> = planned.iter().flat_map(Step::of).collect();
    let mut transaction = Transaction::begin(&fixture.workspace);
    let staged = transaction.stage(&steps).unwrap();
    assert_eq!(transaction.folders, [fixture.path("d"), fixture.path("d/e")]);
    fixture.put("d/theirs", "");
    drop(staged);
    transaction.roll_back(WriteError::Cancelled);
    assert_eq!(fixture.names(), ["d", "d/theirs"]);
}

#[test]
fn a_file_that_changed_after_planning_is_not_replaced() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n");
    fixture.put("b", "1\n");
    let planned = [modify(&fixture, "a", "one\n"), modify(&fixture, "b", "one\n")];
    fixture.put("b", "1\n2\n");
    let error = commit_all(&fixture, &planned).unwrap_err();
    assert!(matches!(error, WriteError::Changed { .. }), "{error}");
    assert!(error.to_string().contains("2\t2\n"), "{error}");
    assert_eq!((fixture.text("a"), fixture.text("b")), ("1\n".into(), "1\n2\n".into()));
}

#[test]
fn other_names_of_a_file_keep_the_former_content_and_are_told_of() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n");
    fs::hard_link(fixture.path("a"), fixture.path("b")).unwrap();
    let described = commit_all(&fixture, &[modify(&fixture, "a", "2\n")]).unwrap();
    assert_eq!((fixture.text("a"), fixture.text("b")), ("2\n".into(), "1\n".into()));
    assert!(described[0].note.contains("had 1 other hard links"), "{described:?}");
}

#[test]
fn a_folder_without_the_right_to_write_stops_everything() {
    let fixture = Fixture::new();
    fixture.put("a", "1\n");
    fixture.put("locked/b", "1\n");
    let planned = [modify(&fixture, "a", "2\n"), modify(&fixture, "locked/b", "2\n")];
    fs::set_permissions(fixture.path("locked"), Permissions::from_mode(0o555)).unwrap();
    let outcome = commit_all(&fixture, &planned);
    fs::set_permissions(fixture.path("locked"), Permissions::from_mode(0o755)).unwrap();
    // The superuser may write everywhere.
    let expected = if nix::unistd::geteuid().is_root() {
        assert_eq!(outcome.unwrap().len(), 2);
        "2\n"
    } else {
        let error = outcome.unwrap_err().to_string();
        assert_eq!(error, "No right to write beside locked/b.");
        "1\n"
    };
    assert_eq!((fixture.text("a"), fixture.text("locked/b")), (expected.into(), expected.into()));
    assert_eq!(fixture.names(), ["a", "locked", "locked/b"]);
}

#[test]
fn the_same_file_cannot_change_twice() {
    let fixture = Fixture::new();
    let planned = [create(&fixture, "a", "1"), create(&fixture, "a", "2")];
    let error = commit_all(&fixture, &planned).unwrap_err();
    assert!(matches!(error, WriteError::Twice { .. }), "{error}");
    assert_eq!(fixture.names(), [""; 0]);
}

#[test]
fn answers_of_the_system_have_their_own_errors() {
    let error = |code: i32| {
        WriteError::from_io(io::Error::from_raw_os_error(code), "write", "f".into()).to_string()
    };
    assert_eq!(error(nix::libc::ENOSPC), "No space left on the disk for f.");
    assert_eq!(error(nix::libc::EDQUOT), error(nix::libc::ENOSPC));
    assert!(error(nix::libc::EROFS).starts_with("f is read-only;"));
    assert!(error(nix::libc::EACCES).starts_with("No right to write f."));
    assert!(error(nix::libc::EIO).starts_with("Could not write f: "));
}
