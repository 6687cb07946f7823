//! `read_many`: shows several text files at once, bounded together.

use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::nearby;
use crate::read::LINES;
use crate::read::page::{self, PAGE, Window};
use crate::text;
use crate::workspace::Workspace;

/// Most files of one call.
const FILES: usize = 50;

/// Shows several text files.
pub struct ReadMany {
    workspace: Arc<Workspace>,
}

impl ReadMany {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

/// Arguments of `read_many`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    paths: Vec<String>,
}

impl NativeTool for ReadMany {
    type Args = Args;

    const NAME: &'static str = "read_many";
    const DESCRIPTION: &'static str = "Read several text files at once, as read does. They share one size limit: use it for short files.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let paths: Vec<String> = args.paths.iter().map(|path| text::visible_line(path)).collect();
        paths.join(", ")
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        match args.paths.len() {
            0 => return Err("paths is empty: name at least one file.".to_owned()),
            1..=FILES => {}
            many => return Err(format!("{many} files are too many: at most {FILES} a call.")),
        }
        Ok(args
            .paths
            .iter()
            .map(|path| Subject::Path {
                access: PathAccess::Read,
                path: nearby::locate(&self.workspace, path),
            })
            .collect())
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (workspace, cancel) = (Arc::clone(&self.workspace), cx.cancel.clone());
        blocking(move || read_all(&workspace, &args.paths, &cancel)).await
    }
}

fn read_all(workspace: &Workspace, paths: &[String], cancel: &CancellationToken) -> ToolOutput {
    let mut text = String::new();
    let mut shown = 0;
    let mut reads = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        let path = nearby::locate(workspace, path);
        // What one file leaves over is for the others.
        let bytes = PAGE.saturating_sub(text.len()) / (paths.len() - index);
        let window = Window { first: 1, lines: LINES, bytes };
        let name = text::visible_line(&workspace.display(&path));
        let _ = writeln!(text, "== {name} ==");
        match page::read(workspace, &path, window, cancel) {
            Ok(page) => {
                shown += 1;
                reads.extend(page.read);
                text.push_str(page.text.trim_end_matches('\n'));
            }
            Err(error) => text.push_str(&error),
        }
        text.push('\n');
    }
    let summary = match paths.len() - shown {
        0 => text::count(shown, "file"),
        failed => format!("{}, {failed} not read", text::count(shown, "file")),
    };
    let mut output = ToolOutput { reads, ..ToolOutput::ok(text, summary) };
    output.result.is_error = shown == 0;
    output
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Arc<Workspace>) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
        (folder, workspace)
    }

    fn write(workspace: &Workspace, name: &str, content: &[u8]) {
        use std::io::Write as _;
        fs::File::create(workspace.root().join(name)).unwrap().write_all(content).unwrap();
    }

    fn read(workspace: &Workspace, paths: &[&str]) -> ToolOutput {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        read_all(workspace, &paths, &CancellationToken::new())
    }

    #[test]
    fn files_and_failures_stand_side_by_side() {
        let (_folder, workspace) = workspace();
        write(&workspace, "a", b"one\n");
        write(&workspace, "b", b"");
        let output = read(&workspace, &["a", "b", "zz"]);
        assert_eq!(
            output.result.text,
            "== a ==\n1\tone\n== b ==\n[the file is empty]\n== zz ==\nzz does not exist, and nothing \
             like it in the workspace root. List that folder, or search by glob.\n"
        );
        assert_eq!(output.summary, "2 files, 1 not read");
        assert!(!output.result.is_error);
        assert!(read(&workspace, &["zz"]).result.is_error);
    }

    #[test]
    fn together_they_keep_to_one_limit() {
        let (_folder, workspace) = workspace();
        let long = "some words on a line\n".repeat(50_000);
        for name in ["a", "b", "c"] {
            write(&workspace, name, long.as_bytes());
        }
        let text = read(&workspace, &["a", "b", "c"]).result.text;
        assert!(text.len() > PAGE / 2 && text.len() < PAGE + 500, "{}", text.len());
        assert_eq!(text.matches("go on with offset").count(), 3);
        assert!(workspace.read_state(&workspace.root().join("c")).is_some());
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let (_folder, workspace) = workspace();
        let tool = ReadMany::new(&workspace);
        assert!(tool.subjects(&Args { paths: Vec::new() }).is_err());
        assert!(tool.subjects(&Args { paths: vec!["a".to_owned(); FILES + 1] }).is_err());
        let subject = Subject::Path { access: PathAccess::Read, path: workspace.root().join("a") };
        assert_eq!(tool.subjects(&Args { paths: vec!["./a".to_owned()] }), Ok(vec![subject]));
    }
}
