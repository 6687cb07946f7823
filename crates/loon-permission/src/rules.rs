//! Rules made ready: each with what it matches in one form.

use std::path::{Path, PathBuf};

use loon_api::{PathAccess, PermissionRule, RuleEffect, RuleOrigin};

use crate::path::Spot;
use crate::shell::{self, Word, WordKind};
use crate::{Resolve, git, host, known, path};

/// Tools whose rules also speak of files that a shell line changes, and the strict ones of files
/// that any tool changes.
const WRITING_TOOLS: [&str; 3] = ["write", "edit", "apply_patch"];

/// The same for files that are read.
const READING_TOOLS: [&str; 2] = ["read", "read_many"];

/// The tool whose rules speak of commands, whichever tool starts them.
pub(crate) const SHELL_TOOL: &str = "bash";

/// How names of tools of MCP servers begin. Rules about them may end in `*`.
const REMOTE: &str = "mcp__";

/// A rule with its matchers parsed.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) effect: RuleEffect,
    pub(crate) written: PermissionRule,
    pub(crate) origin: RuleOrigin,
    folder: Option<PathBuf>,
    command: Option<Prefix>,
    host: Option<String>,
}

/// Words that the words of a command begin with.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    words: Vec<String>,
    /// The last word may go on.
    open: bool,
}

/// Whether a rule speaks of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Yes,
    No,
    /// It depends on words that are known only when the command runs.
    Perhaps,
}

impl Rule {
    pub(crate) fn new(
        effect: RuleEffect,
        rule: PermissionRule,
        origin: RuleOrigin,
        root: &Path,
        home: Option<&Path>,
    ) -> Self {
        let folder = rule.path_prefix.as_deref().map(|text| path::from_rule(text, root, home));
        let command = rule.command_prefix.as_deref().map(Prefix::parse);
        let host = rule.host.as_deref().and_then(host::of_rule);
        Self { effect, written: rule, origin, folder, command, host }
    }

    /// The rule about the same place in a copy of the folder `from`, if it is about one there.
    pub(crate) fn moved(&self, from: &Path, to: &Path) -> Option<Self> {
        let place = self.folder.as_ref()?.strip_prefix(from).ok()?;
        Some(Self { folder: Some(to.join(place)), ..self.clone() })
    }

    /// It speaks of every call of its tool.
    pub(crate) fn is_whole_tool(&self) -> bool {
        self.matchers() == 0
    }

    fn matchers(&self) -> usize {
        usize::from(self.written.path_prefix.is_some())
            + usize::from(self.written.command_prefix.is_some())
            + usize::from(self.written.host.is_some())
    }

    /// A strict rule with several matchers holds if one of them matches; an allow rule never does.
    fn is_usable(&self) -> bool {
        self.effect > RuleEffect::Allow || self.matchers() <= 1
    }

    /// The rule names the tool, all tools of its MCP server, or every tool.
    pub(crate) fn names(&self, tool: &str) -> bool {
        let written = self.written.tool.as_str();
        let of_server = || {
            let stem = written.strip_suffix('*').filter(|stem| stem.starts_with(REMOTE));
            stem.is_some_and(|stem| tool.starts_with(stem))
        };
        written == "*" || written == tool || of_server()
    }

    /// The rule speaks of commands that this tool starts.
    pub(crate) fn names_for_command(&self, tool: &str) -> bool {
        self.names(tool) || (self.written.tool == SHELL_TOOL && self.command.is_some())
    }

    /// The rule speaks of files that this tool touches so. `by_shell`: the file is named in a line.
    pub(crate) fn names_for_path(&self, tool: &str, access: PathAccess, by_shell: bool) -> bool {
        let kin: &[&str] = match access {
            PathAccess::Write => &WRITING_TOOLS,
            PathAccess::Read => &READING_TOOLS,
        };
        let whole_of_kin = self.is_whole_tool() && self.written.tool != kin[0];
        let strict = self.effect > RuleEffect::Allow && self.folder.is_some();
        let by_kin = kin.contains(&self.written.tool.as_str()) && !whole_of_kin;
        self.names(tool) || (by_kin && (by_shell || strict))
    }

    /// The folder or file that this rule speaks of where the tool reads.
    pub(crate) fn hides_from(&self, tool: &str) -> Option<&Path> {
        self.folder.as_deref().filter(|_| self.names_for_path(tool, PathAccess::Read, false))
    }

    /// `deep`: everything below the path is touched as well.
    pub(crate) fn matches_path(&self, spot: &Spot, deep: bool, resolve: &Resolve<'_>) -> bool {
        let Some(folder) = &self.folder else { return false };
        if !self.is_usable() {
            return false;
        }
        let real = resolve(folder);
        if self.effect == RuleEffect::Allow {
            return spot.real.starts_with(folder) || spot.real.starts_with(&real);
        }
        let meets = |path: &Path| {
            [folder, &real]
                .into_iter()
                .any(|folder| path.starts_with(folder) || (deep && folder.starts_with(path)))
        };
        meets(&spot.real) || meets(&spot.named)
    }

