//! Planning: what is on disk, whether the model knows it, and what a change will look like.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use loon_api::FileChange;

use super::commit::{check_absent, check_file, check_writable, read};
use super::document::Document;
use super::error::WriteError;
use crate::Workspace;
use crate::diff::LineDiff;
use crate::workspace::ContentHash;

/// Larger files are neither loaded nor edited as text.
pub const MAX_TEXT_BYTES: u64 = 16 * 1024 * 1024;

/// One planned change. Paths as [`Workspace::resolve`] gives them; `base` are the bytes on disk on
/// which the plan was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// A file that is not there yet; missing folders are made.
    Create {
        /// Where.
        path: PathBuf,
        /// Its bytes.
        content: Vec<u8>,
    },
    /// A file gets other bytes.
    Modify {
        /// Where.
        path: PathBuf,
        /// Bytes before.
        base: Vec<u8>,
        /// Bytes after.
        content: Vec<u8>,
    },
    /// A file goes.
    Delete {
        /// Where.
        path: PathBuf,
        /// Bytes before.
        base: Vec<u8>,
    },
    /// A file goes to another place, where nothing is yet, maybe with other bytes.
    Move {
        /// Where it is.
        from: PathBuf,
        /// Where it goes.
        to: PathBuf,
        /// Bytes before.
        base: Vec<u8>,
        /// Bytes after.
        content: Vec<u8>,
    },
}

/// A change of one file as records and the model are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What was done to the file, one or two words.
    pub done: &'static str,
    /// For the record.
    pub change: FileChange,
    /// Changed lines with their numbers; empty for new and removed files.
    pub excerpt: String,
    /// What else the model should know, a sentence; mostly empty.
    pub note: String,
}

impl Planned {
    /// What the change will look like. A move is told as two: the old place without lines, the new
    /// one with the lines that differ.
    pub fn describe(&self, workspace: &Workspace) -> Vec<Described> {
        let shown = |path: &Path| workspace.display(path);
        match self {
            Self::Create { path, content } => {
                vec![describe("created", (None, b""), (Some(&shown(path)), content))]
            }
            Self::Modify { path, base, content } => {
                let path = shown(path);
                vec![describe("updated", (Some(&path), base), (Some(&path), content))]
            }
            Self::Delete { path, base } => {
                vec![describe("deleted", (Some(&shown(path)), base), (None, b""))]
            }
            Self::Move { from, to, base, content } => {
                let (from, to) = (shown(from), shown(to));
                let mut arrived = describe("moved here", (Some(&from), base), (Some(&to), content));
                let before = arrived.change.before.take();
                let left = FileChange { path: from, before, after: None, ..FileChange::default() };
                let (excerpt, note) = (String::new(), String::new());
                vec![Described { done: "moved away", change: left, excerpt, note }, arrived]
            }
        }
    }
}

/// The unified diffs of planned changes, for a human who is asked.
pub fn preview(workspace: &Workspace, planned: &[Planned]) -> String {
    let mut out = String::new();
    for described in planned.iter().flat_map(|planned| planned.describe(workspace)) {
        let Described { done, change, .. } = described;
        if change.diff.is_empty() {
            let _ = writeln!(out, "{}: {done}", change.path);
        }
        out.push_str(&change.diff);
    }
    out
}

fn describe(
    done: &'static str,
    (old_path, before): (Option<&str>, &[u8]),
    (new_path, after): (Option<&str>, &[u8]),
) -> Described {
    let hash = |path: Option<&str>, bytes| path.map(|_| ContentHash::of(bytes).to_string());
    let old = Document::decode(before.to_vec());
    let new = Document::decode(after.to_vec());
    let diff = LineDiff::between(&old, &new);
    let both = old_path.is_some() && new_path.is_some();
    Described {
        done,
        change: FileChange {
            path: new_path.or(old_path).unwrap_or_default().to_owned(),
            before: hash(old_path, before),
            after: hash(new_path, after),
            added: diff.added,
            removed: diff.removed,
            diff: diff.unified(old_path, new_path),
            ..FileChange::default()
        },
        excerpt: if both { diff.excerpt(&new) } else { String::new() },
        note: String::new(),
    }
}

/// What the model must know of a file before it changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// It must have read the file as it is now.
    Read,
    /// The change itself proves what it knows (a patch by its context); but what it did read must
    /// not be out of date.
    Proven,
}

/// The bytes of an existing file that is about to change.
pub fn load(
    workspace: &Workspace,
    path: &Path,
    knowledge: Knowledge,
) -> Result<Vec<u8>, WriteError> {
    let metadata = check_file(workspace, path)?;
    let shown = || workspace.display(path);
    if metadata.size() > MAX_TEXT_BYTES {
        let (size, limit) = (metadata.size(), MAX_TEXT_BYTES);
        return Err(WriteError::TooLarge { path: shown(), size, limit });
    }
    let seen = workspace.read_state(path);
    if seen.is_none() && knowledge == Knowledge::Read {
        return Err(WriteError::Unread { path: shown() });
    }
    check_writable(workspace, path, &metadata)?;
    let bytes = read(workspace, path)?;
    match seen {
        Some(seen) if seen.hash != ContentHash::of(&bytes) => Err(match seen.content {
            Some(content) => changed_since(workspace, path, &content, bytes),
            None => {
                let detail = workspace.who_changed(path, ContentHash::of(&bytes));
                WriteError::Changed { path: shown(), detail }
            }
        }),
        _ => Ok(bytes),
    }
}

/// Whether a new file can be made at this path.
pub fn vacant(workspace: &Workspace, path: &Path) -> Result<(), WriteError> {
    check_absent(workspace, path)
}

/// The error for a file that is no longer what it was, with the lines that changed.
pub(super) fn changed_since(
    workspace: &Workspace,
    path: &Path,
    was: &[u8],
    now: Vec<u8>,
) -> WriteError {
    let who = workspace.who_changed(path, ContentHash::of(&now));
    let now = Document::decode(now);
    let diff = LineDiff::between(&Document::decode(was.to_vec()), &now);
    let detail = match diff.excerpt(&now) {
        excerpt if excerpt.is_empty() => " It is empty now.".to_owned(),
        excerpt => format!(" Lines that are different now:\n{excerpt}"),
    };
    WriteError::Changed { path: workspace.display(path), detail: who + &detail }
}
