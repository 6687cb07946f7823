//! Custom commands: prompts that a person keeps in files and sends by name. A file is words with
//! places for arguments: nothing in it is executed, and it names no file that is read.

mod template;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use loon_api::{Command, CustomCommand, ErrorCode, ErrorInfo};

use crate::frontmatter::Definition;
use crate::text_file::{self, one_line};

/// Most entries of one place looked at.
const MAX_ENTRIES: usize = 2_000;

/// Most commands taken from one place.
const MAX_COMMANDS: usize = 200;

/// How far below its place the file of a command may lie.
const MAX_DEPTH: usize = 4;

/// Longest description and hint, in characters.
const MAX_WORDS: usize = 200;

/// A command with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Custom {
    listed: CustomCommand,
    body: String,
}

/// All custom commands, and what stood in the way of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Customs {
    customs: Vec<Custom>,
    unusable: Vec<String>,
}

impl Customs {
    /// The commands by name, and files that are none, each with the reason.
    pub(crate) fn listed(self) -> (Vec<CustomCommand>, Vec<String>) {
        (self.customs.into_iter().map(|custom| custom.listed).collect(), self.unusable)
    }

    /// The text that a command stands for.
    pub(crate) fn expand(&self, name: &str, arguments: &str) -> Result<String, ErrorInfo> {
        let shown: String = one_line(name).chars().take(80).collect();
        let Some(custom) = self.customs.iter().find(|custom| custom.listed.name == name) else {
            let message = format!("There is no custom command /{shown}.");
            let last = name.rsplit(':').next().filter(|last| !last.is_empty());
            let about_it = |file: &&String| last.is_some_and(|last| file.contains(last));
            let files = self.unusable.iter().filter(about_it).cloned();
            let error = ErrorInfo::new(ErrorCode::NotFound, message);
            let own = "Write one as .loon/commands/NAME.md.".to_owned();
            return Err(files.take(5).chain([own]).fold(error, ErrorInfo::hint));
        };
        let text = template::fill(&custom.body, arguments.trim());
        if text.trim().is_empty() {
            let message = format!("The command /{shown} has no text.");
            let hint = format!("Write what it should say into {}.", custom.listed.origin);
            return Err(ErrorInfo::new(ErrorCode::Invalid, message).hint(hint));
        }
        Ok(text)
    }

    /// Adds a command that outweighs all before it.
    fn add(&mut self, custom: Custom) {
        match self.customs.iter_mut().find(|other| other.listed.name == custom.listed.name) {
            Some(weaker) => *weaker = custom,
            None => self.customs.push(custom),
        }
    }
}

/// Reads the commands in the `commands` folders of `definitions`, of which later ones outweigh earlier
/// ones, as they are now. `cwd` is the session's folder.
pub(crate) fn read_customs(cwd: &Path, definitions: &[PathBuf]) -> Customs {
    let mut found = Customs::default();
    for definition in definitions {
        let within = (definition.parent() == Some(cwd)).then_some(cwd);
        Place { folder: definition.join("commands"), within }.read_into(&mut found);
    }
    found.customs.sort_by(|a, b| a.listed.name.cmp(&b.listed.name));
    found
}

/// What a front end that only has words sends for them: a custom command if they begin with the name
/// of one, else a prompt.
pub fn opening_command(cwd: &Path, definitions: &[PathBuf], text: String) -> Command {
    let Some(rest) = text.trim_start().strip_prefix('/') else { return Command::Prompt { text } };
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let known = is_name(name)
        && read_customs(cwd, definitions).customs.iter().any(|it| it.listed.name == name);
    if !known {
        return Command::Prompt { text };
    }
    let (name, arguments) = (name.to_owned(), arguments.trim().to_owned());
    Command::Custom { name, arguments, steer: false }
}

/// One folder of commands.
struct Place<'a> {
    folder: PathBuf,
    /// The session's folder, if this place belongs to it: nothing outside of it is read.
    within: Option<&'a Path>,
}

impl Place<'_> {
    fn read_into(&self, found: &mut Customs) {
        let (files, more) = self.files();
        if more {
            let shown = self.shown(&self.folder);
            found.unusable.push(format!(
                "{shown}: it holds more than {MAX_COMMANDS} commands or {MAX_ENTRIES} entries; the \
                 others are left out."
            ));
        }
        for path in files {
            match self.read(&path) {
                Ok(custom) => found.add(custom),
                Err(reason) => found.unusable.push(format!("{}: {reason}.", self.shown(&path))),
            }
        }
    }

    fn read(&self, path: &Path) -> Result<Custom, &'static str> {
        let name = self.name(path).ok_or(
            "its name may hold letters, digits, '-', '_' and '.', 64 at most, and begins with a letter",
        )?;
        let real = text_file::resolve(path, self.within)?;
        let text = text_file::read_definition(&real)?.text;
        let definition = Definition::parse(&text);
        let words = |field| words(definition.text(field).unwrap_or_default());
        let listed = CustomCommand {
            name,
            description: words("description"),
            argument_hint: words("argument-hint"),
            origin: self.shown(path),
        };
        Ok(Custom { listed, body: definition.body.to_owned() })
    }

    /// Folders below the place and the name of the file, parted by colons.
    fn name(&self, path: &Path) -> Option<String> {
        let relative = path.strip_prefix(&self.folder).ok()?.with_extension("");
        let names: Option<Vec<&str>> = relative.iter().map(|name| name.to_str()).collect();
        let name = names?.join(":");
        is_name(&name).then_some(name)
    }

    /// Files that should be commands, sorted, and whether there are more than may be. Folders that are
    /// links are not followed.
    fn files(&self) -> (Vec<PathBuf>, bool) {
        let mut files = Vec::new();
        if text_file::resolve(&self.folder, self.within).is_err() {
            return (files, false);
        }
        let mut folders = vec![(self.folder.clone(), 1)];
        let mut left = MAX_ENTRIES;
        while let Some((next, depth)) = folders.pop() {
            let Ok(entries) = next.read_dir() else { continue };
            for entry in entries.take(left).flatten() {
                left -= 1;
                let path = entry.path();
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                let is_text = path.extension().is_some_and(|extension| extension == "md");
                let is_readme = entry.file_name().eq_ignore_ascii_case("readme.md");
                if is_folder && !is_hidden && depth < MAX_DEPTH {
                    folders.push((path, depth + 1));
                } else if is_text && !is_folder && !is_hidden && !is_readme {
                    files.push(path);
                }
            }
        }
        files.sort();
        let more = files.len() > MAX_COMMANDS || left == 0;
        files.truncate(MAX_COMMANDS);
        (files, more)
    }

    fn shown(&self, path: &Path) -> String {
        text_file::shown(path, self.within)
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|ch: char| ch.is_ascii_alphabetic())
        && name.chars().all(|ch| ch.is_ascii_alphanumeric() || matches!(ch, '-' | '_' | '.' | ':'))
}

/// A text on one line of bounded length.
fn words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line(&line).chars().take(MAX_WORDS).collect()
}
