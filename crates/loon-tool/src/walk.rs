//! Walking a folder the way people look at a project: ignored files left out, Git's own folder
//! not entered unasked, what permission rules hide not entered at all, names in order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::WalkBuilder;
use loon_kernel::{EffectContext, ToolOutput};
use tokio_util::sync::CancellationToken;

use crate::Workspace;

/// What bounds a search: when it stops, and what it must not see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    cancel: CancellationToken,
    hidden: Arc<[PathBuf]>,
}

impl Sight {
    pub(crate) fn of(cx: &EffectContext) -> Self {
        Self { cancel: cx.cancel.clone(), hidden: Arc::clone(&cx.hidden) }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Fires when the search should stop.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// A walk below `folder` in the order of names. Follows no links.
    pub(crate) fn walk(&self, folder: &Path, hidden_too: bool) -> WalkBuilder {
        let in_repository = folder.ancestors().any(|above| above.join(".git").exists());
        let hidden = Arc::clone(&self.hidden);
        let mut builder = WalkBuilder::new(folder);
        builder
            .hidden(!hidden_too)
            .sort_by_file_name(Ord::cmp)
            .filter_entry(move |entry| {
                let is_git = entry.depth() > 0 && entry.file_name() == ".git";
                !is_git && !hidden.iter().any(|folder| entry.path().starts_with(folder))
            })
            .current_dir(folder)
            // Outside a repository a .gitignore still speaks for the folder it lies in, but those
            // further up (a home folder under version control, say) are none of this folder's.
            .require_git(in_repository)
            .parents(in_repository);
        builder
    }

    /// Says in a result what the search below `root` did not see.
    pub(crate) fn tell_left_out(
        &self,
        workspace: &Workspace,
        root: &Path,
        output: &mut ToolOutput,
    ) {
        if let Some(note) = self.left_out(workspace, root) {
            let text = &mut output.result.text;
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(&note);
        }
    }

    fn left_out(&self, workspace: &Workspace, root: &Path) -> Option<String> {
        let below = self.hidden.iter().filter(|folder| folder.starts_with(root) && folder.exists());
        let mut names: Vec<String> = below.map(|folder| workspace.display(folder)).collect();
        names.sort();
        names.dedup();
        (!names.is_empty()).then(|| format!("[left out by permission rules: {}]", names.join(", ")))
    }
}

/// A walk without bounds, for names that are only suggested.
pub(crate) fn walk(folder: &Path, hidden_too: bool) -> WalkBuilder {
    Sight::default().walk(folder, hidden_too)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn what_rules_hide_is_not_entered_and_said() {
        let fixture = Fixture::new();
        for name in ["a/x", "secret/deep/y", "secretive/z"] {
            fixture.put(name, "");
        }
        let root = fixture.workspace.root().to_owned();
        let hidden = [root.join("secret"), root.join("not/there")].into();
        let sight = Sight { hidden, ..Sight::default() };
        let seen: Vec<String> = sight
            .walk(&root, true)
            .build()
            .flatten()
            .filter(|entry| fs::metadata(entry.path()).unwrap().is_file())
            .map(|entry| entry.path().strip_prefix(&root).unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(seen, ["a/x", "secretive/z"]);
        let note = sight.left_out(&fixture.workspace, &root);
        assert_eq!(note.as_deref(), Some("[left out by permission rules: secret]"));
        assert_eq!(sight.left_out(&fixture.workspace, &root.join("a")), None);
    }
}
