//! Changes that build on each other: made one after the other, all of them or none.
//!
//! Moving, copying and removing entries, and taking changes back, go this way. What is removed goes
//! to the trash of the session, so that nothing here destroys bytes.

use std::io;
use std::path::{Path, PathBuf};

use loon_api::{EffectKey, EntryKind, FileChange};
use nix::errno::Errno;

use super::anchor::Anchor;
use super::call::Call;
use super::commit::{Attributes, write_beside};
use super::error::WriteError;
use super::tree::{self, Copying};
use crate::text::size;
use crate::workspace::{ContentHash, unfinished};
use crate::{Workspace, snapshot};

/// One change on disk. Missing folders above what it makes are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A file gets these bytes; `base` are those it has now, absent if it is not there.
    Write { path: PathBuf, base: Option<Vec<u8>>, content: Vec<u8>, mode: Option<u32> },
    /// A new folder.
    Folder { path: PathBuf },
    /// A folder goes if it is empty, and else stays.
    RemoveEmpty { path: PathBuf },
    /// An entry goes to a place where nothing is.
    Move { from: PathBuf, to: PathBuf },
    /// An entry and what is in it is there twice. What `from` is a link to is not looked at.
    Copy { from: PathBuf, to: PathBuf },
}

impl Action {
    /// The places that change.
    pub(crate) fn places(&self) -> Vec<&Path> {
        match self {
            Self::Write { path, .. } | Self::Folder { path } | Self::RemoveEmpty { path } => {
                vec![path]
            }
            Self::Move { from, to } => vec![from, to],
            Self::Copy { to, .. } => vec![to],
        }
    }
}

/// An action and how it is recorded; absent if it belongs to another one.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(crate) action: Action,
    pub(crate) change: Option<FileChange>,
}

/// Where an entry of this name lies in the trash. The folder is made.
pub(crate) fn trash_place(workspace: &Workspace, name: &str) -> Result<PathBuf, WriteError> {
    let folder = workspace.trash();
    std::fs::create_dir_all(&folder)
        .and_then(|()| folder.canonicalize())
        .map(|folder| folder.join(name))
        .map_err(|error| {
            WriteError::from_io(error, "make the folder", folder.display().to_string())
        })
}

/// Names in the trash for what a call removes, none of them in use.
pub(crate) fn trash_names(workspace: &Workspace, key: &EffectKey) -> impl Iterator<Item = String> {
    let (folder, call) = (workspace.trash(), key.as_str().replace('/', "-"));
    let names = (0_u64..).map(move |number| format!("{call}-{number}"));
    names.filter(move |name| folder.join(name).symlink_metadata().is_err())
}

/// Makes the changes in their order, or none. Gives what is recorded of them. The caller holds the
/// lock on commits.
pub(crate) fn perform(
    workspace: &Workspace,
    call: &Call,
    intents: &[Intent],
) -> Result<Vec<FileChange>, WriteError> {
    let trash = trash_place(workspace, "")?;
    for path in intents.iter().flat_map(|intent| intent.action.places()) {
        if !path.starts_with(&trash) {
            call.may_write(workspace, path)?;
        }
    }
    for intent in intents {
        if let Action::Write { base: Some(base), .. } = &intent.action {
            snapshot::keep(workspace, base).map_err(|source| {
                let path = workspace.snapshots().display().to_string();
                WriteError::from_io(source, "keep the former content in", path)
            })?;
        }
    }
    let planned = intents.iter().filter_map(|intent| intent.change.as_ref());
    unfinished::keep(workspace, &call.key, planned).map_err(|source| {
        let path = workspace.snapshots().display().to_string();
        WriteError::from_io(source, "note the changes beside", path)
    })?;
    let mut sequence = Sequence { workspace, done: Vec::new() };
    let mut made = Vec::with_capacity(intents.len());
    for intent in intents {
        match call.go_on().and_then(|()| sequence.take(&intent.action)) {
            Ok(folders) => made.push(folders),
            Err(error) => {
                let error = sequence.roll_back(error);
                unfinished::forget(workspace);
                return Err(error);
            }
        }
    }
    sequence.sync();
    for intent in intents {
        note(workspace, &intent.action);
    }
    let mut changes = Vec::new();
    for (index, intent) in intents.iter().enumerate() {
        let Some(mut change) = intent.change.clone() else { continue };
        change.folders = made[index];
        if change.kind == EntryKind::Folder && change.after.is_some() && change.from.is_none() {
            let later = index + 1;
            let path = workspace.root().join(change.real_path());
            let path = where_to(path, &intents[later..], &made[later..]);
            let listing = path.as_deref().map(tree::listing).unwrap_or_default();
            if let Err(error) = snapshot::keep(workspace, &listing) {
                tracing::warn!(%error, "the listing of a folder was not kept");
            }
            change.after = Some(ContentHash::of(&listing).to_string());
        }
        changes.push(change);
    }
    let mut log = workspace.log();
    for change in &changes {
        log.add(call.key.clone(), change.clone());
    }
    drop(log);
    Ok(changes)
}

