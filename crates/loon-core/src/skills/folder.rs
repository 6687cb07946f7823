//! Skills in folders, as `NAME.md` or `NAME/SKILL.md`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{PassedOver, Skill, Skills, Source};
use crate::frontmatter::Definition;
use crate::text_file::{self, one_line};

/// Most entries of a folder looked at.
const MAX_ENTRIES: usize = 2_000;

/// Most skills taken from one folder.
const MAX_SKILLS: usize = 200;

/// Most further files named for one skill.
const MAX_FILES: usize = 50;

/// How far below a skill's folder its further files may lie.
const MAX_DEPTH: usize = 3;

/// One folder of skills.
#[derive(Clone, Debug)]
pub(super) struct Place {
    folder: PathBuf,
    /// The session's folder, if this place belongs to it: nothing outside of it is read as one of
    /// its skills.
    within: Option<PathBuf>,
}

/// A file that should be a skill.
struct Candidate {
    name: String,
    path: PathBuf,
    /// Its own folder.
    folder: Option<PathBuf>,
    /// Reached by a link.
    linked: bool,
}

impl Place {
    pub(super) fn new(cwd: &Path, definitions: &Path) -> Self {
        let within = (definitions.parent() == Some(cwd)).then(|| cwd.to_path_buf());
        Self { folder: definitions.join("skills"), within }
    }

    /// Adds the skills of the folder.
    pub(super) fn read_into(&self, found: &mut Skills) {
        let Ok(entries) = self.folder.read_dir() else { return };
        let entries: Vec<PathBuf> =
            entries.take(MAX_ENTRIES + 1).flatten().map(|entry| entry.path()).collect();
        let mut candidates: Vec<Candidate> =
            entries.iter().take(MAX_ENTRIES).filter_map(|entry| candidate(entry)).collect();
        candidates.sort_by(|a, b| a.name.cmp(&b.name));
        if candidates.len() > MAX_SKILLS || entries.len() > MAX_ENTRIES {
            candidates.truncate(MAX_SKILLS);
            let reason = "it holds more than 200 skills or 2000 entries; the others are left out";
            found.passed_over.push(self.passed_over("", &self.folder, reason));
        }
        // Links last: one to a file that is a skill already adds nothing. A folder outweighs a
        // single file.
        candidates.sort_by_key(|it| (it.linked, it.folder.is_some()));
        for candidate in &candidates {
            let read = self.resolve(candidate).and_then(|file| {
                let known = candidate.linked && found.holds_file(&file);
                if known { Ok(None) } else { self.read(candidate, file).map(Some) }
            });
            match read {
                Ok(skill) => skill.into_iter().for_each(|skill| found.add(skill)),
                Err(reason) => {
                    let one = self.passed_over(&candidate.name, &candidate.path, reason);
                    found.passed_over.push(one);
                }
            }
        }
    }

    /// The file, links followed, if it may be read as a skill of this place.
    fn resolve(&self, candidate: &Candidate) -> Result<PathBuf, &'static str> {
        if !is_name(&candidate.name) {
            return Err("its name may hold only letters, digits, '-', '_' and '.', 64 at most");
        }
        text_file::resolve(&candidate.path, self.within.as_deref())
    }

    fn read(&self, candidate: &Candidate, path: PathBuf) -> Result<Skill, &'static str> {
        let text = text_file::read_definition(&path)?.text;
        let definition = Definition::parse(&text);
        let description = match definition.text("description") {
            None => return Err("it has no `description:` between two lines of `---`"),
            Some(list) if list.starts_with('[') && !list.contains(']') => {
                return Err("its description is an unfinished list");
            }
            Some(description) => description.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        Ok(Skill {
            name: candidate.name.clone(),
            description,
            body: Cow::Owned(definition.body.to_owned()),
            overrides: Vec::new(),
            source: Source::File {
                shown: self.shown(&candidate.path),
                foreign: self.within.is_some(),
                folder: candidate.folder.clone(),
                path,
            },
        })
    }

    fn passed_over(&self, name: &str, path: &Path, reason: &'static str) -> PassedOver {
        PassedOver { name: name.to_owned(), shown: self.shown(path), reason }
    }

    /// A path as it is told: relative in the session's folder.
    fn shown(&self, path: &Path) -> String {
        text_file::shown(path, self.within.as_deref())
    }
}

/// What an entry of a folder should be; absent if it means to be no skill.
fn candidate(entry: &Path) -> Option<Candidate> {
    let file_name = entry.file_name()?.to_string_lossy().into_owned();
    if file_name.starts_with('.') || file_name.eq_ignore_ascii_case("readme.md") {
        return None;
    }
    let linked = entry.is_symlink();
    if entry.is_dir() {
        let path = entry.join("SKILL.md");
        let linked = linked || path.is_symlink();
        let folder = Some(entry.to_path_buf());
        return (linked || path.exists()).then_some(Candidate {
            name: file_name,
            path,
            folder,
            linked,
        });
    }
    let name = file_name.strip_suffix(".md")?.to_owned();
    Some(Candidate { name, path: entry.to_path_buf(), folder: None, linked })
}

fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|ch: char| ch.is_ascii_alphanumeric())
        && name.chars().all(|ch| ch.is_ascii_alphanumeric() || matches!(ch, '-' | '_' | '.'))
}

/// Files that lie beside a `SKILL.md`, by their path from its folder. Links are not followed.
pub(super) fn further_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_path_buf(), 1)];
    let mut left = MAX_ENTRIES;
    while let Some((next, depth)) = folders.pop() {
        let Ok(entries) = next.read_dir() else { continue };
        for entry in entries.take(left).flatten() {
            left -= 1;
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => folders.push((path, depth + 1)),
                Ok(kind) if kind.is_file() => {
                    let relative = path.strip_prefix(folder).unwrap_or(&path);
                    found.push(one_line(&relative.display().to_string()));
                }
                _ => {}
            }
        }
    }
    found.retain(|file| file != "SKILL.md");
    found.sort();
    let left_out = found.len().saturating_sub(MAX_FILES);
    found.truncate(MAX_FILES);
    if left_out > 0 {
        found.push(format!("and {left_out} more"));
    }
    found
}
