//! Guidance: what files of the user and of the project ask of a model. Some of it is in every
//! request; what speaks of a folder or of certain paths comes with the first call that touches them.
//! It is words: it allows nothing, and nothing in it is executed or fetched.

mod list;
mod rules;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use loon_api::{ErrorCode, ErrorInfo, Guidance, GuidanceScope};

pub use self::list::{guidance_sources, hidden_from_reading};
use self::rules::Rules;
use crate::text_file::{self, Beginning};

/// Longest text taken from one file, in bytes.
const LIMIT: u64 = 32 * 1024;

/// Most bytes of all guidance that is in every request.
const GENERAL_LIMIT: usize = 128 * 1024;

/// Names of the files that speak of the folder they lie in.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Most problems named in one notice.
const MAX_TOLD: usize = 10;

/// A guidance file as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The file as it is told.
    pub(crate) path: String,
    pub(crate) scope: GuidanceScope,
    pub(crate) sha256: String,
    /// What it says, cut at a bound that it states.
    pub(crate) text: String,
    /// Size of the file.
    bytes: u64,
    cut: bool,
}

impl Piece {
    fn new(path: String, scope: GuidanceScope, read: Beginning) -> Self {
        let Beginning { mut text, sha256, bytes, cut } = read;
        text.truncate(text.trim_end().len());
        if cut {
            text.push_str("\n[cut at 32 KiB; read the file for the rest]");
        }
        Self { path, scope, sha256, text, bytes, cut }
    }

    /// As a call brings it.
    pub(crate) fn given(&self) -> Guidance {
        Guidance { text: Some(self.text.clone()), ..self.named() }
    }

    /// As a call refers to it that another call of the answer brings.
    pub(crate) fn named(&self) -> Guidance {
        let Self { path, scope, sha256, .. } = self;
        Guidance { path: path.clone(), scope: scope.clone(), sha256: sha256.clone(), text: None }
    }
}

/// A file that should be guidance and is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unused {
    path: String,
    scope: GuidanceScope,
    reason: String,
}

/// What was found, and what stood in the way of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) pieces: Vec<Piece>,
    unused: Vec<Unused>,
}

impl Reading {
    fn pass_over(&mut self, path: String, scope: GuidanceScope, reason: impl Into<String>) {
        self.unused.push(Unused { path, scope, reason: reason.into() });
    }
}

/// Where guidance lies.
#[derive(Clone, Debug)]
pub(crate) struct GuidanceShelf {
    /// Folder of the session, links followed.
    root: PathBuf,
    /// The user's own file.
    user: Option<PathBuf>,
    /// Folders and files that a deny rule keeps from the model.
    hidden: Vec<PathBuf>,
}

impl GuidanceShelf {
    /// The guidance of the folder `root`, and of the user in the file `user`, without what lies in
    /// `hidden`.
    pub(crate) fn new(root: &Path, user: Option<&Path>, hidden: Vec<PathBuf>) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        Self { root, user: user.map(Path::to_path_buf), hidden }
    }

    /// What is in every request: the user's own, that of the root, and rules without paths.
    pub(crate) fn general(&self) -> Reading {
        self.general_with(&self.rules())
    }

    fn general_with(&self, rules: &Rules) -> Reading {
        let mut found = Reading::default();
        if let Some(user) = &self.user {
            self.read_file(user, None, &GuidanceScope::User, &mut found);
        }
        self.read_folder(&self.root, &GuidanceScope::Project, &mut found);
        found.pieces.extend(rules.general());
        let mut left = GENERAL_LIMIT;
        let (kept, without_room): (Vec<Piece>, Vec<Piece>) =
            found.pieces.into_iter().partition(|piece| {
                let fits = piece.text.len() <= left;
                left -= if fits { piece.text.len() } else { 0 };
                fits
            });
        found.pieces = kept;
        for piece in without_room {
            let reason = "the guidance of every request may have 128 KiB, and has no room for it";
            found.pass_over(piece.path, piece.scope, reason);
        }
        found
    }

    /// What speaks of one path, the folders from the root down and then the rules. The path is
    /// absolute with its links followed.
    pub(crate) fn speaking_of(&self, path: &Path, rules: &Rules) -> Reading {
        let mut found = Reading::default();
        let Ok(relative) = path.strip_prefix(&self.root) else { return found };
        let mut folder = PathBuf::new();
        for name in relative.components() {
            folder.push(name);
            let scope = GuidanceScope::Folder { folder: text_file::shown(&folder, None) };
            self.read_folder(&self.root.join(&folder), &scope, &mut found);
        }
        found.pieces.extend(rules.speaking_of(relative));
        found
    }

    /// The rules as they are now.
    pub(crate) fn rules(&self) -> Rules {
        Rules::read(self)
    }

    /// The guidance files in a folder. Of two with the same text (a link, as a rule) only the first.
    fn read_folder(&self, folder: &Path, scope: &GuidanceScope, found: &mut Reading) {
        let before = found.pieces.len();
        for name in NAMES {
            self.read_file(&folder.join(name), Some(&self.root), scope, found);
            if let Some((last, others)) = found.pieces[before..].split_last()
                && (others.iter().any(|other| other.text == last.text) || imports_only(&last.text))
            {
                found.pieces.pop();
            }
        }
    }

    fn read_file(
        &self,
        path: &Path,
        within: Option<&Path>,
        scope: &GuidanceScope,
        found: &mut Reading,
    ) {
        if path.symlink_metadata().is_err() {
            return;
        }
        let shown = text_file::shown(path, Some(&self.root));
        match self.resolve(path, within).and_then(|real| text_file::read_beginning(&real, LIMIT)) {
            Ok(read) if read.text.trim().is_empty() => {}
            Ok(read) => found.pieces.push(Piece::new(shown, scope.clone(), read)),
            Err(reason) => found.pass_over(shown, scope.clone(), reason),
        }
    }

    fn resolve(&self, path: &Path, within: Option<&Path>) -> Result<PathBuf, &'static str> {
        let real = text_file::resolve(path, within)?;
        if self.hidden.iter().any(|hidden| real.starts_with(hidden)) {
            return Err("a deny rule keeps it from the model");
        }
        Ok(real)
    }
}

/// A file that only refers to the one beside it, as some tools want it.
fn imports_only(text: &str) -> bool {
    text.trim() == "@AGENTS.md"
}

/// What a session told of guidance that cannot be used.
#[derive(Default)]
pub(crate) struct GuidanceProblems {
    told: Vec<Unused>,
}

impl GuidanceProblems {
    /// What cannot be used and was not told yet.
    pub(crate) async fn refresh(&mut self, shelf: GuidanceShelf) -> Option<ErrorInfo> {
        let reading = tokio::task::spawn_blocking(move || {
            let rules = shelf.rules();
            let mut unused = shelf.general_with(&rules).unused;
            unused.extend(rules.unused().iter().cloned());
            unused
        });
        // What was cut off is told when it is read for a request.
        let unused = reading.await.ok()?;
        let new: Vec<String> = unused
            .iter()
            .filter(|file| !self.told.contains(file))
            .map(|file| format!("{}: {}.", file.path, file.reason))
            .collect();
        self.told = unused;
        (!new.is_empty()).then(|| {
            let files = if new.len() == 1 { "file" } else { "files" };
            let message = format!("Not used as guidance: {} {files}.", new.len());
            let mut told = ErrorInfo::new(ErrorCode::Invalid, message);
            told.hints.extend(new.into_iter().take(MAX_TOLD));
            told
        })
    }
}