/// Where an entry is after these steps, with what [`Sequence::take`] gave for each; absent if it is
/// a folder that went.
fn where_to(mut path: PathBuf, steps: &[Intent], outcomes: &[u32]) -> Option<PathBuf> {
    for (step, outcome) in steps.iter().zip(outcomes) {
        match &step.action {
            Action::Move { from, to } => {
                if let Ok(rest) = path.strip_prefix(from) {
                    path = if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
                }
            }
            Action::RemoveEmpty { path: removed } if *removed == path && *outcome > 0 => {
                return None;
            }
            _ => {}
        }
    }
    Some(path)
}

/// What the model knows of a file goes with it; bytes that come back it has to read again.
fn note(workspace: &Workspace, action: &Action) {
    match action {
        Action::Write { path, .. } => workspace.forget(path),
        Action::Move { from, to } => workspace.moved(from, to),
        Action::Folder { .. } | Action::RemoveEmpty { .. } | Action::Copy { .. } => {}
    }
}

/// What was done, as much as is needed to take it back.
enum Done {
    Made { place: Anchor },
    Replaced { place: Anchor, base: Vec<u8>, attributes: Attributes, path: PathBuf },
    MadeFolder { place: Anchor },
    RemovedFolder { place: Anchor, mode: u32 },
    Moved { from: Anchor, to: Anchor, path: PathBuf, place: PathBuf },
    Copied { to: Anchor },
}

struct Sequence<'a> {
    workspace: &'a Workspace,
    done: Vec<Done>,
}

