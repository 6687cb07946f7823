//! What taking changes back means for each file, as the files are now.
//!
//! The changes are gone through from the newest to the oldest, and each gives the step that takes it
//! back. The first step on a file asks that it still is what the session left; a file that somebody
//! changed since is left out of this and all older steps.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loon_api::{EffectKey, EntryKind, FileChange};

use super::outlook::{Outlook, rebased};
use crate::snapshot;
use crate::workspace::{Target, Workspace};
use crate::write_path::{Action, Intent, Planned, trash_names, trash_place, tree};

/// Files larger than this are not shown line by line.
const SHOWN_BYTES: u64 = 1024 * 1024;

/// The steps that take changes back.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// In the order in which they are made.
    pub(super) intents: Vec<Intent>,
    /// What happens to each file, one line each, newest change first.
    pub(super) told: Vec<String>,
    /// What is left as it is and why, one line each.
    pub(super) conflicts: Vec<String>,
}

/// Plans how to take these changes back, newest first.
pub(super) fn plan(workspace: &Workspace, key: &EffectKey, targets: &[Target]) -> Plan {
    let mut planner = Planner {
        workspace,
        plan: Plan::default(),
        outlook: Outlook::default(),
        touched: BTreeSet::new(),
        left_out: BTreeSet::new(),
        trash: Box::new(trash_names(workspace, key)),
    };
    for target in targets {
        planner.take_back(target);
    }
    planner.plan
}

struct Planner<'a> {
    workspace: &'a Workspace,
    plan: Plan,
    outlook: Outlook,
    /// Where planned steps have been.
    touched: BTreeSet<PathBuf>,
    /// Where no more steps may go.
    left_out: BTreeSet<PathBuf>,
    trash: Box<dyn Iterator<Item = String> + 'a>,
}

/// A step before it is told of.
struct Step {
    action: Action,
    change: FileChange,
    told: String,
}

/// Why a change stays.
type Conflict = String;

