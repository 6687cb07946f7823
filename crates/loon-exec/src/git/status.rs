//! What `git status` says, in numbers and file by file.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::capture::Captured;

/// Branch, upstream, and how many files are in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSummary {
    /// Checked-out branch; absent if none is.
    pub branch: Option<String>,
    /// Commit that is checked out; absent before the first one.
    pub commit: Option<String>,
    /// The branch it follows.
    pub upstream: Option<String>,
    /// Commits that the upstream does not have.
    pub ahead: u64,
    /// Commits that only the upstream has.
    pub behind: u64,
    /// Files whose staged content differs from the commit.
    pub staged: u64,
    /// Tracked files whose content differs from what is staged.
    pub changed: u64,
    /// Files, and folders of files, that Git does not know.
    pub untracked: u64,
    /// Files in conflict.
    pub conflicted: u64,
    /// There was more than could be read: the counts are lower bounds.
    pub truncated: bool,
}

impl StatusSummary {
    /// True if nothing differs from the commit.
    pub fn is_clean(&self) -> bool {
        self.staged + self.changed + self.untracked + self.conflicted == 0
    }

    /// Reads the output of `status --porcelain=v2 --branch -z`.
    pub fn of(output: &Captured) -> Self {
        let mut summary = Self { truncated: !output.is_whole(), ..Self::default() };
        let mut fields = output.head.split(|byte| *byte == 0);
        while let Some(field) = fields.next() {
            match field {
                [b'#', b' ', header @ ..] => summary.header(&String::from_utf8_lossy(header)),
                [kind @ (b'1' | b'2'), b' ', staged, changed, ..] => {
                    summary.staged += u64::from(*staged != b'.');
                    summary.changed += u64::from(*changed != b'.');
                    if *kind == b'2' {
                        // A rename's old name follows as a field of its own.
                        fields.next();
                    }
                }
                [b'u', b' ', ..] => summary.conflicted += 1,
                [b'?', b' ', ..] => summary.untracked += 1,
                _ => {}
            }
        }
        summary
    }

    fn header(&mut self, header: &str) {
        match header.split_once(' ') {
            Some(("branch.oid", commit)) if commit != "(initial)" => {
                self.commit = Some(commit.to_owned());
            }
            Some(("branch.head", branch)) if branch != "(detached)" => {
                self.branch = Some(branch.to_owned());
            }
            Some(("branch.upstream", upstream)) => self.upstream = Some(upstream.to_owned()),
            Some(("branch.ab", counts)) => {
                let mut counts = counts
                    .split(' ')
                    .map(|count| count.trim_start_matches(['+', '-']).parse().unwrap_or(0));
                self.ahead = counts.next().unwrap_or(0);
                self.behind = counts.next().unwrap_or(0);
            }
            _ => {}
        }
    }
}

/// How one file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// New.
    Added,
    /// Its content is another one.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
    /// It is a copy of another.
    Copied,
    /// It was a file and is a link, or the like.
    TypeChanged,
}

impl Change {
    fn of(letter: u8) -> Option<Self> {
        match letter {
            b'A' => Some(Self::Added),
            b'M' => Some(Self::Modified),
            b'D' => Some(Self::Deleted),
            b'R' => Some(Self::Renamed),
            b'C' => Some(Self::Copied),
            b'T' => Some(Self::TypeChanged),
            _ => None,
        }
    }
}

/// What Git has to say of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Known and different: in the index from the commit, in the worktree from the index.
    Changed {
        /// Index against commit.
        staged: Option<Change>,
        /// Worktree against index.
        unstaged: Option<Change>,
        /// Its earlier name.
        from: Option<PathBuf>,
        /// It is a submodule.
        submodule: bool,
    },
    /// In conflict: two letters, ours and theirs, as Git writes them.
    Conflict(String),
    /// Not known to Git; a folder ends with `/`.
    Untracked,
}

/// One file or folder of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusEntry {
    /// Relative to the root of the worktree.
    pub path: PathBuf,
    /// What of it.
    pub kind: Kind,
}

/// Reads the output of `status --porcelain=v2 -z`. A last entry that was cut off is left out.
pub fn entries(output: &Captured) -> Vec<StatusEntry> {
    let end = output.head.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    let mut fields = output.head[..end].split(|byte| *byte == 0);
    let mut entries = Vec::new();
    while let Some(field) = fields.next() {
        let entry = match field {
            [b'1', b' ', rest @ ..] => changed(rest, 7, None),
            [b'2', b' ', rest @ ..] => changed(rest, 8, fields.next()),
            [b'u', b' ', rest @ ..] => nth_field(rest, 9).map(|path| StatusEntry {
                path: path_of(path),
                kind: Kind::Conflict(
                    String::from_utf8_lossy(rest.get(..2).unwrap_or(rest)).into_owned(),
                ),
            }),
            [b'?', b' ', path @ ..] => {
                Some(StatusEntry { path: path_of(path), kind: Kind::Untracked })
            }
            _ => None,
        };
        entries.extend(entry);
    }
    entries
}

fn changed(rest: &[u8], path: usize, from: Option<&[u8]>) -> Option<StatusEntry> {
    let [staged, unstaged, b' ', submodule, ..] = rest else { return None };
    Some(StatusEntry {
        path: path_of(nth_field(rest, path)?),
        kind: Kind::Changed {
            staged: Change::of(*staged),
            unstaged: Change::of(*unstaged),
            from: from.map(path_of),
            submodule: *submodule == b'S',
        },
    })
}

/// What follows the `skipped`-th space.
fn nth_field(rest: &[u8], skipped: usize) -> Option<&[u8]> {
    rest.splitn(skipped + 1, |byte| *byte == b' ').nth(skipped)
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
