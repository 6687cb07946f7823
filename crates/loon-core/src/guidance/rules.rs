//! Rules: files in `.loon/rules` that speak of the whole project, or of the paths that they name.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use loon_api::GuidanceScope;

use super::{GuidanceShelf, LIMIT, Piece, Unused};
use crate::frontmatter::{Definition, Unfinished};
use crate::text_file::{self, Beginning};

/// Where rules lie in the folder of the session.
const FOLDER: &str = ".loon/rules";

/// Most entries looked at.
const MAX_ENTRIES: usize = 2_000;

/// Most rules read.
const MAX_RULES: usize = 200;

/// How far below the folder of rules one may lie.
const MAX_DEPTH: usize = 8;

/// Fields that name paths. The second is what others call the first.
const FIELDS: [&str; 2] = ["paths", "globs"];

/// All rules of a project.
#[derive(Default)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    unused: Vec<Unused>,
}

struct Rule {
    piece: Piece,
    /// Absent if it speaks of the whole project.
    patterns: Option<Vec<(String, GlobMatcher)>>,
}

impl Rules {
    /// Reads the rules, by path.
    pub(super) fn read(shelf: &GuidanceShelf) -> Self {
        let mut found = Self::default();
        let folder = shelf.root.join(FOLDER);
        for path in found.files(shelf, &folder) {
            let shown = text_file::shown(&path, Some(&shelf.root));
            match read(shelf, &path, &shown) {
                Ok(rule) if rule.piece.text.is_empty() => {}
                Ok(rule) => found.rules.push(rule),
                Err(reason) => found.pass_over(shown, reason),
            }
        }
        found
    }

    /// Those that speak of the whole project.
    pub(super) fn general(&self) -> impl Iterator<Item = Piece> + '_ {
        let general = self.rules.iter().filter(|rule| rule.patterns.is_none());
        general.map(|rule| rule.piece.clone())
    }

    /// Those that name a path, which is relative to the session's folder.
    pub(super) fn speaking_of(&self, path: &Path) -> impl Iterator<Item = Piece> {
        self.rules.iter().filter_map(move |rule| {
            let patterns = rule.patterns.as_ref()?;
            let (pattern, _) = patterns.iter().find(|(_, matcher)| matcher.is_match(path))?;
            let matched = Some(pattern.clone());
            let scope = GuidanceScope::Paths { patterns: written(patterns), matched };
            Some(Piece { scope, ..rule.piece.clone() })
        })
    }

    /// Those that name paths, whichever these are.
    pub(super) fn of_paths(&self) -> impl Iterator<Item = &Piece> {
        self.rules.iter().filter(|rule| rule.patterns.is_some()).map(|rule| &rule.piece)
    }

    /// Files that are no rules.
    pub(super) fn unused(&self) -> &[Unused] {
        &self.unused
    }

    fn pass_over(&mut self, path: String, reason: impl Into<String>) {
        let (scope, reason) = (GuidanceScope::Project, reason.into());
        self.unused.push(Unused { path, scope, reason });
    }

    /// Files that should be rules, sorted. Folders that are links are not followed.
    fn files(&mut self, shelf: &GuidanceShelf, folder: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        if folder.symlink_metadata().is_err() {
            return files;
        }
        // `.loon` itself may be a link to another folder of the project, no more.
        if let Err(reason) = shelf.resolve(folder, Some(&shelf.root)) {
            self.pass_over(FOLDER.to_owned(), reason);
            return files;
        }
        let mut folders = vec![(folder.to_path_buf(), 1)];
        let mut left = MAX_ENTRIES;
        while let Some((next, depth)) = folders.pop() {
            let Ok(entries) = next.read_dir() else { continue };
            for entry in entries.take(left).flatten() {
                left -= 1;
                let path = entry.path();
                let is_rule = path.extension().is_some_and(|extension| extension == "md");
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                        folders.push((path, depth + 1));
                    }
                    Ok(kind) if kind.is_dir() => {
                        let shown = text_file::shown(&path, Some(&shelf.root));
                        self.pass_over(shown, "it lies more than 8 folders deep");
                    }
                    _ if is_rule => files.push(path),
                    _ => {}
                }
            }
        }
        files.sort();
        if files.len() > MAX_RULES || left == 0 {
            files.truncate(MAX_RULES);
            let reason = "it holds more than 200 rules or 2000 entries; the others are left out";
            self.pass_over(FOLDER.to_owned(), reason);
        }
        files
    }
}

fn read(shelf: &GuidanceShelf, path: &Path, shown: &str) -> Result<Rule, String> {
    let real = shelf.resolve(path, Some(&shelf.root))?;
    let read = text_file::read_definition(&real)?;
    // Its paths may be lost with the head's end, and it would speak of everything.
    if Definition::is_open(&read.text) {
        return Err("its head, which begins with `---`, has no end".to_owned());
    }
    let definition = Definition::parse(&read.text);
    let patterns = patterns(&definition)?;
    let body = definition.body;
    let limit = usize::try_from(LIMIT).unwrap_or(usize::MAX);
    let cut = body.len() > limit;
    let text = body[..body.floor_char_boundary(limit)].to_owned();
    let scope = match &patterns {
        Some(patterns) => GuidanceScope::Paths { patterns: written(patterns), matched: None },
        None => GuidanceScope::Project,
    };
    let sha256 = read.sha256.clone();
    let beginning = Beginning { text, sha256, bytes: read.bytes, cut };
    let piece = Piece::new(shown.to_owned(), scope, beginning);
    Ok(Rule { piece, patterns })
}

/// The patterns of a rule; absent if it names none. An empty list names nothing.
fn patterns(definition: &Definition<'_>) -> Result<Option<Vec<(String, GlobMatcher)>>, String> {
    for field in FIELDS {
        let list = definition.whole_list(field).map_err(|Unfinished { line }| {
            format!("the list `{field}` in line {line} has no end")
        })?;
        let Some(list) = list else { continue };
        let line = definition.line(field).unwrap_or_default();
        let compiled = list.into_iter().map(|pattern| match compile(&pattern) {
            Ok(matcher) => Ok((text_file::one_line(&pattern), matcher)),
            Err(error) => {
                Err(format!("`{pattern}` in line {line} is no pattern: {}", error.kind()))
            }
        });
        return compiled.collect::<Result<Vec<_>, _>>().map(Some);
    }
    Ok(None)
}

/// A pattern over paths from the session's folder. `*` stays within one name; a pattern without a
/// slash is about names in any folder.
fn compile(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    let plain = pattern.trim_start_matches("./").trim_start_matches('/');
    let anywhere = !plain.contains('/') && plain.len() == pattern.len();
    let mut whole = if anywhere { format!("**/{plain}") } else { plain.to_owned() };
    if whole.ends_with('/') {
        whole.push_str("**");
    }
    let glob = GlobBuilder::new(&whole).literal_separator(true).empty_alternates(true).build()?;
    Ok(glob.compile_matcher())
}

fn written(patterns: &[(String, GlobMatcher)]) -> Vec<String> {
    patterns.iter().map(|(pattern, _)| pattern.clone()).collect()
}
