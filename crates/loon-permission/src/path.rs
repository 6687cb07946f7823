//! Paths without I/O: `..` and `~` resolved by text, links by whoever calls.

use std::path::{Component, Path, PathBuf};

use crate::Resolve;

/// One file in both its forms. A strict rule holds if it meets either, an allow rule must meet the
/// real one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Links resolved.
    pub(crate) real: PathBuf,
    /// As it was named, with `..` removed by text.
    pub(crate) named: PathBuf,
}

impl Spot {
    /// The file that `path` names from `folder`, which is absolute.
    pub(crate) fn new(folder: &Path, path: &Path, resolve: &Resolve<'_>) -> Self {
        let mut real = resolve(folder);
        for component in path.components() {
            match component {
                // What is above a link depends on where the link leads.
                Component::ParentDir => {
                    real = resolve(&real);
                    real.pop();
                }
                Component::CurDir => {}
                Component::Normal(name) => real.push(name),
                Component::RootDir | Component::Prefix(_) => real.push(component),
            }
        }
        Self { real: normal(&resolve(&real)), named: normal(&folder.join(path)) }
    }
}

/// Removes `.` and `..` by text.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// An absolute path from a text of a rule: `~`, `~/x`, relative to the root, or absolute.
pub(crate) fn from_rule(text: &str, root: &Path, home: Option<&Path>) -> PathBuf {
    let below_home = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (below_home, home) {
        (Some(rest), Some(home)) => normal(&home.join(rest.trim_start_matches('/'))),
        _ => normal(&root.join(text)),
    }
}

/// How a rule would name this path: relative to the root if below it, else from home, else absolute.
pub(crate) fn for_rule(path: &Path, root: &Path, home: Option<&Path>) -> String {
    if let Ok(rest) = path.strip_prefix(root) {
        let text = rest.to_string_lossy();
        // A name that begins with `~` would be read as the home folder.
        return match text.as_ref() {
            "" => ".".to_owned(),
            text if text.starts_with('~') => format!("./{text}"),
            text => text.to_owned(),
        };
    }
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.to_string_lossy()),
        None => path.to_string_lossy().into_owned(),
    }
}
