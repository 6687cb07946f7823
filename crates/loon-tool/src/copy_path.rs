//! `copy_path`: makes a second one of a file, folder or link.

use std::path::PathBuf;
use std::sync::Arc;

use loon_api::{FileChange, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Workspace;
use crate::blocking::blocking;
use crate::edit::{failed, nothing_written};
use crate::entry::{Entry, outside_itself, vacant, what};
use crate::nearby;
use crate::text::visible_line;
use crate::write_path::{Action, Call, Intent, perform};

/// Copies files and folders.
#[derive(Debug)]
pub(crate) struct CopyPath {
    workspace: Arc<Workspace>,
}

/// Arguments of `copy_path`.
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

impl CopyPath {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn plan(&self, args: &Args) -> Result<Intent, String> {
        let (from, to) = args.places(&self.workspace);
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

    fn make(&self, args: &Args, call: &Call) -> ToolOutput {
        let _guard = self.workspace.committing();
        let intent = match self.plan(args) {
            Ok(intent) => intent,
            Err(problem) => return nothing_written(&problem),
        };
        match perform(&self.workspace, call, &[intent]) {
            Ok(changes) => {
                let (_, to) = args.places(&self.workspace);
                let kind = changes.first().map(|change| change.kind).unwrap_or_default();
                let text = format!("Copied {}: {}.", self.title(args), what(kind, &to));
                ToolOutput { changes, ..ToolOutput::ok(text, "copied") }
            }
            Err(error) => failed(&error),
        }
    }
}

impl NativeTool for CopyPath {
    type Args = Args;

    const NAME: &'static str = "copy_path";
    const DESCRIPTION: &'static str =
        "Copy a file, or a folder with all that is in it. Links stay links. Never overwrites.";
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
        Ok(vec![
            Subject::Tree { access: PathAccess::Read, path: from },
            Subject::Tree { access: PathAccess::Write, path: to },
        ])
    }

    fn preview(&self, args: &Args) -> Option<String> {
        self.plan(args).ok()?;
        let (from, _) = args.places(&self.workspace);
        let entry = Entry::at(&self.workspace, &from).ok()?;
        Some(format!("{}: copied ({})", self.title(args), what(entry.kind, &from)))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || tool.make(&args, &call)).await
    }
}

#[cfg(test)]
mod tests;
