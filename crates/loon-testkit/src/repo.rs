//! Temporary Git repositories.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A repository in a folder of its own, gone with this value.
pub struct Repo {
    root: TempDir,
}

impl Repo {
    /// A repository on branch `main` whose first commit holds these files.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let repo = Self { root: TempDir::new().expect("a temporary folder") };
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        for (path, content) in files {
            repo.write(path, content);
        }
        repo.commit("first");
        repo
    }

    /// Its root, without links in it.
    pub fn path(&self) -> PathBuf {
        self.root.path().canonicalize().expect("the repository's root")
    }

    /// Writes a file and the folders above it.
    #[expect(clippy::disallowed_methods, reason = "a fixture, not a user's file")]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.path().join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("folders of the fixture");
        }
        std::fs::write(path, content).expect("a file of the fixture");
    }

    /// The bytes of a file.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let path = self.root.path().join(path);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The text of a file.
    pub fn read(&self, path: &str) -> String {
        String::from_utf8(self.bytes(path)).expect("a text file")
    }

    /// True if there is such a file or folder.
    pub fn has(&self, path: &str) -> bool {
        self.root.path().join(path).exists()
    }

    /// Commits everything.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    /// Runs Git here and gives its standard output without the last line break.
    #[expect(clippy::disallowed_methods, reason = "fixtures come from the real git")]
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(self.root.path())
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@example.org")])
            .envs([("GIT_COMMITTER_NAME", "Ann"), ("GIT_COMMITTER_EMAIL", "ann@example.org")])
            .output()
            .expect("git on PATH");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Puts a second name for the root beside it: a link to it.
    pub fn link(&self, path: &Path) {
        std::os::unix::fs::symlink(self.root.path(), path).expect("a link");
    }
}
