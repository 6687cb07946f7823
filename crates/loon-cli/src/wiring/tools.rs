//! The native tools over the folder of a session.

use std::path::PathBuf;
use std::sync::Arc;

use loon_api::{ErrorCode, ErrorInfo};
use loon_core::deps::ToolFactory;
use loon_exec::Spawner;
use loon_kernel::FileStore;
use loon_tool::{Environment, Workspace, native_tools};

/// Makes the tools of each execution over `root`. Their processes do not see the variables named
/// `secrets`.
pub(super) fn factory(
    root: PathBuf,
    store: Arc<FileStore>,
    secrets: Vec<String>,
) -> Arc<ToolFactory> {
    let spawner = Spawner::new(secrets);
    Arc::new(move |session| {
        let snapshots = store.dir(session.exec).join("snapshots");
        let workspace = Workspace::new(&root, snapshots).map_err(|error| {
            let message = format!("Cannot work in {}: {error}", root.display());
            ErrorInfo::new(ErrorCode::Io, message)
        })?;
        let reads = session.past.reads.iter();
        workspace.remember_reads(reads.map(|(path, hash)| (path.as_str(), hash.as_str())));
        workspace.remember_changes(session.past.changes.iter().cloned());
        let record = session.record.clone();
        Ok(native_tools(&Environment { workspace, spawner: spawner.clone(), record }))
    })
}
