//! The folder a session works in: how its paths are resolved and shown, and what the model has
//! seen of its files.

mod ledger;
mod log;
pub(crate) mod unfinished;

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ledger::Ledger;
pub use ledger::{ContentHash, Seen};
pub(crate) use log::{ChangeLog, Target};
use loon_api::{EffectKey, FileChange, FileRead};

use crate::text::visible_line;

/// The folder a session works in. Shared by all its tools.
pub struct Workspace {
    root: PathBuf,
    snapshots: PathBuf,
    ledger: Mutex<Ledger>,
    commits: Mutex<()>,
    log: Mutex<ChangeLog>,
    others: OnceLock<Box<Others>>,
}

/// Says who else left the file at an absolute path as it is now, by the hash of its bytes; a sentence.
pub type Others = dyn Fn(&Path, ContentHash) -> Option<String> + Send + Sync;

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Workspace {
    /// A workspace at `root` (absolute, existing), whose pre-images of changed files are kept in
    /// the folder `snapshots`, made when first needed.
    pub fn new(root: &Path, snapshots: PathBuf) -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            root: root.canonicalize()?,
            snapshots,
            ledger: Mutex::default(),
            commits: Mutex::default(),
            log: Mutex::default(),
            others: OnceLock::new(),
        }))
    }

    /// Whom to ask when a file is not as it was read. Asked only then; the first one given counts.
    pub fn ask_others(&self, others: Box<Others>) {
        let _ = self.others.set(others);
    }

    /// Who else left a file as it is now, as a sentence behind a blank; empty if nobody knows.
    pub(crate) fn who_changed(&self, path: &Path, now: ContentHash) -> String {
        let told = self.others.get().and_then(|others| others(path, now));
        told.map(|words| format!(" {words}")).unwrap_or_default()
    }

    /// Remembers the file changes of earlier processes, oldest first, each with its call, and those
    /// of a call that an end of its process cut off.
    pub fn remember_changes(&self, changes: impl IntoIterator<Item = (EffectKey, FileChange)>) {
        let mut log = self.log();
        changes.into_iter().for_each(|(key, change)| log.add(key, change));
        if let Some((key, changes)) = unfinished::found(self, |key| log.knows(key)) {
            for change in changes {
                log.add(key.clone(), change);
            }
        }
    }

    /// The file changes of the session.
    pub(crate) fn log(&self) -> MutexGuard<'_, ChangeLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Folder for what was removed, beside the one for pre-images.
    pub(crate) fn trash(&self) -> PathBuf {
        self.snapshots.with_file_name("trash")
    }

    /// Resolves a path that the model wrote to the entry itself: the last name is taken as it is,
    /// also if it is a link.
    pub(crate) fn resolve_entry(&self, path: &str) -> PathBuf {
        let whole = self.root.join(path);
        match (whole.parent(), whole.file_name()) {
            (Some(folder), Some(name)) => resolve_links(folder).join(name),
            _ => self.resolve(path),
        }
    }

    /// A path for the record: as shown, and exactly if that is something else.
    pub(crate) fn recorded(&self, path: &Path) -> (String, Option<String>) {
        let shown = self.display(path);
        let exact = self.exact(path);
        (shown.clone(), (shown != exact).then_some(exact))
    }

    /// A path for the record alone.
    pub(crate) fn exact(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// The root, absolute and without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Folder for pre-images of changed files.
    pub fn snapshots(&self) -> &Path {
        &self.snapshots
    }

    /// Resolves a path that the model wrote: relative to the root, `.` and `..` taken out, links of
    /// the part that exists followed. The result is absolute; the file need not exist.
    pub fn resolve(&self, path: &str) -> PathBuf {
        resolve_links(&self.root.join(path))
    }

    /// Remembers that the model has seen this file, `content` being all its bytes (also when only
    /// some lines were shown). Without it the file cannot be edited or overwritten. Gives what the
    /// call tells of it.
    pub fn note_read(&self, path: &Path, content: &[u8]) -> FileRead {
        let hash = self.ledger().note(path, content);
        FileRead { path: path.to_string_lossy().into_owned(), sha256: hash.to_string() }
    }

    /// Remembers what the model saw in an earlier process: absolute paths without links, with the
    /// hash of the file at that time.
    pub fn remember_reads<'a>(&self, reads: impl IntoIterator<Item = (&'a Path, &'a str)>) {
        let mut ledger = self.ledger();
        for (path, sha256) in reads {
            if let Ok(hash) = sha256.parse() {
                ledger.remember(path, hash);
            }
        }
    }

    /// The file as the model saw it last; absent if it never did in this session. `path` as
    /// [`Workspace::resolve`] gives it.
    pub fn read_state(&self, path: &Path) -> Option<Seen> {
        self.ledger().get(path)
    }

    /// What is known of files at or below a place holds for another place now.
    pub(crate) fn moved(&self, from: &Path, to: &Path) {
        self.ledger().moved(from, to);
    }

    /// The file is gone; a new one at its place is not known.
    pub(crate) fn forget(&self, path: &Path) {
        self.ledger().forget(path);
    }

    /// Held while a change is checked and put in place, so that two calls cannot interleave.
    pub(crate) fn committing(&self) -> MutexGuard<'_, ()> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path as shown: relative to the root if inside, else absolute; one line without control
    /// characters.
    pub fn display(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => visible_line(&inside.to_string_lossy()),
            Err(_) => visible_line(&path.to_string_lossy()),
        }
    }
}

/// Follows links component by component, so that `link/..` means what the kernel means by it; what
/// does not exist is kept as written.
fn resolve_links(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::RootDir | Component::Prefix(_) => resolved.push(component.as_os_str()),
            Component::Normal(name) => {
                resolved.push(name);
                if let Ok(real) = resolved.canonicalize() {
                    resolved = real;
                }
            }
        }
    }
    resolved
}