    /// Whether this strict rule speaks of a command, in any of its layers.
    pub(crate) fn meets_command(&self, layers: &[Vec<Word>]) -> Match {
        let Some(prefix) = &self.command else { return Match::No };
        layers.iter().fold(Match::No, |found, layer| match (found, prefix.meets(layer)) {
            (Match::Yes, _) | (_, Match::Yes) => Match::Yes,
            (Match::Perhaps, _) | (_, Match::Perhaps) => Match::Perhaps,
            _ => Match::No,
        })
    }

    /// Whether this allow rule covers a command of which it must speak of `reach` words.
    pub(crate) fn covers_command(&self, words: &[Word], reach: usize) -> bool {
        let Some(prefix) = &self.command else { return false };
        if !self.is_usable() || words.iter().any(Word::is_substitution) {
            return false;
        }
        let is_git = words.first().and_then(Word::text) == Some("git");
        let plain = if is_git { git::plain(words) } else { Some(words.to_vec()) };
        plain.is_some_and(|words| prefix.covers(&words, reach))
    }

    pub(crate) fn matches_host(&self, host: &str) -> bool {
        // A strict rule whose host cannot be read must not fall away: it holds for every host.
        let unreadable = self.written.host.is_some() && self.host.is_none();
        let strict = self.effect > RuleEffect::Allow;
        self.is_usable() && (self.host.as_deref() == Some(host) || (unreadable && strict))
    }

    /// A line that is not understood could hide what this strict rule speaks of.
    pub(crate) fn could_be_hidden(&self, tool: &str) -> bool {
        let by_command = self.command.is_some() && self.names_for_command(tool);
        let by_path = self.folder.is_some()
            && [PathAccess::Read, PathAccess::Write]
                .into_iter()
                .any(|access| self.names_for_path(tool, access, true));
        self.effect > RuleEffect::Allow && (by_command || by_path)
    }

    /// A path rule that files of this access could fall under.
    pub(crate) fn guards_paths(&self, tool: &str, access: PathAccess) -> bool {
        self.effect > RuleEffect::Allow
            && self.folder.is_some()
            && self.names_for_path(tool, access, true)
    }
}

impl Prefix {
    /// Reads the words of a rule as the shell would; what that does not explain is split at blanks.
    fn parse(text: &str) -> Self {
        let script = shell::parse(text);
        let words = match script.commands.as_slice() {
            [only]
                if script.doubts.is_empty()
                    && only.assignments.is_empty()
                    && only.redirects.is_empty() =>
            {
                only.words.clone()
            }
            _ => text.split_whitespace().map(Word::literal).collect(),
        };
        let mut texts: Vec<String> =
            words.iter().map(|word| word.text().unwrap_or(&word.source).to_owned()).collect();
        // `git push *` means the same as `git push`; `ls /etc*` any word that begins so.
        let star = words.last().is_some_and(|word| written(word).is_none());
        let mut open = false;
        if star && let Some(stem) = texts.last().and_then(|last| last.strip_suffix('*')) {
            let stem = stem.to_owned();
            texts.pop();
            if !stem.is_empty() {
                texts.push(stem);
                open = true;
            }
        }
        Self { words: texts, open }
    }

    fn fits(&self, index: usize, text: &str) -> bool {
        let Some(wanted) = self.words.get(index) else { return false };
        if self.open && index + 1 == self.words.len() {
            text.starts_with(wanted.as_str())
        } else {
            text == wanted
        }
    }

    /// The strict reading: folders before the program do not hide it.
    fn meets(&self, words: &[Word]) -> Match {
        for index in 0..self.words.len() {
            let Some(word) = words.get(index) else { return Match::No };
            let Some(text) = written(word) else { return Match::Perhaps };
            let fits =
                self.fits(index, text) || (index == 0 && self.fits(index, known::base_name(text)));
            if !fits {
                return Match::No;
            }
        }
        Match::Yes
    }

    /// The narrow reading: every word is known, and the prefix reaches far enough.
    fn covers(&self, words: &[Word], reach: usize) -> bool {
        !self.words.is_empty()
            && self.words.len() >= reach
            && (0..self.words.len())
                .all(|i| words.get(i).and_then(written).is_some_and(|text| self.fits(i, text)))
    }
}

/// The text that a rule names a word by.
fn written(word: &Word) -> Option<&str> {
    match &word.kind {
        WordKind::Literal(text) => Some(text),
        WordKind::Home(_) => Some(&word.source),
        WordKind::Dynamic { .. } => None,
    }
}
