//! Putting planned changes in place: all of them or none.
//!
//! Everything that can fail early does so before the first file is touched: checks, pre-images,
//! folders and temporary files beside their targets. What is left are renames and removals; if one
//! of them fails, those before it are undone from the bytes the plan was made on.

use std::collections::BTreeSet;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, SFlag};
use nix::unistd::{AccessFlags, Gid, Uid, access, fchown};

use super::anchor::{Anchor, kind};
use super::call::Call;
use super::error::WriteError;
use super::plan::{Described, Planned, changed_since};
use crate::workspace::{ContentHash, unfinished};
use crate::{Workspace, open, snapshot};

/// Puts all planned changes in place, or none. Pre-images are kept first; the model counts as
/// having seen what it wrote, and the session's log knows the changes.
pub fn commit(
    workspace: &Workspace,
    planned: &[Planned],
    call: &Call,
) -> Result<Vec<Described>, WriteError> {
    let _guard = workspace.committing();
    let steps: Vec<Step<'_>> = planned.iter().flat_map(Step::of).collect();
    reject_twice(workspace, &steps)?;
    for step in &steps {
        call.may_write(workspace, step.path)?;
        step.check(workspace)?;
    }
    for base in steps.iter().filter_map(|step| step.base) {
        snapshot::keep(workspace, base).map_err(|source| {
            let path = workspace.snapshots().display().to_string();
            WriteError::from_io(source, "keep the former content in", path)
        })?;
    }
    let linked = other_links(&steps);
    let mut described: Vec<_> =
        planned.iter().flat_map(|planned| planned.describe(workspace)).collect();
    foretell(workspace, &steps, &mut described);
    let foretold = described.iter().map(|described| &described.change);
    unfinished::keep(workspace, &call.key, foretold).map_err(|source| {
        let path = workspace.snapshots().display().to_string();
        WriteError::from_io(source, "note the changes beside", path)
    })?;
    let mut transaction = Transaction::begin(workspace);
    let outcome = transaction.stage(&steps).and_then(|staged| transaction.apply(staged, call));
    if let Err(error) = outcome {
        let error = transaction.roll_back(error);
        unfinished::forget(workspace);
        return Err(error);
    }
    transaction.sync_folders();
    for (path, others) in linked {
        let path = workspace.display(path);
        if let Some(described) = described.iter_mut().find(|it| it.change.path == path) {
            described.note =
                format!("The file had {others} other hard links; they keep the former content.");
        }
    }
    transaction.complete(&mut described);
    let mut log = workspace.log();
    for described in &described {
        log.add(call.key.clone(), described.change.clone());
    }
    drop(log);
    for step in &steps {
        match step.content {
            Some(content) => drop(workspace.note_read(step.path, content)),
            None => workspace.forget(step.path),
        }
    }
    Ok(described)
}

/// Adds what taking the changes back needs, as far as it is known before they are made.
fn foretell(workspace: &Workspace, steps: &[Step<'_>], described: &mut [Described]) {
    for step in steps {
        let (path, exact) = workspace.recorded(step.path);
        if let Some(it) = described.iter_mut().find(|it| it.change.path == path) {
            it.change.exact = exact;
            let there = step.path.metadata().ok().filter(|_| step.content.is_none());
            it.change.mode = there.map(|metadata| metadata.mode() & 0o7777);
        }
    }
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

    /// The same of the place in the folder that was opened: whatever was put on the way to it
    /// since, this is what will change.
    fn check_place(&self, workspace: &Workspace, place: &Anchor) -> Result<(), WriteError> {
        let error = |source| WriteError::from_io(source, "look at", workspace.display(self.path));
        match (self.base, place.look().map_err(error)?.map(|stat| kind(&stat))) {
            (None, None) => Ok(()),
            (Some(base), Some(SFlag::S_IFREG)) => {
                let now = place.read().map_err(error)?;
                if now == base {
                    Ok(())
                } else {
                    Err(changed_since(workspace, self.path, base, now))
                }
            }
            // Something else is there now than a moment ago: its own error says what.
            _ => self
                .check(workspace)
                .and(Err(WriteError::Elsewhere { path: workspace.display(self.path) })),
        }
    }
}

/// A step with its temporary file written.
struct Staged<'a> {
    step: &'a Step<'a>,
    place: Anchor,
    file: Option<Temporary>,
    attributes: Option<Attributes>,
    folders: u32,
}

/// A step that is in place.
struct Done<'a> {
    step: &'a Step<'a>,
    place: Anchor,
    attributes: Option<Attributes>,
    folders: u32,
}

/// Mode and owner of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    mode: u32,
    owner: Option<u32>,
    group: Option<u32>,
}

impl Attributes {
    pub(super) fn of(stat: &FileStat) -> Self {
        let (mode, owner, group) = (stat.st_mode & 0o7777, Some(stat.st_uid), Some(stat.st_gid));
        Self { mode, owner, group }
    }

    /// This mode, and the owner that a new file has.
    pub(super) fn of_mode(mode: u32) -> Self {
        Self { mode: mode & 0o7777, owner: None, group: None }
    }
}

