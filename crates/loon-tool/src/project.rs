//! Which command tests, builds or lints a project: found by its manifests, lock files and settings,
//! without running anything.

mod cargo;
mod go;
mod node;
mod python;

use std::fmt;
use std::path::{Path, PathBuf};

use loon_api::CheckKind;
use serde::Deserialize;

use crate::open;
use crate::text;
use crate::workspace::Workspace;

/// Most bytes that are read of a manifest, lock file or settings.
const LOOKED_AT: u64 = 16 * 1024 * 1024;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Test,
    Build,
    Lint,
}

impl Purpose {
    pub(crate) const ALL: [Self; 3] = [Self::Test, Self::Build, Self::Lint];

    /// What its commands check.
    pub(crate) fn check(self) -> CheckKind {
        match self {
            Self::Test => CheckKind::Test,
            Self::Build => CheckKind::Build,
            Self::Lint => CheckKind::Lint,
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Test => "test",
            Self::Build => "build",
            Self::Lint => "lint",
        })
    }
}

/// What a project is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Cargo,
    Node,
    Go,
    Python,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Cargo, Self::Node, Self::Go, Self::Python];

    /// Whose output a shell line is likely to print. A wrong guess finds nothing to count.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let names: [(&[&str], Self); 4] = [
            (&["cargo "], Self::Cargo),
            (&["go test", "go vet", "go build"], Self::Go),
            (&["pytest", "unittest", "python", "ruff", "mypy"], Self::Python),
            (&["npm ", "npx ", "pnpm ", "yarn ", "bun ", "jest", "vitest", "node "], Self::Node),
        ];
        let named =
            names.into_iter().find(|(words, _)| words.iter().any(|word| line.contains(word)));
        named.map(|(_, kind)| kind)
    }

    /// Files that make a folder a project of this kind, the most telling first.
    fn manifests(self) -> &'static [&'static str] {
        match self {
            Self::Cargo => &["Cargo.toml"],
            Self::Node => &["package.json"],
            Self::Go => &["go.mod"],
            Self::Python => &[
                "pyproject.toml",
                "setup.py",
                "setup.cfg",
                "requirements.txt",
                "Pipfile",
                "tox.ini",
                "pytest.ini",
            ],
        }
    }

    /// The manifest in `folder`, if it is a project of this kind.
    fn manifest(self, folder: &Path) -> Option<&'static str> {
        self.manifests().iter().copied().find(|name| folder.join(name).is_file())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cargo => "cargo",
            Self::Node => "node",
            Self::Go => "go",
            Self::Python => "python",
        })
    }
}

/// What a call asks for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) purpose: Purpose,
    pub(crate) path: String,
    pub(crate) kind: Option<Kind>,
    /// A test's name or file.
    pub(crate) filter: Option<String>,
    /// Options and whatever else the call adds.
    pub(crate) args: Vec<String>,
}

/// What will run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) folder: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) purpose: Purpose,
    /// Program and arguments of each command, one after another.
    pub(crate) commands: Vec<Vec<String>>,
    /// Variables they are given.
    pub(crate) variables: Vec<(&'static str, &'static str)>,
}

/// A folder with a manifest, and where to look for what lies above it.
struct Project<'a> {
    folder: &'a Path,
    /// Nothing above this folder belongs to the project.
    root: &'a Path,
    installed: &'a dyn Fn(&str) -> bool,
    shown: String,
}

impl Project<'_> {
    /// The folder, then those above it.
    fn upwards(&self) -> impl Iterator<Item = &Path> {
        let inside = self.folder.starts_with(self.root);
        self.folder.ancestors().take_while(move |above| {
            inside && above.starts_with(self.root) || *above == self.folder
        })
    }

    fn has(&self, name: &str) -> bool {
        self.folder.join(name).is_file()
    }

    /// The text of a file in the folder; empty if it cannot be read.
    fn read(&self, name: &str) -> String {
        open::beginning_as_text(&self.folder.join(name), LOOKED_AT).unwrap_or_default()
    }

    /// Fails if `program` is not there, with `how` to get it.
    fn require(&self, program: &str, how: &str) -> Result<(), String> {
        if (self.installed)(program) {
            return Ok(());
        }
        Err(format!(
            "{program} is not installed, or not on PATH, and {} needs it. {how}",
            self.shown
        ))
    }

    /// The filter is a file or folder of the project.
    fn is_path(&self, filter: &str) -> bool {
        self.folder.join(filter).exists()
    }
}

