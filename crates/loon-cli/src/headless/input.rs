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
    for number in 1_u64.. {
        let command = match next_line(input, MAX_LINE) {
            Ok(Line::End) => return,
            Ok(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
            Ok(Line::Whole(line)) => serde_json::from_slice(&line).map_err(|error| {
                let message = format!("Line {number} of standard input is no command: {error}");
                ErrorInfo::new(ErrorCode::Invalid, message)
            }),
            Ok(Line::TooLong) => {
                let message =
                    format!("Line {number} of standard input is longer than {MAX_LINE} bytes.");
                Err(ErrorInfo::new(ErrorCode::Invalid, message))
            }
            Err(error) => {
                let message = format!("Cannot read standard input: {error}");
                let _ = sender.blocking_send(Err(ErrorInfo::new(ErrorCode::Io, message)));
                return;
            }
        };
        if sender.blocking_send(command).is_err() {
            return;
        }
    }
}

/// What was read of a line.
pub(crate) enum Line {
    /// All of it, with its end.
    Whole(Vec<u8>),
    /// Nothing, because it is too long.
    TooLong,
    /// There is none.
    End,
}

/// The next line, of at most `max` bytes. One that is too long is passed over to its end, so that no part of it is taken
/// for a command.
pub(crate) fn next_line(input: &mut impl std::io::BufRead, max: u64) -> std::io::Result<Line> {
    use std::io::{BufRead as _, Read as _};
    let mut line = Vec::new();
    match input.by_ref().take(max + 1).read_until(b'\n', &mut line)? {
        0 => Ok(Line::End),
        read if read as u64 <= max || line.ends_with(b"\n") => Ok(Line::Whole(line)),
        _ => {
            input.skip_until(b'\n')?;
            Ok(Line::TooLong)
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

    #[tokio::test]
    async fn a_line_that_cannot_be_taken_leaves_the_next_ones_whole() {
        let (sender, mut lines) = mpsc::channel(16);
        let mut text = b"\xff\xfe\n".to_vec();
        text.resize(text.len() + usize::try_from(MAX_LINE).unwrap() + 1, b' ');
        text.extend(b"{\"type\":\"close\"}\n{\"type\":\"interrupt\"}\n");
        std::thread::spawn(move || read_lines(&mut text.as_slice(), &sender));
        for beginning in ["Line 1 ", "Line 2 of standard input is longer"] {
            let error = lines.recv().await.unwrap().unwrap_err();
            assert!(error.message.starts_with(beginning), "{}", error.message);
        }
        assert_eq!(lines.recv().await, Some(Ok(Command::Interrupt)));
        assert_eq!(lines.recv().await, None);
    }
}
