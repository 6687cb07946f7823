//! The one Git wrapper: fixed options and environment, so that no setting of a repository starts a
//! program, opens a pager or waits for a person.

mod dirs;
mod query;
mod status;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use dirs::{branch, operation};
pub use query::Query;
pub use status::{Change, Kind, StatusEntry, StatusSummary, entries};

use crate::capture::Captured;
use crate::spawn::{Cause, Spawn, SpawnError, Spawner};

/// Most bytes kept of Git's output.
const OUTPUT: usize = 4 * 1024 * 1024;
/// Most bytes of a revision. Names of branches are shorter by far.
const REVISION: usize = 4096;
/// How long one Git command may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Options before the subcommand.
const OPTIONS: [&str; 3] = ["--no-pager", "--literal-pathspecs", "--no-optional-locks"];

/// Settings that hold whatever the user or the repository has set: none starts a program, none
/// changes the form of what Git prints.
const SETTINGS: [&str; 15] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.quotePath=false",
    "color.ui=false",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.relative=false",
    "diff.orderFile=/dev/null",
    "diff.suppressBlankEmpty=false",
    "i18n.logOutputEncoding=UTF-8",
    "log.follow=false",
    "log.showRoot=true",
    "log.showSignature=false",
    "submodule.recurse=false",
];

/// Variables that would point Git at another repository, change how it reads paths, or start
/// another program.
const FOREIGN: [&str; 20] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_ATTR_SOURCE",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_DIFF_OPTS",
    "GIT_EXTERNAL_DIFF",
    "GIT_TRACE",
    "GIT_SSH_COMMAND",
];

/// Subcommands that show differences.
const SHOW_DIFFERENCES: [&str; 3] = ["diff", "log", "show"];
/// Options for them: no program of the repository makes a difference, and its form is fixed. No
/// submodule is entered.
const DIFFERENCES: [&str; 10] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--inter-hunk-context=0",
    "--find-renames",
    "--submodule=short",
    "--ignore-submodules=dirty",
];

/// Why a Git command gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Git said no.
    #[error("git {command} failed in {}: {message}", cwd.display())]
    Failed {
        /// The subcommand.
        command: String,
        /// Folder it ran in.
        cwd: PathBuf,
        /// Exit status, if it ended with one.
        code: Option<i32>,
        /// What Git said.
        message: String,
    },
    /// It took too long and was ended.
    #[error("git {command} was ended after {} s in {}", TIMEOUT.as_secs(), cwd.display())]
    TimedOut {
        /// The subcommand.
        command: String,
        /// Folder it ran in.
        cwd: PathBuf,
    },
    /// No commit or object goes by that name.
    #[error("{revision:?} names no revision in {}", cwd.display())]
    NoRevision {
        /// As it was asked for.
        revision: String,
        /// Folder it was looked for in.
        cwd: PathBuf,
    },
    /// The repository keeps its files in a folder that does not hold the one asked about.
    #[error("the repository at {} has its files elsewhere, at {}", cwd.display(), worktree.display())]
    Elsewhere {
        /// The folder asked about.
        cwd: PathBuf,
        /// What its setting `core.worktree` says.
        worktree: PathBuf,
    },
    /// It was cancelled.
    #[error("git {command} was cancelled")]
    Cancelled {
        /// The subcommand.
        command: String,
    },
}

/// Git in one folder.
#[derive(Clone, Debug)]
pub struct Git {
    spawner: Spawner,
    cwd: PathBuf,
    cancel: CancellationToken,
}

impl Git {
    /// Git run in `cwd`, whose processes are started by `spawner` and ended when `cancel` fires.
    pub fn new(spawner: &Spawner, cwd: &Path, cancel: &CancellationToken) -> Self {
        Self { spawner: spawner.clone(), cwd: cwd.to_owned(), cancel: cancel.clone() }
    }

    /// Runs a subcommand with options `args` and, after `--`, literal `paths`. Gives its standard
    /// output, of which at most 4 MiB are kept.
    pub async fn run(
        &self,
        command: &str,
        args: &[&str],
        paths: &[&Path],
    ) -> Result<Captured, GitError> {
        self.ask(&Query::new(command).args(args).paths(paths)).await
    }

    /// Asks Git. Where the query has a limit, Git is ended as soon as it has printed more.
    pub async fn ask(&self, query: &Query) -> Result<Captured, GitError> {
        let filters = self.own_filters().await?;
        self.start(query, &filters).await
    }

    /// The objects that a revision or range names: each a full hash, with `^` before it if it is
    /// excluded. What looks like an option is no revision.
    pub async fn resolve(&self, revision: &str) -> Result<Vec<String>, GitError> {
        let shown = &revision[..revision.floor_char_boundary(REVISION)];
        let unknown = || GitError::NoRevision { revision: shown.to_owned(), cwd: self.cwd.clone() };
        if revision.starts_with('-')
            || revision.len() > REVISION
            || revision.chars().any(char::is_control)
        {
            return Err(unknown());
        }
        let query = Query::new("rev-parse").args(&["--revs-only", "--end-of-options", revision]);
        let output = match self.start(&query, &[]).await {
            Ok(output) => output.head,
            Err(GitError::Failed { message, .. }) if !message.contains("not a git repository") => {
                return Err(unknown());
            }
            Err(error) => return Err(error),
        };
        let hashes: Vec<String> = String::from_utf8_lossy(&output)
            .lines()
            .filter(|line| is_hash(line.strip_prefix('^').unwrap_or(line)))
            .map(str::to_owned)
            .collect();
        if hashes.is_empty() { Err(unknown()) } else { Ok(hashes) }
    }

