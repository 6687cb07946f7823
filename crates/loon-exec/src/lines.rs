//! A child that is talked to in lines: one message a line on its standard input and output.
//!
//! Its output is read only as fast as its messages are taken, so that neither side keeps more than a
//! pipe holds. What it says on standard error is kept for whoever has to explain its end.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::capture::Keep;
use crate::group::Group;
use crate::leader::Stdio;
use crate::pump::Pump;
use crate::session::Session;
use crate::spawn::{Cause, Exit, Spawn, SpawnError, see_to_end};

/// Bytes kept of the beginning and of the end of its standard error.
const KEEP: Keep = Keep { head: 4 * 1024, tail: 12 * 1024 };
/// How long it may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// How such a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit.
    pub exit: Exit,
    /// What it said on standard error. Raw words: whoever shows them makes them safe.
    pub errors: String,
}

/// The way to such a child, which may be used while its messages are awaited. Clones are the same.
#[derive(Clone, Debug)]
pub struct LineInput(Arc<Mutex<Option<Sender>>>);

impl LineInput {
    /// Writes one message, which must hold no line end.
    pub async fn send(&self, message: &[u8]) -> io::Result<()> {
        let mut line = Vec::with_capacity(message.len() + 1);
        line.extend_from_slice(message);
        line.push(b'\n');
        match &mut *self.0.lock().await {
            Some(input) => input.write_all(&line).await,
            None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "its input was ended before")),
        }
    }
}

/// A child that is talked to in lines. Dropped, it is killed with all its session.
#[derive(Debug)]
pub struct LineChild {
    session: Arc<Session>,
    input: LineInput,
    output: BufReader<Receiver>,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    ended: watch::Receiver<Option<Ended>>,
    stop: CancellationToken,
    keeper: AbortHandle,
}

impl Spawn {
    /// Starts it as a child that is talked to in lines. A listener hears what it says on standard
    /// error. Input, timeout, cancel and bounds that were set are for a run and mean nothing here.
    pub fn start_lines(mut self) -> Result<LineChild, SpawnError> {
        let start = || -> io::Result<(Group, Sender, Receiver, Receiver)> {
            let (reader, input) = io::pipe()?;
            let (output, writer) = io::pipe()?;
            let (errors, errors_writer) = io::pipe()?;
            let input = Sender::from_owned_fd(OwnedFd::from(input))?;
            let output = Receiver::from_owned_fd(OwnedFd::from(output))?;
            let errors = Receiver::from_owned_fd(OwnedFd::from(errors))?;
            let stdio = [reader.as_fd(), writer.as_fd(), errors_writer.as_fd()];
            Ok((self.lead(Stdio::Descriptors(stdio))?, input, output, errors))
        };
        let (group, input, output, errors) = start().map_err(|source| self.refusal(source))?;
        let (tell, ended) = watch::channel(None);
        let (session, stop) = (Arc::clone(group.session()), CancellationToken::new());
        let pump = Pump::new(errors, None, KEEP, self.take_listener());
        let keeper = tokio::spawn(keep(group, pump, tell, stop.clone())).abort_handle();
        Ok(LineChild {
            session,
            input: LineInput(Arc::new(Mutex::new(Some(input)))),
            output: BufReader::new(output),
            partial: Vec::new(),
            ended,
            stop,
            keeper,
        })
    }
}

/// Takes what it says on standard error, and sees to its end.
async fn keep(
    mut group: Group,
    mut pump: Pump,
    tell: watch::Sender<Option<Ended>>,
    stop: CancellationToken,
) {
    let stopped = async {
        stop.cancelled().await;
        Cause::Cancelled
    };
    let exit = see_to_end(&mut group, &mut pump, stopped, GRACE).await;
    let said = pump.finish().0;
    let errors = String::from_utf8_lossy(&[said.head, said.tail].concat()).into_owned();
    tell.send_replace(Some(Ended { exit, errors }));
}

impl LineChild {
    /// Process id of its leader.
    pub fn id(&self) -> u32 {
        self.session.id().as_raw().unsigned_abs()
    }

    /// Writes one message, which must hold no line end.
    pub async fn send(&self, message: &[u8]) -> io::Result<()> {
        self.input.send(message).await
    }

    /// The way to it.
    pub fn input(&self) -> LineInput {
        self.input.clone()
    }

    /// Ends its input.
    pub async fn end_input(&self) {
        self.input.0.lock().await.take();
    }

    /// The next message without its line end; `None` at the end of its output. Safe to drop and to
    /// call again. A line longer than `most` bytes is an error.
    pub async fn next(&mut self, most: usize) -> io::Result<Option<Vec<u8>>> {
        loop {
            let read = self.output.fill_buf().await?;
            if read.is_empty() {
                let last = std::mem::take(&mut self.partial);
                return Ok((!last.is_empty()).then_some(last));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let piece = &read[..end.unwrap_or(read.len())];
            if self.partial.len() + piece.len() > most {
                let message = format!("it wrote a line longer than {most} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            self.partial.extend_from_slice(piece);
            let used = piece.len() + usize::from(end.is_some());
            self.output.consume(used);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
        }
    }

    /// Waits for its end; `None` if the runtime that kept it was shut down.
    pub async fn ended(&self) -> Option<Ended> {
        let mut ended = self.ended.clone();
        ended.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// True once it has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Ends it with all its session: asks, and kills what is still there two seconds later.
    pub async fn stop(&self) -> Option<Ended> {
        self.stop.cancel();
        self.ended().await
    }
}

impl Drop for LineChild {
    fn drop(&mut self) {
        // Here and not only by the end of the task, for which a runtime may have no time left.
        self.session.kill();
        self.keeper.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::spawn::Spawner;

    fn start(line: &str) -> LineChild {
        Spawner::default().bash(line, Path::new("/")).start_lines().unwrap()
    }

    async fn line(child: &mut LineChild) -> Option<String> {
        child.next(1000).await.unwrap().map(|line| String::from_utf8(line).unwrap())
    }

    #[tokio::test]
    async fn messages_go_both_ways_and_errors_explain_the_end() {
        let mut child =
            start("while read -r it; do echo \"got $it\"; done; echo why >&2; printf rest; exit 4");
        for word in ["one", "two"] {
            child.send(word.as_bytes()).await.unwrap();
            assert_eq!(line(&mut child).await, Some(format!("got {word}")));
        }
        child.end_input().await;
        assert_eq!(line(&mut child).await.as_deref(), Some("rest"));
        assert_eq!(line(&mut child).await, None);
        let ended = child.ended().await.unwrap();
        assert_eq!((ended.exit.code, ended.errors.as_str()), (Some(4), "why\n"));
    }

    #[tokio::test]
    async fn a_line_without_end_is_refused_and_the_child_is_stopped_with_its_own() {
        let mut child = start("sleep 1000 & echo $!; head -c 2000 /dev/zero; sleep 1000");
        let grandchild = line(&mut child).await.unwrap();
        let error = child.next(1000).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let ended = child.stop().await.unwrap();
        assert_eq!((ended.exit.cause, ended.exit.survivors), (Cause::Cancelled, 0));
        let alive = std::fs::read_to_string(format!("/proc/{grandchild}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z"));
        assert!(!alive, "{grandchild} is still there");
    }
}
