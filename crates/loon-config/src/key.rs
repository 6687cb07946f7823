//! Paths of settings: dotted names (`providers.lab.base_url`), quoted where TOML quotes them.

use serde_json::Value;
use toml_edit::Key;

use crate::error::ConfigError;

/// Reads a dotted path.
pub(crate) fn parse(path: &str) -> Result<Vec<String>, ConfigError> {
    Key::parse(path).map(|keys| keys.iter().map(|key| key.get().to_owned()).collect()).map_err(
        |error| ConfigError::Key {
            problem: format!("`{path}` is no key: {}", error.message()),
            fix: "write keys like session.model or providers.\"my.server\".kind".into(),
        },
    )
}

/// The path of `name` inside `parent`.
pub(crate) fn join(parent: &str, name: &str) -> String {
    let name = Key::new(name);
    let name = name.display_repr();
    if parent.is_empty() { name.into_owned() } else { format!("{parent}.{name}") }
}

/// The path of names.
pub(crate) fn path(names: &[String]) -> String {
    names.iter().fold(String::new(), |path, name| join(&path, name))
}

/// The path of the `index`-th element of `parent`.
pub(crate) fn element(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// The value under a path of names.
pub(crate) fn find<'a>(value: &'a Value, names: &[String]) -> Option<&'a Value> {
    names.iter().try_fold(value, |value, name| value.get(name))
}

/// The candidate that `name` was probably meant to be.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let bound = (name.chars().count() / 3).max(1);
    candidates
        .map(|candidate| {
            (distance(name, candidate), name.len().abs_diff(candidate.len()), candidate)
        })
        .filter(|(distance, ..)| *distance <= bound)
        .min()
        .map(|(.., candidate)| candidate)
}

/// Edits between two words, a swap of neighbours counting as one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let swap = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + swap);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_quote_what_is_not_bare() {
        assert_eq!(join("providers", "my.server"), "providers.\"my.server\"");
        assert_eq!(
            parse("providers.\"my.server\".kind").unwrap(),
            ["providers", "my.server", "kind"]
        );
        assert!(parse("a..b").is_err());
    }

    #[test]
    fn a_slip_of_the_finger_finds_its_word() {
        let words = ["model", "mode", "max_turns"];
        assert_eq!(nearest("modle", words.into_iter()), Some("model"));
        assert_eq!(nearest("max_turn", words.into_iter()), Some("max_turns"));
        assert_eq!(nearest("colour", words.into_iter()), None);
    }
}
