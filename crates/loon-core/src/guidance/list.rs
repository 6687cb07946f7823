//! What guidance is in force for a path, and why.

use std::path::{Path, PathBuf};

use loon_api::{GuidanceScope, GuidanceSource, GuidanceState};
use loon_permission::Policy;

use super::{GuidanceShelf, Piece, Reading};
use crate::authority::resolve_existing;
use crate::conversation::Given;
use crate::text_file;

/// Folders and files that the rules keep from a model that reads.
pub fn hidden_from_reading(policy: &Policy) -> Vec<PathBuf> {
    policy.hidden("read", &resolve_existing)
}

/// The guidance that a session in `root` would have for a path, or all there is; `user` is the user's
/// own file.
pub fn guidance_sources(
    root: &Path,
    user: Option<&Path>,
    hidden: Vec<PathBuf>,
    path: Option<&str>,
) -> (Option<String>, Vec<GuidanceSource>) {
    GuidanceShelf::new(root, user, hidden).list(path, &Given::default())
}

impl GuidanceShelf {
    /// The path as it is told, and the files: those of every request, then those that speak of the
    /// path from the root down, then rules about others, then what is not used.
    pub(crate) fn list(
        &self,
        path: Option<&str>,
        given: &Given,
    ) -> (Option<String>, Vec<GuidanceSource>) {
        let rules = self.rules();
        let path = path.map(|path| resolve_existing(&self.root.join(path)));
        let general = self.general_with(&rules);
        let speaking = match &path {
            Some(path) => self.speaking_of(path, &rules),
            None => self.given_before(given),
        };
        let elsewhere = rules
            .of_paths()
            .filter(|rule| !speaking.pieces.iter().any(|piece| piece.path == rule.path));
        let mut sources: Vec<GuidanceSource> =
            general.pieces.iter().map(|piece| source(piece, GuidanceState::EachRequest)).collect();
        sources.extend(speaking.pieces.iter().map(|piece| {
            let known = given.has(&piece.path, &piece.sha256);
            source(piece, if known { GuidanceState::Given } else { GuidanceState::Due })
        }));
        sources.extend(elsewhere.map(|rule| {
            let known = given.has(&rule.path, &rule.sha256);
            source(rule, if known { GuidanceState::Given } else { GuidanceState::Elsewhere })
        }));
        let unused = general.unused.iter().chain(&speaking.unused).chain(rules.unused());
        sources.extend(unused.map(|file| GuidanceSource {
            path: file.path.clone(),
            scope: file.scope.clone(),
            state: GuidanceState::Unused,
            bytes: 0,
            cut: false,
            reason: Some(file.reason.clone()),
        }));
        (path.map(|path| text_file::shown(&path, Some(&self.root))), sources)
    }

    /// Files of folders that came with calls, as they are now.
    fn given_before(&self, given: &Given) -> Reading {
        let mut found = Reading::default();
        for folder in given.folders() {
            let scope = GuidanceScope::Folder { folder: folder.to_owned() };
            self.read_folder(&self.root.join(folder), &scope, &mut found);
        }
        found
    }
}

fn source(piece: &Piece, state: GuidanceState) -> GuidanceSource {
    let Piece { path, scope, bytes, cut, .. } = piece.clone();
    GuidanceSource { path, scope, state, bytes, cut, reason: None }
}
