//! How a writer hears at once that another one took over, without looking again and again: whoever
//! takes a newer fence writes into the file `wake` beside the journal, which the system watches for
//! the writer. Nothing else writes there, so a writer that nobody takes over is never woken.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

/// How often the fence is looked at where the system watches no files.
const FENCE_CHECK: Duration = Duration::from_millis(700);

/// The one watcher of a store, made when the first writer listens.
pub(super) struct Wakes {
    watching: OnceLock<Option<Mutex<Watching>>>,
    rung: watch::Sender<()>,
}

struct Watching {
    watcher: RecommendedWatcher,
    /// How many listen to each file.
    listeners: HashMap<PathBuf, usize>,
}

impl std::fmt::Debug for Wakes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wakes")
    }
}

impl Wakes {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { watching: OnceLock::new(), rung: watch::Sender::new(()) })
    }

    /// Nothing where the system watches no files.
    fn watching(&self) -> Option<MutexGuard<'_, Watching>> {
        let make = || {
            let rung = self.rung.clone();
            // Who is woken for nothing looks at its fence and goes on; so whose file it was, and
            // what went wrong, need not be told.
            let watcher = notify::recommended_watcher(move |_| {
                rung.send_replace(());
            });
            let listeners = HashMap::new();
            watcher.ok().map(|watcher| Mutex::new(Watching { watcher, listeners }))
        };
        let watching = self.watching.get_or_init(make).as_ref()?;
        Some(watching.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Watching {
    fn add(&mut self, path: &Path) -> bool {
        let listeners = self.listeners.entry(path.to_path_buf()).or_default();
        *listeners += 1;
        if *listeners > 1 || self.watcher.watch(path, RecursiveMode::NonRecursive).is_ok() {
            return true;
        }
        self.listeners.remove(path);
        false
    }

    fn remove(&mut self, path: &Path) {
        let Some(listeners) = self.listeners.get_mut(path) else { return };
        *listeners -= 1;
        if *listeners == 0 {
            self.listeners.remove(path);
            // Fails if the file is gone, and its watch with it.
            let _ = self.watcher.unwatch(path);
        }
    }
}

/// A writer's ear. It hears what is rung after it was made.
pub(super) struct Listener {
    wakes: Arc<Wakes>,
    path: PathBuf,
    rung: watch::Receiver<()>,
    watched: bool,
}

impl Listener {
    pub(super) fn new(wakes: &Arc<Wakes>, dir: &Path) -> Self {
        let path = dir.join("wake");
        let rung = wakes.rung.subscribe();
        let made = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let watched = made.is_ok() && wakes.watching().is_some_and(|mut it| it.add(&path));
        Self { wakes: Arc::clone(wakes), path, rung, watched }
    }

    /// Completes when it is time to look at the fence.
    pub(super) async fn heard(&mut self) {
        // The sender lives in `wakes`, so an error cannot come up.
        if !self.watched || self.rung.changed().await.is_err() {
            tokio::time::sleep(FENCE_CHECK).await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let (true, Some(mut watching)) = (self.watched, self.wakes.watching()) {
            watching.remove(&self.path);
        }
    }
}

/// Wakes whoever listens beside the journal in `dir`. Nobody who does is no error, and neither is a
/// file that cannot be written: the fence holds either way, and is found at the next write.
pub(super) fn ring(dir: &Path) {
    let bell = OpenOptions::new().write(true).open(dir.join("wake"));
    let _ = bell.and_then(|mut bell| bell.write_all(b"\n"));
}
