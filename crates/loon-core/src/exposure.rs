//! Which tools a model is told of: those that are allowed at all, and of a large set only those that
//! were asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loon_api::{ToolClass, ToolSet, ToolSpec, WorkingRecord};
use loon_kernel::{RemoteTools, Tool, native_tool};
use tokio::sync::watch;

use crate::authority::PermissionAuthority;
use crate::tool_search::ToolSearch;

/// The tools of the lean set. The others are found by search.
const LEAN: [&str; 9] = [
    "read",
    "edit",
    "write",
    "bash",
    "grep",
    "glob",
    "list_directory",
    "todo_write",
    ToolSearch::NAME,
];

/// The tools of one session and who is told of them.
#[derive(Clone)]
pub(crate) struct Exposure {
    /// Only the lean set is told of. Settings may change it while the session runs.
    lean: Arc<AtomicBool>,
    authority: Arc<PermissionAuthority>,
    record: watch::Receiver<Arc<WorkingRecord>>,
}

impl Exposure {
    pub(crate) fn new(
        set: ToolSet,
        authority: &Arc<PermissionAuthority>,
        record: watch::Receiver<Arc<WorkingRecord>>,
    ) -> Self {
        let exposure = Self { lean: Arc::default(), authority: Arc::clone(authority), record };
        exposure.choose(set);
        exposure
    }

    /// Changes the set; holds for the next request.
    pub(crate) fn choose(&self, set: ToolSet) {
        self.lean.store(set == ToolSet::Lean, Ordering::Relaxed);
    }

    /// The tools of a session with the search over them and over the remote ones.
    pub(crate) fn with_search(
        &self,
        mut tools: Vec<Arc<dyn Tool>>,
        remote: &Arc<dyn RemoteTools>,
    ) -> Arc<[Arc<dyn Tool>]> {
        let catalog = tools.iter().map(|tool| tool.spec().clone()).collect();
        tools.push(native_tool(ToolSearch::new(self.clone(), catalog, Arc::clone(remote))));
        tools.into()
    }

    /// True if the tool is in each request.
    pub(crate) fn is_offered(&self, tool: &ToolSpec) -> bool {
        (!self.is_deferred(tool) || self.is_loaded(&tool.name)) && !self.authority.denies_tool(tool)
    }

    /// True if a search may find the tool.
    pub(crate) fn is_found(&self, tool: &ToolSpec) -> bool {
        self.is_deferred(tool) && !self.authority.denies_tool(tool)
    }

    pub(crate) fn is_loaded(&self, name: &str) -> bool {
        self.record.borrow().loaded_tools.iter().any(|loaded| loaded == name)
    }

    fn is_deferred(&self, tool: &ToolSpec) -> bool {
        // However many a server has, they cost a request nothing until they are wanted.
        tool.class == ToolClass::Remote
            || self.lean.load(Ordering::Relaxed) && !LEAN.contains(&tool.name.as_str())
    }
}
