//! The one Git wrapper: fixed options and environment, so that no setting of a repository starts a
//! program, opens a pager or waits for a person.

mod dirs;
mod status;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use dirs::branch;
pub use status::StatusSummary;

use crate::capture::Captured;
use crate::spawn::{Cause, Spawn, SpawnError, Spawner};
use dirs::GitDirs;

/// Most bytes kept of Git's output.
const OUTPUT: usize = 4 * 1024 * 1024;
/// How long one Git command may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Options before the subcommand.
const OPTIONS: [&str; 11] = [
    "--no-pager",
    "--literal-pathspecs",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.pager=cat",
    "-c",
    "log.showSignature=false",
];

/// Variables that would point Git at another repository or start another program.
const FOREIGN: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
    "GIT_TRACE",
];

/// Subcommands that show differences and so would run a repository's own programs to make them.
const SHOW_DIFFERENCES: [&str; 4] = ["diff", "log", "show", "stash"];

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
        let filters = self.own_filters().await?;
        self.start(command, args, paths, &filters).await
    }

    /// Root of the worktree that the folder lies in.
    pub async fn toplevel(&self) -> Result<PathBuf, GitError> {
        let output = self.start("rev-parse", &["--show-toplevel"], &[], &[]).await?.head;
        let path = output.strip_suffix(b"\n").unwrap_or(&output);
        Ok(PathBuf::from(OsStr::from_bytes(path)))
    }

    /// Branch, upstream, and how many files are in which state. Looks into no submodule.
    pub async fn status_summary(&self) -> Result<StatusSummary, GitError> {
        let args = ["--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty"];
        let output = self.run("status", &args, &[]).await?;
        Ok(StatusSummary::parse(&output))
    }

    async fn start(
        &self,
        command: &str,
        args: &[&str],
        paths: &[&Path],
        emptied: &[OsString],
    ) -> Result<Captured, GitError> {
        let mut spawn = self.spawner.program("git", &self.cwd).args(OPTIONS).args([command]);
        if SHOW_DIFFERENCES.contains(&command) {
            spawn = spawn.args(["--no-ext-diff", "--no-textconv"]);
        }
        spawn = spawn.args(args);
        if !paths.is_empty() {
            spawn = spawn.args(["--"]).args(paths);
        }
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
        let finished = spawn
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .separate_errors()
            .keep(OUTPUT, 0)
            .timeout(TIMEOUT)
            .cancel(self.cancel.clone())
            .run()
            .await?;
        let (command, cwd) = (command.to_owned(), self.cwd.clone());
        match finished.exit.cause {
            Cause::Cancelled => Err(GitError::Cancelled { command }),
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
        if !GitDirs::find(&self.cwd).is_some_and(|dirs| dirs.may_name_filters()) {
            return Ok(Vec::new());
        }
        let args = ["--show-scope", "--name-only", "-z", "--get-regexp", r"^filter\."];
        match self.start("config", &args, &[], &[]).await {
            Ok(output) => Ok(filters_of_repository(&output.head)),
            // Status 1 says that no setting matches.
            Err(GitError::Failed { code: Some(1), .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
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
