//! The table of floors in docs/ARCHITECTURE.md, held against what the crates really import.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata};

use super::Faults;
use crate::tree::Tree;

const PAGE: &str = "docs/ARCHITECTURE.md";
/// Serves tests: any crate may use it there, none elsewhere.
const TESTKIT: &str = "loon-testkit";

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    floor: u32,
    /// `None`: all.
    may_import: Option<BTreeSet<String>>,
}

/// Compares the table with the workspace.
pub(super) fn check(tree: &Tree, metadata: &Metadata) -> Result<Faults> {
    let page = tree.text(PAGE)?.with_context(|| format!("{PAGE} is no text"))?;
    let (rows, mut faults) = parse(&page);
    let members: BTreeMap<&str, _> = metadata
        .workspace_packages()
        .into_iter()
        .map(|package| (package.name.as_str(), package))
        .collect();
    for name in rows.keys().filter(|name| !members.contains_key(name.as_str())) {
        faults.push(format!("{PAGE}: {name} is on a floor and not in the workspace"));
    }
    for (name, package) in &members {
        let outside = !package.manifest_path.components().any(|part| part.as_str() == "crates");
        let row = rows.get(*name);
        if row.is_none() && !outside && *name != TESTKIT {
            faults.push(format!("{name}: is on no floor of {PAGE}"));
        }
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| members.contains_key(dependency.name.as_str()))
        {
            let for_tests = dependency.kind == DependencyKind::Development;
            if dependency.name == TESTKIT && !for_tests {
                faults.push(format!("{name}: imports {TESTKIT} outside of tests"));
            }
            let Some(row) = row.filter(|_| dependency.name != TESTKIT) else { continue };
            faults.extend(import(name, row, &dependency.name, for_tests, &rows));
        }
    }
    Ok(faults)
}

fn import(
    name: &str,
    row: &Row,
    other: &str,
    for_tests: bool,
    rows: &BTreeMap<String, Row>,
) -> Option<String> {
    let listed = row.may_import.as_ref().is_none_or(|names| names.contains(other));
    let below = rows.get(other).is_some_and(|other| other.floor < row.floor);
    if !below {
        Some(format!("{name}: imports {other}, which is not on a floor below"))
    } else if !listed && !for_tests {
        Some(format!("{name}: imports {other}, which its row in {PAGE} does not list"))
    } else {
        None
    }
}

/// Reads the rows: floor, crate, owns, may import, must never.
fn parse(page: &str) -> (BTreeMap<String, Row>, Faults) {
    let mut rows = BTreeMap::new();
    let mut faults = Faults::new();
    for (index, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, floor, name, _, may_import, _, _] = cells.as_slice() else { continue };
        let Ok(floor) = floor.parse::<u32>() else { continue };
        let Some(name) = name.split('`').nth(1) else {
            faults.push(format!("{PAGE}:{}: the row names no crate", index + 1));
            continue;
        };
        let may_import = match *may_import {
            "all" => None,
            "-" | "–" => Some(BTreeSet::new()),
            list => Some(list.split(',').map(|name| format!("loon-{}", name.trim())).collect()),
        };
        rows.insert(name.to_owned(), Row { floor, may_import });
    }
    if rows.is_empty() {
        faults.push(format!("{PAGE}: has no table of floors"));
    }
    (rows, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_upward_imports_seen() {
        let (rows, faults) = parse(
            "| floor | crate | owns | may import | must never |\n|---|---|---|---|---|\n| 0 | `loon-api` | words | – | io |\n| 1 | `loon-exec` | starts | api | know |\n| 1 | `loon-config` | settings | api | know |\n| 2 | `loon` (`crates/loon-cli`) | wiring | all | hold |\n",
        );
        assert!(faults.is_empty());
        assert_eq!(rows["loon"], Row { floor: 2, may_import: None });
        assert_eq!(rows["loon-exec"].may_import, Some(BTreeSet::from(["loon-api".to_owned()])));
        let fault = |name: &str, other: &str, tests| import(name, &rows[name], other, tests, &rows);
        assert_eq!(fault("loon", "loon-exec", false), None);
        assert_eq!(fault("loon-exec", "loon-api", false), None);
        assert!(fault("loon-exec", "loon-config", false).unwrap().contains("floor below"));
        assert!(fault("loon-api", "loon-exec", true).unwrap().contains("floor below"));
    }
}
