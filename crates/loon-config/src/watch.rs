//! Settings files as they change: who waits on the channel always gets the newest settings that could
//! be read, and is told when the files say something that cannot.
//!
//! Folders are watched rather than files, because editors replace a file by renaming another one over
//! it. Nothing is polled; without a change both threads sleep.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use loon_api::{ErrorCode, ErrorInfo};
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

use crate::error::ConfigError;
use crate::files::{self, Inputs, MOST_LINKS, Paths};
use crate::load::{Fingerprint, Loaded, load};
use crate::trust::Trust;

/// How long files must be quiet before they are read: one save is several changes.
const QUIET: Duration = Duration::from_millis(60);

/// Longest time a change waits for quiet.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the folders are looked up anew after one change; each look can only find what was made
/// meanwhile.
const LOOKS: usize = 8;

/// The settings at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The newest settings that could be read.
    pub loaded: Arc<Loaded>,
    /// A person trusts the folder.
    pub trusted: bool,
    /// Files that changed since the snapshot before.
    pub changed: Vec<PathBuf>,
    /// Why what the files say now does not hold.
    pub problem: Option<ErrorInfo>,
    /// There was a problem before this snapshot.
    pub recovered: bool,
}

/// Watches until it is dropped.
pub struct SettingsWatch {
    wake: SyncSender<()>,
    stopped: Arc<AtomicBool>,
}

impl SettingsWatch {
    /// Watches the files of `paths` and the file of trusted folders. `first` are the settings in force,
    /// and what changed since they were read is found at once.
    pub fn start(
        paths: Paths,
        inputs: Inputs,
        trust_file: PathBuf,
        first: Loaded,
        trusted: bool,
    ) -> Result<(Self, watch::Receiver<Arc<Snapshot>>), ErrorInfo> {
        let (wake, woken) = sync_channel(1);
        let stopped = Arc::new(AtomicBool::new(false));
        let names = Arc::new(RwLock::new(BTreeSet::new()));
        let watcher = {
            let (wake, names) = (wake.clone(), Arc::clone(&names));
            notify::recommended_watcher(move |event| {
                if concerns(&event, &names) {
                    // A full channel says that a look is due already.
                    let _ = wake.try_send(());
                }
            })
        };
        let watcher = watcher.map_err(|error| cannot_watch(&error))?;
        let snapshot = Snapshot {
            loaded: Arc::new(first),
            trusted,
            changed: Vec::new(),
            problem: None,
            recovered: false,
        };
        let (sender, receiver) = watch::channel(Arc::new(snapshot));
        let mut worker = Worker {
            fingerprint: receiver.borrow().loaded.fingerprint.clone(),
            trust_problem: None,
            paths,
            inputs,
            trust_file,
            watcher,
            folders: BTreeSet::new(),
            names,
            sender,
        };
        worker.watch_folders()?;
        let flag = Arc::clone(&stopped);
        std::thread::Builder::new()
            .name("settings".into())
            .spawn(move || worker.run(&woken, &flag))
            .map_err(|error| ErrorInfo::new(ErrorCode::Io, format!("No thread: {error}")))?;
        Ok((Self { wake, stopped }, receiver))
    }
}

impl Drop for SettingsWatch {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        let _ = self.wake.try_send(());
    }
}

fn cannot_watch(error: &notify::Error) -> ErrorInfo {
    let message = format!("Changes of the settings are not seen while Loom runs: {error}");
    ErrorInfo::new(ErrorCode::Io, message)
        .hint("Start Loom anew after a change, or raise the system's limit of watched files.")
}

/// True if an event is about one of `names`. Reading a file is an event too, and none of these.
fn concerns(event: &notify::Result<notify::Event>, names: &RwLock<BTreeSet<PathBuf>>) -> bool {
    let Ok(event) = event else { return true };
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
        EventKind::Access(_) => return false,
        _ => {}
    }
    let names = names.read().unwrap_or_else(PoisonError::into_inner);
    event.need_rescan() || event.paths.iter().any(|path| names.contains(path))
}

struct Worker {
    paths: Paths,
    inputs: Inputs,
    trust_file: PathBuf,
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
    names: Arc<RwLock<BTreeSet<PathBuf>>>,
    sender: watch::Sender<Arc<Snapshot>>,
    /// Of the files as they were last looked at.
    fingerprint: Fingerprint,
    /// Why the files could not even be looked at.
    trust_problem: Option<ErrorInfo>,
}

