//! Tests of `copy_path`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::fixture::{Fixture, run};

fn copy(fixture: &Fixture, from: &str, to: &str) -> ToolOutput {
    run(&CopyPath::new(&fixture.workspace), json!({"from": from, "to": to}))
}

#[test]
fn a_folder_is_copied_with_modes_and_links() {
    let fixture = Fixture::new();
    fixture.put("d/e/tool", b"\xff\0");
    symlink("e/tool", fixture.path("d/link")).unwrap();
    symlink("/nowhere", fixture.path("d/e/gone")).unwrap();
    fs::set_permissions(fixture.path("d/e/tool"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(fixture.path("d/e"), fs::Permissions::from_mode(0o710)).unwrap();
    let output = copy(&fixture, "d", "new/d");
    assert_eq!(output.result.text, "Copied d to new/d: a folder with 4 entries, 2 bytes.");
    assert_eq!(fixture.bytes("new/d/e/tool"), b"\xff\0");
    let mode = |name: &str| fs::metadata(fixture.path(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("new/d/e/tool"), mode("new/d/e")), (0o751, 0o710));
    assert_eq!(fixture.path("new/d/link").read_link().unwrap(), PathBuf::from("e/tool"));
    assert_eq!(fixture.path("new/d/e/gone").read_link().unwrap(), PathBuf::from("/nowhere"));
    let change = &output.changes[0];
    assert!(change.copied && change.before.is_none() && change.after.is_some());
}

#[test]
fn what_cannot_be_copied_leaves_nothing() {
    let fixture = Fixture::new();
    fixture.put("d/a", "1");
    fixture.put("b", "2");
    nix::unistd::mkfifo(&fixture.path("d/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let before = fixture.names();
    let refused = |from: &str, to: &str, why: &str| {
        let output = copy(&fixture, from, to);
        assert!(
            output.result.is_error && output.result.text.contains(why),
            "{}",
            output.result.text
        );
    };
    refused("d", "x/y", "d is or holds a device, pipe or socket");
    refused("d/pipe", "x", "d/pipe is a device, pipe or socket");
    refused("d", "d/inner", "a folder cannot go into itself");
    refused("d/a", "b", "b exists already and is not overwritten");
    assert_eq!((fixture.names(), fixture.text("b")), (before, "2".to_owned()));
}

#[test]
fn more_than_is_copied_is_refused() {
    let fixture = Fixture::new();
    fixture.put("d/a", "");
    let large = fs::File::options().write(true).open(fixture.path("d/a")).unwrap();
    large.set_len(crate::write_path::tree::MAX_BYTES + 1).unwrap();
    let output = copy(&fixture, "d", "e");
    let expected = "Nothing was written. d holds more than 100000 entries or 1.0 GiB";
    assert!(output.result.text.starts_with(expected), "{}", output.result.text);
    assert_eq!(fixture.names(), ["d", "d/a"]);
}
