//! What tools were like when they were last called. A tool that its server describes otherwise later is
//! another tool than the one that a person allowed.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// Servers that are remembered.
const SERVERS: usize = 500;

/// Digests of definitions by server and tool.
#[derive(Default, Serialize, Deserialize)]
struct Stored(BTreeMap<String, BTreeMap<String, String>>);

/// The remembered definitions, in one small file. Losing it means that nothing is known to have
/// changed.
pub(crate) struct Seen {
    file: PathBuf,
    stored: Mutex<Stored>,
}

impl Seen {
    pub(crate) fn open(file: PathBuf) -> Self {
        Self { stored: Mutex::new(read(&file)), file }
    }

    /// True if the tool was called with another definition.
    pub(crate) fn is_changed(&self, server: &str, tool: &str, digest: &str) -> bool {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.0.get(server).and_then(|tools| tools.get(tool)).is_some_and(|known| known != digest)
    }

    /// The tool is called with this definition.
    pub(crate) fn remember(&self, server: &str, tool: &str, digest: &str) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let known = stored.0.get(server).and_then(|tools| tools.get(tool));
        if known.is_some_and(|known| known == digest) {
            return;
        }
        // Another process may have remembered something meanwhile.
        let mut newest = read(&self.file);
        newest.0.entry(server.to_owned()).or_default().insert(tool.to_owned(), digest.to_owned());
        while newest.0.len() > SERVERS {
            newest.0.pop_first();
        }
        if let Err(error) = write(&self.file, &newest) {
            tracing::warn!(%error, "the definitions of MCP tools cannot be remembered");
        }
        *stored = newest;
    }
}

fn read(file: &Path) -> Stored {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn write(file: &Path, stored: &Stored) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(&serde_json::to_vec(stored)?)?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_counts_as_changed_until_it_was_called_anew() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp/seen.json");
        let seen = Seen::open(file.clone());
        assert!(!seen.is_changed("s", "t", "1"), "one that was never called is new, not changed");
        seen.remember("s", "t", "1");
        seen.remember("other", "t", "9");
        let again = Seen::open(file);
        assert!(!again.is_changed("s", "t", "1") && again.is_changed("s", "t", "2"));
        again.remember("s", "t", "2");
        assert!(!again.is_changed("s", "t", "2") && again.is_changed("other", "t", "1"));
    }
}
