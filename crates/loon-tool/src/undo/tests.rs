//! Tests of taking changes back, over all tools that change files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use loon_api::FileChange;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::apply_patch::ApplyPatch;
use crate::copy_path::CopyPath;
use crate::delete_path::DeletePath;
use crate::edit::Edit;
use crate::fixture::{Fixture, admit, call, next_key};
use crate::make_directory::MakeDirectory;
use crate::move_path::MovePath;
use crate::write::Write;

/// A fixture with the record that a journal would hold.
struct Session {
    fixture: Fixture,
    changes: Vec<(EffectKey, FileChange)>,
}

impl Session {
    fn new() -> Self {
        Self { fixture: Fixture::new(), changes: Vec::new() }
    }

    fn with<T: NativeTool>(&mut self, tool: &T, arguments: Value) -> ToolOutput {
        let key = next_key();
        let cx = admit(tool, &arguments, key.clone(), &CancellationToken::new());
        let output = call(tool, arguments, &cx);
        let changes = output.changes.iter().cloned();
        self.changes.extend(changes.map(|change| (key.clone(), change)));
        output
    }

    fn run(&mut self, tool: &str, arguments: Value) -> ToolOutput {
        let workspace = Arc::clone(&self.fixture.workspace);
        match tool {
            "write" => {
                if let Some(path) = arguments["path"].as_str()
                    && let Ok(bytes) = fs::read(self.fixture.path(path))
                {
                    workspace.note_read(&workspace.resolve(path), &bytes);
                }
                self.with(&Write::new(&workspace), arguments)
            }
            "edit" => self.with(&Edit::new(&workspace), arguments),
            "apply_patch" => self.with(&ApplyPatch::new(&workspace), arguments),
            "make_directory" => self.with(&MakeDirectory::new(&workspace), arguments),
            "move_path" => self.with(&MovePath::new(&workspace), arguments),
            "copy_path" => self.with(&CopyPath::new(&workspace), arguments),
            "delete_path" => self.with(&DeletePath::new(&workspace), arguments),
            "undo" => self.with(&Undo::new(&workspace), arguments),
            other => panic!("no tool {other}"),
        }
    }

    fn ok(&mut self, tool: &str, arguments: Value) -> String {
        let output = self.run(tool, arguments);
        assert!(!output.result.is_error, "{tool}: {}", output.result.text);
        output.result.text
    }

    fn preview(&self, arguments: Value) -> Option<String> {
        let args = serde_json::from_value(arguments).unwrap();
        Undo::new(&self.fixture.workspace).preview(&args)
    }

    /// As after the end of the process.
    fn resume(&mut self) {
        let text = serde_json::to_string(&self.changes).unwrap();
        self.changes = serde_json::from_str(&text).unwrap();
        self.fixture = self.fixture.resumed(&self.changes);
    }

    fn tree(&self) -> Tree {
        tree(self.fixture.workspace.root())
    }

    fn key(&self, index: usize) -> EffectKey {
        let mut keys: Vec<_> = self.changes.iter().map(|(key, _)| key.clone()).collect();
        keys.dedup();
        keys[index].clone()
    }
}

/// Mode, and bytes or target, of all entries by path; folders end with a slash.
type Tree = BTreeMap<String, (u32, Vec<u8>)>;

