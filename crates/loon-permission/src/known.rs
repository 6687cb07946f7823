//! What is known of programs: which only look, which may run others, which words are harmless.

use crate::git;
use crate::shell::Word;

/// Variables that change how output looks and never which program runs.
const HARMLESS_VARIABLES: [&str; 24] = [
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "DEBUG",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
    "VERBOSE",
];

/// Builtins that run text as code, or change how later text is read.
const READS_CODE: [&str; 13] = [
    ".", "alias", "bind", "compgen", "complete", "enable", "eval", "fc", "history", "let", "shopt",
    "source", "unalias",
];

/// Builtins that take names of variables, whose index bash evaluates as code.
const TAKES_NAMES: [&str; 11] = [
    "declare",
    "export",
    "getopts",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "typeset",
    "unset",
    "wait",
];

/// Programs that run a program named in their arguments in a way that is not followed.
const RUNS_OTHERS: [&str; 27] = [
    "at",
    "batch",
    "bwrap",
    "chroot",
    "chrt",
    "dbus-run-session",
    "entr",
    "expect",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "ltrace",
    "nsenter",
    "parallel",
    "proot",
    "rlwrap",
    "runuser",
    "script",
    "setpriv",
    "ssh",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-run",
    "unshare",
    "xvfb-run",
];

/// Programs that only look at the files named in their operands.
const LOOKERS: [&str; 15] = [
    "basename", "cat", "cmp", "cut", "dirname", "head", "ls", "nl", "pwd", "readlink", "realpath",
    "stat", "tail", "tr", "wc",
];

/// Setting this variable for one command changes no program.
pub(crate) fn is_harmless_variable(name: &str) -> bool {
    HARMLESS_VARIABLES.contains(&name)
}

/// Bash runs the value of this variable, or reads later text by it.
pub(crate) fn steers_bash(name: &str) -> bool {
    matches!(name, "ENV" | "IFS" | "PROMPT_COMMAND" | "PS0" | "PS1" | "PS2" | "PS4" | "SHELLOPTS")
        || name.starts_with("BASH")
}

/// What `cd` and `~` mean depends on this variable.
pub(crate) fn steers_paths(name: &str) -> bool {
    matches!(name, "CDPATH" | "HOME" | "OLDPWD" | "PWD" | "DIRSTACK")
}

/// The name of a program without the folders before it.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Why a program with these words cannot be judged by its words, if it cannot.
pub(crate) fn doubt(words: &[Word]) -> Option<String> {
    let first = words.first()?;
    let Some(program) = first.text() else {
        return Some(format!("which program `{}` names is known only when it runs", first.source));
    };
    if program.is_empty() {
        return Some("the name of a program is empty".to_owned());
    }
    let arguments = words.get(1..).unwrap_or_default();
    let name = base_name(program);
    if READS_CODE.contains(&name) {
        return Some(format!("`{name}` runs text as code or changes how text is read"));
    }
    if RUNS_OTHERS.contains(&name) {
        return Some(format!("`{name}` runs another program in its own way"));
    }
    let odd_name = |word: &Word| {
        word.text().is_none_or(|text| {
            let name = text.split(['=', '+']).next().unwrap_or_default();
            text.contains('[') || steers_bash(name) || steers_paths(name)
        })
    };
    let takes_odd_name = match name {
        "printf" | "test" | "[" => {
            arguments.iter().any(|word| word.text().is_some_and(|text| text.starts_with("-v")))
        }
        _ if TAKES_NAMES.contains(&name) => {
            arguments.iter().any(|word| is_integer_option(word) || odd_name(word))
        }
        _ => false,
    };
    if takes_odd_name {
        return Some(format!("`{name}` may evaluate the name of a variable as code"));
    }
    match name {
        "set" => arguments
            .iter()
            .find(|word| !is_plain_set_option(word))
            .map(|word| format!("`set {}` may change how the rest is read", word.source)),
        "hash" if !arguments.is_empty() => Some("`hash` may rename a program".to_owned()),
        _ => None,
    }
}

fn is_integer_option(word: &Word) -> bool {
    word.text().is_some_and(|text| {
        text.starts_with('-') && !text.starts_with("--") && text.contains(['i', 'n', 'C', 'c'])
    })
}

fn is_plain_set_option(word: &Word) -> bool {
    let Some(text) = word.text() else { return false };
    match text.strip_prefix(['-', '+']) {
        Some(flags) => !flags.is_empty() && flags.chars().all(|c| "euxvfCbo".contains(c)),
        None => matches!(text, "pipefail" | "errexit" | "nounset" | "xtrace" | "noglob"),
    }
}

/// A command that only looks, with every word known. Gives the operands that may be files.
pub(crate) fn read_only_operands(words: &[Word]) -> Option<Vec<&Word>> {
    let program = words.first()?.text()?;
    let arguments = words.get(1..).unwrap_or_default();
    let known = |word: &Word| !matches!(word.kind, crate::shell::WordKind::Dynamic { .. });
    if !arguments.iter().all(known) {
        return None;
    }
    // Where an option holds a path, what it does with it is not known here.
    if arguments.iter().any(|word| is_option(word) && word.source.contains('/')) {
        return None;
    }
    let has = |options: &[&str]| has_option(arguments, options);
    let operands = || arguments.iter().filter(|word| !is_option(word));
    match program {
        "git" => git::only_looks(words).then(Vec::new),
        "echo" | "true" | "false" | "which" | "type" | ":" | "exit" | "seq" | "sleep" | "set" => {
            Some(Vec::new())
        }
        "cd" | "test" | "[" => Some(operands().collect()),
        "printf" => (!has(&["-v"])).then(Vec::new),
        "sort" => {
            let writes =
                has(&["-o", "--output", "--compress-program", "-T", "--temporary-directory"]);
            (!writes).then(|| operands().collect())
        }
        "uniq" => (operands().count() <= 1).then(|| operands().collect()),
        "find" => {
            const ACTS: [&str; 9] = [
                "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf",
                "-fls",
            ];
            let acts = arguments.iter().any(|w| w.text().is_some_and(|text| ACTS.contains(&text)));
            (!acts).then(|| operands().take_while(|w| w.source != "(").collect())
        }
        "grep" | "egrep" | "fgrep" => Some(skip_pattern(arguments)),
        "rg" => (!has(&["--pre", "--hostname-bin", "-z", "--search-zip"]))
            .then(|| skip_pattern(arguments)),
        _ if LOOKERS.contains(&program) => Some(operands().collect()),
        _ => None,
    }
}

fn skip_pattern(arguments: &[Word]) -> Vec<&Word> {
    let given = has_option(arguments, &["-e", "-f", "--regexp", "--file", "--files"]);
    arguments.iter().filter(|word| !is_option(word)).skip(usize::from(!given)).collect()
}

pub(crate) fn is_option(word: &Word) -> bool {
    word.text().is_some_and(|text| text.len() > 1 && text.starts_with('-'))
}

/// Some argument is, abbreviates, or bundles one of these options.
pub(crate) fn has_option(arguments: &[Word], options: &[&str]) -> bool {
    arguments.iter().filter_map(Word::text).any(|text| {
        options.iter().any(|option| {
            if option.starts_with("--") {
                let key = text.split('=').next().unwrap_or(text);
                key.len() > 2 && key.starts_with("--") && option.starts_with(key)
            } else {
                let letter = option.trim_start_matches('-');
                text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
            }
        })
    })
}
