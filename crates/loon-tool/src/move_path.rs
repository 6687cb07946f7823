//! `move_path`: gives a file, folder or link another place.

use std::path::PathBuf;
use std::sync::Arc;

use loon_api::{EntryKind, FileChange, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Workspace;
use crate::blocking::blocking;
use crate::edit::{failed, nothing_written};
use crate::entry::{Entry, may_go, outside_itself, vacant, what};
use crate::nearby;
use crate::text::visible_line;
use crate::write_path::{Action, Call, Intent, perform};

/// Moves and renames.
#[derive(Debug)]
pub(crate) struct MovePath {
    workspace: Arc<Workspace>,
}

/// Arguments of `move_path`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    from: String,
    /// The whole new path; nothing may be there.
    to: String,
}

impl Args {
    fn places(&self, workspace: &Workspace) -> (PathBuf, PathBuf) {
        let place = |path: &str| nearby::locate_entry(workspace, path);
        (place(&self.from), place(&self.to))
    }
}

impl MovePath {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn plan(&self, args: &Args) -> Result<Intent, String> {
        let (from, to) = args.places(&self.workspace);
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

    fn make(&self, args: &Args, call: &Call) -> ToolOutput {
        let _guard = self.workspace.committing();
        let intent = match self.plan(args) {
            Ok(intent) => intent,
            Err(problem) => return nothing_written(&problem),
        };
        match perform(&self.workspace, call, &[intent]) {
            Ok(changes) => {
                let text = format!("Moved {}.", self.title(args));
                ToolOutput { changes, ..ToolOutput::ok(text, "moved") }
            }
            Err(error) => failed(&error),
        }
    }
}

impl NativeTool for MovePath {
    type Args = Args;

    const NAME: &'static str = "move_path";
    const DESCRIPTION: &'static str = "Move or rename a file, folder or link. Never overwrites.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, args: &Args) -> String {
        let (from, to) = args.places(&self.workspace);
        visible_line(&format!(
            "{} to {}",
            self.workspace.display(&from),
            self.workspace.display(&to)
        ))
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let (from, to) = args.places(&self.workspace);
        Ok([from, to].map(|path| Subject::Tree { access: PathAccess::Write, path }).to_vec())
    }

    fn preview(&self, args: &Args) -> Option<String> {
        self.plan(args).ok()?;
        let (from, _) = args.places(&self.workspace);
        let entry = Entry::at(&self.workspace, &from).ok()?;
        Some(format!("{}: moved ({})", self.title(args), what(entry.kind, &from)))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || tool.make(&args, &call)).await
    }
}

#[cfg(test)]
mod tests;
