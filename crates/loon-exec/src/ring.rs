//! Output of which only the newest bytes are kept, each at its offset from the beginning.

use std::collections::VecDeque;

/// Part of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Bytes that were asked for and are not kept any more.
    pub skipped: u64,
    /// The bytes after those.
    pub bytes: Vec<u8>,
    /// Offset after the last byte, to go on from.
    pub end: u64,
}

/// The newest bytes of an output.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: VecDeque<u8>,
    limit: usize,
    written: u64,
}

impl Ring {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: VecDeque::new(), limit, written: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        let newest = &bytes[bytes.len().saturating_sub(self.limit)..];
        let overflow = (self.bytes.len() + newest.len()).saturating_sub(self.limit);
        self.bytes.drain(..overflow);
        self.bytes.extend(newest);
    }

    /// Bytes written since the beginning.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// What was written from `offset` on.
    pub(crate) fn since(&self, offset: u64) -> Piece {
        let offset = offset.min(self.written);
        let begin = self.written - self.bytes.len() as u64;
        let known = offset.max(begin);
        let bytes = self.bytes.range((known - begin) as usize..).copied().collect();
        Piece { skipped: known - offset, bytes, end: self.written }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_piece_is_the_end_of_what_was_written(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
            limit in 0usize..60,
            offset in 0u64..500,
        ) {
            let mut ring = Ring::new(limit);
            for chunk in &chunks {
                ring.push(chunk);
            }
            let all = chunks.concat();
            let piece = ring.since(offset);

            prop_assert_eq!(ring.written(), all.len() as u64);
            prop_assert_eq!(piece.end, all.len() as u64);
            let from = usize::try_from(offset).unwrap().min(all.len());
            let kept = (all.len() - from).min(limit);
            prop_assert_eq!(piece.skipped, (all.len() - from - kept) as u64);
            prop_assert_eq!(&piece.bytes[..], &all[all.len() - kept..]);
        }
    }
}