fn tree(root: &Path) -> Tree {
    fn collect(folder: &Path, root: &Path, tree: &mut Tree) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let metadata = path.symlink_metadata().unwrap();
            let mode = metadata.mode() & 0o7777;
            if metadata.is_symlink() {
                let target = path.read_link().unwrap().into_os_string().into_encoded_bytes();
                tree.insert(format!("{name}@"), (mode, target));
            } else if metadata.is_dir() {
                tree.insert(format!("{name}/"), (mode, Vec::new()));
                collect(&path, root, tree);
            } else {
                tree.insert(name, (mode, fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = Tree::new();
    collect(root, root, &mut found);
    found
}

#[test]
fn each_call_is_taken_back_by_itself_and_comes_back() {
    let mut session = Session::new();
    session.fixture.put("a", "0\n");
    let mut trees = vec![session.tree()];
    session.ok("write", json!({"path": "a", "content": "1\n"}));
    trees.push(session.tree());
    session.ok("write", json!({"path": "d/e/new", "content": "x\n"}));
    trees.push(session.tree());
    session.ok("edit", json!({"path": "a", "old": "1", "new": "2"}));
    trees.push(session.tree());
    for expected in trees.iter().rev().skip(1) {
        session.ok("undo", json!({}));
        assert_eq!(session.tree(), *expected);
    }
    let nothing = session.run("undo", json!({}));
    assert!(nothing.result.is_error);
    for expected in trees.iter().skip(1) {
        session.ok("undo", json!({"redo": true}));
        assert_eq!(session.tree(), *expected);
    }
    assert!(session.run("undo", json!({"redo": true})).result.is_error);
    session.ok("undo", json!({"count": 3}));
    assert_eq!(session.tree(), trees[0]);
    session.ok("undo", json!({"redo": true}));
    assert_eq!(session.tree(), trees[3]);
}

#[test]
fn the_result_names_files_and_the_limits_of_it() {
    let mut session = Session::new();
    session.ok("write", json!({"path": "a", "content": "1\n"}));
    session.fixture.put("b", "0\n");
    session.ok("write", json!({"path": "b", "content": "1\n"}));
    let preview = session.preview(json!({"count": 2})).unwrap();
    assert!(preview.starts_with("b: restored\na: removed\n--- a/b\n+++ b/b\n"), "{preview}");
    let text = session.ok("undo", json!({"count": 2}));
    assert_eq!(text, "b: restored\na: removed\nWhat shell commands did is not taken back.");
    let (_, change) = session.changes.last().unwrap();
    assert_eq!(change.undoes, Some(session.key(0)));
    assert_eq!(session.preview(json!({})), None);
}

#[test]
fn a_file_changed_by_hand_is_left_out_and_the_others_are_not() {
    let mut session = Session::new();
    session.fixture.put("a", "0\n");
    session.fixture.put("b", "0\n");
    for path in ["a", "b"] {
        session.ok("write", json!({"path": path, "content": "1\n"}));
        session.ok("write", json!({"path": path, "content": "2\n"}));
    }
    session.fixture.put("a", "mine\n");
    let preview = session.preview(json!({"count": 4})).unwrap();
    assert!(preview.contains("Left as they are:\na: changed since"), "{preview}");
    let text = session.ok("undo", json!({"count": 4}));
    assert!(text.starts_with("b: restored\nLeft as they are:\na: changed since"), "{text}");
    assert_eq!(
        (session.fixture.text("a"), session.fixture.text("b")),
        ("mine\n".into(), "0\n".into())
    );
    let again = session.run("undo", json!({"count": 4}));
    assert!(again.result.is_error, "{}", again.result.text);
    assert!(again.result.text.starts_with("Nothing was taken back.\nLeft as they are:\na: "));
    // Once it is again what the session left, it can be taken back.
    session.fixture.put("a", "2\n");
    session.ok("undo", json!({"count": 4}));
    assert_eq!(session.fixture.text("a"), "0\n");
}

#[test]
fn changes_since_a_call_go_and_what_was_undone_before_it_stays_undone() {
    let mut session = Session::new();
    session.fixture.put("a", "0\n");
    session.ok("write", json!({"path": "a", "content": "1\n"}));
    session.ok("write", json!({"path": "b", "content": "1\n"}));
    session.ok("undo", json!({}));
    let before = session.tree();
    let start = session.changes.len();
    session.ok("undo", json!({"redo": true}));
    session.ok("write", json!({"path": "a", "content": "2\n"}));
    session.ok("write", json!({"path": "c", "content": "2\n"}));
    session.ok("undo", json!({}));
    session.ok("delete_path", json!({"path": "a"}));
    let after = session.tree();
    let since = session.changes[start].0.clone();
    session.ok("undo", json!({"since": since}));
    assert_eq!(session.tree(), before);
    // Everything is as it was then, so there is nothing to do.
    assert_eq!(session.ok("undo", json!({"since": since})), "No file has to change.");
    assert_eq!(session.preview(json!({"since": since})), None);
    session.ok("undo", json!({"redo": true}));
    assert_eq!(session.tree(), after);
    // A call that changed no file stands for those after it.
    session.ok("undo", json!({"since": "t1/s0/model"}));
    let text = session.ok("undo", json!({"since": "t2/a0"}));
    assert_eq!(text, "No file has to change.");
}

#[test]
fn a_folder_with_new_content_stays() {
    let mut session = Session::new();
    session.fixture.put("src/a", "0\n");
    session.ok("make_directory", json!({"path": "d/e"}));
    session.ok("copy_path", json!({"from": "src", "to": "copy"}));
    session.ok("write", json!({"path": "f/g", "content": ""}));
    session.fixture.put("d/e/mine", "");
    session.fixture.put("copy/mine", "");
    session.fixture.put("f/mine", "");
    let text = session.ok("undo", json!({"count": 3}));
    assert!(text.contains("d/e: mine in it changed since, so the folder stays"), "{text}");
    assert!(text.contains("copy: mine in it changed since"), "{text}");
    assert_eq!(
        session.fixture.names(),
        ["copy", "copy/a", "copy/mine", "d", "d/e", "d/e/mine", "f", "f/mine", "src", "src/a"]
    );
}

#[test]
fn modes_links_and_folders_come_back_as_they_were() {
    let mut session = Session::new();
    session.fixture.put("d/tool", "#!\n");
    session.fixture.put("plain", "1\n2\n");
    fs::set_permissions(session.fixture.path("d/tool"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(session.fixture.path("d"), fs::Permissions::from_mode(0o710)).unwrap();
    fs::set_permissions(session.fixture.path("plain"), fs::Permissions::from_mode(0o604)).unwrap();
    symlink("nowhere/at all", session.fixture.path("d/link")).unwrap();
    let before = session.tree();
    session.ok("delete_path", json!({"path": "d", "recursive": true}));
    let patch = "*** Begin Patch\n*** Delete File: plain\n*** End Patch";
    session.ok("apply_patch", json!({"patch": patch}));
    assert_eq!(session.fixture.names(), [""; 0]);
    session.resume();
    session.ok("undo", json!({"count": 2}));
    assert_eq!(session.tree(), before);
    session.resume();
    session.ok("undo", json!({"redo": true}));
    assert_eq!(session.fixture.names(), [""; 0]);
}

#[test]
fn what_is_no_longer_kept_is_said() {
    let mut session = Session::new();
    session.fixture.put("a", "0\n");
    session.fixture.put("b", "0\n");
    session.ok("write", json!({"path": "a", "content": "1\n"}));
    session.ok("delete_path", json!({"path": "b"}));
    let kept = session.fixture.workspace.snapshots().to_owned();
    fs::remove_dir_all(&kept).unwrap();
    fs::remove_dir_all(kept.with_file_name("trash")).unwrap();
    let output = session.run("undo", json!({"count": 2}));
    assert!(output.result.is_error);
    assert_eq!(
        output.result.text,
        "Nothing was taken back.\nLeft as they are:\nb: what was deleted is no longer kept\na: what \
         was there before is no longer kept"
    );
}

#[test]
fn no_call_at_all_is_refused() {
    let mut session = Session::new();
    session.ok("write", json!({"path": "a", "content": "1\n"}));
    let args = serde_json::from_value(json!({"count": 0})).unwrap();
    let refusal = Undo::new(&session.fixture.workspace).subjects(&args).unwrap_err();
    assert!(refusal.contains("Give 1 or more"), "{refusal}");
    let output = session.run("undo", json!({"count": 0}));
    assert!(output.result.is_error);
    assert_eq!((output.result.text, session.fixture.text("a")), (refusal, "1\n".to_owned()));
    session.ok("undo", json!({}));
    session.ok("undo", json!({"count": 0, "redo": true}));
}

#[test]
fn names_with_control_characters_come_back() {
    let mut session = Session::new();
    session.fixture.put("odd\nname", "0\n");
    let before = session.tree();
    session.ok("move_path", json!({"from": "odd\nname", "to": "other\tname"}));
    session.ok("write", json!({"path": "other\tname", "content": "1\n"}));
    session.resume();
    session.ok("undo", json!({"count": 2}));
    assert_eq!(session.tree(), before);
    session.resume();
    session.ok("undo", json!({"redo": true}));
    assert_eq!(session.fixture.text("other\tname"), "1\n");
}

#[test]
fn what_the_runtime_alone_says_is_not_in_the_schema() {
    let tool = loon_kernel::native_tool(Undo::new(&Fixture::new().workspace));
    let properties = &tool.spec().parameters["properties"];
    assert_eq!(properties.as_object().unwrap().keys().collect::<Vec<_>>(), ["count", "redo"]);
}

#[test]
fn folders_made_on_the_way_go_and_come_with_their_entries() {
    let mut session = Session::new();
    session.fixture.put("d/keep", "");
    let before = session.tree();
    session.ok("make_directory", json!({"path": "f/d/a"}));
    let first = session.key(0);
    session.ok("delete_path", json!({"path": "f/d/a"}));
    session.ok("move_path", json!({"from": "f", "to": "d/b"}));
    let after = session.tree();
    session.ok("undo", json!({"since": first}));
    assert_eq!(session.tree(), before);
    session.ok("undo", json!({"redo": true}));
    assert_eq!(session.tree(), after);
}

/// A few names, so that calls meet.
const PATHS: [&str; 12] =
    ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f", "f/a", "f/d", "f/d/a", "l"];

fn path() -> impl Strategy<Value = String> {
    prop::sample::select(&PATHS).prop_map(str::to_owned)
}

fn step() -> impl Strategy<Value = (&'static str, Value)> {
    let content = prop::sample::select(vec!["", "1\n", "2\r\n", "\u{e9}"]);
    prop_oneof![
        4 => (path(), content).prop_map(|(path, content)| {
            ("write", json!({"path": path, "content": content}))
        }),
        2 => path().prop_map(|path| ("edit", json!({"path": path, "old": "1", "new": "one"}))),
        1 => (path(), path()).prop_map(|(one, two)| {
            let patch = format!(
                "*** Begin Patch\n*** Delete File: {one}\n*** Add File: {two}\n+p\n*** End Patch"
            );
            ("apply_patch", json!({"patch": patch}))
        }),
        1 => (path(), path()).prop_map(|(one, two)| {
            let patch = format!(
                "*** Begin Patch\n*** Update File: {one}\n*** Move to: {two}\n@@\n-1\n+q\n*** End Patch"
            );
            ("apply_patch", json!({"patch": patch}))
        }),
        2 => path().prop_map(|path| ("make_directory", json!({"path": path}))),
        4 => (path(), path()).prop_map(|(from, to)| ("move_path", json!({"from": from, "to": to}))),
        4 => (path(), path()).prop_map(|(from, to)| ("copy_path", json!({"from": from, "to": to}))),
        4 => (path(), any::<bool>()).prop_map(|(path, recursive)| {
            ("delete_path", json!({"path": path, "recursive": recursive}))
        }),
        1 => (1..3_usize).prop_map(|count| ("undo", json!({"count": count}))),
        1 => Just(("undo", json!({"redo": true}))),
    ]
}

fn furnished() -> Session {
    let session = Session::new();
    session.fixture.put("a", "1\n");
    session.fixture.put("d/a", "1\r\n2");
    session.fixture.put("d/e/a", b"\xff\xfe1\0");
    symlink("d/a", session.fixture.path("l")).unwrap();
    symlink("gone", session.fixture.path("d/l")).unwrap();
    fs::set_permissions(session.fixture.path("d/a"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(session.fixture.path("d/e"), fs::Permissions::from_mode(0o750)).unwrap();
    session
}

/// The places that a step names: by their own names and where links lead.
fn places(session: &Session, arguments: &Value) -> Vec<PathBuf> {
    let text = arguments.to_string();
    let workspace = &session.fixture.workspace;
    PATHS
        .iter()
        .filter(|path| {
            text.contains(&format!("\"{path}\"")) || text.contains(&format!(": {path}\\n"))
        })
        .flat_map(|path| [workspace.root().join(path), workspace.resolve(path)])
        .map(|path| path.strip_prefix(workspace.root()).unwrap().to_owned())
        .collect()
}

/// At, below or above one of the places.
fn near(places: &[PathBuf], name: &str) -> bool {
    let name = Path::new(name.trim_end_matches(['/', '@']));
    places.iter().any(|place| name.starts_with(place) || place.starts_with(name))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn taking_everything_back_restores_every_byte_mode_and_name(
        steps in prop::collection::vec(step(), 1..14),
        resumed in any::<bool>(),
    ) {
        let mut session = furnished();
        let before = session.tree();
        for (tool, arguments) in &steps {
            let earlier = session.tree();
            let places = places(&session, arguments);
            let output = session.run(tool, arguments.clone());
            if output.result.is_error {
                prop_assert_eq!(&session.tree(), &earlier, "{} {}", tool, output.result.text);
            } else if *tool != "undo" {
                let later = session.tree();
                for name in earlier.keys().chain(later.keys()) {
                    if earlier.get(name) != later.get(name) {
                        prop_assert!(near(&places, name), "{tool} {arguments} changed {name}");
                    }
                }
            }
        }
        if resumed {
            session.resume();
        }
        let after = session.tree();
        let first = session.changes.first().map(|(key, _)| key.clone());
        if let Some(first) = first {
            let output = session.run("undo", json!({"since": first}));
            prop_assert!(!output.result.is_error, "{}", output.result.text);
            prop_assert!(!output.result.text.contains("Left as"), "{}", output.result.text);
            prop_assert_eq!(session.tree(), before);
            if resumed {
                session.resume();
            }
            if !output.changes.is_empty() {
                let redone = session.run("undo", json!({"redo": true}));
                prop_assert!(!redone.result.is_error, "{}", redone.result.text);
                prop_assert!(!redone.result.text.contains("Left as"), "{}", redone.result.text);
                prop_assert_eq!(session.tree(), after);
            }
        }
    }
}

#[test]
fn what_a_call_did_is_taken_back_though_its_end_was_never_recorded() {
    let calls = [
        ("delete_path", json!({"path": "d", "recursive": true})),
        ("move_path", json!({"from": "d", "to": "e/f"})),
        ("write", json!({"path": "d/a.txt", "content": "two\n"})),
    ];
    for (tool, arguments) in calls {
        let mut session = Session::new();
        session.fixture.put("d/a.txt", "one\n");
        assert!(!session.run(tool, arguments).result.is_error, "{tool}");
        assert_ne!(fs::read(session.fixture.path("d/a.txt")).ok(), Some(b"one\n".to_vec()));
        let (changes, fixture) = (session.changes.clone(), session.fixture);
        let mut later = Session { fixture: fixture.resumed(&[]), changes: Vec::new() };
        let output = later.run("undo", json!({}));
        assert!(!output.result.is_error, "{tool}: {}", output.result.text);
        assert_eq!(later.fixture.text("d/a.txt"), "one\n", "{tool}");
        // A call whose end was recorded counts once.
        let recorded = later.fixture.resumed(&changes);
        let mut last = Session { fixture: recorded, changes: Vec::new() };
        assert!(last.run("undo", json!({"count": 9})).result.is_error, "{tool}");
    }
}

#[test]
fn of_a_call_that_was_cut_off_only_what_is_made_is_taken_back() {
    let mut session = Session::new();
    session.fixture.put("a", "one\n");
    session.fixture.put("b", "one\n");
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** Update File: b\n@@\n\
                 -one\n+two\n*** End Patch";
    session.run("apply_patch", json!({"patch": patch}));
    session.fixture.put("b", "one\n");
    session.fixture.put(&format!(".loon-{}-7.tmp", std::process::id()), "t");
    let fixture = session.fixture.resumed(&[]);
    assert_eq!(fixture.names(), ["a", "b"]);
    let mut later = Session { fixture, changes: Vec::new() };
    let output = later.run("undo", json!({}));
    assert_eq!(output.result.text, "a: restored\nWhat shell commands did is not taken back.");
    assert_eq!(later.fixture.text("a"), "one\n");
}
