//! The session of processes that one run started, and its end.
//!
//! A leader is started in a session of its own, so whatever it starts can be found again: first by
//! the process group, and for shells that give jobs groups of their own by the session. A process
//! that has ended but was not yet collected by its parent counts as gone.

use std::process::ExitStatus;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::time::{Instant, sleep, timeout};

/// How long a group that was asked to end may take before it is killed.
const GRACE: Duration = Duration::from_millis(300);
/// How long killed processes may take to disappear before they are reported as survivors.
const KILL_WAIT: Duration = Duration::from_millis(500);
/// First and longest pause between two looks at a group that is ending.
const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// A running leader with all its session. Dropped before its end, it is killed and collected.
#[derive(Debug)]
pub(crate) struct Group {
    /// Taken only by `drop`.
    child: Option<Child>,
    id: Pid,
    status: Option<ExitStatus>,
    ended: bool,
}

impl Group {
    /// Takes over a child that called `setsid` before it began.
    pub(crate) fn new(child: Child) -> Self {
        // The id is absent only after a wait, and nobody has waited yet.
        let id = Pid::from_raw(child.id().map_or(0, |id| id as i32));
        Self { child: Some(child), id, status: None, ended: id.as_raw() == 0 }
    }

    /// Waits for the leader. Safe to drop and to call again.
    pub(crate) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let Some(child) = &mut self.child else {
            return Err(std::io::Error::other("the process was already given up"));
        };
        let status = child.wait().await?;
        self.status = Some(status);
        Ok(status)
    }

    /// The leader's status, if it has ended and was waited for.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
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

    async fn gone_by(&self, deadline: Instant) -> bool {
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
        // Collected at once where a runtime still runs; else its child queue does it.
        if let Some(mut child) = self.child.take()
            && self.status.is_none()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let _ = child.wait().await;
            });
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
