//! A process that goes on beside us: its newest output, its input, and its end.
//!
//! A task of its own takes the output as it comes and sees to the end, waiting on descriptors only:
//! a process that says nothing costs nothing.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::capture::Keep;
use crate::group::Group;
use crate::leader::Stdio;
use crate::pump::{Listener, Pump};
use crate::ring::{Piece, Ring};
use crate::session::Session;
use crate::spawn::{Cause, Exit, Spawn, SpawnError, see_to_end};
use crate::terminal::{Terminal, WindowSize};

/// Newest bytes kept of the output.
const KEEP: usize = 256 * 1024;
/// How long a process that is stopped may take before it is killed. Longer than for a command: a
/// server may have work to finish.
const GRACE: Duration = Duration::from_secs(2);
/// What ends the input of a program that reads lines from a terminal.
const END_OF_TRANSMISSION: &[u8] = b"\x04";

/// What a process is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Console {
    /// One pipe for its input, one for output and errors together.
    Pipes,
    /// A terminal of its own.
    Terminal(WindowSize),
}

/// What is known of a process.
#[derive(Debug)]
struct State {
    output: Ring,
    exit: Option<Exit>,
}

/// A process that was started and goes on. Dropped, it is killed with all its session.
#[derive(Debug)]
pub struct Process {
    session: Arc<Session>,
    console: Console,
    state: watch::Receiver<State>,
    input: Mutex<Option<Sender>>,
    stop: CancellationToken,
    keeper: AbortHandle,
}

/// A started leader and our ends of its console.
struct Started {
    group: Group,
    output: Receiver,
    input: Sender,
}

impl Spawn {
    /// Starts it as a process that goes on. Input, timeout, cancel and bounds that were set are for
    /// a run and mean nothing here.
    pub fn start_process(self, console: Console) -> Result<Process, SpawnError> {
        let started = match console {
            Console::Pipes => self.start_with_pipes(),
            Console::Terminal(size) => self.start_with_terminal(size),
        };
        let Started { group, output, input } = started.map_err(|source| self.refusal(source))?;
        let (tell, state) = watch::channel(State { output: Ring::new(KEEP), exit: None });
        let (session, stop) = (Arc::clone(group.session()), CancellationToken::new());
        let keeper = tokio::spawn(keep(group, output, tell, stop.clone())).abort_handle();
        Ok(Process { session, console, state, input: Mutex::new(Some(input)), stop, keeper })
    }

    fn start_with_pipes(&self) -> io::Result<Started> {
        let (output, writer) = io::pipe()?;
        let (reader, input) = io::pipe()?;
        let output = Receiver::from_owned_fd(output.into())?;
        let input = Sender::from_owned_fd(input.into())?;
        let stdio = [reader.as_fd(), writer.as_fd(), writer.as_fd()];
        Ok(Started { group: self.lead(Stdio::Descriptors(stdio))?, output, input })
    }

    fn start_with_terminal(&self, size: WindowSize) -> io::Result<Started> {
        let Terminal { ours, path } = Terminal::open(size)?;
        let copy: OwnedFd = ours.try_clone()?;
        // Neither is a pipe, but both are waited for and moved like one.
        let output = Receiver::from_owned_fd_unchecked(ours)?;
        let input = Sender::from_owned_fd_unchecked(copy)?;
        Ok(Started { group: self.lead(Stdio::Terminal(&path))?, output, input })
    }
}

/// Takes the output and sees to the end.
async fn keep(
    mut group: Group,
    output: Receiver,
    tell: watch::Sender<State>,
    stop: CancellationToken,
) {
    let tell = Arc::new(tell);
    let heard = Arc::clone(&tell);
    let listener: Listener =
        Box::new(move |bytes| heard.send_modify(|state| state.output.push(bytes)));
    let mut pump = Pump::new(output, None, Keep { head: 0, tail: 0 }, Some(listener));
    let stopped = async {
        stop.cancelled().await;
        Cause::Cancelled
    };
    let exit = see_to_end(&mut group, &mut pump, stopped, GRACE).await;
    tell.send_modify(|state| state.exit = Some(exit));
}

impl Process {
    /// Process id of its leader.
    pub fn id(&self) -> u32 {
        self.session.id().as_raw().unsigned_abs()
    }

    /// What it is connected to.
    pub fn console(&self) -> Console {
        self.console
    }

    /// What it wrote from the byte `offset` on, as far as it is kept: the newest 256 KiB.
    pub fn output_since(&self, offset: u64) -> Piece {
        self.state.borrow().output.since(offset)
    }

    /// Bytes it wrote so far.
    pub fn written(&self) -> u64 {
        self.state.borrow().output.written()
    }

    /// How it ended, if it has. All its output is there then, and its session is gone.
    pub fn exit(&self) -> Option<Exit> {
        self.state.borrow().exit
    }

    /// Waits until it has written more than `offset` bytes or has ended.
    pub async fn output_after(&self, offset: u64) {
        let mut state = self.state.clone();
        // Without a teller it has ended as well.
        let _ =
            state.wait_for(|state| state.output.written() > offset || state.exit.is_some()).await;
    }

    /// Waits for its end; `None` if the runtime that kept it was shut down.
    pub async fn ended(&self) -> Option<Exit> {
        let mut state = self.state.clone();
        state.wait_for(|state| state.exit.is_some()).await.ok()?.exit
    }

    /// Gives it the first of these bytes as soon as there is room. Says how many it took.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.input.lock().await {
            Some(input) => input.write(bytes).await,
            None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "its input was ended before")),
        }
    }

    /// Ends its input. A terminal stays open: the program is told by the character that says so.
    pub async fn end_input(&self) -> io::Result<()> {
        match self.console {
            Console::Pipes => {
                self.input.lock().await.take();
                Ok(())
            }
            Console::Terminal(_) => self.write(END_OF_TRANSMISSION).await.map(|_| ()),
        }
    }

    /// Ends it with all its session: asks, and kills what is still there two seconds later. Gives
    /// its exit; a process that had ended before keeps its own.
    pub async fn stop(&self) -> Option<Exit> {
        self.stop.cancel();
        self.ended().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Here and not only by the end of the task, for which a runtime may have no time left.
        self.session.kill();
        self.keeper.abort();
    }
}

#[cfg(test)]
mod tests;
