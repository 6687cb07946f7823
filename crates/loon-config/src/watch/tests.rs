//! Changes of files arrive as settings, whatever way they were made.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// Ends a test that would otherwise hang.
const LIMIT: Duration = Duration::from_secs(30);

struct Bench {
    dir: tempfile::TempDir,
    paths: Paths,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    _watch: SettingsWatch,
}

#[expect(clippy::disallowed_methods, reason = "a fixture, not a user's file")]
fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Bench {
    /// Begins to watch after `prepare` made what should be there.
    fn new(prepare: impl Fn(&Path, &Paths)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("work");
        fs::create_dir_all(&root).unwrap();
        let paths = Paths::usual(&root, Some(dir.path()), Some(&dir.path().join("settings")));
        prepare(dir.path(), &paths);
        let trust = dir.path().join("data/trusted.json");
        let first = files::load_files(&paths, &Inputs::default(), false).unwrap();
        let (watch, snapshots) =
            SettingsWatch::start(paths.clone(), Inputs::default(), trust, first, false).unwrap();
        Self { dir, paths, snapshots, _watch: watch }
    }

    fn user(&self) -> &Path {
        self.paths.user.as_deref().unwrap()
    }

    /// Waits for a snapshot of this kind.
    fn wait(&mut self, wanted: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let found = self.snapshots.wait_for(|snapshot| wanted(snapshot));
            let found = tokio::time::timeout(LIMIT, found).await.expect("a change is seen");
            Arc::clone(&found.unwrap())
        })
    }

    fn wait_turns(&mut self, turns: u32) -> Arc<Snapshot> {
        self.wait(|snapshot| snapshot.loaded.settings.session.max_turns == turns)
    }
}

fn turns(turns: u32) -> String {
    format!("[session]\nmax_turns = {turns}\n")
}

#[test]
fn files_written_replaced_made_and_removed_are_seen() {
    let mut bench = Bench::new(|_, paths| write(paths.user.as_deref().unwrap(), &turns(1)));
    assert_eq!(bench.snapshots.borrow().loaded.settings.session.max_turns, 1);
    write(bench.user(), &turns(2));
    let seen = bench.wait_turns(2);
    assert_eq!(seen.changed, [bench.user().to_owned()]);
    // As editors save: a new file is renamed over the old one.
    let beside = bench.user().with_extension("new");
    write(&beside, &turns(3));
    fs::rename(&beside, bench.user()).unwrap();
    bench.wait_turns(3);
    fs::remove_file(bench.user()).unwrap();
    bench.wait_turns(500);
    // The whole folder is new.
    fs::remove_dir(bench.user().parent().unwrap()).unwrap();
    write(bench.user(), &turns(4));
    bench.wait_turns(4);
}

#[test]
fn the_project_folder_may_come_later_and_links_are_followed() {
    let mut bench = Bench::new(|dir, paths| {
        write(&dir.join("dot/config.toml"), &turns(1));
        fs::create_dir_all(dir.join("settings")).unwrap();
        symlink("../dot/config.toml", paths.user.as_deref().unwrap()).unwrap();
    });
    write(&bench.dir.path().join("dot/config.toml"), &turns(2));
    bench.wait_turns(2);
    let deny = "[[permissions.deny_rules]]\ntool = \"bash\"\n";
    write(bench.paths.project.as_deref().unwrap(), deny);
    bench.wait(|snapshot| snapshot.loaded.rules.rules.len() == 1);
    // The link leads elsewhere.
    write(&bench.dir.path().join("other/config.toml"), &turns(3));
    fs::remove_file(bench.user()).unwrap();
    symlink("../other/config.toml", bench.user()).unwrap();
    bench.wait_turns(3);
    write(&bench.dir.path().join("other/config.toml"), &turns(4));
    bench.wait_turns(4);
}

#[test]
fn a_broken_file_keeps_what_held_and_says_so_until_it_is_mended() {
    let mut bench = Bench::new(|_, paths| write(paths.user.as_deref().unwrap(), &turns(1)));
    write(bench.user(), "[session\n");
    let seen = bench.wait(|snapshot| snapshot.problem.is_some());
    assert_eq!(seen.loaded.settings.session.max_turns, 1);
    let message = &seen.problem.as_ref().unwrap().message;
    assert!(message.contains("config.toml:1:"), "{message}");
    write(bench.user(), "permissions = []\n");
    bench.wait(|snapshot| {
        snapshot.problem.as_ref().is_some_and(|problem| problem.message.contains("table"))
    });
    write(bench.user(), &turns(2));
    let seen = bench.wait_turns(2);
    assert!(seen.recovered && seen.problem.is_none());
}

#[test]
fn trust_counts_at_once_both_ways() {
    let mut bench = Bench::new(|_, paths| write(paths.project.as_deref().unwrap(), &turns(7)));
    let file = bench.dir.path().join("data/trusted.json");
    assert_eq!(bench.snapshots.borrow().loaded.settings.session.max_turns, 500);
    let mut trust = Trust::open(&file).unwrap();
    trust.trust(&bench.paths.root, "").unwrap();
    assert!(bench.wait_turns(7).trusted);
    trust.revoke(&bench.paths.root).unwrap();
    assert!(!bench.wait_turns(500).trusted);
    write(&file, "{ nonsense");
    let seen = bench.wait(|snapshot| snapshot.problem.is_some());
    assert_eq!(seen.loaded.settings.session.max_turns, 500);
}

#[test]
fn only_what_matters_wakes_anybody() {
    let dir = PathBuf::from("/srv/repo");
    let names = RwLock::new(BTreeSet::from([dir.join(".loon")]));
    let event = |kind: EventKind, name: &str| Ok(notify::Event::new(kind).add_path(dir.join(name)));
    let made = EventKind::Create(notify::event::CreateKind::Any);
    let read = EventKind::Access(AccessKind::Open(AccessMode::Any));
    assert!(concerns(&event(made, ".loon"), &names));
    assert!(!concerns(&event(made, "src"), &names));
    assert!(!concerns(&event(read, ".loon"), &names));
}
