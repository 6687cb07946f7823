//! Starting a process and seeing it to its end.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::capture::{Captured, Keep};
use crate::group::Group;
use crate::leader::{Leader, Stdio};
use crate::pump::{Listener, Pump};
use crate::session::Mark;

/// Bytes kept of the beginning and of the end of each stream unless the caller says otherwise.
const KEEP: Keep = Keep { head: 32 * 1024, tail: 32 * 1024 };
/// How long a group that was asked to end may take before it is killed.
const GRACE: Duration = Duration::from_millis(300);
/// How long children that outlive their leader may take to finish by themselves. A `tee` behind
/// the leader's last line needs a moment; a server in the background is not waited for.
const SETTLE: Duration = Duration::from_millis(250);

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program.
    #[error(
        "cannot start {program:?}: there is no such program on PATH; install it or name it by its path"
    )]
    NoProgram {
        /// As it was asked for.
        program: OsString,
    },
    /// The folder to start it in is not there.
    #[error("cannot start {program:?}: its working folder {} is not there", cwd.display())]
    NoFolder {
        /// As it was asked for.
        program: OsString,
        /// The missing folder.
        cwd: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot start {program:?} in {}: {source}", cwd.display())]
    Refused {
        /// As it was asked for.
        program: OsString,
        /// Folder it was to run in.
        cwd: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The leader ended by itself.
    Ended,
    /// Its timeout passed.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit status of the leader, if it ended with one.
    pub code: Option<i32>,
    /// Signal that ended the leader, if one did.
    pub signal: Option<i32>,
    /// Why the run ended.
    pub cause: Cause,
    /// Processes that were still there after the leader had ended by itself, and were ended.
    pub leftovers_ended: usize,
    /// Processes that could not be ended, not even by force. Nearly always 0.
    pub survivors: usize,
}

impl Exit {
    /// The leader ended by itself with status 0.
    pub fn is_success(&self) -> bool {
        self.cause == Cause::Ended && self.code == Some(0)
    }
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Standard output, and standard error with it in order of arrival unless they were separated.
    /// Raw bytes: whoever shows them makes them safe.
    pub output: Captured,
    /// Standard error, if it was separated.
    pub errors: Captured,
    /// How it ended.
    pub exit: Exit,
}

/// Starts processes that share an environment: ours without the hidden variables.
#[derive(Clone, Debug)]
pub struct Spawner {
    hidden: watch::Receiver<Arc<[String]>>,
    owner: Option<Arc<str>>,
}

impl Default for Spawner {
    fn default() -> Self {
        Self::new([])
    }
}

impl Spawner {
    /// A spawner whose processes do not see the environment variables with these names.
    pub fn new(hidden: impl IntoIterator<Item = String>) -> Self {
        // What was sent stays to be read when the sender is gone.
        Self::following(watch::channel(hidden.into_iter().collect()).1)
    }

    /// The same with names that may change.
    pub fn following(hidden: watch::Receiver<Arc<[String]>>) -> Self {
        Self { hidden, owner: None }
    }

    /// The same for one owner, whose processes [`crate::leftovers`] finds again.
    #[must_use]
    pub fn owned_by(&self, owner: &str) -> Self {
        Self { owner: Some(owner.into()), ..self.clone() }
    }

    /// A program to run in `cwd`.
    pub fn program(&self, program: impl Into<OsString>, cwd: &Path) -> Spawn {
        let spawn = Spawn { owner: self.owner.clone(), ..Spawn::new(program.into(), cwd) };
        self.hidden.borrow().iter().fold(spawn, Spawn::env_remove)
    }

    /// Where a program of this name lies on the `PATH` that it would be looked for on.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(
            |path| {
                path.metadata()
                    .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
            },
        )
    }

    /// A shell line to run in `cwd`, by `bash -c` without start-up files.
    pub fn bash(&self, line: &str, cwd: &Path) -> Spawn {
        self.program("bash", cwd)
            .args(["--noprofile", "--norc", "-c", "--", line])
            .env_remove("BASH_ENV")
    }
}

