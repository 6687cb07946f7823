//! Shell lines: one parse into all the simple commands a line could run, wherever they stand.
//!
//! The parser reads the grammar of bash and nothing more lenient: what it does not fully know
//! becomes a *doubt*, and a doubt is asked. It would rather stop than guess, because a word that
//! bash reads differently is a program that nobody judged. It keeps the commands found before it
//! stopped, so that a deny rule still meets them.

mod compound;
mod grammar;
mod redirect;
#[cfg(test)]
mod tests;
mod word;

use grammar::Parser;

/// Longest line that is read, in bytes.
pub const MAX_LINE: usize = 32 * 1024;

/// Deepest nesting of groups, substitutions and expansions that is followed.
pub const MAX_DEPTH: usize = 32;

/// Everything one line could do, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Every simple command, from all nested places, inner ones first.
    pub commands: Vec<SimpleCommand>,
    /// What was not understood, as phrases without a final stop. Empty: the line is explained.
    pub doubts: Vec<String>,
    /// How many chains of commands were numbered.
    chains: usize,
}

/// One simple command: a program with its words, or assignments or redirects standing alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Assignments before the program, or standing alone, or made by a loop.
    pub assignments: Vec<Assignment>,
    /// Redirects to and from files. Copies of descriptors and here-documents are not among them.
    pub redirects: Vec<Redirect>,
    /// The command as it was written.
    pub source: String,
    /// Where in the line it stands.
    pub place: Place,
}

/// Where a command stands, as far as it matters for a change of folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Commands with the same number follow each other by `&&`.
    pub chain: usize,
    /// What follows in its chain runs only if this command succeeded.
    pub decides_chain: bool,
    /// Stands in a loop or a function: it may run more than once, or later.
    pub repeated: bool,
}

/// `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Name of the variable.
    pub name: String,
    /// Its value.
    pub value: Word,
}

/// A redirect to or from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The file is made or changed; otherwise it is read.
    pub writes: bool,
    /// The file.
    pub target: Word,
}

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it was written.
    pub source: String,
    /// What it stands for.
    pub kind: WordKind,
}

/// What a word stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// Exactly this text.
    Literal(String),
    /// The home folder followed by this text, which is empty or begins with `/`.
    Home(String),
    /// Known only when it runs: variables, globs, braces, substitutions.
    Dynamic {
        /// A command runs to make the word.
        substitution: bool,
    },
}

impl Word {
    /// A word that stands for itself.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { source: text.clone(), kind: WordKind::Literal(text) }
    }

    /// The text, where it is fully known.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            WordKind::Literal(text) => Some(text),
            WordKind::Home(_) | WordKind::Dynamic { .. } => None,
        }
    }

    /// A command runs to make this word.
    pub fn is_substitution(&self) -> bool {
        matches!(self.kind, WordKind::Dynamic { substitution: true })
    }
}

/// Reads a line as bash would. Never fails: what it cannot explain is among the doubts.
pub fn parse(line: &str) -> Script {
    parse_nested(line, 0)
}

/// Reads a line that stands inside `depth` others.
pub(crate) fn parse_nested(line: &str, depth: usize) -> Script {
    let mut script = Script::default();
    if line.len() > MAX_LINE {
        script.doubt(format!("the line is longer than {MAX_LINE} bytes"));
        return script;
    }
    // Bash uses some control characters as marks of its own, so their meaning is not the written one.
    if line.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        script.doubt("the line holds control characters");
        return script;
    }
    Parser::new(line, depth, &mut script).whole();
    script
}

impl Script {
    pub(crate) fn doubt(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.doubts.contains(&what) {
            self.doubts.push(what);
        }
    }
}

/// A name that only the line itself gives a meaning: setting it changes no program.
pub(crate) fn is_plain_variable(name: &str) -> bool {
    let known_to_programs = name.ends_with("_proxy") || name.starts_with("npm_");
    let known_to_bash = matches!(name, "auto_resume" | "histchars");
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !known_to_programs
        && !known_to_bash
}

/// Writes a text as one word that the shell reads back unchanged.
pub fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,~^".contains(c);
    let home = text.starts_with('~') || text.contains(":~") || text.contains("=~");
    if !text.is_empty() && !home && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
