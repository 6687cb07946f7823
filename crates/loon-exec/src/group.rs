//! The session of processes that one run started, and its end.
//!
//! A leader is started in a session of its own, so whatever it starts can be found again: first by
//! the process group, and for shells that give jobs groups of their own by the session. A process
//! that has ended but was not yet collected by its parent counts as gone.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

use crate::leader::{Leader, ending};

/// How long a group that was asked to end may take before it is killed.
const GRACE: Duration = Duration::from_millis(300);
/// How long killed processes may take to disappear before they are reported as survivors.
const KILL_WAIT: Duration = Duration::from_millis(500);
/// First and longest pause between two looks at a group that is ending.
const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// How a leader ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// What wakes us when the leader may have ended.
#[derive(Debug)]
enum Endings {
    /// The leader's own descriptor.
    Descriptor(AsyncFd<OwnedFd>),
    /// The end of any child.
    Children(tokio::signal::unix::Signal),
}

impl Endings {
    fn of(id: Pid) -> io::Result<Self> {
        match ending(id) {
            Some(descriptor) => Ok(Self::Descriptor(descriptor)),
            None => signal(SignalKind::child()).map(Self::Children),
        }
    }

    async fn next(&mut self) {
        match self {
            Self::Descriptor(descriptor) => {
                // Once readable, it stays so.
                let _ = descriptor.readable().await;
            }
            Self::Children(children) => {
                let _ = children.recv().await;
            }
        }
    }
}

/// A running leader with all its session. Dropped before its end, it is killed and collected.
#[derive(Debug)]
pub(crate) struct Group {
    id: Pid,
    endings: Endings,
    status: Option<Status>,
    ended: bool,
}

impl Group {
    /// Starts the leader.
    pub(crate) fn start(leader: &Leader<'_>) -> io::Result<Self> {
        let id = leader.spawn()?;
        match Endings::of(id) {
            Ok(endings) => Ok(Self { id, endings, status: None, ended: false }),
            Err(error) => {
                let _ = killpg(id, Signal::SIGKILL);
                let _ = waitpid(id, None);
                Err(error)
            }
        }
    }

    /// Waits for the leader. Safe to drop and to call again.
    pub(crate) async fn wait(&mut self) -> Status {
        loop {
            if let Some(status) = self.look() {
                return status;
            }
            self.endings.next().await;
        }
    }

    /// The leader's status, if it has ended.
    pub(crate) fn look(&mut self) -> Option<Status> {
        if self.status.is_none() {
            self.status = match waitpid(self.id, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(_, code)) => Some(Status { code: Some(code), signal: None }),
                Ok(WaitStatus::Signaled(_, signal, _)) => {
                    Some(Status { code: None, signal: Some(signal as i32) })
                }
                Ok(_) | Err(Errno::EINTR) => None,
                // It has ended, by a signal without a name.
                Err(_) => Some(Status::default()),
            };
        }
        self.status
    }

    /// True if no process of the leader's group is there at all. One system call.
    pub(crate) fn is_gone(&self) -> bool {
        killpg(self.id, None) == Err(Errno::ESRCH)
    }

    /// Says that nothing is left, so that a drop has nothing to do.
    pub(crate) fn settle(&mut self) {
        self.ended = true;
    }

    /// Live processes of the session.
    pub(crate) fn alive(&self) -> usize {
        alive(self.id).len()
    }

    /// Ends the session: asks, waits [`GRACE`], kills, and looks whether it is gone. Gives the
    /// number of processes that are still there.
    pub(crate) async fn end(&mut self) -> usize {
        self.signal(Signal::SIGTERM);
        // A stopped process would only see the request when it goes on.
        self.signal(Signal::SIGCONT);
        let deadline = Instant::now() + GRACE;
        // The leader's end wakes us; only its leftovers have to be looked for.
        let _ = timeout(GRACE, self.wait()).await;
        if !self.gone_by(deadline).await {
            self.signal(Signal::SIGKILL);
            let deadline = Instant::now() + KILL_WAIT;
            let _ = timeout(KILL_WAIT, self.wait()).await;
            self.gone_by(deadline).await;
        }
        let survivors = self.alive();
        self.ended = survivors == 0 && self.status.is_some();
        survivors
    }

    /// True as soon as no process of the session is alive, false if one is at the deadline.
    pub(crate) async fn gone_by(&self, deadline: Instant) -> bool {
        let mut pause = LOOK.0;
        loop {
            if self.alive() == 0 {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOK.1);
        }
    }

    fn signal(&self, signal: Signal) {
        // What is already gone needs no signal.
        let _ = killpg(self.id, signal);
        for member in alive(self.id) {
            if member.group != self.id {
                let _ = kill(member.pid, signal);
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.signal(Signal::SIGKILL);
        if self.status.is_none() {
            let id = self.id;
            // Death takes a moment, for which a drop must not block, and a runtime that is being
            // shut down would not wait.
            let _ = std::thread::Builder::new().spawn(move || waitpid(id, None));
        }
    }
}

struct Member {
    pid: Pid,
    group: Pid,
}

/// Live processes of the session `id`, from the process table.
#[cfg(target_os = "linux")]
fn alive(id: Pid) -> Vec<Member> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| {
            let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
            let (group, session) = live_group_and_session(&stat)?;
            (session == id.as_raw())
                .then(|| Member { pid: Pid::from_raw(pid), group: Pid::from_raw(group) })
        })
        .collect()
}

/// Group and session of a line of `/proc/PID/stat`, unless the process has ended. The name in
/// parentheses may hold anything, so what follows its last parenthesis counts.
#[cfg(any(target_os = "linux", test))]
fn live_group_and_session(stat: &[u8]) -> Option<(i32, i32)> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return None;
    }
    let _parent = fields.next()?;
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Without a process table to read, a group that can be signalled counts as one process.
#[cfg(not(target_os = "linux"))]
fn alive(id: Pid) -> Vec<Member> {
    match killpg(id, None) {
        Err(Errno::ESRCH) => Vec::new(),
        _ => vec![Member { pid: id, group: id }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_table_is_read_past_odd_names() {
        assert_eq!(live_group_and_session(b"12 (a) b (c)) S 1 34 56 0 -1"), Some((34, 56)));
        assert_eq!(live_group_and_session(b"12 (gone) Z 1 34 56 0"), None);
        assert_eq!(live_group_and_session(b"12 (cut) S 1"), None);
        assert_eq!(live_group_and_session(b""), None);
    }
}