impl Sequence<'_> {
    /// Gives the number of folders made above, or removed.
    fn take(&mut self, action: &Action) -> Result<u32, WriteError> {
        match action {
            Action::Write { path, base, content, mode } => {
                let (place, folders) = self.place(path)?;
                self.write(place, path, base.as_deref(), content, *mode)?;
                Ok(folders)
            }
            Action::Folder { path } => {
                let (place, folders) = self.place(path)?;
                place.make_folder(0o777).map_err(|e| self.error(e, "make", path))?;
                self.done.push(Done::MadeFolder { place });
                Ok(folders)
            }
            Action::RemoveEmpty { path } => self.remove_empty(path),
            Action::Move { from, to } => {
                let source = Anchor::at(from).map_err(|e| self.error(e, "move", from))?;
                let (target, folders) = self.place(to)?;
                match source.rename(&target) {
                    Err(error) if error.raw_os_error() == Some(Errno::EXDEV as i32) => {
                        self.across(&source, &target, from, to)?;
                    }
                    outcome => outcome.map_err(|error| self.blame(error, from, to))?,
                }
                let (path, place) = (from.clone(), to.clone());
                self.done.push(Done::Moved { from: source, to: target, path, place });
                Ok(folders)
            }
            Action::Copy { from, to } => {
                let source = Anchor::at(from).map_err(|e| self.error(e, "copy", from))?;
                let (target, folders) = self.place(to)?;
                self.copy(&source, &target, Copying::once(), from, to)?;
                self.done.push(Done::Copied { to: target });
                Ok(folders)
            }
        }
    }

    fn place(&mut self, path: &Path) -> Result<(Anchor, u32), WriteError> {
        let mut made = Vec::new();
        let place = Anchor::make(path, &mut made);
        for folder in &made {
            let place = Anchor::at(folder).map_err(|error| self.error(error, "make", folder))?;
            self.done.push(Done::MadeFolder { place });
        }
        let place = place.map_err(|error| self.error(error, "make the folder of", path))?;
        Ok((place, u32::try_from(made.len()).unwrap_or(u32::MAX)))
    }

    fn write(
        &mut self,
        place: Anchor,
        path: &Path,
        base: Option<&[u8]>,
        content: &[u8],
        mode: Option<u32>,
    ) -> Result<(), WriteError> {
        let workspace = self.workspace;
        let failed = |error| WriteError::from_io(error, "write", workspace.display(path));
        let Some(base) = base else {
            let attributes = mode.map(Attributes::of_mode);
            let file = write_beside(&place, content, attributes).map_err(failed)?;
            file.put_new(&place).map_err(failed)?;
            self.done.push(Done::Made { place });
            return Ok(());
        };
        let Some(stat) = place.look().map_err(failed)? else {
            return Err(failed(io::ErrorKind::NotFound.into()));
        };
        let attributes = Attributes::of(&stat);
        if place.read().map_err(failed)? != base {
            let (path, detail) = (workspace.display(path), String::new());
            return Err(WriteError::Changed { path, detail });
        }
        let file = write_beside(&place, content, Some(attributes)).map_err(failed)?;
        file.put(&place).map_err(failed)?;
        let (base, path) = (base.to_owned(), path.to_owned());
        self.done.push(Done::Replaced { place, base, attributes, path });
        Ok(())
    }

    fn remove_empty(&mut self, path: &Path) -> Result<u32, WriteError> {
        let place = Anchor::at(path).map_err(|error| self.error(error, "remove", path))?;
        let mode = match place.look() {
            Ok(Some(stat)) => stat.st_mode & 0o7777,
            _ => return Ok(0),
        };
        match place.remove_folder() {
            Ok(()) => {
                self.done.push(Done::RemovedFolder { place, mode });
                Ok(1)
            }
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(0),
            Err(error) => Err(self.error(error, "remove", path)),
        }
    }

    /// Moves to another file system.
    fn across(
        &self,
        source: &Anchor,
        target: &Anchor,
        from: &Path,
        to: &Path,
    ) -> Result<(), WriteError> {
        self.copy(source, target, Copying::to_move(), from, to)?;
        tree::remove(source).map_err(|source| WriteError::HalfMoved {
            path: self.workspace.display(from),
            copy: to.to_owned(),
            source,
        })
    }

    /// Copies; what is there of an unfinished copy goes.
    fn copy(
        &self,
        source: &Anchor,
        target: &Anchor,
        mut copying: Copying,
        from: &Path,
        to: &Path,
    ) -> Result<(), WriteError> {
        let look = target.look().map_err(|error| self.error(error, "look at", to))?;
        if look.is_some() {
            return Err(WriteError::Exists { path: self.workspace.display(to) });
        }
        tree::copy(source, target, &mut copying).map_err(|error| {
            if target.look().is_ok_and(|stat| stat.is_some()) {
                let _ = tree::remove(target);
            }
            self.blame(error, from, to)
        })
    }

    /// The error of a move or copy: of the source, or of the target where that is in the way.
    fn blame(&self, error: io::Error, from: &Path, to: &Path) -> WriteError {
        let shown = self.workspace.display(from);
        match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::StorageFull => {
                self.error(error, "make", to)
            }
            io::ErrorKind::FileTooLarge => WriteError::TooMuch {
                path: shown,
                entries: tree::MAX_ENTRIES,
                limit: size(tree::MAX_BYTES),
            },
            io::ErrorKind::Unsupported => {
                WriteError::NotAFile { path: shown, what: "or holds a device, pipe or socket" }
            }
            _ => self.error(error, "move or copy", from),
        }
    }

    fn error(&self, source: io::Error, doing: &'static str, path: &Path) -> WriteError {
        WriteError::from_io(source, doing, self.workspace.display(path))
    }

    /// Takes back what was done, newest first. Gives `cause`, or what makes it worse.
    fn roll_back(self, cause: WriteError) -> WriteError {
        let Self { workspace, done } = self;
        let mut error = cause;
        for done in done.into_iter().rev() {
            let (outcome, path, kept) = match done {
                Done::Made { place } => (place.remove_file(), None, None),
                Done::Replaced { place, base, attributes, path } => {
                    let outcome = write_beside(&place, &base, Some(attributes));
                    let kept = snapshot::place(workspace, ContentHash::of(&base));
                    (outcome.and_then(|file| file.put(&place)), Some(path), Some(kept))
                }
                // Someone else may have put a file there meanwhile; then it stays.
                Done::MadeFolder { place } => {
                    let _ = place.remove_folder();
                    continue;
                }
                Done::RemovedFolder { place, mode } => (place.make_folder(mode), None, None),
                Done::Moved { from, to, path, place } => {
                    let outcome = match to.rename(&from) {
                        Err(error) if error.raw_os_error() == Some(Errno::EXDEV as i32) => {
                            tree::copy(&to, &from, &mut Copying::to_move())
                                .and_then(|()| tree::remove(&to))
                        }
                        outcome => outcome,
                    };
                    (outcome, Some(path), Some(place))
                }
                Done::Copied { to } => (tree::remove(&to), None, None),
            };
            if let (Err(source), Some(path), Some(kept)) = (outcome, path, kept) {
                let (cause, path) = (Box::new(error), workspace.display(&path));
                error = WriteError::NotRestored { cause, path, kept, source };
            }
        }
        error
    }

    /// Makes the names durable; where that cannot be, the change is none the less made.
    fn sync(&self) {
        for done in &self.done {
            let places: &[&Anchor] = match done {
                Done::Moved { from, to, .. } => &[from, to],
                Done::Made { place }
                | Done::Replaced { place, .. }
                | Done::MadeFolder { place }
                | Done::RemovedFolder { place, .. }
                | Done::Copied { to: place } => &[place],
            };
            for place in places {
                if let Err(error) = place.sync_folder() {
                    tracing::warn!(%error, "folder was not synced");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
