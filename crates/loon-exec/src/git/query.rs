//! One question to Git.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// One question to Git: a subcommand, its options, revisions and paths, which cannot be mistaken
/// for each other.
#[derive(Clone, Debug)]
pub struct Query {
    pub(super) command: String,
    args: Vec<OsString>,
    revisions: Vec<String>,
    paths: Vec<PathBuf>,
    pub(super) limit: Option<usize>,
}

impl Query {
    /// A subcommand without options.
    pub fn new(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            args: Vec::new(),
            revisions: Vec::new(),
            paths: Vec::new(),
            limit: None,
        }
    }

    /// Adds an option.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds options.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(OsString::from));
        self
    }

    /// Adds revisions as [`super::Git::resolve`] gives them.
    #[must_use]
    pub fn revisions(mut self, revisions: &[String]) -> Self {
        self.revisions.extend_from_slice(revisions);
        self
    }

    /// Adds paths, each taken literally.
    #[must_use]
    pub fn paths(mut self, paths: &[impl AsRef<Path>]) -> Self {
        self.paths.extend(paths.iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Keeps at most `bytes` of the answer and ends Git when it has printed more. Only for what
    /// changes nothing.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// The words after the subcommand.
    pub(super) fn arguments(&self) -> impl Iterator<Item = OsString> {
        let dashes = (!self.paths.is_empty() || !self.revisions.is_empty()).then(|| "--".into());
        let revisions = self.revisions.iter().map(OsString::from);
        let paths = self.paths.iter().map(|path| path.as_os_str().to_owned());
        self.args.iter().cloned().chain(revisions).chain(dashes).chain(paths)
    }
}
