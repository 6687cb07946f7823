//! Guidance that the model has before it, as a fold of the window: what a compaction left out or a
//! rewind took back is no longer given.

use std::collections::{BTreeSet, HashMap};

use loon_api::{Guidance, GuidanceScope, ItemBody, ToolCallItem};

use super::messages::step_of;
use super::{Conversation, wrote};

/// Guidance files by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    files: HashMap<String, Version>,
    folders: BTreeSet<String>,
}

/// A file as it was given last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    sha256: String,
    /// The answer whose call brought it.
    answer: Option<String>,
}

impl Given {
    /// The file came as it is now.
    pub(crate) fn has(&self, path: &str, sha256: &str) -> bool {
        self.files.get(path).is_some_and(|version| version.sha256 == sha256)
    }

    /// The file came as it is now, and the model had seen it when it wrote the answer.
    pub(crate) fn had_before(&self, path: &str, sha256: &str, answer: Option<&str>) -> bool {
        self.files.get(path).is_some_and(|version| {
            version.sha256 == sha256
                && (version.answer.is_none() || version.answer.as_deref() != answer)
        })
    }

    /// Folders whose files came.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        self.folders.iter().map(String::as_str)
    }

    fn take(&mut self, call: &ToolCallItem, answer: Option<&str>) {
        for guidance in call.guidance_given().iter().filter(|guidance| guidance.text.is_some()) {
            let Guidance { path, scope, sha256, .. } = guidance;
            let answer = answer.map(str::to_owned);
            self.files.insert(path.clone(), Version { sha256: sha256.clone(), answer });
            if let GuidanceScope::Folder { folder } = scope {
                self.folders.insert(folder.clone());
            }
        }
        // What the model wrote itself it knows.
        for change in call.changes.iter().filter(|change| wrote(change)) {
            if let Some(after) = &change.after {
                let version = Version { sha256: after.clone(), answer: None };
                self.files.insert(change.real_path().to_owned(), version);
            }
        }
    }
}

impl Conversation {
    /// Guidance in the window.
    pub(crate) fn given(&self) -> Given {
        let start = self.newest_compaction().map_or(0, |compacted| self.first_kept(&compacted));
        let mut given = Given::default();
        for item in &self.items[start..] {
            if let ItemBody::ToolCall(call) = &item.body {
                given.take(call, step_of(item));
            }
        }
        given
    }
}

#[cfg(test)]
mod tests;
