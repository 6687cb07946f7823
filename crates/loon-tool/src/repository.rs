//! What the Git tools share: which repository a call is about, and what is said when Git refuses.

pub(crate) mod patch;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loon_api::{PathAccess, Subject};
use loon_exec::git::{Query, Repository};
use loon_exec::{Captured, Git, GitError, SpawnError, Spawner};
use tokio_util::sync::CancellationToken;

use crate::nearby;
use crate::text;
use crate::workspace::Workspace;

/// Characters of a commit's hash that are shown.
const SHORT: usize = 10;
/// Most bytes that are taken of an answer of Git which is shown in pages.
const ANSWER: usize = 4 * 1024 * 1024;

/// A repository and the paths in it that a call is about.
pub(crate) struct Place {
    workspace: Arc<Workspace>,
    pub(crate) git: Git,
    /// Folder that Git runs in.
    pub(crate) folder: PathBuf,
    pub(crate) repository: Repository,
    /// Absolute. Where the call names none and the workspace is a part of the repository, that part.
    pub(crate) paths: Vec<PathBuf>,
}

impl Place {
    /// Finds the repository of `paths`, or of the workspace root if there are none.
    pub(crate) async fn find(
        workspace: &Arc<Workspace>,
        spawner: &Spawner,
        cancel: &CancellationToken,
        paths: &[String],
    ) -> Result<Self, String> {
        let mut paths: Vec<PathBuf> = paths.iter().map(|path| named(workspace, path)).collect();
        let folder = paths.first().map_or(workspace.root(), PathBuf::as_path);
        let folder = folder.ancestors().find(|above| above.is_dir()).unwrap_or(workspace.root());
        let folder = folder.to_owned();
        let git = Git::new(spawner, &folder, cancel);
        let repository =
            git.repository().await.map_err(|error| refusal(workspace, &folder, &error))?;
        if let Some(worktree) = &repository.worktree {
            if let Some(stranger) = paths.iter().find(|path| !path.starts_with(worktree)) {
                return Err(format!(
                    "{} is not in the repository of the first path, {}. Ask for it in a call of its own.",
                    workspace.display(stranger),
                    workspace.display(worktree)
                ));
            }
            if paths.is_empty() && worktree != workspace.root() {
                paths.push(workspace.root().to_owned());
            }
        }
        Ok(Self { workspace: Arc::clone(workspace), git, folder, repository, paths })
    }

    /// Asks Git a question whose answer is shown in pages.
    pub(crate) async fn ask(&self, query: Query) -> Result<Captured, String> {
        let answer = self.git.ask(&query.limit(ANSWER)).await;
        answer.map_err(|error| self.refusal(&error))
    }

    /// Objects that a revision or range names.
    pub(crate) async fn resolve(&self, revision: &str) -> Result<Vec<String>, String> {
        self.git.resolve(revision).await.map_err(|error| self.refusal(&error))
    }

    /// The commit that one revision names.
    pub(crate) async fn commit(&self, revision: &str) -> Result<String, String> {
        let objects = self.resolve(revision).await?;
        if objects.iter().all(|object| object.starts_with('^')) {
            return Err(format!(
                "{} excludes commits and names none.",
                text::visible_line(revision)
            ));
        }
        let [object] = objects.as_slice() else {
            return Err(format!(
                "{} names more than one commit: name one. git_log lists those of a range.",
                text::visible_line(revision)
            ));
        };
        let commit = self.git.resolve(&format!("{object}^{{commit}}")).await;
        commit.ok().and_then(|mut commits| commits.pop()).ok_or_else(|| {
            format!(
                "{} is no commit. To see a file of a commit, give the commit as revision and the file as path.",
                text::visible_line(revision)
            )
        })
    }

    /// The commit that is checked out; absent before the first one.
    pub(crate) async fn head(&self) -> Result<Option<String>, String> {
        match self.git.resolve("HEAD").await {
            Ok(mut head) => Ok(head.pop()),
            Err(GitError::NoRevision { .. }) => Ok(None),
            Err(error) => Err(self.refusal(&error)),
        }
    }

    /// Options that make differences speak of files as the workspace does.
    pub(crate) fn names(&self) -> Vec<String> {
        let Some(worktree) = &self.repository.worktree else { return Vec::new() };
        let root = self.workspace.root();
        if let Ok(below) = root.strip_prefix(worktree)
            && !below.as_os_str().is_empty()
            && self.paths.iter().all(|path| path.starts_with(root))
        {
            return vec![format!("--relative={}/", below.to_string_lossy())];
        }
        match worktree.strip_prefix(root) {
            Ok(below) if !below.as_os_str().is_empty() => {
                let below = below.to_string_lossy();
                vec![format!("--src-prefix=a/{below}/"), format!("--dst-prefix=b/{below}/")]
            }
            _ => Vec::new(),
        }
    }

