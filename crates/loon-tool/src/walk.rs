//! Walking a folder the way people look at a project: ignored files left out, Git's own folder
//! not entered unasked, names in order.

use std::path::Path;

use ignore::WalkBuilder;

/// A walk below `folder` in the order of names. Follows no links.
pub(crate) fn walk(folder: &Path, hidden_too: bool) -> WalkBuilder {
    let in_repository = folder.ancestors().any(|above| above.join(".git").exists());
    let mut builder = WalkBuilder::new(folder);
    builder
        .hidden(!hidden_too)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
        .current_dir(folder)
        // Outside a repository a .gitignore still speaks for the folder it lies in, but those
        // further up (a home folder under version control, say) are none of this folder's.
        .require_git(in_repository)
        .parents(in_repository);
    builder
}
