//! Sizes, names and places of files.

use std::collections::BTreeSet;

use anyhow::Result;

use super::Faults;
use crate::tree::Tree;

/// Most lines of a source file.
const SOURCE_LINES: usize = 600;
/// Most lines of a file of tests.
const TEST_LINES: usize = 1000;
/// What lies at the top, besides names that begin with a dot.
const TOP: [&str; 12] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "clippy.toml",
    "crates",
    "docs",
    "skills",
    "tests",
    "themes",
    "xtask",
];
/// May be empty, and Git keeps no empty folder.
const EMBEDDED: &str = "skills";
/// Names that say nothing of what is in a file.
const EMPTY_NAMES: [&str; 8] =
    ["util", "utils", "common", "helper", "helpers", "misc", "shared", "mod"];

/// Checks all files.
pub(super) fn check(tree: &Tree) -> Result<Faults> {
    let mut faults = top(&tree.files);
    let root = tree.path("");
    for file in &tree.files {
        faults.extend(name(file));
        let Some(text) = tree.text(file)? else { continue };
        if is_rust(file) {
            faults.extend(source(file, &text));
        }
        faults.extend(machine_paths(file, &text, &root.to_string_lossy()));
    }
    Ok(faults)
}

fn top(files: &[String]) -> Faults {
    let found: BTreeSet<&str> = files.iter().filter_map(|file| file.split('/').next()).collect();
    let mut faults: Faults = found
        .iter()
        .filter(|name| !name.starts_with('.') && !TOP.contains(name))
        .map(|name| format!("{name}: does not belong at the top level"))
        .collect();
    faults.extend(
        TOP.iter()
            .chain(&[".loon", ".ci"])
            .filter(|name| **name != EMBEDDED && !found.contains(*name))
            .map(|name| format!("{name}: is missing at the top level")),
    );
    faults
}

fn name(file: &str) -> Option<String> {
    let bare = |part: &str| part.split('.').next().unwrap_or_default().to_owned();
    let rust = is_rust(file);
    let folders = file.split('/').rev().skip(1);
    let empty = (rust
        && EMPTY_NAMES.contains(&bare(file.rsplit('/').next().unwrap_or_default()).as_str()))
        || folders.into_iter().any(|folder| EMPTY_NAMES.contains(&folder));
    empty.then(|| {
        format!("{file}: a name must say what is inside; a module `foo` is foo.rs beside foo/")
    })
}

fn is_rust(file: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, extension)| extension == "rs")
}

fn source(file: &str, text: &str) -> Faults {
    let mut faults = Faults::new();
    let lines = text.lines().count();
    let is_test = file.ends_with("/tests.rs") || file.split('/').any(|part| part == "tests");
    let most = if is_test { TEST_LINES } else { SOURCE_LINES };
    if lines > most {
        faults.push(format!(
            "{file}: {lines} lines, more than {most}; split it by what its parts are about"
        ));
    }
    let head = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    if !head.is_some_and(|line| line.starts_with("//! ")) {
        faults.push(format!("{file}: does not begin with a `//!` line that says what it is"));
    }
    faults
}

/// Traces of the machine a file was written on.
fn machine_paths(file: &str, text: &str, root: &str) -> Faults {
    let places = ["crates/", "docs/", "target/", "tests/", "xtask/"]
        .map(|folder| format!("{}/{folder}", root.trim_end_matches('/')));
    let registry = format!(".cargo/{}", "registry/");
    let traces = places.iter().chain([&registry]);
    text.lines()
        .enumerate()
        .filter(|(_, line)| traces.clone().any(|trace| line.contains(trace.as_str())))
        .map(|(index, _)| format!("{file}:{}: names a path of one machine", index + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_seen() {
        let long = "//! Long.\n".repeat(601);
        assert_eq!(source("a/src/x.rs", &long).len(), 1);
        assert_eq!(source("a/src/x/tests.rs", &long).len(), 0);
        assert_eq!(source("a/tests/x.rs", &long).len(), 0);
        assert_eq!(source("a/src/x.rs", "use a;\n//! Late.\n").len(), 1);
        for bad in ["a/src/x/mod.rs", "a/src/utils.rs", "a/src/common/x.rs", "tests/helpers/x.txt"]
        {
            assert!(name(bad).is_some(), "{bad}");
        }
        assert_eq!(name("a/src/model.rs"), None);
        assert_eq!(name("docs/common.md"), None);
        assert_eq!(machine_paths("a", "x\nsee /there/crates/b\n", "/there/").len(), 1);
        assert_eq!(machine_paths("a", "/there is a path\n", "/there/").len(), 0);
        let files: Vec<String> =
            TOP.iter().map(ToString::to_string).chain([".loon/a".into(), "stray".into()]).collect();
        assert_eq!(
            top(&files),
            ["stray: does not belong at the top level", ".ci: is missing at the top level"]
        );
    }
}
