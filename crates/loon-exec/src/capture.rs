//! Output kept within bounds: the first bytes, the last bytes, and how many are missing between.

use std::collections::VecDeque;

/// What was kept of one stream of output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes; all of them if nothing was omitted.
    pub head: Vec<u8>,
    /// Bytes between `head` and `tail` that were not kept.
    pub omitted: u64,
    /// The last bytes; empty if nothing was omitted.
    pub tail: Vec<u8>,
}

impl Captured {
    /// Bytes the program wrote.
    pub fn total(&self) -> u64 {
        self.head.len() as u64 + self.omitted + self.tail.len() as u64
    }

    /// True if everything was kept.
    pub fn is_whole(&self) -> bool {
        self.omitted == 0
    }
}

/// Most bytes to keep of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    pub(crate) head: usize,
    pub(crate) tail: usize,
}

/// Fills up to its limits and then only moves its tail on.
#[derive(Debug)]
pub(crate) struct HeadTail {
    keep: Keep,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
}

impl HeadTail {
    pub(crate) fn new(keep: Keep) -> Self {
        Self { keep, head: Vec::new(), tail: VecDeque::new(), omitted: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = self.keep.head - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);

        let kept = &rest[rest.len().saturating_sub(self.keep.tail)..];
        let overflow = (self.tail.len() + kept.len()).saturating_sub(self.keep.tail);
        self.tail.drain(..overflow);
        self.omitted += (overflow + rest.len() - kept.len()) as u64;
        self.tail.extend(kept);
    }

    pub(crate) fn finish(mut self) -> Captured {
        if self.omitted == 0 {
            self.head.extend(self.tail.drain(..));
        }
        Captured { head: self.head, omitted: self.omitted, tail: self.tail.into() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn head_omitted_and_tail_add_up_to_the_input(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
            head in 0usize..30,
            tail in 0usize..30,
        ) {
            let mut buffer = HeadTail::new(Keep { head, tail });
            for chunk in &chunks {
                buffer.push(chunk);
            }
            let all = chunks.concat();
            let kept = buffer.finish();

            prop_assert_eq!(kept.total(), all.len() as u64);
            prop_assert_eq!(kept.is_whole(), all.len() <= head + tail);
            if kept.is_whole() {
                prop_assert_eq!(kept.head, all);
                prop_assert!(kept.tail.is_empty());
            } else {
                prop_assert_eq!(&kept.head[..], &all[..head]);
                prop_assert_eq!(&kept.tail[..], &all[all.len() - tail..]);
            }
        }
    }
}
