//! The last that a program said on standard error.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::words;

/// Bytes kept.
const KEPT: usize = 8 * 1024;

/// A bounded tail. Clones of the handle around it are the same.
#[derive(Debug, Default)]
pub(crate) struct Tail(Mutex<VecDeque<u8>>);

impl Tail {
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = &bytes[bytes.len().saturating_sub(KEPT)..];
        let surplus = (kept.len() + newest.len()).saturating_sub(KEPT);
        kept.drain(..surplus);
        kept.extend(newest);
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What it holds, safe to show.
    pub(crate) fn text(&self) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words::safe(String::from_utf8_lossy(kept.make_contiguous()).trim())
    }

    /// Its last line that says something.
    pub(crate) fn last_line(&self) -> Option<String> {
        let text = self.text();
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(words::line(line, 300))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_bytes_are_kept() {
        let tail = Tail::default();
        tail.push(b"old\n");
        tail.push(&vec![b'x'; KEPT]);
        tail.push(b"\nlast\x1b[0m\n\n");
        assert_eq!(tail.last_line().as_deref(), Some("last\u{241b}[0m"));
        assert!(!tail.text().contains("old") && tail.text().len() <= KEPT + 2);
        tail.clear();
        assert_eq!(tail.last_line(), None);
    }
}
