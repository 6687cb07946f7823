//! What the model has seen of each file: a content hash, and the bytes while they fit the budget.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Bytes of seen content kept in memory, so that a later change on disk can be shown.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// SHA-256 of a file's bytes; shown in lower-case hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of all that can be read.
    pub(crate) fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut piece = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(Self(hasher.finalize().into())),
                Ok(read) => hasher.update(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Text that is no SHA-256 in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no SHA-256 in hexadecimal")]
pub struct NoHash;

impl FromStr for ContentHash {
    type Err = NoHash;

    fn from_str(text: &str) -> Result<Self, NoHash> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NoHash);
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[index * 2..index * 2 + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| NoHash)?;
        }
        Ok(Self(bytes))
    }
}

/// A file as the model saw it last.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Hash of the whole file at that time.
    pub hash: ContentHash,
    /// Its bytes, unless they had to make room.
    pub content: Option<Arc<[u8]>>,
}

/// Remembers what was seen; the oldest contents make room for new ones, their hashes stay.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    seen: HashMap<PathBuf, Seen>,
    kept: VecDeque<(PathBuf, usize)>,
    bytes: usize,
}

impl Ledger {
    /// A hash without the bytes it was made of.
    pub(super) fn remember(&mut self, path: &Path, hash: ContentHash) {
        self.forget(path);
        self.seen.insert(path.to_owned(), Seen { hash, content: None });
    }

    pub(super) fn note(&mut self, path: &Path, content: &[u8]) -> ContentHash {
        self.forget(path);
        let keep = content.len() <= KEPT_BYTES;
        if keep {
            self.make_room(content.len());
            self.bytes += content.len();
            self.kept.push_back((path.to_owned(), content.len()));
        }
        let hash = ContentHash::of(content);
        let seen = Seen { hash, content: keep.then(|| Arc::from(content)) };
        self.seen.insert(path.to_owned(), seen);
        hash
    }

    pub(super) fn forget(&mut self, path: &Path) {
        self.seen.remove(path);
        if let Some(place) = self.kept.iter().position(|(kept, _)| kept == path)
            && let Some((_, size)) = self.kept.remove(place)
        {
            self.bytes -= size;
        }
    }

    pub(super) fn moved(&mut self, from: &Path, to: &Path) {
        let there = |path: &Path| Some(to.join(path.strip_prefix(from).ok()?));
        let paths: Vec<PathBuf> =
            self.seen.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in paths {
            if let (Some(place), Some(seen)) = (there(&path), self.seen.remove(&path)) {
                self.seen.insert(place, seen);
            }
        }
        for (path, _) in &mut self.kept {
            if let Some(place) = there(path) {
                *path = place;
            }
        }
    }

    pub(super) fn get(&self, path: &Path) -> Option<Seen> {
        self.seen.get(path).cloned()
    }

    fn make_room(&mut self, wanted: usize) {
        while self.bytes + wanted > KEPT_BYTES {
            let Some((path, size)) = self.kept.pop_front() else { return };
            self.bytes -= size;
            if let Some(seen) = self.seen.get_mut(&path) {
                seen.content = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_shown_in_hexadecimal() {
        assert_eq!(
            ContentHash::of(b"abc").to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let hash = ContentHash::of(b"abc");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!("+a".repeat(32).parse::<ContentHash>(), Err(NoHash));
        assert_eq!("ä".repeat(32).parse::<ContentHash>(), Err(NoHash));
    }

    #[test]
    fn old_contents_make_room_but_their_hashes_stay() {
        let mut ledger = Ledger::default();
        let half = vec![b'x'; KEPT_BYTES / 2];
        for name in ["a", "b", "c"] {
            ledger.note(Path::new(name), &half);
        }
        assert!(ledger.get(Path::new("a")).unwrap().content.is_none());
        assert_eq!(ledger.get(Path::new("a")).unwrap().hash, ContentHash::of(&half));
        assert!(ledger.get(Path::new("b")).unwrap().content.is_some());
        assert_eq!(ledger.bytes, KEPT_BYTES / 2 * 2);

        ledger.note(Path::new("b"), b"short");
        assert_eq!(ledger.bytes, KEPT_BYTES / 2 + 5);
        ledger.forget(Path::new("c"));
        assert_eq!((ledger.bytes, ledger.kept.len()), (5, 1));
        assert!(ledger.get(Path::new("c")).is_none());
    }
}
