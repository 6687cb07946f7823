//! Signals that end a run.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// SIGINT: stop what runs.
    Interrupt,
    /// SIGTERM, SIGHUP or SIGQUIT: end the process.
    Terminate,
}

/// Listens for the signals that ask for an end, so that no process of ours is left behind.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Signals {
    /// Starts listening; from now on these signals do not end the process by themselves.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
            _ = self.hangup.recv() => Asked::Terminate,
            _ = self.quit.recv() => Asked::Terminate,
        }
    }
}
