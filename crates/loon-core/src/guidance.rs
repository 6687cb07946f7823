//! Root guidance: `AGENTS.md` and `CLAUDE.md` of the session's folder, read anew for every turn.

use std::io::Read as _;
use std::path::Path;

/// Longest text taken from one guidance file, in bytes.
const LIMIT: u64 = 32 * 1024;

const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The guidance files of `root` as `(name, text)`. A missing one is left out; of two with the same
/// text (a link, as a rule) only the first is kept. What is cut says so.
pub(crate) fn read_root_guidance(root: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for name in NAMES {
        if let Some(text) = read_bounded(&root.join(name))
            && !text.trim().is_empty()
            && !found.iter().any(|(_, other)| *other == text)
        {
            found.push((name.to_owned(), text));
        }
    }
    found
}

fn read_bounded(path: &Path) -> Option<String> {
    // Before it is opened: opening a pipe would wait for somebody to write to it.
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let file = std::fs::File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes).ok()?;
    let mut text: String = String::from_utf8_lossy(&bytes)
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    if metadata.len() > LIMIT {
        text.push_str("\n[cut at 32 KiB; read the file for the rest]");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test fixture, not a project's file")]
    fn both_files_are_read_and_copies_are_not_repeated() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("AGENTS.md"), "use \x1b[31mtabs").unwrap();
        std::fs::write(dir.path().join("CLAUDE.md"), "other").unwrap();
        let found = read_root_guidance(dir.path());
        assert_eq!(found[0], ("AGENTS.md".to_owned(), "use [31mtabs".to_owned()));
        assert_eq!(found.len(), 2);
        std::fs::write(dir.path().join("CLAUDE.md"), "use \x1b[31mtabs").unwrap();
        assert_eq!(read_root_guidance(dir.path()).len(), 1);
    }

    #[test]
    fn what_is_no_file_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("AGENTS.md")).unwrap();
        std::fs::create_dir(dir.path().join("CLAUDE.md")).unwrap();
        assert_eq!(read_root_guidance(dir.path()), []);
    }
}
