//! Entries that are moved, copied and removed as a whole: what they are, and which must stay.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use loon_api::{EntryKind, FileChange};
use loon_kernel::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::{failed, nothing_written};
use crate::nearby;
use crate::open;
use crate::text::{count, size, visible_line};
use crate::workspace::{ContentHash, Workspace};
use crate::write_path::{Call, Intent, perform, tree};

/// An entry as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Of the bytes of a file and of the target of a link; of a folder it is that of nothing.
    pub(crate) hash: ContentHash,
}

impl Entry {
    /// What is at this path, links not followed. The error is for the model.
    pub(crate) fn at(workspace: &Workspace, path: &Path) -> Result<Self, String> {
        let shown = workspace.display(path);
        let problem = |error: std::io::Error| format!("{shown} cannot be read: {error}.");
        let metadata = match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(nearby::missing(workspace, path));
            }
            metadata => metadata.map_err(problem)?,
        };
        let (kind, hash) = if metadata.is_dir() {
            (EntryKind::Folder, ContentHash::of(b""))
        } else if metadata.is_symlink() {
            let target = path.read_link().map_err(problem)?;
            (EntryKind::Link, ContentHash::of(target.as_os_str().as_bytes()))
        } else if metadata.is_file() {
            let file = open::for_reading(path).map_err(problem)?;
            (EntryKind::File, ContentHash::of_reader(file).map_err(problem)?)
        } else {
            return Err(format!("{shown} is a device, pipe or socket; it stays as it is."));
        };
        Ok(Self { kind, mode: metadata.mode() & 0o7777, hash })
    }

    /// A change of this entry, told under `path`.
    pub(crate) fn change(&self, workspace: &Workspace, path: &Path) -> FileChange {
        let (path, exact) = workspace.recorded(path);
        FileChange { path, exact, kind: self.kind, mode: Some(self.mode), ..FileChange::default() }
    }
}

/// From where an entry goes and to where: the arguments of a move and of a copy.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Route {
    from: String,
    /// The whole new path; nothing may be there.
    to: String,
}

impl Route {
    /// Both ends.
    pub(crate) fn places(&self, workspace: &Workspace) -> (PathBuf, PathBuf) {
        let place = |path: &str| nearby::locate_entry(workspace, path);
        (place(&self.from), place(&self.to))
    }

    pub(crate) fn title(&self, workspace: &Workspace) -> String {
        let (from, to) = self.places(workspace);
        visible_line(&format!("{} to {}", workspace.display(&from), workspace.display(&to)))
    }

    /// What a human is shown of the planned change; `done` is what happens to the entry.
    pub(crate) fn preview(&self, workspace: &Workspace, planned: &Intent, done: &str) -> String {
        let (from, _) = self.places(workspace);
        format!("{}: {done} ({})", self.title(workspace), what(kind(planned), &from))
    }

    /// Makes the change that `plan` gives; `done` is what then has happened, as a sentence begins.
    pub(crate) fn make(
        &self,
        workspace: &Workspace,
        call: &Call,
        plan: impl FnOnce() -> Result<Intent, String>,
        done: &str,
    ) -> ToolOutput {
        let _guard = workspace.committing();
        let planned = match plan() {
            Ok(planned) => planned,
            Err(problem) => return nothing_written(&problem),
        };
        let kind = kind(&planned);
        match perform(workspace, call, &[planned]) {
            Ok(changes) => {
                let (_, to) = self.places(workspace);
                let text = format!("{done} {}: {}.", self.title(workspace), what(kind, &to));
                ToolOutput { changes, ..ToolOutput::ok(text, done.to_lowercase()) }
            }
            Err(error) => failed(&error),
        }
    }
}

fn kind(planned: &Intent) -> EntryKind {
    planned.change.as_ref().map(|change| change.kind).unwrap_or_default()
}

/// `a file`, `a folder with 3 entries, 12 bytes`, ...
pub(crate) fn what(kind: EntryKind, path: &Path) -> String {
    match kind {
        EntryKind::File => {
            let bytes = path.symlink_metadata().map_or(0, |metadata| metadata.len());
            format!("a file, {}", size(bytes))
        }
        EntryKind::Link => "a link".to_owned(),
        EntryKind::Folder => {
            let held = tree::size(path);
            let entries = count(held.entries as usize, "entry");
            format!("a folder with {entries}, {}", size(held.bytes))
        }
    }
}

/// An error for what must not leave its place.
pub(crate) fn may_go(workspace: &Workspace, path: &Path) -> Result<(), String> {
    let shown = workspace.display(path);
    if workspace.root().starts_with(path) {
        return Err(format!(
            "{shown} is the workspace root or holds it; it can neither be deleted nor moved."
        ));
    }
    if path.file_name() == Some(OsStr::new(".git")) && path.parent() == Some(workspace.root()) {
        return Err(format!(
            "{shown} is the repository of the workspace with its history; it can neither be \
             deleted nor moved."
        ));
    }
    Ok(())
}

/// An error unless nothing is at the target.
pub(crate) fn vacant(workspace: &Workspace, to: &Path) -> Result<(), String> {
    let shown = workspace.display(to);
    match to.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => Err(format!(
            "{shown} is a folder that exists already. Give the whole new path, with its last name."
        )),
        Ok(_) => Err(format!("{shown} exists already and is not overwritten.")),
        Err(_) => Ok(()),
    }
}

/// An error if a folder would go into itself.
pub(crate) fn outside_itself(workspace: &Workspace, from: &Path, to: &Path) -> Result<(), String> {
    if from == to {
        return Err(format!("{} is both source and target.", workspace.display(from)));
    }
    if to.starts_with(from) {
        let (from, to) = (workspace.display(from), workspace.display(to));
        return Err(format!("{to} lies in {from}; a folder cannot go into itself."));
    }
    Ok(())
}
