//! The native tools over the folder of a session.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{ErrorCode, ErrorInfo};
use loon_config::Settings;
use loon_core::SessionIndex;
use loon_core::deps::ToolFactory;
use loon_exec::Spawner;
use loon_kernel::FileStore;
use loon_tool::{Environment, LiveWebOptions, UserToolConfig, Workspace, native_tools, user_tools};

/// Makes the tools of each execution over its folder. `spawner` starts their processes.
pub(super) fn factory(
    store: Arc<FileStore>,
    spawner: Spawner,
    web: LiveWebOptions,
    index: SessionIndex,
    own: Vec<UserToolConfig>,
) -> Arc<ToolFactory> {
    Arc::new(move |session| {
        let spawner = spawner.owned_by(&session.exec.to_string());
        let snapshots = store.dir(session.exec).join("snapshots");
        let workspace = Workspace::new(session.cwd, snapshots).map_err(|error| {
            let message = format!("Cannot work in {}: {error}", session.cwd.display());
            ErrorInfo::new(ErrorCode::Io, message)
        })?;
        let reads = session.past.reads.iter();
        workspace.remember_reads(reads.map(|(path, hash)| (path.as_path(), hash.as_str())));
        workspace.remember_changes(session.past.changes.iter().cloned());
        let (index, store, exec) = (index.clone(), Arc::clone(&store), session.exec);
        workspace.ask_others(Box::new(move |path, now| {
            let found = index.who_changed(store.as_ref(), path, &now.to_string(), exec);
            found.ok().flatten().map(|changer| changer.words())
        }));
        // Of two tools with one name the later goes; the native ones are not to be replaced.
        let (mut tools, _) = user_tools(&own, session.cwd, &spawner);
        tools.extend(native_tools(&Environment {
            workspace,
            spawner,
            processes: Arc::default(),
            record: session.record.clone(),
            web: web.clone(),
        }));
        Ok(tools)
    })
}

/// The tools of the settings.
pub(super) fn of_settings(settings: &Settings) -> Vec<UserToolConfig> {
    let tools = settings.tools.iter();
    tools
        .map(|(name, tool)| UserToolConfig {
            name: name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            command: tool.command.clone(),
            timeout: tool.timeout_secs.map(Duration::from_secs),
            warm: tool.warm,
        })
        .collect()
}
