//! The tools of a session as data, for those who only want to look.

use std::sync::Arc;

use loon_api::{ErrorInfo, ExecutionKind, ToolSpec};
use loon_kernel::{Execution, MemoryStore, StartOptions};
use tokio::sync::mpsc;

use crate::conversation::Conversation;
use crate::deps::Dependencies;
use crate::session::Session;
use crate::subagent::Lineage;

/// A tool, and whether a request of a new session would hold it.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogEntry {
    /// What models are told of it.
    pub tool: ToolSpec,
    /// It is in each request: neither denied as a whole nor left to `tool_search`.
    pub offered: bool,
}

/// The tools of a new session, in the order in which models are told of them. No session is begun.
pub async fn tool_catalog(deps: &Dependencies) -> Result<Vec<CatalogEntry>, ErrorInfo> {
    let mut deps = deps.clone();
    deps.store = Arc::new(MemoryStore::default());
    let start = StartOptions {
        exec: None,
        kind: ExecutionKind::Session,
        cwd: deps.options.cwd.display().to_string(),
        parent: None,
        deadline: None,
    };
    // Nobody reads: a closed line is no error.
    let (events, _) = mpsc::channel(1);
    let (_, commands) = mpsc::channel(1);
    let execution = Execution::start(
        Arc::clone(&deps.store),
        Arc::clone(&deps.clock),
        deps.redactor.clone(),
        start,
        events,
    )
    .await
    .map_err(|error| error.info())?;
    let past = Conversation::default();
    let session = Session::new(deps, Lineage::Root, execution, past, commands)?;
    let entry = |tool: &Arc<dyn loon_kernel::Tool>| CatalogEntry {
        tool: tool.spec().clone(),
        offered: session.exposure.is_offered(tool.spec()),
    };
    Ok(session.tools.iter().map(entry).collect())
}
