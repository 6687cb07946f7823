//! What the terminal sends, read on a thread of its own and decoded into keys, pastes and clicks.
//! The thread sleeps in one read while nothing is typed, and ends when the terminal is gone.

mod decode;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use tokio::sync::mpsc;

use self::decode::Decoder;
use crate::event::Input;

/// Bytes of one read.
const READ_SIZE: usize = 16 * 1024;
/// Reads that may wait to be looked at.
const WAITING: usize = 64;

/// Starts reading. The channel closes when the terminal is gone.
pub(crate) fn start() -> io::Result<mpsc::Receiver<Vec<Input>>> {
    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (sender, receiver) = mpsc::channel(WAITING);
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut decoder = Decoder::default();
        let mut bytes = vec![0; READ_SIZE];
        loop {
            let read = match file.read(&mut bytes) {
                Ok(0) => return,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let inputs = decoder.feed(bytes.get(..read).unwrap_or_default());
            if !inputs.is_empty() && sender.blocking_send(inputs).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}
