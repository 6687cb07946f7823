//! Putting planned changes in place: all of them or none.
//!
//! Everything that can fail early does so before the first file is touched: checks, pre-images,
//! folders and temporary files beside their targets. What is left are renames and removals; if one
//! of them fails, those before it are undone from the bytes the plan was made on.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, Gid, Uid, access, fchown};
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use super::error::WriteError;
use super::plan::{Described, Planned, changed_since};
use crate::workspace::ContentHash;
use crate::{Workspace, open, snapshot};

/// Puts all planned changes in place, or none. Pre-images are kept first; the model counts as
/// having seen what it wrote.
pub fn commit(
    workspace: &Workspace,
    planned: &[Planned],
    cancel: &CancellationToken,
) -> Result<Vec<Described>, WriteError> {
    let _guard = workspace.committing();
    let steps: Vec<Step<'_>> = planned.iter().flat_map(Step::of).collect();
    reject_twice(workspace, &steps)?;
    for step in &steps {
        step.check(workspace)?;
    }
    for base in steps.iter().filter_map(|step| step.base) {
        snapshot::keep(workspace, base).map_err(|source| {
            let path = workspace.snapshots().display().to_string();
            WriteError::from_io(source, "keep the former content in", path)
        })?;
    }
    let linked = other_links(&steps);
    let mut transaction = Transaction::begin(workspace);
    let outcome = transaction.stage(&steps).and_then(|staged| transaction.apply(staged, cancel));
    if let Err(error) = outcome {
        return Err(transaction.roll_back(error));
    }
    transaction.sync_folders();
    let mut described: Vec<_> =
        planned.iter().flat_map(|planned| planned.describe(workspace)).collect();
    for (path, others) in linked {
        let path = workspace.display(path);
        if let Some(described) = described.iter_mut().find(|it| it.change.path == path) {
            described.note =
                format!("The file had {others} other hard links; they keep the former content.");
        }
    }
    for step in &steps {
        match step.content {
            Some(content) => drop(workspace.note_read(step.path, content)),
            None => workspace.forget(step.path),
        }
    }
    Ok(described)
}

/// What happens to one path: `base` is there now, `content` comes in its place.
struct Step<'a> {
    path: &'a Path,
    base: Option<&'a [u8]>,
    content: Option<&'a [u8]>,
    /// The file whose mode and owner the new one takes.
    like: Option<&'a Path>,
}

impl<'a> Step<'a> {
    /// The steps of one change, in an order in which no content is without a place.
    fn of(planned: &'a Planned) -> Vec<Self> {
        match planned {
            Planned::Create { path, content } => {
                vec![Self { path, base: None, content: Some(content), like: None }]
            }
            Planned::Modify { path, base, content } => {
                vec![Self { path, base: Some(base), content: Some(content), like: Some(path) }]
            }
            Planned::Delete { path, base } => {
                vec![Self { path, base: Some(base), content: None, like: Some(path) }]
            }
            Planned::Move { from, to, base, content } => vec![
                Self { path: to, base: None, content: Some(content), like: Some(from) },
                Self { path: from, base: Some(base), content: None, like: Some(from) },
            ],
        }
    }

    /// The path is as the plan takes for granted.
    fn check(&self, workspace: &Workspace) -> Result<(), WriteError> {
        let Some(base) = self.base else { return check_absent(workspace, self.path) };
        let metadata = check_file(workspace, self.path)?;
        check_writable(workspace, self.path, &metadata)?;
        let now = read(workspace, self.path)?;
        if now == base { Ok(()) } else { Err(changed_since(workspace, self.path, base, now)) }
    }
}

/// A step with its temporary file written.
struct Staged<'a> {
    step: &'a Step<'a>,
    file: Option<NamedTempFile>,
    attributes: Option<Attributes>,
}

#[derive(Clone, Copy)]
struct Attributes {
    mode: u32,
    owner: u32,
    group: u32,
}

struct Transaction<'a> {
    workspace: &'a Workspace,
    /// Folders made for new files, outermost first.
    folders: Vec<PathBuf>,
    done: Vec<(&'a Step<'a>, Option<Attributes>)>,
}

