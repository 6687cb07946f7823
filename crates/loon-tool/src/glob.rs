//! `glob`: finds files by the pattern of their names.

pub(crate) mod pattern;

use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::list_directory::folder;
use crate::nearby;
use crate::text;
use crate::walk::Sight;
use crate::workspace::Workspace;
use pattern::{Pattern, split};

/// Most paths shown.
const SHOWN: usize = 500;

/// Finds files.
pub struct Glob {
    workspace: Arc<Workspace>,
}

impl Glob {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

/// Arguments of `glob`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// As src/**/*.rs; without a slash at any depth.
    pattern: String,
    path: Option<String>,
}

impl Args {
    /// The folder to look in, as the model wrote it, and the pattern below it.
    fn place(&self) -> (String, String) {
        let (folder, pattern) = split(&self.pattern);
        let folder = match (&self.path, folder) {
            (Some(path), Some(inner)) if !inner.starts_with('/') => format!("{path}/{inner}"),
            (_, Some(inner)) => inner,
            (Some(path), None) => path.clone(),
            (None, None) => ".".to_owned(),
        };
        (folder, pattern)
    }
}

impl NativeTool for Glob {
    type Args = Args;

    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str =
        "Find files and folders by name pattern, without what .gitignore leaves out.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let pattern = text::visible_line(&args.pattern);
        match &args.path {
            Some(path) => format!("{pattern} in {}", text::visible_line(path)),
            None => pattern,
        }
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, &args.place().0);
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (workspace, sight) = (Arc::clone(&self.workspace), Sight::of(cx));
        blocking(move || find(&workspace, &args, &sight).unwrap_or_else(ToolOutput::error)).await
    }
}

fn find(workspace: &Workspace, args: &Args, sight: &Sight) -> Result<ToolOutput, String> {
    let (place, pattern) = args.place();
    let pattern = Pattern::new(&pattern)?;
    let root = nearby::locate(workspace, &place);
    folder(workspace, &root)?;
    let mut text = String::new();
    let mut found = 0;
    for entry in sight.walk(&root, true).build().flatten().filter(|entry| entry.depth() > 0) {
        if sight.is_cancelled() {
            return Err("Cancelled.".to_owned());
        }
        if !pattern.matches(entry.path().strip_prefix(&root).unwrap_or(entry.path())) {
            continue;
        }
        found += 1;
        if found <= SHOWN {
            text.push_str(&text::visible_line(&workspace.display(entry.path())));
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                text.push('/');
            }
            text.push('\n');
        }
    }
    let matches = text::count(found, "match");
    if found == 0 {
        let folder = nearby::place(workspace, &root);
        text =
            format!("No match in {folder}. Files that .gitignore leaves out were not looked at.");
    }
    if found > SHOWN {
        let _ = writeln!(text, "[{SHOWN} of {found} matches; make the pattern narrower]");
    }
    let mut output = ToolOutput::ok(text, matches);
    sight.tell_left_out(workspace, &root, &mut output);
    Ok(output)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn workspace(files: &[&str]) -> (tempfile::TempDir, Arc<Workspace>) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
        for file in files {
            let path = workspace.root().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::File::create(path).unwrap();
        }
        (folder, workspace)
    }

    fn globbed(workspace: &Workspace, pattern: &str, path: Option<&str>) -> Result<String, String> {
        let args = Args { pattern: pattern.to_owned(), path: path.map(str::to_owned) };
        find(workspace, &args, &Sight::default()).map(|output| output.result.text)
    }

    #[test]
    fn patterns_find_files_in_order() {
        let (_folder, workspace) = workspace(&[
            "a.rs",
            "src/b.rs",
            "src/deep/c.rs",
            "src/deep/c.ts",
            ".ci/d.rs",
            ".git/e.rs",
        ]);
        let found = |pattern| globbed(&workspace, pattern, None).unwrap();
        assert_eq!(found("*.rs"), ".ci/d.rs\na.rs\nsrc/b.rs\nsrc/deep/c.rs\n");
        assert_eq!(found("./*.rs"), "a.rs\n");
        assert_eq!(found("src/*.rs"), "src/b.rs\n");
        assert_eq!(found("src/**/*.{rs,ts}"), "src/b.rs\nsrc/deep/c.rs\nsrc/deep/c.ts\n");
        assert_eq!(found("src/de*"), "src/deep/\n");
        assert_eq!(found("src/b.rs"), "src/b.rs\n");
        assert_eq!(globbed(&workspace, "*.ts", Some("src")).unwrap(), "src/deep/c.ts\n");
        let absolute = format!("{}/src/*.rs", workspace.root().display());
        assert_eq!(found(&absolute), "src/b.rs\n");
        assert_eq!(
            found("*.zz"),
            "No match in the workspace root. Files that .gitignore leaves out were not looked at."
        );
    }

    #[test]
    fn a_dash_is_data() {
        let (_folder, workspace) = workspace(&["-n", "-d/f", "s.txt"]);
        assert_eq!(globbed(&workspace, "-*", None).unwrap(), "-d/\n-n\n");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let (_folder, workspace) = workspace(&["src/a"]);
        assert!(globbed(&workspace, "a[", None).unwrap_err().contains("unclosed character class"));
        assert_eq!(
            globbed(&workspace, "scr/*", None).unwrap_err(),
            "scr does not exist. Did you mean src?"
        );
    }

    #[test]
    fn many_matches_are_cut_and_counted() {
        let names: Vec<String> = (0..SHOWN + 7).map(|number| format!("{number}.txt")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (_folder, workspace) = workspace(&names);
        let text = globbed(&workspace, "*.txt", None).unwrap();
        assert!(text.ends_with("[500 of 507 matches; make the pattern narrower]\n"));
        assert_eq!(text.lines().count(), SHOWN + 1);
    }

    #[test]
    fn the_folder_that_is_searched_is_declared() {
        let (_folder, workspace) = workspace(&["src/a"]);
        let tool = Glob::new(&workspace);
        let args = Args { pattern: "../*/x".to_owned(), path: Some("src".to_owned()) };
        let path = workspace.root().to_owned();
        assert_eq!(
            tool.subjects(&args),
            Ok(vec![Subject::Path { access: PathAccess::Read, path }])
        );
    }
}
