//! The changes that a call is about to make, on disk before the first of them. The journal tells of
//! changes only once their call has ended; if the process dies before that, what it did can still be
//! taken back.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use loon_api::{EffectKey, EntryKind, FileChange};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{ContentHash, Workspace};

/// Name of the record, beside the folder for pre-images.
const NAME: &str = "unfinished.json";

/// What a call is about to change.
#[derive(Debug, Serialize, Deserialize)]
struct Unfinished {
    key: EffectKey,
    /// The process, whose temporary files bear its number.
    process: u32,
    changes: Vec<FileChange>,
}

/// Keeps the changes that a call is about to make. The record of an earlier call goes: it has ended.
pub(crate) fn keep<'a>(
    workspace: &Workspace,
    key: &EffectKey,
    changes: impl Iterator<Item = &'a FileChange>,
) -> io::Result<()> {
    let changes = changes.map(|change| FileChange { diff: String::new(), ..change.clone() });
    let unfinished =
        Unfinished { key: key.clone(), process: std::process::id(), changes: changes.collect() };
    let target = place(workspace);
    let folder = target.parent().unwrap_or(&target);
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(&unfinished)?)?;
    file.as_file().sync_data()?;
    file.persist(target)?;
    Ok(())
}

/// Forgets them, for they were taken back or recorded.
pub(crate) fn forget(workspace: &Workspace) {
    if let Err(error) = fs::remove_file(place(workspace))
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "the record of unfinished changes was not removed");
    }
}

/// Forgets those of a call whose outcome is recorded.
pub(crate) fn settle(workspace: &Workspace, key: &EffectKey) {
    if read(workspace).is_some_and(|unfinished| unfinished.key == *key) {
        forget(workspace);
    }
}

fn read(workspace: &Workspace) -> Option<Unfinished> {
    let bytes = fs::read(place(workspace)).ok()?;
    serde_json::from_slice(&bytes)
        .inspect_err(|error| tracing::warn!(%error, "unfinished changes cannot be read"))
        .ok()
}

/// The changes of a call whose end nobody recorded, as far as the files show them. Temporary files
/// that it left go.
pub(super) fn found(
    workspace: &Workspace,
    is_known: impl Fn(&EffectKey) -> bool,
) -> Option<(EffectKey, Vec<FileChange>)> {
    let unfinished = read(workspace)?;
    if is_known(&unfinished.key) {
        forget(workspace);
        return None;
    }
    for change in &unfinished.changes {
        remove_temporary(workspace, change, unfinished.process);
    }
    let made = unfinished.changes.into_iter().filter(|change| is_made(workspace, change));
    Some((unfinished.key, made.collect()))
}

fn place(workspace: &Workspace) -> PathBuf {
    workspace.snapshots.with_file_name(NAME)
}

/// Whether the files are as they would be after the change.
fn is_made(workspace: &Workspace, change: &FileChange) -> bool {
    let at = |path: &str| workspace.root.join(path);
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    let path = at(change.real_path());
    if let Some(from) = &change.from {
        return is_there(&path) && !is_there(&at(from));
    }
    match (&change.after, change.kind) {
        (None, _) => !is_there(&path),
        (Some(after), EntryKind::File) => {
            let same = |bytes: Vec<u8>| ContentHash::of(&bytes).to_string() == *after;
            path.is_file() && fs::read(&path).is_ok_and(same)
        }
        (Some(_), _) => is_there(&path),
    }
}

fn remove_temporary(workspace: &Workspace, change: &FileChange, process: u32) {
    let path = workspace.root.join(change.real_path());
    let Some(entries) = path.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    let beginning = format!(".loon-{process}-");
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_ours = name.starts_with(&beginning) && name.ends_with(".tmp");
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
