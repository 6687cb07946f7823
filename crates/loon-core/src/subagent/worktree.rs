//! Git worktrees for children: detached from the commit that is checked out, and left to the user.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use loon_api::{ExecutionId, WorktreeState};
use loon_exec::Spawner;
use loon_exec::git::{Git, GitError, entries};
use tokio_util::sync::CancellationToken;

/// Makes worktrees in one folder.
#[derive(Clone, Debug)]
pub struct Worktrees {
    spawner: Spawner,
    folder: PathBuf,
}

impl Worktrees {
    /// Worktrees under `folder` (absolute; made when first needed), by Git that `spawner` starts.
    pub fn new(spawner: Spawner, folder: PathBuf) -> Self {
        Self { spawner, folder }
    }

    /// Makes one for a child from the commit that is checked out in `cwd`. The error is what the
    /// model reads.
    pub(super) async fn add(
        &self,
        cwd: &Path,
        child: ExecutionId,
        cancel: &CancellationToken,
    ) -> Result<Worktree, String> {
        let git = Git::new(&self.spawner, cwd, cancel);
        let top = git.toplevel().await.map_err(|error| match error {
            GitError::Failed { .. } => format!(
                "A worktree needs a Git repository, and {} is in none. Use an agent without \
                 `isolation: worktree`.",
                cwd.display()
            ),
            other => format!("No worktree could be made: {other}."),
        })?;
        let base = git.run("rev-parse", &["--verify", "HEAD"], &[]).await.map_err(|_| {
            "A worktree begins at a commit, and this repository has none yet.".to_owned()
        })?;
        let base = String::from_utf8_lossy(&base.head).trim().to_owned();
        let path = self.folder.join(child.to_string());
        let Some(name) = path.to_str() else {
            return Err(format!(
                "{} is no UTF-8, so no worktree can be made there.",
                path.display()
            ));
        };
        let args = ["add", "--detach", name, &base];
        git.run("worktree", &args, &[])
            .await
            .map_err(|error| format!("No worktree could be made: {error}."))?;
        let path = path.canonicalize().unwrap_or(path);
        let inside = cwd.strip_prefix(&top).unwrap_or(Path::new(""));
        let root = path.join(inside);
        if !root.is_dir() {
            return Err(format!(
                "{} is not part of the last commit, so it is not in the worktree {}.",
                inside.display(),
                path.display()
            ));
        }
        Ok(Worktree { spawner: self.spawner.clone(), path, root, base: Some(base) })
    }

    /// The worktree that a child of an earlier process left at `path`.
    pub(super) fn found(&self, path: &str) -> Worktree {
        let path = PathBuf::from(path);
        Worktree { spawner: self.spawner.clone(), root: path.clone(), path, base: None }
    }
}

/// A worktree of a child.
#[derive(Clone, Debug)]
pub(super) struct Worktree {
    spawner: Spawner,
    /// Its top.
    pub(super) path: PathBuf,
    /// The folder in it that stands for the parent's.
    pub(super) root: PathBuf,
    /// The commit it began at.
    base: Option<String>,
}

impl Worktree {
    /// What is in it that would be lost with it.
    pub(super) async fn look(&self) -> WorktreeState {
        let git = Git::new(&self.spawner, &self.path, &CancellationToken::new());
        let args = ["--porcelain=v2", "-z", "--ignore-submodules=dirty"];
        let status = git.run("status", &args, &[]).await.ok();
        let dirty_files = status.map(|status| entries(&status).len() as u64);
        let mut lost = vec!["HEAD", "--not", "--branches", "--remotes"];
        lost.extend(self.base.as_deref());
        let ahead = match &self.base {
            Some(base) => count(&git, &["HEAD", "--not", base]).await,
            None => None,
        };
        WorktreeState {
            path: self.path.to_string_lossy().into_owned(),
            dirty: dirty_files.map(|files| files > 0),
            unmerged: count(&git, &lost).await,
            base: self.base.clone(),
            ahead,
            dirty_files,
        }
    }
}

/// Number of commits that `range` names.
async fn count(git: &Git, range: &[&str]) -> Option<u64> {
    let args: Vec<&str> = std::iter::once("--count").chain(range.iter().copied()).collect();
    let output = git.run("rev-list", &args, &[]).await.ok()?;
    OsStr::from_bytes(&output.head).to_str()?.trim().parse().ok()
}
