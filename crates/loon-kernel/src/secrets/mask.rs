//! Masking a text, whole or as it arrives. Both are the same machine, so that a text comes out the
//! same however it was cut.

use std::sync::Arc;

use super::judge::{Found, Verdict, View};
use super::mask_of;
use super::patterns::Patterns;
use super::shape::Class;

/// Most bytes of a private key after its first line of base64.
const LONGEST_KEY: usize = 16 * 1024;

/// The mark before the last line of a private key.
const END: &[u8] = b"-----END";

/// What of the text after a secret still belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing.
    None,
    /// What is of this class.
    Run(Class),
    /// The rest of a private key: so much of `END` has been seen, or dashes after it, and so many bytes
    /// in all.
    Key { seen: usize, ended: bool, eaten: usize },
}

impl Tail {
    pub(super) fn key() -> Self {
        Self::Key { seen: 0, ended: false, eaten: 0 }
    }

    /// Takes one byte that follows. False if it does not belong to the secret any more.
    fn takes(&mut self, byte: u8) -> bool {
        match self {
            Self::None => false,
            Self::Run(class) => class.has(byte),
            Self::Key { seen, ended: false, eaten } => {
                *eaten += 1;
                *seen = match byte {
                    b'-' => (*seen + 1).min(5),
                    _ if *seen >= 5 && END.get(*seen) == Some(&byte) => *seen + 1,
                    _ => 0,
                };
                let belongs = Class::Base64.has(byte)
                    || byte.is_ascii_whitespace()
                    || b"\\|>:,\"'-".contains(&byte);
                if *seen == END.len() {
                    *self = Self::Key { seen: 0, ended: true, eaten: *eaten };
                    return true;
                }
                belongs && *eaten < LONGEST_KEY
            }
            Self::Key { seen, ended: true, .. } => match byte {
                _ if *seen == 5 => false,
                b'-' => {
                    *seen += 1;
                    true
                }
                b'A'..=b'Z' | b'0'..=b'9' | b' ' => *seen == 0,
                _ => false,
            },
        }
    }
}

/// A text on its way. It holds back what may be the beginning of a secret, and nothing else.
pub struct MaskStream {
    patterns: Arc<Patterns>,
    held: String,
    /// The last two bytes that are not held.
    before: [u8; 2],
    tail: Tail,
}

impl MaskStream {
    pub(super) fn new(patterns: Arc<Patterns>) -> Self {
        Self { patterns, held: String::new(), before: [0; 2], tail: Tail::None }
    }

    /// Takes the next piece. Gives what can be shown now; it may be empty.
    pub fn push(&mut self, piece: String) -> String {
        // Most pieces have no beginning of a secret, and are not copied.
        if self.held.is_empty()
            && self.tail == Tail::None
            && self.nothing_begins_in(piece.as_bytes(), false)
        {
            self.note(piece.as_bytes());
            return piece;
        }
        let mut text = std::mem::take(&mut self.held);
        text.push_str(&piece);
        self.advance(&text, false)
    }

    /// The rest, once the text has ended. The stream can then take another text.
    pub fn finish(&mut self) -> String {
        let text = std::mem::take(&mut self.held);
        let rest = self.advance(&text, true);
        self.tail = Tail::None;
        self.before = [0; 2];
        rest
    }

    fn advance(&mut self, text: &str, ended: bool) -> String {
        let mut shown = String::with_capacity(text.len());
        let bytes = text.as_bytes();
        let (mut place, mut done) = (0, 0);
        loop {
            while self.tail != Tail::None && place < bytes.len() {
                if self.tail.takes(bytes[place]) {
                    place += 1;
                } else {
                    self.tail = Tail::None;
                }
                done = place;
            }
            let Some(at) = next_candidate(&self.patterns, bytes, place) else { break };
            let view = View { text: bytes, at, before: self.before_of(bytes, at), ended };
            match view.judge(&self.patterns) {
                Verdict::No => place = at + 1,
                Verdict::More => {
                    shown.push_str(&text[done..at]);
                    self.note(&bytes[..at]);
                    text[at..].clone_into(&mut self.held);
                    return shown;
                }
                Verdict::Yes(Found { from, to, label, tail }) => {
                    self.patterns.note_placed(&label);
                    shown.push_str(&text[done..from]);
                    shown.push_str(&mask_of(&label));
                    (place, done, self.tail) = (to, to, tail);
                }
            }
        }
        shown.push_str(&text[done..]);
        self.note(bytes);
        shown
    }

    fn nothing_begins_in(&self, bytes: &[u8], ended: bool) -> bool {
        let mut place = 0;
        while let Some(at) = next_candidate(&self.patterns, bytes, place) {
            let view = View { text: bytes, at, before: self.before_of(bytes, at), ended };
            if !matches!(view.judge(&self.patterns), Verdict::No) {
                return false;
            }
            place = at + 1;
        }
        true
    }

    fn before_of(&self, bytes: &[u8], at: usize) -> [u8; 2] {
        match at {
            0 => self.before,
            1 => [self.before[1], bytes[0]],
            _ => [bytes[at - 2], bytes[at - 1]],
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        self.before = self.before_of(bytes, bytes.len());
    }
}

/// The next place at which something may begin.
fn next_candidate(patterns: &Patterns, bytes: &[u8], from: usize) -> Option<usize> {
    let pairs = bytes.get(from..)?.windows(2);
    let found = pairs.enumerate().find(|(_, pair)| patterns.begin(pair[0], pair[1]));
    match found {
        Some((offset, _)) => Some(from + offset),
        None => {
            let last = bytes.len().checked_sub(1).filter(|last| *last >= from)?;
            patterns.may_begin(bytes[last]).then_some(last)
        }
    }
}

/// The text with masks; nothing if it has no secret.
pub(super) fn masked(patterns: &Arc<Patterns>, text: &str) -> Option<String> {
    let mut stream = MaskStream::new(Arc::clone(patterns));
    if stream.nothing_begins_in(text.as_bytes(), true) {
        return None;
    }
    let mut shown = stream.advance(text, true);
    shown.push_str(&stream.finish());
    Some(shown)
}