/// A process to be started.
pub struct Spawn {
    program: OsString,
    owner: Option<Arc<str>>,
    args: Vec<OsString>,
    cwd: PathBuf,
    env: Vec<(OsString, Option<OsString>)>,
    input: Option<Vec<u8>>,
    separate: bool,
    keep: Keep,
    timeout: Option<Duration>,
    cancel: CancellationToken,
    listener: Option<Listener>,
}

impl Spawn {
    fn new(program: OsString, cwd: &Path) -> Self {
        Self {
            program,
            owner: None,
            args: Vec::new(),
            cwd: cwd.to_owned(),
            env: Vec::new(),
            input: None,
            separate: false,
            keep: KEEP,
            timeout: None,
            cancel: CancellationToken::new(),
            listener: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Takes all of our environment out but the variables with these names.
    #[must_use]
    pub fn only_env(mut self, names: &[&str]) -> Self {
        let ours = std::env::vars_os().map(|(name, _)| name);
        let others = ours.filter(|name| !names.iter().any(|kept| name == kept));
        self.env.extend(others.map(|name| (name, None)));
        self
    }

    /// Takes an environment variable out.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), None));
        self
    }

    /// Tells programs that nobody looks at a terminal: no colours, no pager.
    #[must_use]
    pub fn unattended(self) -> Self {
        self.env("TERM", "dumb").env("PAGER", "cat").env("GIT_PAGER", "cat")
    }

    /// Gives it these bytes on standard input, then end of file. Without, end of file at once.
    #[must_use]
    pub fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    /// Keeps standard error apart from standard output.
    #[must_use]
    pub fn separate_errors(mut self) -> Self {
        self.separate = true;
        self
    }

    /// Keeps at most the first `head` and the last `tail` bytes of each stream.
    #[must_use]
    pub fn keep(mut self, head: usize, tail: usize) -> Self {
        self.keep = Keep { head, tail };
        self
    }

    /// Ends it after `timeout`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Ends it when `cancel` fires.
    #[must_use]
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Calls `listener` with each piece of output as it arrives, at most 32 KiB. It must not block.
    #[must_use]
    pub fn on_output(mut self, listener: impl FnMut(&[u8]) + Send + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    pub(crate) fn take_listener(&mut self) -> Option<Listener> {
        self.listener.take()
    }

    /// Starts it and sees it to its end. Dropping the future kills the whole session at once.
    pub async fn run(mut self) -> Result<Finished, SpawnError> {
        let (timeout, cancel) = (self.timeout, self.cancel.clone());
        let (mut group, mut pump) = self.start().map_err(|source| self.refusal(source))?;
        let stop = async {
            let timer = async {
                match timeout {
                    Some(timeout) => tokio::time::sleep(timeout).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => Cause::Cancelled,
                () = timer => Cause::TimedOut,
            }
        };
        let exit = see_to_end(&mut group, &mut pump, stop, GRACE).await;
        let (output, errors) = pump.finish();
        Ok(Finished { output, errors, exit })
    }

    fn start(&mut self) -> io::Result<(Group, Pump)> {
        let (output, writer) = io::pipe()?;
        let (errors, errors_writer) = if self.separate {
            let (errors, writer) = io::pipe()?;
            (Some(OwnedFd::from(errors)), OwnedFd::from(writer))
        } else {
            // One pipe for both is what keeps their order.
            (None, OwnedFd::from(writer.try_clone()?))
        };
        let output = Receiver::from_owned_fd(output.into())?;
        let errors = errors.map(Receiver::from_owned_fd).transpose()?;
        let mut pump = Pump::new(output, errors, self.keep, self.listener.take());
        let input = match self.input.take() {
            Some(bytes) => {
                let (input, writer) = io::pipe()?;
                pump.feed(writer.into(), bytes)?;
                OwnedFd::from(input)
            }
            None => OwnedFd::from(File::open("/dev/null")?),
        };
        let stdio = [input.as_fd(), writer.as_fd(), errors_writer.as_fd()];
        Ok((self.lead(Stdio::Descriptors(stdio))?, pump))
    }

    /// Starts the leader.
    pub(crate) fn lead(&self, stdio: Stdio<'_>) -> io::Result<Group> {
        let mark = Mark::new(self.owner.as_deref());
        let leader = Leader {
            argv: &self.argv()?,
            env: &self.environment(&mark)?,
            cwd: &CString::new(self.cwd.as_os_str().as_bytes())?,
            stdio,
        };
        Group::start(&leader, mark)
    }

    fn argv(&self) -> io::Result<Vec<CString>> {
        let words = std::iter::once(&self.program).chain(&self.args);
        words.map(|word| Ok(CString::new(word.as_bytes())?)).collect()
    }

    /// Our environment with the changes to it.
    fn environment(&self, mark: &Mark) -> io::Result<Vec<CString>> {
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in &self.env {
            match value {
                Some(value) => variables.insert(name.clone(), value.clone()),
                None => variables.remove(name),
            };
        }
        variables.extend([mark.variable()]);
        let pairs = variables.iter();
        pairs
            .map(|(name, value)| {
                Ok(CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())?)
            })
            .collect()
    }

    /// Why it could not be started.
    pub(crate) fn refusal(&self, source: io::Error) -> SpawnError {
        let (program, cwd) = (self.program.clone(), self.cwd.clone());
        match source.kind() {
            _ if !cwd.is_dir() => SpawnError::NoFolder { program, cwd },
            io::ErrorKind::NotFound => SpawnError::NoProgram { program },
            _ => SpawnError::Refused { program, cwd, source },
        }
    }
}

/// Moves a group's bytes until its leader has ended or `stop` says to end it, then ends what is
/// left of it, and takes its last output.
pub(crate) async fn see_to_end(
    group: &mut Group,
    pump: &mut Pump,
    stop: impl Future<Output = Cause>,
    grace: Duration,
) -> Exit {
    let mut stop = std::pin::pin!(stop);
    let cause = loop {
        tokio::select! {
            biased;
            cause = &mut stop => break cause,
            _ = group.wait() => break Cause::Ended,
            () = pump.run(), if !pump.is_finished() => {}
        }
    };
    let (leftovers_ended, survivors) = match cause {
        Cause::Ended => end_leftovers(group, pump, grace).await,
        Cause::TimedOut | Cause::Cancelled => (0, end(group, pump, grace).await),
    };
    pump.drain();
    let status = group.look().unwrap_or_default();
    Exit { code: status.code, signal: status.signal, cause, leftovers_ended, survivors }
}

/// After the leader's own end: takes the last output, gives stragglers a moment, ends the rest.
async fn end_leftovers(group: &mut Group, pump: &mut Pump, grace: Duration) -> (usize, usize) {
    pump.drain();
    if pump.is_closed() && group.session().is_gone() {
        group.session().settle();
        return (0, 0);
    }
    // Ends early when the last holder of the pipe lets go of it.
    let deadline = Instant::now() + SETTLE;
    let _ = tokio::time::timeout_at(deadline, pump.run()).await;
    if group.gone_by(deadline).await {
        group.session().settle();
        return (0, 0);
    }
    let found = group.session().alive().len();
    let survivors = end(group, pump, grace).await;
    (found.saturating_sub(survivors), survivors)
}

/// Ends the session while its output is still taken, so that nobody hangs on a full pipe.
async fn end(group: &mut Group, pump: &mut Pump, grace: Duration) -> usize {
    let mut ending = std::pin::pin!(group.end(grace));
    loop {
        tokio::select! {
            biased;
            survivors = &mut ending => return survivors,
            () = pump.run(), if !pump.is_finished() => {}
        }
    }
}

#[cfg(test)]
mod tests;