impl Planner<'_> {
    fn take_back(&mut self, target: &Target) {
        let change = &target.change;
        let path = self.path(change.real_path());
        let other = change.from.as_ref().map(|from| self.path(from));
        let places: Vec<PathBuf> = std::iter::once(path.clone()).chain(other).collect();
        if places.iter().any(|place| self.left_out.contains(place)) {
            self.left_out.extend(places);
            return;
        }
        match self.step(change, &path) {
            Ok(step) => self.add(step, target, &path),
            Err(reason) => {
                self.plan.conflicts.push(format!("{}: {reason}", self.workspace.display(&path)));
                self.left_out.extend(places);
            }
        }
    }

    fn path(&self, recorded: &str) -> PathBuf {
        self.workspace.root().join(recorded)
    }

    fn step(&mut self, change: &FileChange, path: &Path) -> Result<Step, Conflict> {
        match (&change.from, &change.kept, &change.before, &change.after) {
            (Some(from), ..) => self.move_back(change, path, &self.path(from)),
            (None, Some(name), Some(_), None) => self.bring_back(change, path, name),
            (None, _, None, Some(after)) => self.take_away(change, path, after),
            (None, _, Some(before), Some(after)) => self.restore(path, before, after),
            (None, None, Some(before), None) => self.make_again(change, path, before),
            _ => Err("what was there before is not known".to_owned()),
        }
    }

    /// It was moved here.
    fn move_back(&self, change: &FileChange, path: &Path, to: &Path) -> Result<Step, Conflict> {
        if let Some(after) = &change.after {
            self.unchanged(change.kind, path, after)?;
        } else {
            self.is_there(path, change.kind)?;
        }
        self.vacant(to)?;
        let (shown, exact) = self.workspace.recorded(to);
        let recorded = FileChange {
            path: shown.clone(),
            exact,
            from: Some(self.workspace.exact(path)),
            ..bare(change)
        };
        Ok(Step {
            action: Action::Move { from: path.to_owned(), to: to.to_owned() },
            change: FileChange {
                before: change.after.clone(),
                after: change.before.clone(),
                ..recorded
            },
            told: format!("{}: back to {shown}", self.workspace.display(path)),
        })
    }

    /// It went to the trash.
    fn bring_back(&self, change: &FileChange, path: &Path, name: &str) -> Result<Step, Conflict> {
        let kept = self.trash_place(name)?;
        if kept.symlink_metadata().is_err() {
            return Err("what was deleted is no longer kept".to_owned());
        }
        self.vacant(path)?;
        let after = change.before.clone();
        let recorded = self.with_lines(
            FileChange { after, kept: Some(name.to_owned()), ..bare(change) },
            &kept,
            |content| Planned::Create { path: path.to_owned(), content },
        );
        Ok(Step {
            action: Action::Move { from: kept, to: path.to_owned() },
            change: recorded,
            told: format!("{}: brought back", self.workspace.display(path)),
        })
    }

    /// It was made.
    fn take_away(
        &mut self,
        change: &FileChange,
        path: &Path,
        after: &str,
    ) -> Result<Step, Conflict> {
        self.unchanged(change.kind, path, after)?;
        let name = self.trash.next().unwrap_or_default();
        let to = self.trash_place(&name)?;
        let before = Some(after.to_owned());
        let disk = self.outlook.on_disk(path).unwrap_or_default();
        let recorded = self.with_lines(
            FileChange { before, kept: Some(name), ..bare(change) },
            &disk,
            |base| Planned::Delete { path: path.to_owned(), base },
        );
        Ok(Step {
            action: Action::Move { from: path.to_owned(), to },
            change: recorded,
            told: format!("{}: removed", self.workspace.display(path)),
        })
    }

    /// A file got other bytes.
    fn restore(&self, path: &Path, before: &str, after: &str) -> Result<Step, Conflict> {
        self.unchanged(EntryKind::File, path, after)?;
        let content = self.snapshot(before)?;
        let base = self.outlook.bytes(path).map_err(|error| format!("{error}"))?;
        let planned =
            Planned::Modify { path: path.to_owned(), base: base.clone(), content: content.clone() };
        Ok(Step {
            action: Action::Write { path: path.to_owned(), base: Some(base), content, mode: None },
            change: self.described(path, &planned),
            told: format!("{}: restored", self.workspace.display(path)),
        })
    }

    /// A file went, and only its bytes were kept.
    fn make_again(&self, change: &FileChange, path: &Path, before: &str) -> Result<Step, Conflict> {
        self.vacant(path)?;
        let content = self.snapshot(before)?;
        let planned = Planned::Create { path: path.to_owned(), content: content.clone() };
        Ok(Step {
            action: Action::Write { path: path.to_owned(), base: None, content, mode: change.mode },
            change: FileChange { mode: change.mode, ..self.described(path, &planned) },
            told: format!("{}: brought back", self.workspace.display(path)),
        })
    }

    fn add(&mut self, step: Step, target: &Target, path: &Path) {
        let Step { action, change, told } = step;
        match &action {
            Action::Move { from, to } => {
                self.outlook.rename(from, to);
                self.touched = self
                    .touched
                    .iter()
                    .map(|place| rebased(place, from, to).unwrap_or_else(|| place.clone()))
                    .chain([from.clone(), to.clone()])
                    .collect();
                self.left_out = self
                    .left_out
                    .iter()
                    .map(|place| rebased(place, from, to).unwrap_or_else(|| place.clone()))
                    .collect();
            }
            Action::Write { path, content, .. } => {
                self.outlook.write(path, content.clone());
                self.touched.insert(path.clone());
            }
            Action::Folder { .. } | Action::RemoveEmpty { .. } | Action::Copy { .. } => {}
        }
        if !self.plan.told.contains(&told) {
            self.plan.told.push(told);
        }
        let change = FileChange { undoes: Some(target.undoes.clone()), ..change };
        self.plan.intents.push(Intent { action, change: Some(change) });
        let made = path.ancestors().skip(1).take(target.change.folders as usize);
        for folder in made.take_while(|folder| self.outlook.remove_empty(folder)) {
            let action = Action::RemoveEmpty { path: folder.to_owned() };
            self.plan.intents.push(Intent { action, change: None });
        }
    }

    /// The entry is as the session left it. What this plan itself put there is.
    fn unchanged(&self, kind: EntryKind, path: &Path, hash: &str) -> Result<(), Conflict> {
        let prospect = self.is_there(path, kind)?;
        if kind == EntryKind::Folder {
            return self.same_entries(path, hash);
        }
        let same = prospect.is_some_and(|now| now.to_string() == hash);
        if same || self.touched.contains(path) {
            return Ok(());
        }
        Err("changed since, so it stays as it is".to_owned())
    }

    fn is_there(
        &self,
        path: &Path,
        kind: EntryKind,
    ) -> Result<Option<crate::workspace::ContentHash>, Conflict> {
        match self.outlook.at(path) {
            Err(error) => Err(format!("cannot be read ({error})")),
            Ok(None) => Err("is gone, so there is nothing to take back".to_owned()),
            Ok(Some(now)) if now.kind != kind => Err("is something else now".to_owned()),
            Ok(Some(now)) => Ok(now.hash),
        }
    }

    fn vacant(&self, path: &Path) -> Result<(), Conflict> {
        match self.outlook.at(path) {
            Err(error) => Err(format!("{} cannot be read ({error})", self.workspace.display(path))),
            Ok(None) => Ok(()),
            Ok(Some(_)) => {
                Err(format!("there is something else at {} now", self.workspace.display(path)))
            }
        }
    }

    /// A folder holds what it held, but for what this plan changes in it.
    fn same_entries(&self, path: &Path, hash: &str) -> Result<(), Conflict> {
        let disk = self.outlook.on_disk(path);
        let was = String::from_utf8(self.snapshot(hash)?).unwrap_or_default();
        let is = disk.as_deref().map(tree::listing).unwrap_or_default();
        let is = String::from_utf8(is).unwrap_or_default();
        let was: BTreeSet<(&str, &str)> = tree::listed(&was).collect();
        let is: BTreeSet<(&str, &str)> = tree::listed(&is).collect();
        let differs = |&&(name, _): &&(&str, &str)| {
            tree::named(name).is_none_or(|name| !self.changes_below(path, disk.as_deref(), &name))
        };
        match was.symmetric_difference(&is).find(differs) {
            None => Ok(()),
            Some((name, _)) => {
                Err(format!("{name} in it changed since, so the folder stays as it is"))
            }
        }
    }

    /// Whether this plan changes the entry that lies at `name` in a folder on disk.
    fn changes_below(&self, folder: &Path, disk: Option<&Path>, name: &Path) -> bool {
        let place = folder.join(name);
        let now = disk.map(|disk| disk.join(name));
        self.touched.contains(&place) || self.outlook.on_disk(&place) != now
    }

    fn snapshot(&self, hash: &str) -> Result<Vec<u8>, Conflict> {
        let gone = || "what was there before is no longer kept".to_owned();
        let hash = hash.parse().map_err(|_| gone())?;
        std::fs::read(snapshot::place(self.workspace, hash)).map_err(|_| gone())
    }

    fn trash_place(&self, name: &str) -> Result<PathBuf, Conflict> {
        trash_place(self.workspace, name).map_err(|error| error.to_string())
    }

    fn described(&self, path: &Path, planned: &Planned) -> FileChange {
        let described = planned.describe(self.workspace).into_iter().next();
        let change = described.map(|described| described.change).unwrap_or_default();
        FileChange { exact: self.workspace.recorded(path).1, ..change }
    }

    /// The change with the lines of the file at `disk`, if it is one and not large.
    fn with_lines(
        &self,
        change: FileChange,
        disk: &Path,
        planned: impl FnOnce(Vec<u8>) -> Planned,
    ) -> FileChange {
        let small = disk
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= SHOWN_BYTES);
        let Some(Ok(bytes)) = small.then(|| std::fs::read(disk)) else { return change };
        let FileChange { added, removed, diff, .. } = self.described(disk, &planned(bytes));
        FileChange { added, removed, diff, ..change }
    }
}

/// What stays the same of a change when it is taken back.
fn bare(change: &FileChange) -> FileChange {
    FileChange {
        path: change.path.clone(),
        exact: change.exact.clone(),
        kind: change.kind,
        mode: change.mode,
        ..FileChange::default()
    }
}
