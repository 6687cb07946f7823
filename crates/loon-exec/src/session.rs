//! The session of processes that one run started: finding and signalling its members.
//!
//! A leader is started in a session of its own, so whatever it starts can be found again: first by
//! the process group, for shells that give jobs groups of their own by the session, and for
//! programs that begin a session of their own by a variable that all descendants inherit, or, where
//! that was cleared, by the output that they still hold. Only who begins a session, clears its
//! environment *and* writes elsewhere escapes. A process that has ended but was not yet
//! collected by its parent counts as gone.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use uuid::Uuid;

use crate::owner::mark_of;

/// The variable that marks what a run started. Runs within runs add theirs to it.
const NAME: &str = "LOON_SPAWN";

/// So many new processes are looked at one by one instead of reading the whole process table.
#[cfg(target_os = "linux")]
const FEW: i32 = 200;

/// Marks the processes of one run.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    id: String,
    /// The mark of all runs for the same owner.
    owner: Option<String>,
}

impl Mark {
    /// One that no other run has, for this owner.
    pub(crate) fn new(owner: Option<&str>) -> Self {
        Self { id: Uuid::now_v7().to_string(), owner: owner.map(mark_of) }
    }

    /// The variable to start the leader with, given all others. A run around ours must find its
    /// descendants too, so its mark stays.
    pub(crate) fn variable(&self) -> (OsString, OsString) {
        let mut value = std::env::var_os(NAME).unwrap_or_default();
        for mark in self.owner.iter().chain([&self.id]) {
            if !value.is_empty() {
                value.push(",");
            }
            value.push(mark);
        }
        (NAME.into(), value)
    }

    /// True if this environment (`NAME=value` with a NUL after each) holds the mark.
    #[cfg(any(target_os = "linux", test))]
    fn is_in(&self, environment: &[u8]) -> bool {
        marks(environment).any(|mark| mark == self.id.as_bytes())
    }
}

/// The marks in an environment (`NAME=value` with a NUL after each).
#[cfg(any(target_os = "linux", test))]
pub(crate) fn marks(environment: &[u8]) -> impl Iterator<Item = &[u8]> {
    environment
        .split(|byte| *byte == 0)
        .filter_map(|variable| variable.strip_prefix(NAME.as_bytes())?.strip_prefix(b"="))
        .flat_map(|value| value.split(|byte| *byte == b','))
}

/// All that one leader started, itself included.
#[derive(Debug)]
pub(crate) struct Session {
    id: Pid,
    mark: Mark,
    /// Where the leader writes to, as the process table names it.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no such table"))]
    output: Option<PathBuf>,
    over: AtomicBool,
}

impl Session {
    pub(crate) fn new(id: Pid, mark: Mark, output: Option<PathBuf>) -> Self {
        Self { id, mark, output, over: AtomicBool::new(false) }
    }

    /// Process id of the leader.
    pub(crate) fn id(&self) -> Pid {
        self.id
    }

    /// Says that nothing is left. From then on the id may belong to somebody else.
    pub(crate) fn settle(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// True once it is settled.
    pub(crate) fn is_settled(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// True if no process is there at all. A few system calls as a rule.
    pub(crate) fn is_gone(&self) -> bool {
        killpg(self.id, None) == Err(Errno::ESRCH) && self.left_nobody()
    }

    /// Kills at once what is left.
    pub(crate) fn kill(&self) {
        if !self.is_settled() {
            self.signal(Signal::SIGKILL);
        }
    }

    /// Sends a signal to every member.
    pub(crate) fn signal(&self, signal: Signal) {
        // What is already gone needs no signal.
        let _ = killpg(self.id, signal);
        for member in self.alive() {
            if member.group != self.id {
                let _ = kill(member.pid, signal);
            }
        }
    }

    /// True if nobody lives on outside the leader's group. After a short run only the few processes
    /// that were started since need a look, as ids are given out in order.
    #[cfg(target_os = "linux")]
    fn left_nobody(&self) -> bool {
        let leader = self.id.as_raw();
        match newest_process() {
            Some(newest) if (0..=FEW).contains(&(newest - leader)) => {
                (leader + 1..=newest).all(|pid| self.member(pid).is_none())
            }
            _ => self.alive().is_empty(),
        }
    }

    /// Live members, from the process table.
    #[cfg(target_os = "linux")]
    pub(crate) fn alive(&self) -> Vec<Member> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(|pid| self.member(pid))
            .collect()
    }

    /// The process with this id, if it is alive and belongs to the session.
    #[cfg(target_os = "linux")]
    fn member(&self, pid: i32) -> Option<Member> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let (group, session) = live_group_and_session(&stat)?;
        let is_member = session == self.id.as_raw()
            || std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| self.mark.is_in(&environment))
            || self.is_held_by(pid);
        is_member.then(|| Member { pid: Pid::from_raw(pid), group: Pid::from_raw(group) })
    }

    /// The process writes to the output of the leader.
    #[cfg(target_os = "linux")]
    fn is_held_by(&self, pid: i32) -> bool {
        let Some(output) = &self.output else { return false };
        (1..=2).any(|descriptor| {
            std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}"))
                .is_ok_and(|held| held == *output)
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn left_nobody(&self) -> bool {
        true
    }

    /// Without a process table to read, a group that can be signalled counts as one process.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn alive(&self) -> Vec<Member> {
        match killpg(self.id, None) {
            Err(Errno::ESRCH) => Vec::new(),
            _ => vec![Member { pid: self.id, group: self.id }],
        }
    }
}

/// One process of a session.
pub(crate) struct Member {
    pid: Pid,
    group: Pid,
}

/// The id that was given out last.
#[cfg(target_os = "linux")]
fn newest_process() -> Option<i32> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split_ascii_whitespace().last()?.parse().ok()
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

    #[test]
    fn marks_are_found_among_others() {
        let (mark, other) = (Mark::new(None), Mark::new(Some("an owner")));
        let holds = |text: String| mark.is_in(text.replace('|', "\0").as_bytes());
        assert!(holds(format!("A=b|LOON_SPAWN={}|C=d|", mark.id)));
        assert!(holds(format!("LOON_SPAWN={},{}|", other.id, mark.id)));
        assert!(holds(format!("LOON_SPAWN={},{}|", mark.id, other.id)));
        assert!(!holds(format!("LOON_SPAWN={}|", other.id)));
        assert!(!holds(format!("X={}|LOON_SPAWNED={}|", mark.id, mark.id)));
        assert!(!holds(String::new()));
    }
}
