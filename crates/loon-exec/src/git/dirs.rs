//! What can be known of a repository from its files alone, without starting Git.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// Most bytes of a file that is read whole.
const WHOLE: u64 = 1024 * 1024;

/// Name of the branch that is checked out where `cwd` lies: also of a linked worktree, and of a
/// branch without a commit. `None` outside a repository and when no branch is checked out.
pub fn branch(cwd: &Path) -> Option<String> {
    let head = text(&GitDirs::find(cwd)?.own.join("HEAD"))?;
    let name = head.strip_prefix("ref:")?.trim().strip_prefix("refs/heads/")?;
    // What repositories write that keep their references in a table of their own.
    (name != ".invalid").then(|| name.to_owned())
}

/// What is under way where `cwd` lies and waits to be continued or given up: a merge, a rebase with
/// its branch and how far it is, and so on.
pub fn operation(cwd: &Path) -> Option<String> {
    let own = GitDirs::find(cwd)?.own;
    let word = |file: &str| text(&own.join(file)).map(|text| text.trim().to_owned());
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
    pub(super) fn find(cwd: &Path) -> Option<Self> {
        let own = cwd.ancestors().find_map(|folder| {
            let entry = folder.join(".git");
            if entry.join("HEAD").is_file() {
                return Some(entry);
            }
            let pointer = read(&entry).ok()?;
            Some(folder.join(path_line(pointer.strip_prefix(b"gitdir:")?)))
        })?;
        let common = match read(&own.join("commondir")) {
            Ok(pointer) => own.join(path_line(&pointer)),
            Err(_) => own.clone(),
        };
        Some(Self { own, common })
    }

    /// False if no setting of the repository can name a filter program.
    pub(super) fn may_name_filters(&self) -> bool {
        [self.common.join("config"), self.own.join("config.worktree")].iter().any(|file| {
            let settings = match read(file) {
                Ok(settings) => settings.to_ascii_lowercase(),
                // What was not read may hold anything.
                Err(error) => return error.kind() != io::ErrorKind::NotFound,
            };
            [&b"filter"[..], b"include"]
                .iter()
                .any(|word| settings.windows(word.len()).any(|window| window == *word))
        })
    }
}

/// The bytes of an ordinary file. Waits for nobody: what else goes by its name may be a pipe.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no ordinary file"));
    }
    let mut bytes = Vec::new();
    if file.take(WHOLE + 1).read_to_end(&mut bytes)? as u64 > WHOLE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(read(path).ok()?).ok()
}

fn path_line(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes.trim_ascii()))
}
