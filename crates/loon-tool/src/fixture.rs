//! A workspace in a temporary folder, for tests of tools.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use loon_api::{EffectKey, FileChange, PathAccess, Subject};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::Workspace;
use crate::write_path::Call;

pub(crate) struct Fixture {
    folder: Arc<TempDir>,
    pub(crate) workspace: Arc<Workspace>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        let workspace = Workspace::new(&root, folder.path().join("snapshots")).unwrap();
        Self { folder, workspace }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace.root().join(name)
    }

    /// Makes a file that the model has not seen.
    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().write_all(bytes.as_ref()).unwrap();
    }

    /// Makes a file that the model has seen.
    pub(crate) fn put_seen(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.put(name, bytes.as_ref());
        self.workspace.note_read(&self.workspace.resolve(name), bytes.as_ref());
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    /// A second process over the same folders, which knows what the first one recorded.
    pub(crate) fn resumed(&self, changes: &[(EffectKey, FileChange)]) -> Self {
        let snapshots = self.workspace.snapshots().to_owned();
        let workspace = Workspace::new(self.workspace.root(), snapshots).unwrap();
        workspace.remember_changes(changes.iter().cloned());
        Self { folder: Arc::clone(&self.folder), workspace }
    }

    /// All files and folders below the root, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        fn collect(folder: &Path, root: &Path, names: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                names.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
                if path.is_dir() && !path.is_symlink() {
                    collect(&path, root, names);
                }
            }
        }
        let mut names = Vec::new();
        collect(self.workspace.root(), self.workspace.root(), &mut names);
        names.sort();
        names
    }

    /// Names in the folder of pre-images.
    pub(crate) fn snapshots(&self) -> Vec<String> {
        let folder = self.folder.path().join("snapshots");
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

pub(crate) fn run<T: NativeTool>(tool: &T, arguments: Value) -> ToolOutput {
    run_under(tool, arguments, &CancellationToken::new())
}

pub(crate) fn run_under<T: NativeTool>(
    tool: &T,
    arguments: Value,
    cancel: &CancellationToken,
) -> ToolOutput {
    let key = next_key();
    let cx = admit(tool, &arguments, key, cancel);
    call(tool, arguments, &cx)
}

/// A call that may write anywhere.
pub(crate) fn call_anywhere() -> Call {
    let (progress, _) = mpsc::channel(8);
    let all = Subject::Path { access: PathAccess::Write, path: PathBuf::from("/") };
    Call::of(&EffectContext {
        key: next_key(),
        subjects: [all].into(),
        hidden: [].into(),
        cancel: CancellationToken::new(),
        progress,
    })
}

/// A key after all others of this process.
pub(crate) fn next_key() -> EffectKey {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    EffectKey::call(1, 0, NEXT.fetch_add(1, Ordering::SeqCst))
}

/// A context with everything that the call declares.
pub(crate) fn admit<T: NativeTool>(
    tool: &T,
    arguments: &Value,
    key: EffectKey,
    cancel: &CancellationToken,
) -> EffectContext {
    let args = serde_json::from_value(arguments.clone()).unwrap();
    let subjects = tool.subjects(&args).unwrap_or_default().into();
    // Nobody listens: a closed channel is no error.
    let (progress, _) = mpsc::channel(8);
    EffectContext { key, subjects, hidden: [].into(), cancel: cancel.clone(), progress }
}

pub(crate) fn call<T: NativeTool>(tool: &T, arguments: Value, cx: &EffectContext) -> ToolOutput {
    let arguments = serde_json::from_value(arguments).unwrap();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(tool.run(arguments, cx))
}
