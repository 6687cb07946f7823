//! `copy_path`: makes a second one of a file, folder or link.

use std::sync::Arc;

use loon_api::{EffectKey, FileChange, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};

use crate::Workspace;
use crate::blocking::blocking;
use crate::entry::{Entry, Route, outside_itself, vacant};
use crate::workspace::unfinished;
use crate::write_path::{Action, Call, Intent};

/// Copies files and folders.
#[derive(Debug)]
pub(crate) struct CopyPath {
    workspace: Arc<Workspace>,
}

impl CopyPath {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn plan(&self, route: &Route) -> Result<Intent, String> {
        let (from, to) = route.places(&self.workspace);
        let entry = Entry::at(&self.workspace, &from)?;
        outside_itself(&self.workspace, &from, &to)?;
        vacant(&self.workspace, &to)?;
        let change = FileChange {
            after: Some(entry.hash.to_string()),
            copied: true,
            ..entry.change(&self.workspace, &to)
        };
        Ok(Intent { action: Action::Copy { from, to }, change: Some(change) })
    }
}

impl NativeTool for CopyPath {
    type Args = Route;

    const NAME: &'static str = "copy_path";
    const DESCRIPTION: &'static str =
        "Copy a file, or a folder with all that is in it. Links stay links. Never overwrites.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, route: &Route) -> String {
        route.title(&self.workspace)
    }

    fn subjects(&self, route: &Route) -> Result<Vec<Subject>, String> {
        let (from, to) = route.places(&self.workspace);
        Ok(vec![
            Subject::Tree { access: PathAccess::Read, path: from },
            Subject::Tree { access: PathAccess::Write, path: to },
        ])
    }

    fn preview(&self, route: &Route) -> Option<String> {
        let planned = self.plan(route).ok()?;
        Some(route.preview(&self.workspace, &planned, "copied"))
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, route: Route, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || route.make(&tool.workspace, &call, || tool.plan(&route), "Copied")).await
    }
}

#[cfg(test)]
mod tests;