    /// A path as Git gives it, relative to the root of the repository, as the workspace shows it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let worktree = self.repository.worktree.as_deref().unwrap_or(self.workspace.root());
        self.workspace.display(&worktree.join(path))
    }

    /// What a call says that needs files where there are none.
    pub(crate) fn needs_files(&self) -> Result<(), String> {
        if self.repository.worktree.is_some() {
            return Ok(());
        }
        let what = if self.repository.bare { "a bare repository" } else { "the inside of .git" };
        Err(format!(
            "{} is {what}: it has no working files. git_log, git_branches and git_show work there.",
            text::visible_line(&self.folder.to_string_lossy())
        ))
    }

    pub(crate) fn refusal(&self, error: &GitError) -> String {
        refusal(&self.workspace, &self.folder, error)
    }
}

/// The path that is meant, of which the last name is not followed if it is a link: Git has links,
/// not what they point to.
pub(crate) fn named(workspace: &Workspace, path: &str) -> PathBuf {
    let joined = workspace.root().join(path);
    if let (Some(parent), Some(name)) = (joined.parent(), joined.file_name()) {
        let place = workspace.resolve(&parent.to_string_lossy()).join(name);
        if place.symlink_metadata().is_ok_and(|file| file.is_symlink()) {
            return place;
        }
    }
    nearby::locate(workspace, path)
}

/// What a call with these paths reads.
pub(crate) fn subjects(workspace: &Workspace, paths: &[String]) -> Vec<Subject> {
    let read = |path| Subject::Path { access: PathAccess::Read, path };
    if paths.is_empty() {
        return vec![read(workspace.root().to_owned())];
    }
    let mut places: Vec<PathBuf> = paths
        .iter()
        .flat_map(|path| [named(workspace, path), nearby::locate(workspace, path)])
        .collect();
    places.dedup();
    places.into_iter().map(read).collect()
}

/// A hash as shown.
pub(crate) fn short(hash: &str) -> &str {
    hash.get(..SHORT).unwrap_or(hash)
}

fn refusal(workspace: &Workspace, folder: &Path, error: &GitError) -> String {
    let place = text::visible_line(&folder.to_string_lossy());
    match error {
        GitError::Spawn(SpawnError::NoProgram { .. }) => {
            "Git is not installed, or not on PATH: ask the user to install it.".to_owned()
        }
        GitError::NoRevision { revision, .. } => format!(
            "{} names no commit, branch or tag in {place}. git_branches and git_log list what there is.",
            text::visible_line(revision)
        ),
        GitError::Elsewhere { worktree, .. } => format!(
            "The repository at {place} has its files elsewhere: its setting core.worktree says {}. Nothing was read there.",
            text::visible_line(&worktree.to_string_lossy())
        ),
        GitError::Cancelled { .. } => "Cancelled.".to_owned(),
        GitError::Failed { message, .. } => failure(workspace, &place, message),
        _ => text::visible_line(&error.to_string()),
    }
}

fn failure(workspace: &Workspace, place: &str, message: &str) -> String {
    let says = |words: &str| message.contains(words);
    if says("not a git repository") {
        let root = text::visible_line(&workspace.root().to_string_lossy());
        return if place == root {
            format!("{place} is not in a Git repository. Give the path of one, if there is one.")
        } else {
            format!("{place} is not in a Git repository.")
        };
    }
    let mut said = text::visible(message.trim()).into_owned();
    let hint = if says("no such ref: HEAD") {
        "There is no commit yet; git_status shows what is there."
    } else if says("dubious ownership") {
        "Ask the user whether the repository is to be trusted; the command above does it."
    } else if says("object name list") {
        "The setting blame.ignoreRevsFile names a file that is not there: make that file or unset it."
    } else if says("lazy fetching disabled") || says("promisor remote") || says("transport 'none'")
    {
        "This is a partial clone and the objects are not here. Fetch them by bash, with git fetch."
    } else if says("is in submodule") {
        "Name paths of the submodule only, in a call of their own."
    } else {
        ""
    };
    if !hint.is_empty() {
        let _ = write!(said, "\n{hint}");
    }
    format!("Git failed in {place}: {said}")
}

#[cfg(test)]
mod tests;
