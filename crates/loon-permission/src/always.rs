//! The rule that an "always" would write: neither wider nor narrower than the call.

use loon_api::{PermissionRule, RuleEffect};

use crate::git;
use crate::known::{base_name, is_option};
use crate::policy::{Judgement, Remedy};
use crate::rules::SHELL_TOOL;
use crate::shell::{Word, quote};
use crate::wrapper::Seen;

/// Programs that run code from their arguments, remove files, or change who runs: no prefix of such
/// a line says enough.
const NEVER: [&str; 40] = [
    "awk",
    "bash",
    "busybox",
    "chgrp",
    "chmod",
    "chown",
    "crontab",
    "dash",
    "dd",
    "doas",
    "env",
    "eval",
    "exec",
    "expect",
    "fish",
    "gawk",
    "install",
    "kill",
    "killall",
    "ksh",
    "ln",
    "mkfs",
    "mv",
    "osascript",
    "pkill",
    "rm",
    "rmdir",
    "rsync",
    "scp",
    "sh",
    "shred",
    "shutdown",
    "sudo",
    "systemctl",
    "tclsh",
    "toybox",
    "truncate",
    "unlink",
    "xargs",
    "zsh",
];

/// Interpreters: a script or a module can be named in a rule, code cannot.
const INTERPRETERS: [&str; 11] =
    ["bun", "deno", "lua", "node", "perl", "php", "python", "python3", "ruby", "Rscript", "tsx"];

/// Programs whose first word after the options says what they do.
const WITH_SUB_COMMAND: [&str; 34] = [
    "apt",
    "apt-get",
    "brew",
    "cargo",
    "conda",
    "dotnet",
    "flutter",
    "gem",
    "git",
    "go",
    "gradle",
    "helm",
    "hg",
    "jj",
    "just",
    "kubectl",
    "make",
    "meson",
    "mix",
    "mvn",
    "ninja",
    "npm",
    "npx",
    "nx",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "rustup",
    "terraform",
    "turbo",
    "uv",
    "yarn",
    "zig",
];

/// Sub-commands of which the next word says what they do.
const WITH_OPERAND: [(&str, &str); 30] = [
    ("cargo", "install"),
    ("cargo", "xtask"),
    ("docker", "compose"),
    ("gh", "issue"),
    ("gh", "pr"),
    ("gh", "repo"),
    ("gh", "run"),
    ("git", "bisect"),
    ("git", "fetch"),
    ("git", "notes"),
    ("git", "pull"),
    ("git", "push"),
    ("git", "remote"),
    ("git", "stash"),
    ("git", "submodule"),
    ("git", "worktree"),
    ("go", "mod"),
    ("go", "run"),
    ("go", "tool"),
    ("npm", "exec"),
    ("npm", "run"),
    ("pip", "install"),
    ("pip3", "install"),
    ("pnpm", "exec"),
    ("pnpm", "run"),
    ("poetry", "run"),
    ("uv", "pip"),
    ("uv", "run"),
    ("yarn", "run"),
    ("yarn", "workspace"),
];

/// Calls of Git that lose work: only the whole line says enough.
const WHOLE_GIT: [&str; 9] =
    ["checkout", "clean", "config", "filter-branch", "rebase", "reset", "restore", "rm", "switch"];

/// Programs for which any arguments mean the same kind of work.
const ALONE: [&str; 18] = [
    "actionlint",
    "biome",
    "black",
    "clippy-driver",
    "eslint",
    "gofmt",
    "isort",
    "jest",
    "mypy",
    "prettier",
    "pyright",
    "pytest",
    "ruff",
    "rustfmt",
    "shellcheck",
    "tox",
    "tsc",
    "vitest",
];

/// The single rule that everything undecided in a judgement asks for.
pub(crate) fn one_rule(judgement: &Judgement) -> Option<PermissionRule> {
    if judgement.effect != RuleEffect::Ask {
        return None;
    }
    let mut undecided = judgement.parts.iter().filter(|part| part.effect == RuleEffect::Ask);
    let Remedy::Allow { rule } = &undecided.next()?.remedy else { return None };
    let same = |remedy: &Remedy| matches!(remedy, Remedy::Allow { rule: other } if other == rule);
    undecided.all(|part| same(&part.remedy)).then(|| rule.clone())
}

/// The allow rule for a command, if a prefix of it is of the right width.
pub(crate) fn for_command(words: &[Word], seen: &Seen) -> Option<PermissionRule> {
    // The last layer that begins inside the command is what runs in the end.
    let inner = words.get(seen.reach.saturating_sub(1)..)?;
    if !seen.doubts.is_empty() || words.iter().any(Word::is_substitution) {
        return None;
    }
    // Every wrapper on the way must be one that a rule may name.
    let wrapped = seen.layers.iter().filter_map(|layer| layer.first());
    let refused = |word: &Word| word.text().is_none_or(|text| NEVER.contains(&base_name(text)));
    if wrapped.into_iter().any(refused) || !seen.scripts.is_empty() {
        return None;
    }
    if seen.layers.iter().any(|layer| git::is_twisted(layer)) {
        return None;
    }
    let length = width(inner)?;
    let taken = words.get(..seen.reach.saturating_sub(1) + length)?;
    let texts: Option<Vec<String>> = taken.iter().map(|word| word.text().map(quote)).collect();
    Some(PermissionRule {
        tool: SHELL_TOOL.to_owned(),
        path_prefix: None,
        command_prefix: Some(texts?.join(" ")),
        host: None,
    })
}

/// How many of these words a rule should name.
fn width(words: &[Word]) -> Option<usize> {
    let program = base_name(words.first()?.text()?);
    let arguments = words.get(1..).unwrap_or_default();
    if INTERPRETERS.contains(&program) {
        return interpreter_width(arguments).map(|length| 1 + length);
    }
    if ALONE.contains(&program) {
        return Some(1);
    }
    let Some(first) = arguments.iter().position(|word| !is_modifier(word)) else {
        return Some(words.len());
    };
    let sub_command = arguments.get(first).and_then(Word::text).unwrap_or_default();
    if program == "git" && WHOLE_GIT.contains(&sub_command) {
        return Some(words.len());
    }
    if WITH_OPERAND.contains(&(program, sub_command)) {
        let rest = arguments.get(first + 1..).unwrap_or_default();
        let operand = rest.iter().position(|word| !is_option(word));
        return Some(operand.map_or(words.len(), |at| first + at + 3));
    }
    if WITH_SUB_COMMAND.contains(&program) {
        return Some(first + 2);
    }
    Some(words.len())
}

/// An option, or a toolchain such as `+nightly`.
fn is_modifier(word: &Word) -> bool {
    is_option(word) || word.text().is_some_and(|text| text.starts_with('+'))
}

/// A script, or a module after `-m`; nothing where code is given or read.
fn interpreter_width(arguments: &[Word]) -> Option<usize> {
    let first = arguments.first()?.text()?;
    match first {
        "-m" | "run" | "test" | "task" => arguments.get(1).map(|_| 2),
        _ if first.starts_with('-') => None,
        _ => Some(1),
    }
}
