//! The reference of the command line: what `--help` says, of every command.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;

use crate::tree::Tree;

/// Where the page lies.
pub(super) const FILE: &str = "docs/reference/commands.md";

const HEAD: &str = "# Commands\n\n\
What `loon` and its commands say of themselves. Made by `cargo xtask reference`.\n";

/// The page, from a built `loon`.
pub(super) fn render(tree: &Tree, binary: &Path) -> Result<String> {
    let mut page = String::from(HEAD);
    section(tree, binary, &mut Vec::new(), &mut page)?;
    Ok(page)
}

/// The built `loon`, if it is there and no source of it is younger.
pub(super) fn fresh_binary(tree: &Tree) -> Option<PathBuf> {
    let modified = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let binary = tree.binary();
    let built = modified(&binary)?;
    let sources = tree.files.iter().filter(|file| file.starts_with("crates/"));
    let youngest = sources
        .filter_map(|file| modified(&tree.path(file)))
        .max()
        .unwrap_or(SystemTime::UNIX_EPOCH);
    (built > youngest).then_some(binary)
}

fn section(tree: &Tree, binary: &Path, names: &mut Vec<String>, page: &mut String) -> Result<()> {
    let mut words = names.clone();
    words.push("--help".into());
    let help = tree.ask(binary, &words)?;
    let title = std::iter::once("loon")
        .chain(names.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(" ");
    let text: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let _ = write!(page, "\n## `{title}`\n\n```text\n{}\n```\n", text.join("\n"));
    for name in commands(&help) {
        names.push(name.to_owned());
        section(tree, binary, names, page)?;
        names.pop();
    }
    Ok(())
}

/// The names in the list of commands of a help text.
fn commands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_off_a_help_text() {
        let help = "Loom\n\nUsage: loon\n\nCommands:\n  exec  Run one\n          prompt\n  demo  Watch\n  help  Print\n\nOptions:\n  -h  help\n";
        assert_eq!(commands(help), ["exec", "demo"]);
        assert!(commands("Usage: loon demo\n").is_empty());
    }
}
