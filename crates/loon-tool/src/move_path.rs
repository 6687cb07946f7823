//! `move_path`: gives a file, folder or link another place.

use std::sync::Arc;

use loon_api::{EffectKey, EntryKind, FileChange, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};

use crate::Workspace;
use crate::blocking::blocking;
use crate::entry::{Entry, Route, may_go, outside_itself, vacant};
use crate::workspace::unfinished;
use crate::write_path::{Action, Call, Intent};

/// Moves and renames.
#[derive(Debug)]
pub(crate) struct MovePath {
    workspace: Arc<Workspace>,
}

impl MovePath {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn plan(&self, route: &Route) -> Result<Intent, String> {
        let (from, to) = route.places(&self.workspace);
        may_go(&self.workspace, &from)?;
        let entry = Entry::at(&self.workspace, &from)?;
        outside_itself(&self.workspace, &from, &to)?;
        vacant(&self.workspace, &to)?;
        let hash = (entry.kind != EntryKind::Folder).then(|| entry.hash.to_string());
        let change = FileChange {
            before: hash.clone(),
            after: hash,
            from: Some(self.workspace.exact(&from)),
            ..entry.change(&self.workspace, &to)
        };
        Ok(Intent { action: Action::Move { from, to }, change: Some(change) })
    }
}

impl NativeTool for MovePath {
    type Args = Route;

    const NAME: &'static str = "move_path";
    const DESCRIPTION: &'static str = "Move or rename a file, folder or link. Never overwrites.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, route: &Route) -> String {
        route.title(&self.workspace)
    }

    fn subjects(&self, route: &Route) -> Result<Vec<Subject>, String> {
        let (from, to) = route.places(&self.workspace);
        Ok([from, to].map(|path| Subject::Tree { access: PathAccess::Write, path }).to_vec())
    }

    fn preview(&self, route: &Route) -> Option<String> {
        let planned = self.plan(route).ok()?;
        Some(route.preview(&self.workspace, &planned, "moved"))
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, route: Route, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || route.make(&tool.workspace, &call, || tool.plan(&route), "Moved")).await
    }
}

#[cfg(test)]
mod tests;
