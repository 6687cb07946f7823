//! A running leader with all its session, and their end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

use crate::leader::{Leader, ending};
use crate::session::{Mark, Session};

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
    session: Arc<Session>,
    endings: Endings,
    status: Option<Status>,
}

impl Group {
    /// Starts the leader, whose environment holds the mark.
    pub(crate) fn start(leader: &Leader<'_>, mark: Mark) -> io::Result<Self> {
        let id = leader.spawn()?;
        let session = Arc::new(Session::new(id, mark, leader.stdio.output()));
        match Endings::of(id) {
            Ok(endings) => Ok(Self { session, endings, status: None }),
            Err(error) => {
                session.kill();
                let _ = waitpid(id, None);
                Err(error)
            }
        }
    }

    /// What the leader started.
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
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
            self.status = match waitpid(self.session.id(), Some(WaitPidFlag::WNOHANG)) {
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

    /// Ends the session: asks, waits `grace`, kills, and looks whether it is gone. Gives the
    /// number of processes that are still there.
    pub(crate) async fn end(&mut self, grace: Duration) -> usize {
        self.session.signal(Signal::SIGTERM);
        // A stopped process would only see the request when it goes on.
        self.session.signal(Signal::SIGCONT);
        let deadline = Instant::now() + grace;
        // The leader's end wakes us; only its leftovers have to be looked for.
        let _ = timeout(grace, self.wait()).await;
        if !self.gone_by(deadline).await {
            self.session.signal(Signal::SIGKILL);
            let deadline = Instant::now() + KILL_WAIT;
            let _ = timeout(KILL_WAIT, self.wait()).await;
            while !self.gone_by(Instant::now() + LOOK.1).await && Instant::now() < deadline {
                // One that was just being started may have been missed.
                self.session.signal(Signal::SIGKILL);
            }
        }
        let survivors = self.session.alive().len();
        if survivors == 0 && self.status.is_some() {
            self.session.settle();
        }
        survivors
    }

    /// True as soon as no process of the session is alive, false if one is at the deadline.
    pub(crate) async fn gone_by(&self, deadline: Instant) -> bool {
        let mut pause = LOOK.0;
        loop {
            if self.session.alive().is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOK.1);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.session.kill();
        if self.status.is_none() {
            let id = self.session.id();
            // Death takes a moment, for which a drop must not block, and a runtime that is being
            // shut down would not wait.
            let _ = std::thread::Builder::new().spawn(move || waitpid(id, None));
        }
    }
}
