//! The checks of the house. Each gives the list of what is wrong; the tests below run them all, so
//! that the ordinary test command does.

mod files;
mod floors;
mod licences;

use anyhow::{Result, bail};

use crate::generate;
use crate::tree::Tree;

/// Something that is wrong, with its place.
type Faults = Vec<String>;

/// Runs all checks.
pub(crate) fn report(tree: &Tree) -> Result<String> {
    let mut faults = files::check(tree)?;
    faults.extend(floors::check(tree, &tree.metadata()?)?);
    faults.extend(licences::check(tree)?);
    faults.extend(generate::stale(tree)?);
    if faults.is_empty() {
        Ok(format!("{} files are in order", tree.files.len()))
    } else {
        bail!("{}", faults.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(faults: &[String]) {
        assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    }

    #[test]
    fn files_are_small_well_named_and_where_they_belong() {
        none(&files::check(&Tree::here().unwrap()).unwrap());
    }

    #[test]
    fn imports_only_go_down() {
        let tree = Tree::here().unwrap();
        none(&floors::check(&tree, &tree.metadata().unwrap()).unwrap());
    }

    #[test]
    fn licences_are_permissive_and_versions_single() {
        none(&licences::check(&Tree::here().unwrap()).unwrap());
    }

    #[test]
    fn generated_files_are_fresh() {
        none(&generate::stale(&Tree::here().unwrap()).unwrap());
    }
}