/// Finds the commands for `request`. Reads manifests only.
pub(crate) fn plan(
    workspace: &Workspace,
    request: &Request,
    installed: &dyn Fn(&str) -> bool,
) -> Result<Plan, String> {
    check(request)?;
    let start = workspace.resolve(&request.path);
    let start = if start.is_file() { start.parent().unwrap_or(&start).to_owned() } else { start };
    if !start.is_dir() {
        return Err(crate::nearby::missing(workspace, &start));
    }
    let (folder, kinds) = nearest(workspace, &start, request.kind)
        .ok_or_else(|| nothing(workspace, &start, request.kind))?;
    let project = Project {
        folder: &folder,
        root: workspace.root(),
        installed,
        shown: crate::nearby::place(workspace, &folder),
    };
    let kind = choose(&project, &kinds, request)?;
    let (commands, variables) = match kind {
        Kind::Cargo => (cargo::commands(&project, request)?, Vec::new()),
        Kind::Node => node::commands(&project, request)?,
        Kind::Go => (go::commands(&project, request)?, Vec::new()),
        Kind::Python => (python::commands(&project, request)?, Vec::new()),
    };
    Ok(Plan { folder, kind, purpose: request.purpose, commands, variables })
}

fn check(request: &Request) -> Result<(), String> {
    if request.args.iter().chain(&request.filter).any(|word| word.contains('\0')) {
        return Err("An argument holds a NUL character, which no program can be given.".to_owned());
    }
    match &request.filter {
        Some(filter) if filter.starts_with('-') => Err(format!(
            "filter {} looks like an option: give it in options.",
            text::visible_line(filter)
        )),
        Some(filter) if filter.trim().is_empty() => {
            Err("filter is empty: leave it out to run all tests.".to_owned())
        }
        _ => Ok(()),
    }
}

/// The nearest folder, upwards from `start` and not above the workspace, that is a project.
fn nearest(
    workspace: &Workspace,
    start: &Path,
    kind: Option<Kind>,
) -> Option<(PathBuf, Vec<Kind>)> {
    let inside = start.starts_with(workspace.root());
    start
        .ancestors()
        .take_while(|above| *above == start || inside && above.starts_with(workspace.root()))
        .find_map(|folder| {
            let kinds: Vec<Kind> = Kind::ALL
                .into_iter()
                .filter(|found| kind.is_none_or(|kind| kind == *found))
                .filter(|kind| kind.manifest(folder).is_some())
                .collect();
            (!kinds.is_empty()).then(|| (folder.to_owned(), kinds))
        })
}

fn choose(project: &Project<'_>, kinds: &[Kind], request: &Request) -> Result<Kind, String> {
    // A package.json without the script is often there for something else.
    let able: Vec<Kind> = kinds
        .iter()
        .copied()
        .filter(|kind| *kind != Kind::Node || node::has_script(project, request.purpose))
        .collect();
    match (kinds, able.as_slice()) {
        ([one], _) | (_, [one]) => Ok(*one),
        _ => {
            let found: Vec<String> = kinds
                .iter()
                .filter_map(|kind| {
                    let manifest = kind.manifest(project.folder)?;
                    Some(format!("{manifest} (kind {kind})"))
                })
                .collect();
            Err(format!(
                "{} holds several projects: {}. Say which by kind.",
                project.shown,
                found.join(", ")
            ))
        }
    }
}

/// What is said if there is no project: what was looked for, and where one lies below.
fn nothing(workspace: &Workspace, start: &Path, kind: Option<Kind>) -> String {
    let kinds = kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    let names: Vec<&str> = kinds.iter().flat_map(|kind| kind.manifests()).copied().collect();
    let below: Vec<String> =
        below(start, &kinds).iter().map(|folder| workspace.display(folder)).collect();
    let place = crate::nearby::place(workspace, start);
    let hint = if below.is_empty() {
        "Use bash if it is tested, built or linted in another way.".to_owned()
    } else {
        format!("Give one of these folders as path: {}.", below.join(", "))
    };
    format!("No project found in {place} or above: none of {}. {hint}", names.join(", "))
}

/// Projects in the folders of `start`.
fn below(start: &Path, kinds: &[Kind]) -> Vec<PathBuf> {
    const SHOWN: usize = 10;
    let Ok(entries) = std::fs::read_dir(start) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|folder| kinds.iter().any(|kind| kind.manifest(folder).is_some()))
        .collect();
    folders.sort();
    folders.truncate(SHOWN);
    folders
}

/// A command from words and, at its end, what the call adds.
fn words(fixed: &[&str], added: impl IntoIterator<Item = String>) -> Vec<String> {
    fixed.iter().map(|word| (*word).to_owned()).chain(added).collect()
}

#[cfg(test)]
mod tests;
