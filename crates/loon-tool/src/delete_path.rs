//! `delete_path`: puts a file, folder or link into the session's trash.

use std::path::Path;
use std::sync::Arc;

use loon_api::{EffectKey, EntryKind, FileChange, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Workspace;
use crate::blocking::blocking;
use crate::edit::{failed, nothing_written};
use crate::entry::{Entry, may_go, what};
use crate::nearby;
use crate::open;
use crate::workspace::{ContentHash, unfinished};
use crate::write_path::{
    Action, Call, Intent, MAX_TEXT_BYTES, Planned, perform, preview, trash_names, trash_place, tree,
};

/// Deletes so that undo brings back.
#[derive(Debug)]
pub(crate) struct DeletePath {
    workspace: Arc<Workspace>,
}

/// Arguments of `delete_path`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    path: String,
    /// Needed for a folder that is not empty.
    #[serde(default)]
    recursive: bool,
}

impl DeletePath {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn check(&self, args: &Args, path: &Path) -> Result<Entry, String> {
        may_go(&self.workspace, path)?;
        let entry = Entry::at(&self.workspace, path)?;
        let full = entry.kind == EntryKind::Folder && !tree::children(path).is_empty();
        if full && !args.recursive {
            return Err(format!(
                "{} is {}. Set recursive to delete it with all of that.",
                self.workspace.display(path),
                what(entry.kind, path)
            ));
        }
        Ok(entry)
    }

    fn plan(&self, args: &Args, path: &Path, call: &Call) -> Result<Intent, String> {
        let entry = self.check(args, path)?;
        let name = trash_names(&self.workspace, &call.key).next().unwrap_or_default();
        let to = trash_place(&self.workspace, &name).map_err(|error| error.to_string())?;
        let hash = match entry.kind {
            EntryKind::Folder => ContentHash::of(&tree::listing(path)),
            EntryKind::File | EntryKind::Link => entry.hash,
        };
        let change = FileChange {
            before: Some(hash.to_string()),
            kept: Some(name),
            ..entry.change(&self.workspace, path)
        };
        Ok(Intent { action: Action::Move { from: path.to_owned(), to }, change: Some(change) })
    }

    fn delete(&self, args: &Args, call: &Call) -> ToolOutput {
        let _guard = self.workspace.committing();
        let path = nearby::locate_entry(&self.workspace, &args.path);
        let intent = match self.plan(args, &path, call) {
            Ok(intent) => intent,
            Err(problem) => return nothing_written(&problem),
        };
        let kind = intent.change.as_ref().map(|change| change.kind).unwrap_or_default();
        let (shown, what) = (self.workspace.display(&path), what(kind, &path));
        match perform(&self.workspace, call, &[intent]) {
            Ok(changes) => {
                let text = format!("Deleted {shown}, {what}. undo brings it back.");
                ToolOutput { changes, ..ToolOutput::ok(text, "deleted") }
            }
            Err(error) => failed(&error),
        }
    }
}

impl NativeTool for DeletePath {
    type Args = Args;

    const NAME: &'static str = "delete_path";
    const DESCRIPTION: &'static str =
        "Delete a file, folder or link (never what a link points to). undo restores it.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, args: &Args) -> String {
        self.workspace.display(&nearby::locate_entry(&self.workspace, &args.path))
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate_entry(&self.workspace, &args.path);
        Ok(vec![Subject::Tree { access: PathAccess::Write, path }])
    }

    fn preview(&self, args: &Args) -> Option<String> {
        let path = nearby::locate_entry(&self.workspace, &args.path);
        let entry = self.check(args, &path).ok()?;
        let told = format!("{}: deleted ({})\n", self.title(args), what(entry.kind, &path));
        if entry.kind == EntryKind::File
            && let Ok(base) = open::beginning(&path, MAX_TEXT_BYTES + 1)
            && base.len() as u64 <= MAX_TEXT_BYTES
        {
            let lines = preview(&self.workspace, &[Planned::Delete { path, base }]);
            return Some(format!("{told}{lines}"));
        }
        Some(told)
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || tool.delete(&args, &call)).await
    }
}

#[cfg(test)]
mod tests;
