//! What the model may have meant by a path that is not there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::text;
use crate::walk::walk;
use crate::workspace::Workspace;

/// Most names suggested.
const SUGGESTIONS: usize = 4;
/// Least likeness of a suggested name, 0 to 1.
const LIKENESS: f32 = 0.6;
/// Most entries looked at for a file of the same name elsewhere.
const LOOKED_AT: usize = 20_000;

/// Resolves a path that the model wrote. Where a name is not there, one that reads the same counts:
/// accents may be composed or not, a space may be one of several, and a control character may be
/// written as it is shown.
pub(crate) fn locate(workspace: &Workspace, path: &str) -> PathBuf {
    let resolved = workspace.resolve(path);
    reads_same(&resolved).unwrap_or(resolved)
}

/// [`locate`] for the entry itself: if its last name is a link, the link is meant.
pub(crate) fn locate_entry(workspace: &Workspace, path: &str) -> PathBuf {
    let resolved = workspace.resolve_entry(path);
    reads_same(&resolved).unwrap_or(resolved)
}

fn reads_same(path: &Path) -> Option<PathBuf> {
    let existing = path.ancestors().find(|above| above.symlink_metadata().is_ok())?;
    if existing == path {
        return None;
    }
    let mut found = existing.to_owned();
    for name in path.strip_prefix(existing).ok()? {
        let name = name.to_str()?;
        let wanted: String = name.nfkc().collect();
        let same =
            |entry: &str| entry.nfkc().eq(wanted.chars()) || text::visible_line(entry) == name;
        let entry = names(&found).into_iter().find(|entry| entry.to_str().is_some_and(same))?;
        found.push(entry);
    }
    Some(found)
}

/// A sentence that says that `path` is not there and what is.
pub(crate) fn missing(workspace: &Workspace, path: &Path) -> String {
    let shown = text::visible_line(&workspace.display(path));
    if let Ok(target) = path.read_link() {
        let target = text::visible_line(&target.to_string_lossy());
        return format!("{shown} is a link to {target}, which does not exist.");
    }
    let Some(folder) = path.ancestors().skip(1).find(|above| above.is_dir()) else {
        return format!("{shown} does not exist.");
    };
    let mut suggestions = similar_names(folder, path);
    suggestions.extend(same_name_elsewhere(workspace, path));
    suggestions.dedup();
    let shown_so = |path: &PathBuf| text::visible_line(&workspace.display(path)) == shown;
    if suggestions.iter().any(shown_so) {
        return format!(
            "{shown} is how a name is shown that is no valid text; only a shell command can name it, by a pattern such as `*`."
        );
    }
    suggestions.truncate(SUGGESTIONS);
    if suggestions.is_empty() {
        let folder = place(workspace, folder);
        return format!(
            "{shown} does not exist, and nothing like it in {folder}. List that folder, or search by glob."
        );
    }
    let names: Vec<String> =
        suggestions.iter().map(|path| text::visible_line(&workspace.display(path))).collect();
    format!("{shown} does not exist. Did you mean {}?", names.join(" or "))
}

/// A folder as sentences name it.
pub(crate) fn place(workspace: &Workspace, folder: &Path) -> String {
    if folder == workspace.root() {
        return "the workspace root".to_owned();
    }
    text::visible_line(&workspace.display(folder))
}

/// Entries of `folder` whose names are like the first missing component of `path`.
fn similar_names(folder: &Path, path: &Path) -> Vec<PathBuf> {
    let Some(wanted) = path
        .strip_prefix(folder)
        .ok()
        .and_then(|rest| rest.components().next())
        .map(|name| name.as_os_str().to_string_lossy().to_lowercase())
    else {
        return Vec::new();
    };
    let entries = names(folder);
    let folded: Vec<String> =
        entries.iter().map(|name| name.to_string_lossy().to_lowercase()).collect();
    let candidates: Vec<&str> = folded.iter().map(String::as_str).collect();
    similar::get_close_matches(wanted.as_str(), &candidates, SUGGESTIONS, LIKENESS)
        .into_iter()
        .filter_map(|like| folded.iter().position(|name| name == like))
        .map(|place| folder.join(&entries[place]))
        .collect()
}

fn same_name_elsewhere(workspace: &Workspace, path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name() else { return Vec::new() };
    walk(workspace.root(), true)
        .build()
        .take(LOOKED_AT)
        .flatten()
        .filter(|entry| entry.file_name() == name)
        .map(ignore::DirEntry::into_path)
        .take(SUGGESTIONS)
        .collect()
}

fn names(folder: &Path) -> Vec<OsString> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::Arc;

    fn workspace() -> (tempfile::TempDir, Arc<Workspace>) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
        (folder, workspace)
    }

    fn touch(path: PathBuf) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path).unwrap();
    }

    #[test]
    fn names_that_read_the_same_are_found() {
        let (_folder, workspace) = workspace();
        let root = workspace.root();
        touch(root.join("cafe\u{301}/re\u{301}sume\u{301}.txt"));
        touch(root.join("Shot 9.41\u{202f}AM.png"));
        let composed = locate(&workspace, "caf\u{e9}/r\u{e9}sum\u{e9}.txt");
        assert_eq!(composed, root.join("cafe\u{301}/re\u{301}sume\u{301}.txt"));
        assert_eq!(locate(&workspace, "Shot 9.41 AM.png"), root.join("Shot 9.41\u{202f}AM.png"));
        assert_eq!(locate(&workspace, "new/file"), root.join("new/file"));
    }

    #[test]
    fn a_path_of_many_folders_is_no_trouble() {
        let (_folder, workspace) = workspace();
        let path = vec!["d"; 50_000].join("/");
        assert_eq!(locate(&workspace, &path), workspace.root().join(&path));
    }

    #[test]
    fn a_name_that_is_shown_otherwise_is_found_or_explained() {
        use std::os::unix::ffi::OsStrExt as _;
        let (_folder, workspace) = workspace();
        touch(workspace.root().join("two\nlines.txt"));
        touch(workspace.root().join(std::ffi::OsStr::from_bytes(b"odd\xff.txt")));
        assert_eq!(
            locate(&workspace, "two\u{240A}lines.txt"),
            workspace.root().join("two\nlines.txt")
        );
        let told = missing(&workspace, &workspace.resolve("odd\u{fffd}.txt"));
        assert!(told.starts_with("odd\u{fffd}.txt is how a name is shown"), "{told}");
    }

    #[test]
    fn a_link_to_nothing_is_not_answered_with_its_own_name() {
        let (_folder, workspace) = workspace();
        std::os::unix::fs::symlink("gone", workspace.root().join("way")).unwrap();
        assert_eq!(
            missing(&workspace, &workspace.resolve("way")),
            "way is a link to gone, which does not exist."
        );
    }

    #[test]
    fn missing_files_are_answered_with_near_names() {
        let (_folder, workspace) = workspace();
        touch(workspace.root().join("src/reader.rs"));
        touch(workspace.root().join("src/deep/lib.rs"));
        let sentence = |path: &str| missing(&workspace, &workspace.resolve(path));
        assert_eq!(
            sentence("src/raeder.rs"),
            "src/raeder.rs does not exist. Did you mean src/reader.rs?"
        );
        assert_eq!(sentence("lib.rs"), "lib.rs does not exist. Did you mean src/deep/lib.rs?");
        assert_eq!(sentence("scr/x/y"), "scr/x/y does not exist. Did you mean src?");
        assert_eq!(
            sentence("src/zzz"),
            "src/zzz does not exist, and nothing like it in src. List that folder, or search by glob."
        );
    }
}
