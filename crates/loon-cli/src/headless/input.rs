//! Commands from standard input, one JSON object a line.

use loon_api::{Command, ErrorCode, ErrorInfo};
use tokio::sync::mpsc;

/// Longest line taken, in bytes.
const MAX_LINE: u64 = 8 * 1024 * 1024;

/// Reads commands on a thread of its own: standard input cannot be read without blocking one.
pub(super) struct CommandReader {
    lines: mpsc::Receiver<Result<Command, ErrorInfo>>,
}

impl CommandReader {
    /// Starts reading.
    pub(super) fn start() -> Self {
        let (sender, lines) = mpsc::channel(16);
        std::thread::spawn(move || read_lines(&mut std::io::stdin().lock(), &sender));
        Self { lines }
    }

    /// The next command, or what is wrong with the next line; nothing at the end of input.
    pub(super) async fn next(&mut self) -> Option<Result<Command, ErrorInfo>> {
        self.lines.recv().await
    }
}

fn read_lines(
    input: &mut impl std::io::BufRead,
    sender: &mpsc::Sender<Result<Command, ErrorInfo>>,
) {
    use std::io::{BufRead as _, Read as _};
    let mut line = String::new();
    for number in 1_u64.. {
        line.clear();
        let read = match input.by_ref().take(MAX_LINE).read_line(&mut line) {
            Ok(0) => return,
            Ok(read) => read as u64,
            Err(error) => {
                let message = format!("Cannot read standard input: {error}");
                let _ = sender.blocking_send(Err(ErrorInfo::new(ErrorCode::Io, message)));
                return;
            }
        };
        if line.trim().is_empty() {
            continue;
        }
        let command = serde_json::from_str(&line).map_err(|error| {
            let message = if read == MAX_LINE {
                format!("Line {number} of standard input is longer than {MAX_LINE} bytes.")
            } else {
                format!("Line {number} of standard input is no command: {error}")
            };
            ErrorInfo::new(ErrorCode::Invalid, message)
        });
        if sender.blocking_send(command).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn good_lines_are_commands_and_bad_ones_are_named() {
        let (sender, mut lines) = mpsc::channel(16);
        let text = "{\"type\":\"interrupt\"}\n\nnonsense\n{\"type\":\"steer\",\"text\":\"x\"}";
        std::thread::spawn(move || read_lines(&mut text.as_bytes(), &sender));
        assert_eq!(lines.recv().await, Some(Ok(Command::Interrupt)));
        let error = lines.recv().await.unwrap().unwrap_err();
        assert!(error.message.starts_with("Line 3 "), "{}", error.message);
        assert_eq!(lines.recv().await, Some(Ok(Command::Steer { text: "x".into() })));
        assert_eq!(lines.recv().await, None);
    }
}
