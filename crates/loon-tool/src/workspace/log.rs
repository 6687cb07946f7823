//! The file changes of a session in their order, and which of them stand.
//!
//! A change that takes back another one makes that one fall, and a change that takes back such a
//! change makes the first stand again. So changes form *lines*: one that a tool made, and after it
//! the times it was taken back and brought back.

use loon_api::{EffectKey, FileChange};

/// The changes of a session, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    entries: Vec<Logged>,
}

/// One change and its place in the log.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    /// The call that made it.
    pub(crate) key: EffectKey,
    /// The change, without the text of its diff.
    pub(crate) change: FileChange,
    /// Where its line begins: itself, unless it takes something back.
    root: usize,
    /// After it, the change at the root stands.
    stands: bool,
}

/// One change to take back, and the call that this takes back.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The newest change of its line.
    pub(crate) change: FileChange,
    /// The call to name.
    pub(crate) undoes: EffectKey,
}

impl ChangeLog {
    pub(crate) fn add(&mut self, key: EffectKey, change: FileChange) {
        let index = self.entries.len();
        let taken_back = change.undoes.as_ref().and_then(|undoes| {
            let mut lines = self.newest_of_lines();
            lines.retain(|&newest| {
                let of_call = |entry: &Logged| entry.key == *undoes;
                let named = &self.entries[newest];
                (of_call(named) || of_call(&self.entries[named.root]))
                    && goes_back_to(&named.change) == change.real_path()
            });
            lines.last().copied()
        });
        let (root, stands) = match taken_back {
            Some(newest) => (self.entries[newest].root, !self.entries[newest].stands),
            None => (index, true),
        };
        let change = FileChange { diff: String::new(), ..change };
        self.entries.push(Logged { key, change, root, stands });
    }

    /// Whether a change of this call is in it.
    pub(crate) fn knows(&self, key: &EffectKey) -> bool {
        self.entries.iter().any(|entry| entry.key == *key)
    }

    /// The newest change of each line, in the order of the log.
    fn newest_of_lines(&self) -> Vec<usize> {
        self.newest_of_lines_before(self.entries.len())
    }

    fn newest_of_lines_before(&self, end: usize) -> Vec<usize> {
        let mut seen = vec![false; end];
        let mut newest: Vec<usize> = (0..end)
            .rev()
            .filter(|&index| !std::mem::replace(&mut seen[self.entries[index].root], true))
            .collect();
        newest.reverse();
        newest
    }

    fn root_key(&self, index: usize) -> &EffectKey {
        &self.entries[self.entries[index].root].key
    }

    /// What the newest `count` calls changed that still stands, newest first.
    pub(crate) fn newest_calls(&self, count: usize) -> Vec<Target> {
        let mut standing = self.newest_of_lines();
        standing.retain(|&index| self.entries[index].stands);
        let mut by_root = standing.clone();
        by_root.sort_by_key(|&index| std::cmp::Reverse(self.entries[index].root));
        let mut calls: Vec<&EffectKey> = by_root.iter().map(|&i| self.root_key(i)).collect();
        calls.dedup();
        calls.truncate(count);
        standing.retain(|&index| calls.contains(&self.root_key(index)));
        standing.iter().rev().map(|&index| self.target(index, self.root_key(index))).collect()
    }

    /// What the newest undo took back that did not come back since, newest first.
    pub(crate) fn newest_undo(&self) -> Vec<Target> {
        let mut fallen = self.newest_of_lines();
        fallen.retain(|&index| !self.entries[index].stands);
        let Some(&newest) = fallen.last() else { return Vec::new() };
        let key = self.entries[newest].key.clone();
        fallen.retain(|&index| self.entries[index].key == key);
        fallen.iter().rev().map(|&index| self.target(index, &key)).collect()
    }

    /// What has to be taken back so that all is as it was before this call, newest first.
    pub(crate) fn since(&self, key: &EffectKey) -> Vec<Target> {
        let start = self.first_at_or_after(key);
        let mut before = vec![false; self.entries.len()];
        for index in self.newest_of_lines_before(start) {
            before[self.entries[index].root] = self.entries[index].stands;
        }
        let mut differ = self.newest_of_lines();
        differ.retain(|&index| {
            let entry = &self.entries[index];
            index >= start && entry.stands != before[entry.root]
        });
        let key = |index: usize| {
            let entry = &self.entries[index];
            if entry.stands { self.root_key(index) } else { &entry.key }
        };
        differ.iter().rev().map(|&index| self.target(index, key(index))).collect()
    }

    fn first_at_or_after(&self, key: &EffectKey) -> usize {
        let wanted = order(key);
        let at =
            |entry: &Logged| entry.key == *key || (wanted.is_some() && order(&entry.key) >= wanted);
        self.entries.iter().position(at).unwrap_or(self.entries.len())
    }

    fn target(&self, index: usize, undoes: &EffectKey) -> Target {
        Target { change: self.entries[index].change.clone(), undoes: undoes.clone() }
    }
}

/// The path that the change which takes this one back is recorded under.
fn goes_back_to(change: &FileChange) -> &str {
    change.from.as_deref().unwrap_or(change.real_path())
}

/// Keys in the order in which calls are made: those of the model by turn, step and place, those of
/// the user after the turn.
fn order(key: &EffectKey) -> Option<(u32, bool, u32, u32)> {
    let mut parts = key.as_str().split('/');
    let mut number = |prefix: char| parts.next()?.strip_prefix(prefix)?.parse::<u32>().ok();
    let turn = number('t')?;
    let rest = key.as_str().split_once('/')?.1;
    if let Some(index) = rest.strip_prefix('a') {
        return Some((turn, true, index.parse().ok()?, 0));
    }
    let (step, index) = rest.split_once('/')?;
    let step = step.strip_prefix('s')?.parse().ok()?;
    Some((turn, false, step, index.strip_prefix('c')?.parse().ok()?))
}
