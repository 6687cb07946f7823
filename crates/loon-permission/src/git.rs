//! What is known of Git: its options before the sub-command, and which calls only look.

use crate::known::{has_option, is_option};
use crate::shell::{Word, WordKind};

/// Options before the sub-command that change neither what runs nor where.
const HARMLESS_GLOBAL: [&str; 9] = [
    "--no-pager",
    "-P",
    "--no-optional-locks",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
];

/// Options before the sub-command that take the next word.
const VALUED_GLOBAL: [&str; 8] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

/// Options of sub-commands that name a program or write a file; abbreviations count.
const NAMES_PROGRAM: [&str; 13] = [
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--ext-diff",
    "--textconv",
    "--output",
    "--output-directory",
    "--open-files-in-pager",
    "--config",
    "--template",
    "--extcmd",
    "--to-cmd",
    "--cc-cmd",
];

/// Sub-commands that only look, whatever their operands are.
const LOOKS: [&str; 11] = [
    "status",
    "diff",
    "log",
    "show",
    "blame",
    "describe",
    "ls-files",
    "ls-tree",
    "rev-parse",
    "rev-list",
    "shortlog",
];

/// How many words stand between `git` and its sub-command.
pub(crate) fn global_options(words: &[Word]) -> usize {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if !is_option(word) {
            break;
        }
        let valued = word.text().is_some_and(|text| VALUED_GLOBAL.contains(&text));
        at += if valued { 2 } else { 1 };
    }
    at.min(words.len()) - 1
}

/// The same command without its global options.
pub(crate) fn without_global_options(words: &[Word]) -> Vec<Word> {
    let mut short: Vec<Word> = words.iter().take(1).cloned().collect();
    short.extend(words.iter().skip(1 + global_options(words)).cloned());
    short
}

/// The command as an allow rule may read it: without harmless global options, or nothing if some
/// word could make it run another program than its sub-command says.
pub(crate) fn plain(words: &[Word]) -> Option<Vec<Word>> {
    let skipped = global_options(words);
    let globals = words.get(1..=skipped).unwrap_or_default();
    if !globals.iter().all(|word| word.text().is_some_and(|text| HARMLESS_GLOBAL.contains(&text))) {
        return None;
    }
    let short = without_global_options(words);
    let dynamic = |word: &Word| matches!(word.kind, WordKind::Dynamic { .. });
    if short.iter().skip(1).any(dynamic) {
        return None;
    }
    let arguments = short.get(2..).unwrap_or_default();
    if has_option(arguments, &NAMES_PROGRAM) {
        return None;
    }
    let helper = |word: &Word| word.text().is_some_and(names_helper);
    if arguments.iter().any(helper) {
        return None;
    }
    let names_program = match short.get(1).and_then(Word::text) {
        Some("clone" | "ls-remote") => has_option(arguments, &["-u", "-c"]),
        Some("grep") => has_option(arguments, &["-O"]),
        Some("rebase" | "difftool") => has_option(arguments, &["-x"]),
        _ => false,
    };
    (!names_program).then_some(short)
}

/// A call of Git that words before or after the sub-command make into something else.
pub(crate) fn is_twisted(words: &[Word]) -> bool {
    words.first().and_then(Word::text) == Some("git") && plain(words).is_none()
}

/// A remote such as `ext::sh -c id`.
fn names_helper(text: &str) -> bool {
    text.split_once("::").is_some_and(|(helper, _)| {
        !helper.is_empty()
            && helper.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
    })
}

/// Why Git would run a program that is not followed, if it would.
pub(crate) fn doubt(words: &[Word]) -> Option<String> {
    let globals = words.get(1..=global_options(words)).unwrap_or_default();
    let aliases = |word: &Word| {
        word.text().is_none_or(|text| {
            text.to_ascii_lowercase().trim_start_matches("-c").starts_with("alias.")
        })
    };
    if globals.iter().any(aliases) {
        return Some("an option gives `git` a new command".to_owned());
    }
    let short = without_global_options(words);
    let second = short.get(2).and_then(Word::text);
    let arguments = short.get(2..).unwrap_or_default();
    let runs = match short.get(1).and_then(Word::text)? {
        "filter-branch" => true,
        "submodule" => second == Some("foreach"),
        "bisect" => second == Some("run"),
        "rebase" => has_option(arguments, &["-x", "--exec"]),
        "difftool" => has_option(arguments, &["-x", "--extcmd"]),
        _ => false,
    };
    runs.then(|| "`git` runs another program in its own way".to_owned())
}

/// A call that changes nothing, with every word known.
pub(crate) fn only_looks(words: &[Word]) -> bool {
    let Some(short) = plain(words) else { return false };
    let arguments = short.get(2..).unwrap_or_default();
    // These read files that need not belong to the repository.
    if has_option(arguments, &["--no-index", "--contents"]) {
        return false;
    }
    let only = |known: &[&str]| {
        arguments.iter().all(|word| word.text().is_some_and(|text| known.contains(&text)))
    };
    match short.get(1).and_then(Word::text) {
        Some("branch") => {
            only(&["--list", "-l", "-a", "--all", "-r", "-v", "-vv", "--show-current"])
        }
        Some("remote") => only(&["-v", "--verbose"]),
        Some("stash") => only(&["list"]) && !arguments.is_empty(),
        Some("tag") => only(&["-l", "--list"]),
        Some(sub) => LOOKS.contains(&sub),
        None => false,
    }
}
