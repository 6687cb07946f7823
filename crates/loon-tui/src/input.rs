//! What the terminal sends, decoded into keys, pastes and clicks. Whoever waits for it is woken by the
//! terminal itself, with no thread in between that would take its time to pass a key on.

mod decode;

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use self::decode::Decoder;
use crate::event::Input;

/// Bytes of one read.
const READ_SIZE: usize = 16 * 1024;
/// Reads that are taken in at once.
const BATCH: usize = 64;

/// What the user does, in order.
pub(crate) struct Inputs {
    source: Source,
    decoder: Decoder,
    bytes: Vec<u8>,
}

enum Source {
    /// The terminal, opened anew: that it does not block is nobody else's concern. It is no pipe, but
    /// is waited for and read like one.
    Terminal(pipe::Receiver),
    /// A thread that sleeps in one read, for terminals that cannot be opened anew or waited for.
    Thread(mpsc::Receiver<Vec<u8>>),
}

impl Inputs {
    /// Begins to listen. Must be called inside a tokio runtime.
    pub(crate) fn start() -> io::Result<Self> {
        let source = match open_anew().and_then(pipe::Receiver::from_file_unchecked) {
            Ok(terminal) => Source::Terminal(terminal),
            Err(_) => Source::Thread(start_thread()?),
        };
        Ok(Self { source, decoder: Decoder::default(), bytes: vec![0; READ_SIZE] })
    }

    /// What came next; nothing once the terminal is gone. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Vec<Input>> {
        loop {
            let inputs = match &mut self.source {
                Source::Terminal(terminal) => {
                    terminal.readable().await.ok()?;
                    let mut inputs = Vec::new();
                    for _ in 0..BATCH {
                        match terminal.try_read(&mut self.bytes) {
                            Ok(0) => return (!inputs.is_empty()).then_some(inputs),
                            Ok(read) => {
                                let bytes = self.bytes.get(..read).unwrap_or_default();
                                inputs.extend(self.decoder.feed(bytes));
                            }
                            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                            Err(_) => return (!inputs.is_empty()).then_some(inputs),
                        }
                    }
                    inputs
                }
                Source::Thread(reads) => {
                    let mut inputs = self.decoder.feed(&reads.recv().await?);
                    while let Ok(more) = reads.try_recv() {
                        inputs.extend(self.decoder.feed(&more));
                    }
                    inputs
                }
            };
            if !inputs.is_empty() {
                return Some(inputs);
            }
        }
    }
}

fn open_anew() -> io::Result<File> {
    let name = rustix::termios::ttyname(io::stdin(), Vec::new())?;
    OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())))
}

fn start_thread() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (sender, receiver) = mpsc::channel(BATCH);
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut bytes = vec![0; READ_SIZE];
        loop {
            match file.read(&mut bytes) {
                Ok(0) => return,
                Ok(read) => {
                    let bytes = bytes.get(..read).unwrap_or_default().to_vec();
                    if sender.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    })?;
    Ok(receiver)
}