impl<'a> Transaction<'a> {
    fn begin(workspace: &'a Workspace) -> Self {
        Self { workspace, folders: Vec::new(), done: Vec::new() }
    }

    fn stage(&mut self, steps: &'a [Step<'a>]) -> Result<Vec<Staged<'a>>, WriteError> {
        let mut staged = Vec::with_capacity(steps.len());
        for step in steps {
            let attributes = match step.like {
                Some(like) => Some(attributes(like).map_err(|e| self.error(e, "look at", like))?),
                None => None,
            };
            let file = match step.content {
                Some(content) => {
                    self.make_folders(step.path)?;
                    let file = write_beside(step.path, content, attributes);
                    Some(file.map_err(|e| self.error_in_folder(e, step.path))?)
                }
                None => None,
            };
            staged.push(Staged { step, file, attributes });
        }
        Ok(staged)
    }

    fn apply(
        &mut self,
        staged: Vec<Staged<'a>>,
        cancel: &CancellationToken,
    ) -> Result<(), WriteError> {
        for Staged { step, file, attributes } in staged {
            if cancel.is_cancelled() {
                return Err(WriteError::Cancelled);
            }
            step.check(self.workspace)?;
            let outcome = match file {
                None => fs::remove_file(step.path),
                Some(file) if step.base.is_none() => {
                    file.persist_noclobber(step.path).map(drop).map_err(|error| error.error)
                }
                Some(file) => file.persist(step.path).map(drop).map_err(|error| error.error),
            };
            outcome.map_err(|error| self.error(error, "write", step.path))?;
            self.done.push((step, attributes));
        }
        Ok(())
    }

    /// Undoes what was done, newest first. Gives back `cause`, or what makes it worse.
    fn roll_back(self, cause: WriteError) -> WriteError {
        let mut error = cause;
        for (step, attributes) in self.done.into_iter().rev() {
            let restored = match step.base {
                None => fs::remove_file(step.path),
                Some(base) => write_beside(step.path, base, attributes)
                    .and_then(|file| file.persist(step.path).map_err(|error| error.error))
                    .map(drop),
            };
            if let Err(source) = restored {
                error = WriteError::NotRestored {
                    cause: Box::new(error),
                    path: self.workspace.display(step.path),
                    kept: snapshot::place(
                        self.workspace,
                        ContentHash::of(step.base.unwrap_or_default()),
                    ),
                    source,
                };
            }
        }
        for folder in self.folders.iter().rev() {
            // Someone else may have put a file there meanwhile; then it stays.
            let _ = fs::remove_dir(folder);
        }
        error
    }

    /// Makes the names durable. The content is safe already; a file system that cannot do this is
    /// no reason to undo a finished change.
    fn sync_folders(&self) {
        let mut folders: BTreeSet<&Path> = self.folders.iter().filter_map(|f| f.parent()).collect();
        folders.extend(self.done.iter().filter_map(|(step, _)| step.path.parent()));
        for folder in folders {
            if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
                tracing::warn!(folder = %folder.display(), %error, "folder was not synced");
            }
        }
    }

    fn make_folders(&mut self, path: &Path) -> Result<(), WriteError> {
        let mut missing = Vec::new();
        let mut folder = path.parent();
        while let Some(parent) = folder {
            match fs::metadata(parent) {
                Ok(metadata) if metadata.is_dir() => break,
                Ok(_) => {
                    return Err(WriteError::NotAFolder { path: self.workspace.display(path) });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(parent),
                Err(error) => return Err(self.error_in_folder(error, path)),
            }
            folder = parent.parent();
        }
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder).map_err(|error| self.error_in_folder(error, path))?;
            self.folders.push(folder.to_owned());
        }
        Ok(())
    }

    fn error(&self, source: io::Error, doing: &'static str, path: &Path) -> WriteError {
        WriteError::from_io(source, doing, self.workspace.display(path))
    }

    /// As [`Self::error`], for the folder of a new file: that something is missing or in the way
    /// there says nothing of the file itself.
    fn error_in_folder(&self, source: io::Error, path: &Path) -> WriteError {
        let doing = "write beside";
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists => {
                WriteError::Io { doing, path: self.workspace.display(path), source }
            }
            _ => self.error(source, doing, path),
        }
    }
}

