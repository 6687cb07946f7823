//! Folders whose project files a person trusts, remembered in one small file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::files;
use crate::origin::{Layer, Origin};

/// How often a change is tried again when another process changes the file at the same time.
const ATTEMPTS: usize = 8;

/// The remembered folders. Trust is for one folder, not for those below it.
#[derive(Clone, Debug)]
pub struct Trust {
    file: PathBuf,
    folders: BTreeSet<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    trusted: BTreeSet<String>,
}

impl Trust {
    /// Reads the file, a missing one as empty. One that cannot be read trusts nothing and is an
    /// error.
    pub fn open(file: &Path) -> Result<Self, ConfigError> {
        Ok(Self { file: file.to_owned(), folders: read(file)?.0.trusted })
    }

    /// True if a person trusts this folder.
    pub fn is_trusted(&self, folder: &Path) -> bool {
        name(folder).is_ok_and(|name| self.folders.contains(&name))
    }

    /// Remembers a folder.
    pub fn trust(&mut self, folder: &Path) -> Result<(), ConfigError> {
        let name = name(folder)?;
        self.change(|folders| {
            folders.insert(name.clone());
        })
    }

    /// Forgets a folder.
    pub fn revoke(&mut self, folder: &Path) -> Result<(), ConfigError> {
        let name = name(folder)?;
        self.change(|folders| {
            folders.remove(&name);
        })
    }

    fn change(&mut self, change: impl Fn(&mut BTreeSet<String>)) -> Result<(), ConfigError> {
        let mut attempt = 1;
        loop {
            let (mut stored, before) = read(&self.file)?;
            change(&mut stored.trusted);
            let text = serde_json::to_string_pretty(&stored)
                .map_err(|error| ConfigError::io("write", &self.file, error.into()))?
                + "\n";
            match files::replace(&self.file, before.as_deref(), &text) {
                Err(ConfigError::Changed { .. }) if attempt < ATTEMPTS => attempt += 1,
                result => {
                    result?;
                    self.folders = stored.trusted;
                    return Ok(());
                }
            }
        }
    }
}

fn read(file: &Path) -> Result<(Stored, Option<String>), ConfigError> {
    let Some(text) = files::read_text(file)? else { return Ok((Stored::default(), None)) };
    let stored = serde_json::from_str(&text).map_err(|error| ConfigError::Invalid {
        origin: Origin {
            layer: Layer::User,
            file: Some(file.to_owned()),
            line: u32::try_from(error.line()).ok(),
            column: u32::try_from(error.column()).ok(),
        },
        problem: error.to_string(),
        fix: "remove the file; folders are asked about again".into(),
    })?;
    Ok((stored, Some(text)))
}

/// The folder's real path, so that a link is as good as what it points at.
fn name(folder: &Path) -> Result<String, ConfigError> {
    let real = folder.canonicalize().map_err(|error| ConfigError::io("find", folder, error))?;
    real.into_os_string().into_string().map_err(|name| ConfigError::Key {
        problem: format!(
            "{} cannot be remembered: its name is not UTF-8",
            Path::new(&name).display()
        ),
        fix: "rename the folder".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_kept_for_one_folder_and_can_be_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data/trust.json");
        let project = dir.path().join("project");
        std::fs::create_dir_all(project.join("inner")).unwrap();
        let mut trust = Trust::open(&file).unwrap();
        assert!(!trust.is_trusted(&project));
        trust.trust(&project).unwrap();
        let mut again = Trust::open(&file).unwrap();
        assert!(again.is_trusted(&project));
        assert!(!again.is_trusted(&project.join("inner")));
        again.revoke(&project).unwrap();
        assert!(!Trust::open(&file).unwrap().is_trusted(&project));
    }

    #[test]
    fn two_writers_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("trust.json");
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&two).unwrap();
        let (mut a, mut b) = (Trust::open(&file).unwrap(), Trust::open(&file).unwrap());
        a.trust(&one).unwrap();
        b.trust(&two).unwrap();
        let both = Trust::open(&file).unwrap();
        assert!(both.is_trusted(&one) && both.is_trusted(&two));
    }

    #[test]
    fn a_damaged_file_is_an_error_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("trust.json");
        std::io::Write::write_all(&mut std::fs::File::create(&file).unwrap(), b"{\n nonsense")
            .unwrap();
        let error = Trust::open(&file).unwrap_err().to_string();
        assert!(error.contains("trust.json:2:"), "{error}");
    }
}