    /// The repository that the folder lies in.
    pub async fn repository(&self) -> Result<Repository, GitError> {
        let flags = ["--is-bare-repository", "--is-shallow-repository"];
        let query = Query::new("rev-parse").args(&flags);
        let (output, has_files) = match self.start(&query.clone().arg("--show-toplevel"), &[]).await
        {
            Ok(output) => (output.head, true),
            Err(GitError::Failed { .. }) => (self.start(&query, &[]).await?.head, false),
            Err(error) => return Err(error),
        };
        let mut lines = output.splitn(3, |byte| *byte == b'\n');
        let mut flag = || lines.next() == Some(&b"true"[..]);
        let (bare, shallow) = (flag(), flag());
        let worktree = lines
            .next()
            .filter(|_| has_files)
            .map(|path| PathBuf::from(OsStr::from_bytes(path.strip_suffix(b"\n").unwrap_or(path))));
        if let Some(worktree) = &worktree
            && !self.cwd.canonicalize().is_ok_and(|cwd| cwd.starts_with(worktree))
        {
            return Err(GitError::Elsewhere { cwd: self.cwd.clone(), worktree: worktree.clone() });
        }
        Ok(Repository { worktree, bare, shallow })
    }

    /// Root of the worktree that the folder lies in.
    pub async fn toplevel(&self) -> Result<PathBuf, GitError> {
        let output = self.start(&Query::new("rev-parse").arg("--show-toplevel"), &[]).await?.head;
        let path = output.strip_suffix(b"\n").unwrap_or(&output);
        Ok(PathBuf::from(OsStr::from_bytes(path)))
    }

    /// Branch, upstream, and how many files are in which state. Looks into no submodule.
    pub async fn status_summary(&self) -> Result<StatusSummary, GitError> {
        let args = ["--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty"];
        let output = self.run("status", &args, &[]).await?;
        Ok(StatusSummary::of(&output))
    }

    async fn start(&self, query: &Query, emptied: &[OsString]) -> Result<Captured, GitError> {
        let command = query.command.as_str();
        let mut spawn = self.spawner.program("git", &self.cwd).args(OPTIONS);
        for setting in SETTINGS {
            spawn = spawn.args(["-c", setting]);
        }
        spawn = spawn.args([command]);
        if SHOW_DIFFERENCES.contains(&command) {
            spawn = spawn.args(DIFFERENCES);
        }
        spawn = query.arguments().fold(spawn, |spawn, word| spawn.args([word]));
        spawn = FOREIGN.iter().fold(spawn, Spawn::env_remove);
        if !emptied.is_empty() {
            // Not by `-c`: the name of a setting may hold a `=`.
            spawn = spawn.env("GIT_CONFIG_COUNT", emptied.len().to_string());
            for (index, key) in emptied.iter().enumerate() {
                let value = if key.as_bytes().ends_with(b".required") { "false" } else { "" };
                spawn = spawn
                    .env(format!("GIT_CONFIG_KEY_{index}"), key)
                    .env(format!("GIT_CONFIG_VALUE_{index}"), value);
            }
        }
        let enough = self.cancel.child_token();
        if let Some(limit) = query.limit {
            let (enough, mut heard) = (enough.clone(), 0);
            spawn = spawn.on_output(move |bytes| {
                heard += bytes.len();
                if heard > limit {
                    enough.cancel();
                }
            });
        }
        let mut finished = spawn
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            // An object that is not here is not fetched: older versions know the second only.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .separate_errors()
            .keep(query.limit.unwrap_or(OUTPUT), 0)
            .timeout(TIMEOUT)
            .cancel(enough)
            .run()
            .await?;
        let (command, cwd) = (command.to_owned(), self.cwd.clone());
        match finished.exit.cause {
            Cause::Cancelled if self.cancel.is_cancelled() => Err(GitError::Cancelled { command }),
            Cause::Cancelled => {
                finished.output.omitted = finished.output.omitted.max(1);
                Ok(finished.output)
            }
            Cause::TimedOut => Err(GitError::TimedOut { command, cwd }),
            Cause::Ended if finished.exit.is_success() => Ok(finished.output),
            Cause::Ended => {
                let message = String::from_utf8_lossy(&finished.errors.head).trim().to_owned();
                Err(GitError::Failed { command, cwd, code: finished.exit.code, message })
            }
        }
    }

    /// Settings by which the repository itself (not its user) has files filtered by programs. The
    /// process that lists them is only started if its files could hold any.
    async fn own_filters(&self) -> Result<Vec<OsString>, GitError> {
        if !dirs::may_name_filters(&self.cwd) {
            return Ok(Vec::new());
        }
        let args = ["--show-scope", "--name-only", "-z", "--get-regexp", r"^filter\."];
        match self.start(&Query::new("config").args(&args), &[]).await {
            Ok(output) => Ok(filters_of_repository(&output.head)),
            // Status 1 says that no setting matches.
            Err(GitError::Failed { code: Some(1), .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// A repository, as seen from a folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Root of its files; absent in a bare repository and inside of `.git`.
    pub worktree: Option<PathBuf>,
    /// It has no files, only history.
    pub bare: bool,
    /// Its history was cut off when it was cloned.
    pub shallow: bool,
}

fn is_hash(word: &str) -> bool {
    word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Picks the names whose scope is the repository out of `scope NUL name NUL ...`.
fn filters_of_repository(listed: &[u8]) -> Vec<OsString> {
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let mut names: Vec<OsString> = fields
        .chunks_exact(2)
        .filter(|pair| matches!(pair[0], b"local" | b"worktree"))
        .map(|pair| OsStr::from_bytes(pair[1]).to_owned())
        .collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests;
