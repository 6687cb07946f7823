//! Folders whose project files a person trusts, remembered in one small file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::files;
use crate::lock::FolderLock;
use crate::origin::{Layer, Origin};

/// How often a change is tried again when another process changes the file at the same time.
const ATTEMPTS: usize = 8;

/// The remembered folders. Trust is for one folder, not for those below it.
#[derive(Clone, Debug)]
pub struct Trust {
    file: PathBuf,
    stored: Stored,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Stored {
    trusted: BTreeSet<String>,
    /// What each folder's files said when a person last agreed to them, as a hash.
    #[serde(default)]
    states: BTreeMap<String, String>,
}

impl Trust {
    /// Reads the file, a missing one as empty. One that cannot be read trusts nothing and is an
    /// error.
    pub fn open(file: &Path) -> Result<Self, ConfigError> {
        Ok(Self { file: file.to_owned(), stored: read(file)?.0 })
    }

    /// True if a person trusts this folder.
    pub fn is_trusted(&self, folder: &Path) -> bool {
        name(folder).is_ok_and(|name| self.stored.trusted.contains(&name))
    }

    /// True if the folder is trusted, but its files do not say what they said when a person last
    /// agreed to them.
    pub fn is_changed(&self, folder: &Path, state: &str) -> bool {
        let agreed = name(folder).ok().and_then(|name| self.stored.states.get(&name));
        self.is_trusted(folder) && agreed.is_some_and(|agreed| agreed != state)
    }

    /// Remembers a folder, with what its files say: see [`files::project_state`].
    pub fn trust(&mut self, folder: &Path, state: &str) -> Result<(), ConfigError> {
        let name = name(folder)?;
        self.change(|stored| {
            stored.trusted.insert(name.clone());
            stored.states.insert(name.clone(), state.to_owned());
        })
    }

    /// Takes over a change that the person made through Loom, if nothing else had changed before.
    pub fn agree(&mut self, folder: &Path, former: &str, state: &str) -> Result<(), ConfigError> {
        if former == state || !self.is_trusted(folder) || self.is_changed(folder, former) {
            return Ok(());
        }
        self.trust(folder, state)
    }

    /// Forgets a folder.
    pub fn revoke(&mut self, folder: &Path) -> Result<(), ConfigError> {
        let name = name(folder)?;
        self.change(|stored| {
            stored.trusted.remove(&name);
            stored.states.remove(&name);
        })
    }

    fn change(&mut self, change: impl Fn(&mut Stored)) -> Result<(), ConfigError> {
        let target = files::follow(&self.file)?;
        let folder = files::folder_of(&target);
        files::make_private_folder(folder)
            .map_err(|error| ConfigError::io("make the folder", folder, error))?;
        let _lock = FolderLock::take(folder);
        let mut attempt = 1;
        loop {
            let (mut stored, before) = read(&self.file)?;
            change(&mut stored);
            let text = serde_json::to_string_pretty(&stored)
                .map_err(|error| ConfigError::io("write", &self.file, error.into()))?
                + "\n";
            match files::replace(&target, before.as_deref(), &text, true) {
                Err(ConfigError::Changed { .. }) if attempt < ATTEMPTS => attempt += 1,
                result => {
                    result?;
                    self.stored = stored;
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
            variable: None,
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
        trust.trust(&project, "a").unwrap();
        let mut again = Trust::open(&file).unwrap();
        assert!(again.is_trusted(&project));
        assert!(!again.is_trusted(&project.join("inner")));
        again.revoke(&project).unwrap();
        assert!(!Trust::open(&file).unwrap().is_trusted(&project));
    }

    #[test]
    fn a_change_after_the_trust_is_known_unless_it_was_the_persons_own() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("trust.json");
        let mut trust = Trust::open(&file).unwrap();
        trust.trust(dir.path(), "a").unwrap();
        assert!(!trust.is_changed(dir.path(), "a") && trust.is_changed(dir.path(), "b"));
        trust.agree(dir.path(), "a", "b").unwrap();
        assert!(!Trust::open(&file).unwrap().is_changed(dir.path(), "b"));
        trust.agree(dir.path(), "foreign", "c").unwrap();
        assert!(trust.is_changed(dir.path(), "c"));
        let old = r#"{"trusted": ["/"]}"#;
        std::io::Write::write_all(&mut std::fs::File::create(&file).unwrap(), old.as_bytes())
            .unwrap();
        let trust = Trust::open(&file).unwrap();
        assert!(trust.is_trusted(Path::new("/")) && !trust.is_changed(Path::new("/"), "a"));
    }

    #[test]
    fn two_writers_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("trust.json");
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&two).unwrap();
        let (mut a, mut b) = (Trust::open(&file).unwrap(), Trust::open(&file).unwrap());
        a.trust(&one, "").unwrap();
        b.trust(&two, "").unwrap();
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