impl Worker {
    fn run(mut self, woken: &Receiver<()>, stopped: &AtomicBool) {
        self.look();
        while woken.recv().is_ok() {
            let late = Instant::now() + PATIENCE;
            while !stopped.load(Ordering::Acquire) && Instant::now() < late {
                match woken.recv_timeout(QUIET) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            if stopped.load(Ordering::Acquire) || self.sender.is_closed() {
                return;
            }
            self.look();
        }
    }

    /// Reads what is there now. Folders that came about are watched first, so that nothing that
    /// happens in them later is missed.
    fn look(&mut self) {
        for _ in 0..LOOKS {
            let settled = !self.watch_folders().unwrap_or(false);
            self.reload();
            if settled {
                return;
            }
        }
    }

    /// Watches the folders that matter now. True if there are others than before.
    fn watch_folders(&mut self) -> Result<bool, ErrorInfo> {
        let mut folders = BTreeSet::new();
        let mut names = BTreeSet::new();
        let Paths { user, project, local, servers, .. } = &self.paths;
        let files = [user, project, local, servers];
        for file in files.into_iter().flatten().chain([&self.trust_file]) {
            trace(file, &mut folders, &mut names);
        }
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = names;
        let mut failure = None;
        let mut changed = false;
        for gone in self.folders.difference(&folders) {
            // A folder that was removed is not watched any more anyway.
            let _ = self.watcher.unwatch(gone);
            changed = true;
        }
        let mut watched: BTreeSet<PathBuf> = self.folders.intersection(&folders).cloned().collect();
        for new in folders.difference(&self.folders) {
            match self.watcher.watch(new, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    changed = true;
                    watched.insert(new.clone());
                }
                Err(error) => failure = Some(cannot_watch(&error)),
            }
        }
        self.folders = watched;
        failure.map_or(Ok(changed), Err)
    }

    fn reload(&mut self) {
        let looked = Trust::open(&self.trust_file).and_then(|trust| {
            let trusted = trust.is_trusted(&self.paths.root);
            Ok((files::read(&self.paths, &self.inputs, trusted)?, trusted))
        });
        let (sources, trusted) = match looked {
            Ok(looked) => looked,
            Err(error) => return self.keep(&error, None),
        };
        let fingerprint = sources.fingerprint();
        if fingerprint == self.fingerprint && self.trust_problem.is_none() {
            return;
        }
        let changed = self.changed(&fingerprint);
        self.fingerprint = fingerprint;
        let loaded = load(&sources).map(files::with_real_roots);
        match loaded {
            Err(error) => self.keep(&error, Some(changed)),
            Ok(loaded) => {
                self.trust_problem = None;
                self.sender.send_modify(|snapshot| {
                    *snapshot = Arc::new(Snapshot {
                        loaded: Arc::new(loaded),
                        trusted,
                        changed,
                        problem: None,
                        recovered: snapshot.problem.is_some(),
                    });
                });
            }
        }
    }

    /// Keeps the last good settings and says why.
    fn keep(&mut self, error: &ConfigError, changed: Option<Vec<PathBuf>>) {
        let problem = error.info();
        if changed.is_none() {
            if self.trust_problem.as_ref() == Some(&problem) {
                return;
            }
            self.trust_problem = Some(problem.clone());
        }
        self.sender.send_modify(|snapshot| {
            *snapshot = Arc::new(Snapshot {
                changed: changed.unwrap_or_default(),
                problem: Some(problem),
                recovered: false,
                ..Snapshot::clone(snapshot)
            });
        });
    }

    /// The files whose text is another than at the last look.
    fn changed(&self, now: &Fingerprint) -> Vec<PathBuf> {
        let Paths { user, project, local, servers, .. } = &self.paths;
        let files = [user, project, local, servers];
        let hashes = self.fingerprint.files.iter().zip(&now.files);
        let changed = hashes.zip(files).filter(|((before, now), _)| before != now);
        changed.filter_map(|(_, file)| file.clone()).collect()
    }
}

/// Collects the folders to watch for one file, and the names in them that matter: the file itself,
/// each link on the way to it, the folder it is in, and where that is missing, what will be made first.
fn trace(file: &Path, folders: &mut BTreeSet<PathBuf>, names: &mut BTreeSet<PathBuf>) {
    let mut file = file.to_owned();
    for _ in 0..MOST_LINKS {
        watch_name(&file, folders, names);
        if let Some(parent) = file.parent() {
            watch_name(parent, folders, names);
        }
        let Ok(link) = std::fs::read_link(&file) else { return };
        file = file.parent().unwrap_or(Path::new("")).join(link);
    }
}

/// The nearest folder above `path` that exists, and the name in it that leads to `path`.
fn watch_name(path: &Path, folders: &mut BTreeSet<PathBuf>, names: &mut BTreeSet<PathBuf>) {
    for path in path.ancestors() {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        // Watched under its real path: that is how events name it.
        if let Ok(folder) = parent.canonicalize()
            && folder.is_dir()
        {
            names.insert(folder.join(name));
            folders.insert(folder);
            return;
        }
    }
}

#[cfg(test)]
mod tests;
