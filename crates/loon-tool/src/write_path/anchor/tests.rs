//! Tests that no change leaves the folders it was decided on, whatever is put on its way.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use loon_api::Subject;
use loon_kernel::{NativeTool, ToolOutput};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::apply_patch::ApplyPatch;
use crate::copy_path::CopyPath;
use crate::delete_path::DeletePath;
use crate::edit::Edit;
use crate::fixture::{Fixture, admit, call, call_anywhere, next_key};
use crate::make_directory::MakeDirectory;
use crate::move_path::MovePath;
use crate::undo::Undo;
use crate::write::Write;
use crate::write_path::{Planned, commit};

/// A folder `d` with a file, and outside of the root one that looks the same.
struct Swap {
    fixture: Fixture,
    outside: PathBuf,
}

impl Swap {
    fn new() -> Self {
        let fixture = Fixture::new();
        let outside = fixture.workspace.root().with_file_name("outside");
        fs::create_dir(&outside).unwrap();
        for folder in ["d", "../outside"] {
            fixture.put(&format!("{folder}/a"), "1\n");
            fixture.put(&format!("{folder}/full/b"), "2\n");
        }
        fixture.put_seen("d/a", "1\n");
        Self { fixture, outside }
    }

    /// Puts a link to the other folder in the place of `d`.
    fn swap(&self) {
        fs::rename(self.fixture.path("d"), self.fixture.path("away")).unwrap();
        symlink(&self.outside, self.fixture.path("d")).unwrap();
    }

    fn swap_back(&self) {
        fs::remove_file(self.fixture.path("d")).unwrap();
        fs::rename(self.fixture.path("away"), self.fixture.path("d")).unwrap();
    }

    /// Folder and link change places, and at no moment there is neither.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn exchange(&self) {
        use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
        let (one, two) = (self.fixture.path("d"), self.fixture.path("link"));
        renameat2(AT_FDCWD, &one, AT_FDCWD, &two, RenameFlags::RENAME_EXCHANGE).unwrap();
    }

    fn assert_outside_is_untouched(&self) {
        let mut names: Vec<_> = fs::read_dir(&self.outside)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["a", "full"]);
        assert_eq!(fs::read(self.outside.join("a")).unwrap(), b"1\n");
        assert_eq!(fs::read_dir(self.outside.join("full")).unwrap().count(), 1);
        assert_eq!(fs::read(self.outside.join("full/b")).unwrap(), b"2\n");
    }

    /// Makes the call if it was decided on for paths inside of the root.
    fn attempt<T: NativeTool>(&self, tool: &T, arguments: Value) {
        let cx = admit(tool, &arguments, next_key(), &CancellationToken::new());
        let root = self.fixture.workspace.root();
        let inside = |subject: &Subject| matches!(subject, Subject::Path { path, .. } if path.starts_with(root));
        if cx.subjects.iter().all(inside) {
            drop(call(tool, arguments, &cx));
        }
    }

    /// Makes the call after the folder was swapped behind the decision.
    fn refuses<T: NativeTool>(&self, tool: &T, arguments: Value) -> ToolOutput {
        let cx = admit(tool, &arguments, next_key(), &CancellationToken::new());
        assert!(!cx.subjects.is_empty());
        self.swap();
        let output = call(tool, arguments, &cx);
        self.assert_outside_is_untouched();
        self.swap_back();
        assert!(output.result.is_error, "{}: {}", T::NAME, output.result.text);
        output
    }
}

#[test]
fn a_folder_that_became_a_link_after_the_decision_is_not_written_through() {
    let swap = Swap::new();
    let workspace = &swap.fixture.workspace;
    let elsewhere = |output: ToolOutput| {
        let expected = "leads to another place than when the call was decided on";
        assert!(output.result.text.contains(expected), "{}", output.result.text);
    };
    elsewhere(swap.refuses(&Write::new(workspace), json!({"path": "d/new", "content": "x"})));
    swap.refuses(&Edit::new(workspace), json!({"path": "d/a", "old": "1", "new": "2"}));
    let patch = "*** Begin Patch\n*** Delete File: d/a\n*** Add File: d/x/b\n+1\n*** End Patch";
    elsewhere(swap.refuses(&ApplyPatch::new(workspace), json!({"patch": patch})));
    elsewhere(swap.refuses(&MakeDirectory::new(workspace), json!({"path": "d/x/y"})));
    elsewhere(swap.refuses(&DeletePath::new(workspace), json!({"path": "d/a"})));
    let full = json!({"path": "d/full", "recursive": true});
    elsewhere(swap.refuses(&DeletePath::new(workspace), full));
    elsewhere(swap.refuses(&MovePath::new(workspace), json!({"from": "d/a", "to": "x"})));
    swap.fixture.put("c", "3\n");
    elsewhere(swap.refuses(&MovePath::new(workspace), json!({"from": "c", "to": "d/c"})));
    elsewhere(swap.refuses(&CopyPath::new(workspace), json!({"from": "c", "to": "d/c"})));

    let write = Write::new(workspace);
    let arguments = json!({"path": "d/a", "content": "2\n"});
    let cx = admit(&write, &arguments, next_key(), &CancellationToken::new());
    assert!(!call(&write, arguments, &cx).result.is_error);
    fs::remove_file(swap.outside.join("a")).unwrap();
    swap.fixture.put("../outside/a", "2\n");
    let undo = Undo::new(workspace);
    let cx = admit(&undo, &json!({}), next_key(), &CancellationToken::new());
    swap.swap();
    let output = call(&undo, json!({}), &cx);
    assert!(output.result.is_error, "{}", output.result.text);
    assert_eq!(fs::read(swap.outside.join("a")).unwrap(), b"2\n");
}

#[test]
fn a_folder_that_became_a_link_after_planning_is_not_written_through() {
    let swap = Swap::new();
    let path = |name: &str| swap.fixture.path(name);
    let (base, content) = (b"1\n".to_vec(), b"2\n".to_vec());
    let planned = [
        Planned::Create { path: path("d/new"), content: content.clone() },
        Planned::Create { path: path("d/x/new"), content: content.clone() },
        Planned::Modify { path: path("d/a"), base: base.clone(), content: content.clone() },
        Planned::Delete { path: path("d/a"), base: base.clone() },
        Planned::Move { from: path("d/a"), to: path("d/b"), base, content },
    ];
    swap.swap();
    for planned in planned {
        let outcome =
            commit(&swap.fixture.workspace, std::slice::from_ref(&planned), &call_anywhere());
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("leads to another place"), "{error}");
        swap.assert_outside_is_untouched();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn a_swap_at_any_moment_changes_nothing_outside() {
    const ROUNDS: usize = 150;
    let swap = Swap::new();
    symlink(&swap.outside, swap.fixture.path("link")).unwrap();
    let workspace = &swap.fixture.workspace;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                swap.exchange();
                std::thread::yield_now();
            }
        });
        for round in 0..ROUNDS {
            let (new, moved) = (format!("d/new{round}"), format!("d/moved{round}"));
            swap.attempt(&Write::new(workspace), json!({"path": new, "content": "x"}));
            swap.attempt(&MovePath::new(workspace), json!({"from": new, "to": moved}));
            swap.attempt(&DeletePath::new(workspace), json!({"path": moved}));
            swap.attempt(&DeletePath::new(workspace), json!({"path": "d/a"}));
            swap.attempt(&Undo::new(workspace), json!({}));
        }
        stop.store(true, Ordering::Relaxed);
    });
    swap.assert_outside_is_untouched();
}
