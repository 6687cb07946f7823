//! The native tools over the folder of a session.

use std::sync::Arc;

use loon_api::{ErrorCode, ErrorInfo};
use loon_core::SessionIndex;
use loon_core::deps::ToolFactory;
use loon_exec::Spawner;
use loon_kernel::FileStore;
use loon_tool::{Environment, LiveWebOptions, Workspace, native_tools};

/// Makes the tools of each execution over its folder. `spawner` starts their processes.
pub(super) fn factory(
    store: Arc<FileStore>,
    spawner: Spawner,
    web: LiveWebOptions,
    index: SessionIndex,
) -> Arc<ToolFactory> {
    Arc::new(move |session| {
        let snapshots = store.dir(session.exec).join("snapshots");
        let workspace = Workspace::new(session.cwd, snapshots).map_err(|error| {
            let message = format!("Cannot work in {}: {error}", session.cwd.display());
            ErrorInfo::new(ErrorCode::Io, message)
        })?;
        let reads = session.past.reads.iter();
        workspace.remember_reads(reads.map(|(path, hash)| (path.as_path(), hash.as_str())));
        workspace.remember_changes(session.past.changes.iter().cloned());
        let (index, store, own) = (index.clone(), Arc::clone(&store), session.exec);
        workspace.ask_others(Box::new(move |path, now| {
            let found = index.who_changed(store.as_ref(), path, &now.to_string(), own);
            found.ok().flatten().map(|changer| changer.words())
        }));
        Ok(native_tools(&Environment {
            workspace,
            spawner: spawner.clone(),
            processes: Arc::default(),
            record: session.record.clone(),
            web: web.clone(),
        }))
    })
}