/// Files that get new content under one of several names, and the number of the other names.
fn other_links<'a>(steps: &[Step<'a>]) -> Vec<(&'a Path, u64)> {
    let modified = steps.iter().filter(|step| step.base.is_some() && step.content.is_some());
    modified
        .filter_map(|step| Some((step.path, fs::metadata(step.path).ok()?.nlink() - 1)))
        .filter(|(_, others)| *others > 0)
        .collect()
}

fn reject_twice(workspace: &Workspace, steps: &[Step<'_>]) -> Result<(), WriteError> {
    let mut paths = BTreeSet::new();
    match steps.iter().find(|step| !paths.insert(step.path)) {
        Some(step) => Err(WriteError::Twice { path: workspace.display(step.path) }),
        None => Ok(()),
    }
}

/// Nothing is at this path, not even a link to nothing.
pub(super) fn check_absent(workspace: &Workspace, path: &Path) -> Result<(), WriteError> {
    let shown = || workspace.display(path);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(WriteError::from_io(error, "look at", shown())),
        Ok(metadata) if metadata.is_dir() => {
            Err(WriteError::NotAFile { path: shown(), what: "a folder" })
        }
        Ok(metadata) if metadata.is_symlink() => Err(WriteError::DanglingLink {
            path: shown(),
            target: fs::read_link(path).unwrap_or_default(),
        }),
        Ok(_) => Err(WriteError::Exists { path: shown() }),
    }
}

/// A regular file is at this path.
pub(super) fn check_file(workspace: &Workspace, path: &Path) -> Result<Metadata, WriteError> {
    let shown = || workspace.display(path);
    let metadata = fs::symlink_metadata(path)
        .map_err(|error| WriteError::from_io(error, "look at", shown()))?;
    if metadata.is_dir() {
        return Err(WriteError::NotAFile { path: shown(), what: "a folder" });
    }
    if metadata.is_symlink() {
        let target = fs::read_link(path).unwrap_or_default();
        return Err(WriteError::DanglingLink { path: shown(), target });
    }
    if !metadata.is_file() {
        return Err(WriteError::NotAFile { path: shown(), what: "a device, pipe or socket" });
    }
    Ok(metadata)
}

/// A rename would pass over a read-only mark; we do not.
pub(super) fn check_writable(
    workspace: &Workspace,
    path: &Path,
    metadata: &Metadata,
) -> Result<(), WriteError> {
    if metadata.permissions().readonly() || access(path, AccessFlags::W_OK).is_err() {
        return Err(WriteError::ReadOnly { path: workspace.display(path) });
    }
    Ok(())
}

pub(super) fn read(workspace: &Workspace, path: &Path) -> Result<Vec<u8>, WriteError> {
    let mut bytes = Vec::new();
    open::for_reading(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| WriteError::from_io(error, "read", workspace.display(path)))?;
    Ok(bytes)
}

fn attributes(path: &Path) -> io::Result<Attributes> {
    let metadata = fs::metadata(path)?;
    Ok(Attributes {
        mode: metadata.permissions().mode() & 0o7777,
        owner: metadata.uid(),
        group: metadata.gid(),
    })
}

/// A temporary file with this content in the folder of `path`, on disk. It removes itself unless it
/// is put in place.
fn write_beside(
    path: &Path,
    content: &[u8],
    attributes: Option<Attributes>,
) -> io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mode = if attributes.is_some() { 0o600 } else { 0o666 };
    let mut file = tempfile::Builder::new()
        .prefix(".loon-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    file.write_all(content)?;
    if let Some(attributes) = attributes {
        let own = file.as_file().metadata()?;
        if (own.uid(), own.gid()) != (attributes.owner, attributes.group) {
            // Only the superuser may give files away; others keep what they can.
            let owner = Some(Uid::from_raw(attributes.owner));
            let group = Some(Gid::from_raw(attributes.group));
            if fchown(file.as_file(), owner, group).is_err() {
                let _ = fchown(file.as_file(), None, group);
            }
        }
        file.as_file().set_permissions(Permissions::from_mode(attributes.mode))?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests;
