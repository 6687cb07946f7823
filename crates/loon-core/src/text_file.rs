//! Text files that somebody else wrote: read within bounds, never through a link out of their place,
//! and without characters that a reader would not see.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::frontmatter::LIMIT;

const UNREADABLE: &str = "it cannot be read";

/// A text that may be the beginning of a longer file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// The text, cleaned.
    pub(crate) text: String,
    /// SHA-256 of the bytes that were read, hexadecimal.
    pub(crate) sha256: String,
    /// Size of the file.
    pub(crate) bytes: u64,
    /// There is more in the file.
    pub(crate) cut: bool,
}

/// The file behind `path`, links followed. The error says why it is not one to read.
pub(crate) fn resolve(path: &Path, within: Option<&Path>) -> Result<PathBuf, &'static str> {
    let real = path.canonicalize().map_err(|_| UNREADABLE)?;
    if let Some(root) = within
        && !root.canonicalize().is_ok_and(|root| real.starts_with(root))
    {
        return Err("it is a link out of the project");
    }
    Ok(real)
}

/// The whole text of a definition file, cleaned.
pub(crate) fn read_definition(path: &Path) -> Result<Beginning, &'static str> {
    let (bytes, size) = read(path, LIMIT + 1)?;
    if bytes.len() as u64 > LIMIT {
        return Err("it is larger than 256 KiB");
    }
    let sha256 = sha256(&bytes);
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    Ok(Beginning { text: clean(&text), sha256, bytes: size, cut: false })
}

/// Up to `limit` bytes of a file, cleaned.
pub(crate) fn read_beginning(path: &Path, limit: u64) -> Result<Beginning, &'static str> {
    let (mut bytes, size) = read(path, limit + 1)?;
    let cut = bytes.len() as u64 > limit;
    if cut {
        bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        // A character that was cut in two is none.
        let whole = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
        if bytes.len() - whole < 4 {
            bytes.truncate(whole);
        }
    }
    let text = clean(&String::from_utf8_lossy(&bytes));
    Ok(Beginning { text, sha256: sha256(&bytes), bytes: size.max(bytes.len() as u64), cut })
}

/// Up to `most` bytes of a regular file, and its size.
fn read(path: &Path, most: u64) -> Result<(Vec<u8>, u64), &'static str> {
    // Before it is opened: opening a pipe would wait for somebody to write to it.
    if !path.metadata().map_err(|_| UNREADABLE)?.is_file() {
        return Err("it is no file");
    }
    let file = std::fs::File::open(path).map_err(|_| UNREADABLE)?;
    let opened = file.metadata().map_err(|_| UNREADABLE)?;
    if !opened.is_file() {
        return Err("it is no file");
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(|_| UNREADABLE)?;
    Ok((bytes, opened.len()))
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    use sha2::{Digest as _, Sha256};
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The text with plain line ends and nothing that a reader would not see.
pub(crate) fn clean(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").chars().filter(|ch| !is_hidden(*ch)).collect()
}

/// Control characters, marks that reorder what is shown, and tags, which are not shown at all.
pub(crate) fn is_hidden(ch: char) -> bool {
    (ch.is_control() && !matches!(ch, '\n' | '\t'))
        || matches!(ch, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
        || matches!(ch, '\u{E0000}'..='\u{E007F}')
}

/// The text on one line, without hidden characters.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().filter(|ch| !is_hidden(*ch) && !matches!(ch, '\n' | '\t')).collect()
}

/// A path as it is told: relative in the folder `root`.
pub(crate) fn shown(path: &Path, root: Option<&Path>) -> String {
    let relative = root.and_then(|root| path.strip_prefix(root).ok());
    one_line(&relative.unwrap_or(path).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test fixture, not a project's file")]
    fn a_beginning_ends_with_a_whole_character_and_says_that_there_is_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "aäöü").unwrap();
        let found = read_beginning(&path, 4).unwrap();
        assert_eq!((found.text.as_str(), found.bytes, found.cut), ("aä", 7, true));
        let whole = read_beginning(&path, 7).unwrap();
        assert_eq!((whole.text.as_str(), whole.cut), ("aäöü", false));
        assert_ne!(whole.sha256, found.sha256);
        std::fs::write(&path, "x\r\ny\u{1b}[2J\u{202e}z\rw").unwrap();
        assert_eq!(read_definition(&path).unwrap().text, "x\ny[2Jz\nw");
        std::fs::write(&path, "x".repeat(256 * 1024 + 1)).unwrap();
        assert_eq!(read_definition(&path), Err("it is larger than 256 KiB"));
    }

    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        for (name, target) in [("zero", "/dev/zero"), ("gone", "nowhere")] {
            std::os::unix::fs::symlink(target, dir.path().join(name)).unwrap();
        }
        assert_eq!(read_beginning(&dir.path().join("zero"), 9), Err("it is no file"));
        assert_eq!(read_beginning(&dir.path().join("gone"), 9), Err("it cannot be read"));
        assert_eq!(read_beginning(dir.path(), 9), Err("it is no file"));
        let zero = dir.path().join("zero");
        assert_eq!(resolve(&zero, Some(dir.path())), Err("it is a link out of the project"));
        assert_eq!(resolve(&zero, None).unwrap(), Path::new("/dev/zero"));
    }
}