/// A file beside its target that removes itself unless it is put in place.
pub(super) struct Temporary {
    at: Anchor,
    placed: bool,
}

impl Temporary {
    /// Puts it in the place of another file.
    pub(super) fn put(mut self, target: &Anchor) -> io::Result<()> {
        self.at.replace(target)?;
        self.placed = true;
        Ok(())
    }

    /// Puts it where nothing is.
    pub(super) fn put_new(mut self, target: &Anchor) -> io::Result<()> {
        self.at.rename(target)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.placed {
            let _ = self.at.remove_file();
        }
    }
}

struct Transaction<'a> {
    workspace: &'a Workspace,
    /// Folders made for new files, outermost first.
    folders: Vec<PathBuf>,
    done: Vec<Done<'a>>,
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
            let known = self.folders.len();
            let place = match step.content {
                Some(_) => Anchor::make(step.path, &mut self.folders),
                None => Anchor::at(step.path),
            };
            let place = place.map_err(|error| self.error_in_folder(error, step.path))?;
            let folders = u32::try_from(self.folders.len() - known).unwrap_or(u32::MAX);
            let file = match step.content {
                Some(content) => {
                    let file = write_beside(&place, content, attributes);
                    Some(file.map_err(|e| self.error_in_folder(e, step.path))?)
                }
                None => None,
            };
            staged.push(Staged { step, place, file, attributes, folders });
        }
        Ok(staged)
    }

    fn apply(&mut self, staged: Vec<Staged<'a>>, call: &Call) -> Result<(), WriteError> {
        for Staged { step, place, file, attributes, folders } in staged {
            call.go_on()?;
            step.check_place(self.workspace, &place)?;
            let outcome = match file {
                None => place.remove_file(),
                Some(file) if step.base.is_none() => file.put_new(&place),
                Some(file) => file.put(&place),
            };
            outcome.map_err(|error| self.error(error, "write", step.path))?;
            self.done.push(Done { step, place, attributes, folders });
        }
        Ok(())
    }

    /// Undoes what was done, newest first. Gives back `cause`, or what makes it worse.
    fn roll_back(self, cause: WriteError) -> WriteError {
        let mut error = cause;
        for Done { step, place, attributes, .. } in self.done.into_iter().rev() {
            let restored = match step.base {
                None => place.remove_file(),
                Some(base) => {
                    write_beside(&place, base, attributes).and_then(|file| file.put(&place))
                }
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
            let _ = Anchor::at(folder).and_then(|folder| folder.remove_folder());
        }
        error
    }

    /// Makes the names durable. The content is safe already; a file system that cannot do this is
    /// no reason to undo a finished change.
    fn sync_folders(&self) {
        let mut folders = BTreeSet::new();
        let done = self.done.iter().filter(|done| folders.insert(done.step.path.parent()));
        let synced = done.map(|done| done.place.sync_folder());
        let made = self.folders.iter().map(|folder| Anchor::at(folder)?.sync_folder());
        for error in synced.chain(made).filter_map(Result::err) {
            tracing::warn!(%error, "a folder was not synced");
        }
    }

    /// What undo needs to know beyond what the plan told.
    fn complete(&self, described: &mut [Described]) {
        for Done { step, place, attributes, folders } in &self.done {
            let (path, exact) = self.workspace.recorded(step.path);
            let Some(Described { change, .. }) =
                described.iter_mut().find(|described| described.change.path == path)
            else {
                continue;
            };
            change.exact = exact;
            change.folders = *folders;
            if step.base.is_none() || step.content.is_none() {
                let new = || Some(Attributes::of(&place.look().ok()??));
                change.mode = attributes.or_else(new).map(|attributes| attributes.mode);
            }
        }
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
    let stat = Anchor::at(path)?.look()?;
    Ok(Attributes::of(&stat.ok_or(io::ErrorKind::NotFound)?))
}

/// A temporary file with this content in the folder of `place`, on disk.
pub(super) fn write_beside(
    place: &Anchor,
    content: &[u8],
    attributes: Option<Attributes>,
) -> io::Result<Temporary> {
    let mode = if attributes.is_some() { 0o600 } else { 0o666 };
    let (at, mut file) = new_beside(place, mode)?;
    let temporary = Temporary { at, placed: false };
    file.write_all(content)?;
    if let Some(attributes) = attributes {
        let own = file.metadata()?;
        let owner = attributes.owner.filter(|owner| *owner != own.uid()).map(Uid::from_raw);
        let group = attributes.group.filter(|group| *group != own.gid()).map(Gid::from_raw);
        // Only the superuser may give files away; others keep what they can.
        if (owner.is_some() || group.is_some()) && fchown(&file, owner, group).is_err() {
            let _ = fchown(&file, None, group);
        }
        file.set_permissions(Permissions::from_mode(attributes.mode))?;
    }
    file.sync_all()?;
    Ok(temporary)
}

/// A new file in the folder of `place`, under a name that nobody else uses.
fn new_beside(place: &Anchor, mode: u32) -> io::Result<(Anchor, fs::File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = std::process::id();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let at = place.beside(format!(".loon-{process}-{number}.tmp"))?;
        match at.open_new(OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL, mode) {
            Ok(file) => return Ok((at, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
