//! The live output of a command: what came since the last look, bounded, at most ten times a second.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loon_kernel::Progress;
use tokio::sync::{Notify, mpsc};

use crate::text::Terminal;

/// Shortest time between two messages.
const PAUSE: Duration = Duration::from_millis(100);
/// Most bytes of one message. Of a flood only the newest are shown; the result counts them all.
const PIECE: usize = 8 * 1024;

/// Output on its way from the process to the progress channel.
#[derive(Debug, Default)]
pub(crate) struct LiveOutput {
    pending: Mutex<Pending>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    skipped: bool,
    terminal: Terminal,
}

impl LiveOutput {
    /// Takes what the process wrote. Never blocks on a reader.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut pending = self.pending();
        let newest = &bytes[bytes.len().saturating_sub(PIECE)..];
        let overflow = (pending.bytes.len() + newest.len()).saturating_sub(PIECE);
        pending.skipped |= overflow > 0 || newest.len() < bytes.len();
        pending.bytes.drain(..overflow);
        pending.bytes.extend_from_slice(newest);
        drop(pending);
        self.arrived.notify_one();
    }

    /// The text of what came since the last time, if there is any.
    pub(crate) fn take(&self) -> Option<String> {
        let mut pending = self.pending();
        let bytes = std::mem::take(&mut pending.bytes);
        let skipped = std::mem::take(&mut pending.skipped);
        let mut text = String::new();
        if skipped {
            text.push_str(&std::mem::take(&mut pending.terminal).finish());
            text.push_str("\n[...]\n");
        }
        pending.terminal.push(&bytes);
        text.push_str(&pending.terminal.take());
        (!text.is_empty()).then_some(text)
    }

    /// Sends until it is dropped.
    pub(crate) async fn forward(&self, progress: &mpsc::Sender<Progress>) -> Infallible {
        loop {
            self.arrived.notified().await;
            if let Some(text) = self.take()
                && progress.send(Progress::Output(text)).await.is_err()
            {
                // Nobody listens; the process runs on.
                return std::future::pending().await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_leaves_its_newest_bytes_and_a_mark() {
        let live = LiveOutput::default();
        live.push(b"begin");
        assert_eq!(live.take().as_deref(), Some("begin"));
        assert_eq!(live.take(), None);
        live.push(&vec![b'a'; PIECE]);
        live.push(b"END");
        let text = live.take().unwrap();
        assert!(text.starts_with("\n[...]\naaa") && text.ends_with("aEND"), "{text}");
        assert_eq!(text.len(), PIECE + "\n[...]\n".len());
    }
}
