//! Standard input and output as lines, each on a thread of its own.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::time::Duration;

use loon_api::{ErrorCode, ErrorInfo};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::failure::say_error;
use crate::headless::{Line, next_line};

/// Longest line taken, in bytes. A prompt may hold whole files.
const MAX_LINE: u64 = 32 * 1024 * 1024;

/// Lines read ahead.
const READ_AHEAD: usize = 4;

/// Lines that may wait for the writer.
const CAPACITY: usize = 64;

/// How long a client that takes nothing is waited for at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A line from standard input; nothing stands for one that is too long.
pub(super) type Input = Option<Vec<u8>>;

/// Reads lines until the end of input.
pub(super) fn read() -> mpsc::Receiver<Input> {
    let (sender, lines) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let line = match next_line(&mut input, MAX_LINE) {
                Ok(Line::End) => return,
                Ok(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
                Ok(Line::Whole(line)) => Some(line),
                Ok(Line::TooLong) => None,
                Err(error) => {
                    let message = format!("Cannot read standard input: {error}");
                    return say_error(&ErrorInfo::new(ErrorCode::Io, message));
                }
            };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// What to say of a line that is too long.
pub(super) fn too_long() -> String {
    format!("A line is longer than {MAX_LINE} bytes; send large files as links.")
}

/// The writer's thread.
pub(super) struct Writer {
    lines: mpsc::Sender<String>,
    task: JoinHandle<io::Result<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start() -> Self {
        let (lines, mut waiting) = mpsc::channel::<String>(CAPACITY);
        let task = tokio::task::spawn_blocking(move || {
            let mut out = io::BufWriter::with_capacity(64 * 1024, io::stdout().lock());
            while let Some(line) = waiting.blocking_recv() {
                writeln!(out, "{line}")?;
                while let Ok(line) = waiting.try_recv() {
                    writeln!(out, "{line}")?;
                }
                out.flush()?;
            }
            Ok(())
        });
        Self { lines, task }
    }

    /// A way to the writer.
    pub(super) fn outbox(&self) -> Outbox {
        Outbox { waiting: VecDeque::new(), lines: Some(self.lines.clone()) }
    }

    /// Completes when nothing can be written any more.
    pub(super) async fn closed(&self) {
        self.lines.closed().await;
    }

    /// Waits for the last line to be written, but not long.
    pub(super) async fn finish(self) {
        drop(self.lines);
        let problem = match tokio::time::timeout(LAST_WORDS, self.task).await {
            Ok(Ok(Err(error))) if error.kind() != io::ErrorKind::BrokenPipe => {
                format!("Cannot write to standard output: {error}")
            }
            Ok(_) => return,
            Err(_) => "Nobody read standard output; the last messages were not written.".to_owned(),
        };
        say_error(&ErrorInfo::new(ErrorCode::Io, problem));
    }
}

/// Lines that wait for room at the writer.
pub(super) struct Outbox {
    waiting: VecDeque<String>,
    /// Absent once nobody reads.
    lines: Option<mpsc::Sender<String>>,
}

impl Outbox {
    /// Adds a line; once nobody reads it is dropped.
    pub(super) fn push(&mut self, line: String) {
        if self.lines.is_some() {
            self.waiting.push_back(line);
        }
    }

    /// True if no line waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Hands the oldest line over as soon as there is room. False if nobody reads. Nothing is lost if
    /// it is not waited for to the end.
    pub(super) async fn flush(&mut self) -> bool {
        let Some(lines) = &self.lines else { return false };
        let Ok(place) = lines.reserve().await else {
            self.give_up();
            return false;
        };
        if let Some(line) = self.waiting.pop_front() {
            place.send(line);
        }
        true
    }

    /// Drops what waits and all that still comes.
    pub(super) fn give_up(&mut self) {
        self.lines = None;
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_wait_for_room_in_their_order_and_none_is_lost() {
        let (sender, mut written) = mpsc::channel(1);
        let mut outbox = Outbox { waiting: VecDeque::new(), lines: Some(sender) };
        for line in ["a", "b"] {
            outbox.push(line.to_owned());
        }
        assert!(outbox.flush().await);
        let given_up = tokio::time::timeout(Duration::ZERO, outbox.flush()).await;
        assert!(given_up.is_err(), "there is no room for a second line");
        assert_eq!(written.recv().await.as_deref(), Some("a"));
        assert!(outbox.flush().await && outbox.is_empty());
        assert_eq!(written.recv().await.as_deref(), Some("b"));
        drop(written);
        outbox.push("c".to_owned());
        assert!(!outbox.flush().await);
        outbox.push("d".to_owned());
        assert!(outbox.is_empty(), "nothing gathers for a reader that is gone");
    }
}
