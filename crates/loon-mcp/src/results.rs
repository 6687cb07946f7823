//! Results too long to be read at once, kept as files that the tools of files can read.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::SystemTime;

use loon_kernel::Redactor;

/// Files that are kept.
const KEPT: usize = 200;

/// Where long results lie.
#[derive(Clone)]
pub(crate) struct Results {
    folder: PathBuf,
    redactor: Redactor,
}

impl Results {
    pub(crate) fn new(folder: PathBuf, redactor: Redactor) -> Self {
        Self { folder, redactor }
    }

    /// Keeps a text, secrets masked. The oldest ones make room.
    pub(crate) fn keep(&self, text: String) -> io::Result<PathBuf> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.make_room();
        let path = self.folder.join(format!("{}.txt", uuid::Uuid::now_v7()));
        // tempfile makes its files with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(self.redactor.text(text).as_bytes())?;
        file.persist_noclobber(&path).map_err(|error| error.error)?;
        Ok(path)
    }

    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        for (_, path) in files.iter().take(files.len().saturating_sub(KEPT - 1)) {
            // One that is in use goes another time.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_private_masked_and_bounded_in_number() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let redactor = Redactor::default();
        redactor.learn([("KEY".to_owned(), "hunter2hunter2".to_owned())]);
        let results = Results::new(dir.path().join("results"), redactor);
        let path = results.keep("the key is hunter2hunter2".to_owned()).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("hunter2"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for _ in 0..KEPT + 5 {
            results.keep(String::new()).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path().join("results")).unwrap().count(), KEPT);
        assert!(!path.exists(), "the oldest one went first");
    }
}
