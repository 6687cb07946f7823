//! What can be known of a repository from its files alone, without starting Git.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// Most bytes of one of Git's small files: names and pointers.
const SMALL: u64 = 64 * 1024;
/// Most bytes of a settings file that are looked at.
const SETTINGS: u64 = 4 * 1024 * 1024;

/// Name of the branch that is checked out where `cwd` lies: also of a linked worktree, and of a
/// branch without a commit. `None` outside a repository and when no branch is checked out.
pub fn branch(cwd: &Path) -> Option<String> {
    let head = small_text(&GitDirs::find(cwd)?.own.join("HEAD"))?;
    let name = head.strip_prefix("ref:")?.trim().strip_prefix("refs/heads/")?;
    // What repositories write that keep their references in a table of their own.
    (name != ".invalid").then(|| name.to_owned())
}

/// What is under way where `cwd` lies and waits to be continued or given up: a merge, a rebase with
/// its branch and how far it is, and so on.
pub fn operation(cwd: &Path) -> Option<String> {
    let own = GitDirs::find(cwd)?.own;
    let word = |file: &str| small_text(&own.join(file)).map(|text| text.trim().to_owned());
    for (folder, step, steps) in
        [("rebase-merge", "msgnum", "end"), ("rebase-apply", "next", "last")]
    {
        if !own.join(folder).is_dir() {
            continue;
        }
        let mut text = "rebase".to_owned();
        if own.join(folder).join("applying").exists() {
            "application of patches".clone_into(&mut text);
        }
        if let Some(branch) = word(&format!("{folder}/head-name")) {
            text.push_str(" of ");
            text.push_str(branch.strip_prefix("refs/heads/").unwrap_or(&branch));
        }
        if let (Some(step), Some(steps)) =
            (word(&format!("{folder}/{step}")), word(&format!("{folder}/{steps}")))
        {
            let _ = write!(text, ", step {step} of {steps}");
        }
        return Some(text);
    }
    [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisection"),
    ]
    .into_iter()
    .find(|(file, _)| own.join(file).exists())
    .map(|(_, name)| name.to_owned())
}

/// Folders in which Git keeps a worktree's state.
pub(super) struct GitDirs {
    /// Of the worktree: `HEAD`, index.
    own: PathBuf,
    /// Of the repository: settings, objects.
    common: PathBuf,
}

impl GitDirs {
    /// Looks in `cwd` and upwards.
    fn find(cwd: &Path) -> Option<Self> {
        cwd.ancestors()
            .filter(|folder| {
                let entry = folder.join(".git");
                !entry.is_dir() || entry.join("HEAD").is_file()
            })
            .find_map(Self::of)
    }

    /// What the `.git` in `folder` is or points to, whole or not.
    fn of(folder: &Path) -> Option<Self> {
        let entry = folder.join(".git");
        let own = if entry.is_dir() {
            entry
        } else {
            let pointer = read(&entry, SMALL).ok()?;
            folder.join(path_line(pointer.strip_prefix(b"gitdir:")?))
        };
        let common = match read(&own.join("commondir"), SMALL) {
            Ok(pointer) => own.join(path_line(&pointer)),
            Err(_) => own.clone(),
        };
        Some(Self { own, common })
    }

    fn may_name_filters(&self) -> bool {
        [self.common.join("config"), self.own.join("config.worktree")]
            .iter()
            .any(|file| settings_may_name_filters(file))
    }
}

/// False if no setting of a repository that Git may take `cwd` to lie in can name a filter program.
/// Git goes on upwards past what is no whole repository, so all there are upwards are looked at.
pub(super) fn may_name_filters(cwd: &Path) -> bool {
    let Ok(cwd) = cwd.canonicalize() else { return true };
    cwd.ancestors().any(|folder| {
        GitDirs::of(folder).is_some_and(|dirs| dirs.may_name_filters())
            || folder.join("HEAD").is_file() && settings_may_name_filters(&folder.join("config"))
    })
}

fn settings_may_name_filters(file: &Path) -> bool {
    match read(file, SETTINGS) {
        Ok(settings) => {
            let settings = settings.to_ascii_lowercase();
            [&b"filter"[..], b"include"]
                .iter()
                .any(|word| settings.windows(word.len()).any(|window| window == *word))
        }
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn small_text(path: &Path) -> Option<String> {
    String::from_utf8(read(path, SMALL).ok()?).ok()
}

/// An ordinary file of at most `limit` bytes. Nothing else is waited for: a pipe has no end.
fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

fn path_line(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes.trim_ascii()))
}
