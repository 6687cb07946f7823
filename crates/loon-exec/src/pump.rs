//! Moves bytes between a process and us: its output into bounded buffers, our input into it.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::capture::{Captured, HeadTail, Keep};

/// Bytes of one read.
const CHUNK: usize = 32 * 1024;
/// Most bytes taken from a pipe after its process has ended; more than a pipe holds by default. A
/// background child that keeps writing must not hold up the result.
const DRAIN: usize = 1024 * 1024;

/// Is told of each piece of output as it arrives.
pub(crate) type Listener = Box<dyn FnMut(&[u8]) + Send>;

/// One stream of output.
struct Stream {
    pipe: Receiver,
    kept: HeadTail,
    chunk: Vec<u8>,
    closed: bool,
}

impl Stream {
    fn new(pipe: Receiver, keep: Keep) -> Self {
        Self { pipe, kept: HeadTail::new(keep), chunk: vec![0; CHUNK], closed: false }
    }

    /// Waits for one piece of output. Safe to drop at the wait: nothing is taken before it.
    async fn fill(&mut self) -> usize {
        let read = self.pipe.read(&mut self.chunk).await.unwrap_or(0);
        self.take(read)
    }

    /// Takes what lies in the pipe now. Asks the pipe itself, not the event loop, which may not
    /// have heard of the last bytes yet.
    fn drain(&mut self, listener: &mut Option<Listener>) {
        let mut drained = 0;
        while !self.closed && drained < DRAIN {
            match nix::unistd::read(&self.pipe, &mut self.chunk) {
                Ok(read) => {
                    drained += self.take(read);
                    tell(listener, &self.chunk[..read]);
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(_) => self.closed = true,
            }
        }
    }

    fn take(&mut self, read: usize) -> usize {
        self.closed = read == 0;
        self.kept.push(&self.chunk[..read]);
        read
    }
}

fn tell(listener: &mut Option<Listener>, bytes: &[u8]) {
    if let Some(listener) = listener
        && !bytes.is_empty()
    {
        listener(bytes);
    }
}

/// Bytes that a process reads from its standard input.
struct Input {
    pipe: Sender,
    bytes: Vec<u8>,
    written: usize,
}

impl Input {
    /// Writes one piece. False when there is nothing more to write or nobody reads.
    async fn feed(&mut self) -> bool {
        match self.pipe.write(&self.bytes[self.written..]).await {
            Ok(written) => {
                self.written += written;
                written > 0 && self.written < self.bytes.len()
            }
            Err(_) => false,
        }
    }
}

/// All streams of one process.
pub(crate) struct Pump {
    output: Stream,
    errors: Option<Stream>,
    input: Option<Input>,
    listener: Option<Listener>,
}

impl Pump {
    /// `errors` is absent if the process writes both streams into one pipe.
    pub(crate) fn new(
        output: Receiver,
        errors: Option<Receiver>,
        keep: Keep,
        listener: Option<Listener>,
    ) -> Self {
        Self {
            output: Stream::new(output, keep),
            errors: errors.map(|errors| Stream::new(errors, keep)),
            input: None,
            listener,
        }
    }

    /// Gives the process these bytes and then end of file.
    pub(crate) fn feed(&mut self, writer: OwnedFd, bytes: Vec<u8>) -> io::Result<()> {
        self.input = Some(Input { pipe: Sender::from_owned_fd(writer)?, bytes, written: 0 });
        Ok(())
    }

    /// True when nothing more can come or go.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_closed() && self.input.is_none()
    }

    /// True when nobody holds the writing end of the output any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.output.closed && self.errors.as_ref().is_none_or(|errors| errors.closed)
    }

    /// Moves bytes until nothing more can come or go. Safe to drop and to call again.
    pub(crate) async fn run(&mut self) {
        while !self.is_finished() {
            let Self { output, errors, input, listener } = self;
            let errors_open = errors.as_ref().is_some_and(|errors| !errors.closed);
            tokio::select! {
                read = output.fill(), if !output.closed => {
                    tell(listener, &output.chunk[..read]);
                }
                read = async {
                    match errors {
                        Some(errors) => errors.fill().await,
                        None => 0,
                    }
                }, if errors_open => if let Some(errors) = errors {
                    tell(listener, &errors.chunk[..read]);
                },
                more = async {
                    match input {
                        Some(input) => input.feed().await,
                        None => false,
                    }
                }, if input.is_some() => if !more { *input = None; },
            }
        }
    }

    /// Takes what lies in the pipes without waiting.
    pub(crate) fn drain(&mut self) {
        self.output.drain(&mut self.listener);
        if let Some(errors) = &mut self.errors {
            errors.drain(&mut self.listener);
        }
    }

    /// What was kept of output and errors.
    pub(crate) fn finish(self) -> (Captured, Captured) {
        let errors = self.errors.map(|errors| errors.kept.finish()).unwrap_or_default();
        (self.output.kept.finish(), errors)
    }
}
