//! `list_directory`: the entries of one folder.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use loon_api::{PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::nearby;
use crate::text;
use crate::workspace::Workspace;

/// Most entries shown.
const ENTRIES: usize = 1000;

/// Lists folders.
pub struct ListDirectory {
    workspace: Arc<Workspace>,
}

impl ListDirectory {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

/// Arguments of `list_directory`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// Default: the workspace root.
    path: Option<String>,
}

impl Args {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

impl NativeTool for ListDirectory {
    type Args = Args;

    const NAME: &'static str = "list_directory";
    const DESCRIPTION: &'static str =
        "List all entries of one folder, hidden and ignored ones too, with sizes in bytes.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        text::visible_line(args.path())
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, args.path());
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        let workspace = Arc::clone(&self.workspace);
        blocking(move || {
            let path = nearby::locate(&workspace, args.path());
            list(&workspace, &path).unwrap_or_else(ToolOutput::error)
        })
        .await
    }
}

fn list(workspace: &Workspace, path: &Path) -> Result<ToolOutput, String> {
    folder(workspace, path)?;
    let shown = text::visible_line(&workspace.display(path));
    let entries =
        std::fs::read_dir(path).map_err(|error| format!("{shown} cannot be listed: {error}."))?;
    let mut lines: Vec<String> = entries.flatten().map(|entry| line(&entry)).collect();
    lines.sort();
    let total = lines.len();
    let count = text::count(total, "entry");
    if total == 0 {
        return Ok(ToolOutput::ok("[the folder is empty]", count));
    }
    lines.truncate(ENTRIES);
    let mut text = lines.concat();
    if total > ENTRIES {
        let _ = writeln!(text, "[{ENTRIES} of {total} entries; narrow down with glob]");
    }
    Ok(ToolOutput::ok(text, count))
}

fn line(entry: &std::fs::DirEntry) -> String {
    let name = text::visible_line(&entry.file_name().to_string_lossy());
    match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => format!("{name}/\n"),
        Ok(metadata) if metadata.is_symlink() => {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            format!("{name} -> {}\n", text::visible_line(&target.to_string_lossy()))
        }
        Ok(metadata) => format!("{name}\t{}\n", metadata.len()),
        Err(_) => format!("{name}\n"),
    }
}

/// Makes sure that `path` is a folder. The error is what the model reads.
pub(crate) fn folder(workspace: &Workspace, path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => {
            let shown = text::visible_line(&workspace.display(path));
            Err(format!("{shown} is a file, not a folder: use read or file_info."))
        }
        Err(_) => Err(nearby::missing(workspace, path)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn entries_of_all_sorts_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
        let root = workspace.root();
        assert_eq!(list(&workspace, root).unwrap().result.text, "[the folder is empty]");
        fs::create_dir(root.join("src")).unwrap();
        fs::File::create(root.join(".hidden")).unwrap();
        fs::File::create(root.join("two\nlines")).unwrap().set_len(12).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("link")).unwrap();
        let output = list(&workspace, root).unwrap();
        assert_eq!(output.result.text, ".hidden\t0\nlink -> nowhere\nsrc/\ntwo␊lines\t12\n");
        assert_eq!(output.summary, "4 entries");
        assert_eq!(
            list(&workspace, &root.join(".hidden")).unwrap_err(),
            ".hidden is a file, not a folder: use read or file_info."
        );
        assert_eq!(
            list(&workspace, &root.join("scr")).unwrap_err(),
            "scr does not exist. Did you mean src?"
        );
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
        for number in 0..=ENTRIES {
            fs::File::create(folder.path().join(number.to_string())).unwrap();
        }
        let text = list(&workspace, workspace.root()).unwrap().result.text;
        assert_eq!(text.lines().count(), ENTRIES + 1);
        assert!(text.ends_with("[1000 of 1001 entries; narrow down with glob]\n"));
    }
}
