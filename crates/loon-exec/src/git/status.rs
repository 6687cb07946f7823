//! What `git status` says, in numbers.

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
    pub(super) fn parse(output: &Captured) -> Self {
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
