//! `make_directory`: makes a folder.

use std::sync::Arc;

use loon_api::{EffectKey, EntryKind, FileChange, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Workspace;
use crate::blocking::blocking;
use crate::edit::{failed, nothing_written};
use crate::nearby;
use crate::workspace::{ContentHash, unfinished};
use crate::write_path::{Action, Call, Intent, perform};

/// Makes a folder and those above it.
#[derive(Debug)]
pub(crate) struct MakeDirectory {
    workspace: Arc<Workspace>,
}

/// Arguments of `make_directory`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    path: String,
}

impl MakeDirectory {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn make(&self, args: &Args, call: &Call) -> ToolOutput {
        let _guard = self.workspace.committing();
        let path = nearby::locate(&self.workspace, &args.path);
        let (shown, exact) = self.workspace.recorded(&path);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                return ToolOutput::ok(format!("{shown} exists already."), "exists");
            }
            Ok(_) => {
                let problem = format!("{shown} exists already and is no folder.");
                return nothing_written(&problem);
            }
            Err(_) => {}
        }
        let change = FileChange {
            path: shown.clone(),
            exact,
            kind: EntryKind::Folder,
            after: Some(ContentHash::of(b"").to_string()),
            ..FileChange::default()
        };
        let intent = Intent { action: Action::Folder { path }, change: Some(change) };
        match perform(&self.workspace, call, &[intent]) {
            Ok(changes) => {
                ToolOutput { changes, ..ToolOutput::ok(format!("Made {shown}."), "made") }
            }
            Err(error) => failed(&error),
        }
    }
}

impl NativeTool for MakeDirectory {
    type Args = Args;

    const NAME: &'static str = "make_directory";
    const DESCRIPTION: &'static str =
        "Make an empty folder and those above it. write makes folders by itself.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, args: &Args) -> String {
        self.workspace.display(&nearby::locate(&self.workspace, &args.path))
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, &args.path);
        Ok(vec![Subject::Path { access: PathAccess::Write, path }])
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || tool.make(&args, &call)).await
    }
}

#[cfg(test)]
mod tests;
