//! The native tools over the folder of a session.

use std::sync::Arc;

use loon_api::{ErrorCode, ErrorInfo};
use loon_core::deps::ToolFactory;
use loon_exec::Spawner;
use loon_kernel::FileStore;
use loon_tool::{Environment, Workspace, native_tools};

/// Makes the tools of each execution over its folder. Their processes do not see the variables
/// named `secrets`.
pub(super) fn factory(
    store: Arc<FileStore>,
    secrets: Vec<String>,
) -> Arc<ToolFactory> {
    let spawner = Spawner::new(secrets);
    Arc::new(move |session| {
        let snapshots = store.dir(session.exec).join("snapshots");
        let workspace = Workspace::new(session.cwd, snapshots).map_err(|error| {
            let message = format!("Cannot work in {}: {error}", session.cwd.display());
            ErrorInfo::new(ErrorCode::Io, message)
        })?;
        let reads = session.past.reads.iter();
        workspace.remember_reads(reads.map(|(path, hash)| (path.as_str(), hash.as_str())));
        let record = session.record.clone();
        let (spawner, processes) = (spawner.clone(), Arc::default());
        Ok(native_tools(&Environment { workspace, spawner, processes, record }))
    })
}
