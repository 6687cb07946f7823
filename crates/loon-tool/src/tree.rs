//! `tree`: the shape of a folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
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

/// Levels shown unless the call says otherwise.
const DEPTH: usize = 3;
/// Most entries shown; where there are more, fewer levels are.
const SHOWN: usize = 400;
/// Most entries looked at.
const LOOKED_AT: usize = 50_000;

/// Shows folders as trees.
pub struct Tree {
    workspace: Arc<Workspace>,
}

impl Tree {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

/// Arguments of `tree`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// Default: the workspace root.
    path: Option<String>,
    /// Levels, default 3.
    depth: Option<usize>,
}

impl Args {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

impl NativeTool for Tree {
    type Args = Args;

    const NAME: &'static str = "tree";
    const DESCRIPTION: &'static str =
        "Show folders and files below a folder, without what .gitignore leaves out.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        text::visible_line(args.path())
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, args.path());
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (workspace, sight) = (Arc::clone(&self.workspace), Sight::of(cx));
        blocking(move || {
            let path = nearby::locate(&workspace, args.path());
            let depth = args.depth.unwrap_or(DEPTH).max(1);
            match folder(&workspace, &path) {
                Ok(()) => {
                    let mut output = draw(&path, depth, &sight);
                    sight.tell_left_out(&workspace, &path, &mut output);
                    output
                }
                Err(text) => ToolOutput::error(text),
            }
        })
        .await
    }
}

struct Entry {
    path: PathBuf,
    depth: usize,
    is_dir: bool,
    /// Entries of a folder.
    children: usize,
}

fn draw(root: &Path, depth: usize, sight: &Sight) -> ToolOutput {
    let (entries, all_seen) = collect(root, depth, sight);
    if sight.is_cancelled() {
        return ToolOutput::error("Cancelled.");
    }
    let at_most = |depth: usize| entries.iter().filter(|entry| entry.depth <= depth).count();
    let fitting = (1..=depth).rev().find(|depth| at_most(*depth) <= SHOWN).unwrap_or(1);
    let mut text = String::new();
    for entry in entries.iter().filter(|entry| entry.depth <= fitting).take(SHOWN) {
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        let indent = "  ".repeat(entry.depth - 1);
        let _ = write!(text, "{indent}{}", text::visible_line(&name));
        if entry.is_dir {
            text.push('/');
            if entry.depth == fitting && entry.children > 0 {
                let _ = write!(text, " ({})", text::count(entry.children, "entry"));
            }
        }
        text.push('\n');
    }
    let shown = at_most(fitting);
    let dirs = entries.iter().filter(|entry| entry.depth <= fitting && entry.is_dir).count();
    let counts = format!("{}, {}", text::count(dirs, "folder"), text::count(shown - dirs, "file"));
    let mut notes = vec![counts.clone()];
    if fitting < depth && at_most(depth) > shown {
        notes.push(format!("{fitting} of {depth} levels shown, as there is too much below"));
    }
    if shown > SHOWN {
        notes.push(format!("only the first {SHOWN} shown"));
    }
    if !all_seen {
        notes.push(format!("only the first {LOOKED_AT} entries were looked at"));
    }
    let _ = write!(text, "[{}]", notes.join("; "));
    ToolOutput::ok(text, counts)
}

/// Entries down to `depth` in the order of names, with the number of entries of each folder.
fn collect(root: &Path, depth: usize, sight: &Sight) -> (Vec<Entry>, bool) {
    let mut entries: Vec<Entry> = Vec::new();
    // Places of the folders above the present entry, outermost first.
    let mut above: Vec<usize> = Vec::new();
    let found = sight.walk(root, true).max_depth(Some(depth.saturating_add(1))).build();
    for (seen, entry) in found.flatten().filter(|entry| entry.depth() > 0).enumerate() {
        if seen == LOOKED_AT || sight.is_cancelled() {
            return (entries, false);
        }
        above.truncate(entry.depth() - 1);
        if let Some(parent) = above.last() {
            entries[*parent].children += 1;
        }
        if entry.depth() <= depth {
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            above.push(entries.len());
            entries.push(Entry {
                depth: entry.depth(),
                is_dir,
                children: 0,
                path: entry.into_path(),
            });
        }
    }
    (entries, true)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn touch(path: PathBuf) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path).unwrap();
    }

    fn drawn(root: &Path, depth: usize) -> String {
        draw(root, depth, &Sight::default()).result.text
    }

    #[test]
    fn ignored_files_are_left_out_and_deeper_ones_counted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in
            ["src/a.rs", "src/deep/b.rs", "src/deep/c.rs", "target/x", ".git/HEAD", ".ci/run"]
        {
            touch(root.join(path));
        }
        {
            use std::io::Write as _;
            fs::File::create(root.join(".gitignore")).unwrap().write_all(b"/target\n").unwrap();
        }
        assert_eq!(
            drawn(root, 2),
            ".ci/\n  run\n.gitignore\nsrc/\n  a.rs\n  deep/ (2 entries)\n[3 folders, 3 files]"
        );
        assert_eq!(
            drawn(root, 1),
            ".ci/ (1 entry)\n.gitignore\nsrc/ (2 entries)\n[2 folders, 1 file]"
        );
    }

    #[test]
    fn fewer_levels_are_shown_where_there_is_too_much() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..SHOWN {
            touch(folder.path().join(format!("many/{number}")));
        }
        assert_eq!(
            drawn(folder.path(), 3),
            "many/ (400 entries)\n[1 folder, 0 files; 1 of 3 levels shown, as there is too much below]"
        );
        let text = drawn(&folder.path().join("many"), 3);
        assert_eq!(text.lines().count(), SHOWN + 1);
        touch(folder.path().join("many/x"));
        let text = drawn(&folder.path().join("many"), 3);
        assert_eq!(text.lines().count(), SHOWN + 1);
        assert!(text.ends_with("[0 folders, 401 files; only the first 400 shown]"), "{text}");
    }
}
