//! Licences and versions of everything the workspace is built from.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::Faults;
use crate::tree::Tree;

/// Licences that ask for nothing but their text and a name.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that are there in more than one version, and why that is not ours to mend.
const TWICE: [(&str, &str); 14] = [
    ("base64", "the terminal library's clipboard writer is one behind"),
    ("bit-set", "proptest is one ahead of the regex engines"),
    ("bit-vec", "comes with bit-set"),
    ("darling", "only at build time: the shell parser's cache is behind"),
    ("darling_core", "comes with darling"),
    ("darling_macro", "comes with darling"),
    ("fancy-regex", "the highlighter is behind the schema validator"),
    ("getrandom", "ahash is one behind"),
    ("hashbrown", "the shell parser's cache is behind"),
    ("rand", "the model checker of the kernel's tests is one behind"),
    ("rand_core", "comes with rand"),
    ("similar", "the snapshot tests are one behind"),
    ("syn", "only at build time, between two generations"),
    ("vte", "the snapshot tests are behind the terminal emulator"),
];

/// A package that is built: its name, version and licence.
type Package = (String, String, String);

/// Checks every package that is built on this machine.
pub(super) fn check(tree: &Tree) -> Result<Faults> {
    Ok(judge(&packages(&tree.dependencies()?)))
}

/// Reads lines of the form `NAME vVERSION ...|LICENCE`.
fn packages(listing: &str) -> BTreeSet<Package> {
    listing
        .lines()
        .filter_map(|line| {
            let (package, licence) = line.trim_end_matches(" (*)").rsplit_once('|')?;
            let mut words = package.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            Some((name.to_owned(), version.to_owned(), licence.to_owned()))
        })
        .collect()
}

fn judge(packages: &BTreeSet<Package>) -> Faults {
    let mut faults = Faults::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, version, licence) in packages {
        versions.entry(name).or_default().push(version);
        if licence.is_empty() {
            faults.push(format!("{name} {version}: names no licence"));
        } else if !is_allowed(licence) {
            faults.push(format!("{name} {version}: licence {licence} is not on the list"));
        }
    }
    let known: BTreeMap<&str, &str> = TWICE.into_iter().collect();
    for (name, versions) in &versions {
        if versions.len() > 1 && !known.contains_key(name) {
            let versions = versions.join(" and ");
            faults.push(format!(
                "{name}: is built in versions {versions}; use one, or say in TWICE why not"
            ));
        }
    }
    for name in
        known.keys().filter(|name| versions.get(**name).is_none_or(|versions| versions.len() < 2))
    {
        faults.push(format!("{name}: is built in one version now; take it out of TWICE"));
    }
    faults
}

/// Judges an SPDX expression: one side of an `OR` is enough, `AND` needs both.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let allowed = any(&mut words);
    allowed && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>) -> bool {
    let mut allowed = all(words);
    while words.next_if_eq(&"OR").is_some() {
        allowed |= all(words);
    }
    allowed
}

fn all(words: &mut Words<'_>) -> bool {
    let mut allowed = one(words);
    while words.next_if_eq(&"AND").is_some() {
        allowed &= one(words);
    }
    allowed
}

fn one(words: &mut Words<'_>) -> bool {
    match words.next() {
        Some("(") => {
            let allowed = any(words);
            allowed && words.next() == Some(")")
        }
        Some(name) if words.next_if_eq(&"WITH").is_some() => {
            let exception = words.next().unwrap_or_default();
            ALLOWED.contains(&format!("{name} WITH {exception}").as_str())
        }
        Some(name) => ALLOWED.contains(&name),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_judged_as_written() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in [
            "GPL-3.0",
            "MIT AND MPL-2.0",
            "MIT AND (GPL-2.0 OR MPL-2.0)",
            "",
            "MIT MIT",
            "GPL-2.0 WITH Classpath-exception-2.0",
        ] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }

    #[test]
    fn listings_are_read_and_judged() {
        let read = packages(
            "a v1.0.0|MIT\na v2.0.0 (proc-macro)|MIT (*)\nb v1.0.0 (/somewhere)|\nc v1.0.0|GPL-3.0\n",
        );
        let faults: Faults =
            judge(&read).into_iter().filter(|fault| !fault.contains("take it out")).collect();
        assert_eq!(
            faults,
            [
                "b 1.0.0: names no licence",
                "c 1.0.0: licence GPL-3.0 is not on the list",
                "a: is built in versions 1.0.0 and 2.0.0; use one, or say in TWICE why not",
            ]
        );
    }
}
