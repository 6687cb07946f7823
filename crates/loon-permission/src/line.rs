//! A line surveyed: every command with what it wraps and which files it names.

use std::path::{Path, PathBuf};

use loon_api::PathAccess;

use crate::Resolve;
use crate::known::{self, base_name};
use crate::path::Spot;
use crate::shell::{self, MAX_DEPTH, Script, SimpleCommand, Word, WordKind};
use crate::wrapper::{self, Seen};

/// Most folders that a line may be in at once before its relative paths count as unknown.
const MOST_FOLDERS: usize = 8;

/// Everything one line could do.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) commands: Vec<Observed>,
    pub(crate) doubts: Vec<String>,
}

/// One command of a line.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) command: SimpleCommand,
    pub(crate) seen: Seen,
    /// Stands inside a text that another command runs, which an allow rule covers as a whole.
    pub(crate) inner: bool,
    pub(crate) touches: Vec<Touch>,
}

/// One file that a command names.
#[derive(Debug)]
pub(crate) struct Touch {
    /// As it was written.
    pub(crate) shown: String,
    pub(crate) access: PathAccess,
    /// Where it may be; nothing if that is known only when the line runs.
    pub(crate) spots: Vec<Spot>,
    /// Everything below it is touched as well.
    pub(crate) deep: bool,
    /// Whether the shell itself opens it, or the command does.
    pub(crate) redirect: bool,
}

/// What surveying a line needs to know of its surroundings.
pub(crate) struct Surroundings<'a> {
    pub(crate) home: Option<&'a Path>,
    pub(crate) resolve: &'a Resolve<'a>,
}

/// The folders that relative paths may start from.
#[derive(Clone, Debug)]
struct Folders {
    /// Wherever the line may be, or nothing if that is not known.
    anywhere: Option<Vec<PathBuf>>,
    /// Where it is in one chain of `&&`, after the folder was changed there.
    in_chain: Option<(usize, Vec<PathBuf>)>,
}

impl Folders {
    fn at(&self, command: &SimpleCommand) -> Option<Vec<PathBuf>> {
        match &self.in_chain {
            Some((chain, folders)) if *chain == command.place.chain => Some(folders.clone()),
            _ => self.anywhere.clone(),
        }
    }

    fn lose(&mut self) {
        self.anywhere = None;
        self.in_chain = None;
    }
}

/// Surveys a line that starts in `cwd`.
pub(crate) fn survey(line: &str, cwd: &Path, around: &Surroundings<'_>) -> Line {
    let mut folders = Folders { anywhere: Some(vec![cwd.to_path_buf()]), in_chain: None };
    let mut out = Line::default();
    survey_script(shell::parse(line), 0, &mut folders, around, &mut out);
    out
}

fn survey_script(
    script: Script,
    depth: usize,
    folders: &mut Folders,
    around: &Surroundings<'_>,
    out: &mut Line,
) {
    for doubt in script.doubts {
        add_doubt(out, doubt);
    }
    let seen: Vec<Seen> = script
        .commands
        .iter()
        .map(|command| wrapper::look_through(&command.words, depth))
        .collect();
    let last_change = seen.iter().rposition(|seen| changing_layer(seen).is_some());
    for (index, (command, mut seen)) in script.commands.into_iter().zip(seen).enumerate() {
        for doubt in std::mem::take(&mut seen.doubts) {
            add_doubt(out, doubt);
        }
        let in_shell = command.words.first().and_then(Word::text).is_none_or(changes_folder);
        for assignment in command.assignments.iter().filter(|_| in_shell) {
            if known::steers_paths(&assignment.name) {
                add_doubt(out, format!("paths depend on `{}`", assignment.name));
            }
        }
        let names = command.assignments.iter().map(|assignment| &assignment.name);
        for name in names.chain(&seen.variables).filter(|name| known::steers_bash(name)) {
            add_doubt(out, format!("bash runs text by `{name}`"));
        }
        // What may run again, or later, may do so after a change that stands below it.
        let later = command.place.repeated && last_change.is_some_and(|last| index <= last);
        let shell_here = if later { None } else { folders.at(&command) };
        let here = if seen.moves { None } else { shell_here.clone() };
        let touches = touches(&command, &seen, here.as_deref(), shell_here.as_deref(), around);
        for script in std::mem::take(&mut seen.scripts) {
            if depth >= MAX_DEPTH {
                add_doubt(out, "programs wrap each other too deeply".to_owned());
                continue;
            }
            // A trap runs later, wherever the line is then, and in the same shell.
            let traps = command.words.first().and_then(Word::text) == Some("trap");
            let begins = here.clone().filter(|_| !traps);
            let mut inner = Folders { anywhere: begins.clone(), in_chain: None };
            survey_script(script, depth + 1, &mut inner, around, out);
            if inner.anywhere != begins || traps {
                folders.lose();
            }
        }
        change_folder(&command, &seen, folders, around);
        out.commands.push(Observed { command, seen, inner: depth > 0, touches });
    }
}

fn add_doubt(out: &mut Line, doubt: String) {
    if !out.doubts.contains(&doubt) {
        out.doubts.push(doubt);
    }
}

/// Follows `cd` and its kin.
fn change_folder(
    command: &SimpleCommand,
    seen: &Seen,
    folders: &mut Folders,
    around: &Surroundings<'_>,
) {
    let Some(layer) = changing_layer(seen) else { return };
    let program = layer.first().and_then(Word::text).unwrap_or_default();
    let options = ["-L", "-P", "-e", "-@", "--"];
    let target =
        layer.iter().skip(1).find(|word| !word.text().is_some_and(|text| options.contains(&text)));
    let home = Word { source: "~".to_owned(), kind: WordKind::Home(String::new()) };
    let target = target.unwrap_or(&home);
    let by_path = program != "popd"
        && !target.text().is_some_and(|text| text.is_empty() || text.starts_with(['-', '+']))
        && (target.text().is_some() || program == "cd");
    let path = named_path(target, around.home).filter(|_| by_path);
    let Some(path) = path.filter(|path| path.is_absolute() || !command.place.repeated) else {
        folders.lose();
        return;
    };
    let Some(before) = folders.at(command) else {
        if path.is_absolute() && command.place.decides_chain {
            folders.in_chain = Some((command.place.chain, vec![path]));
        }
        return;
    };
    let after: Vec<PathBuf> =
        before.iter().map(|folder| crate::path::normal(&folder.join(&path))).collect();
    if let Some(anywhere) = &mut folders.anywhere {
        for folder in &after {
            if !anywhere.contains(folder) {
                anywhere.push(folder.clone());
            }
        }
        if anywhere.len() > MOST_FOLDERS {
            folders.lose();
            return;
        }
    }
    if command.place.decides_chain {
        folders.in_chain = Some((command.place.chain, after));
    } else {
        folders.in_chain = None;
    }
}

/// The layer of a command that changes the folder of the shell.
fn changing_layer(seen: &Seen) -> Option<&Vec<Word>> {
    seen.layers.iter().find(|layer| layer.first().and_then(Word::text).is_some_and(changes_folder))
}

fn changes_folder(program: &str) -> bool {
    matches!(program, "cd" | "pushd" | "popd")
}

/// The path that a word names, if it is known.
fn named_path(word: &Word, home: Option<&Path>) -> Option<PathBuf> {
    match &word.kind {
        WordKind::Literal(text) => Some(PathBuf::from(text)),
        WordKind::Home(rest) => Some(home?.join(rest.trim_start_matches('/'))),
        WordKind::Dynamic { .. } => None,
    }
}

fn touches(
    command: &SimpleCommand,
    seen: &Seen,
    here: Option<&[PathBuf]>,
    shell_here: Option<&[PathBuf]>,
    around: &Surroundings<'_>,
) -> Vec<Touch> {
    let spots = |word: &Word, from: Option<&[PathBuf]>| -> Vec<Spot> {
        let Some(path) = named_path(word, around.home) else { return Vec::new() };
        let root = [PathBuf::from("/")];
        let from = if path.is_absolute() { Some(root.as_slice()) } else { from };
        from.unwrap_or_default()
            .iter()
            .map(|folder| Spot::new(folder, &path, around.resolve))
            .collect()
    };
    // The shell opens redirects before a wrapper changes the folder.
    let mut touches = Vec::new();
    for redirect in &command.redirects {
        let harmless = redirect.target.text().is_some_and(is_standard_device);
        if !harmless {
            touches.push(Touch {
                shown: redirect.target.source.clone(),
                access: if redirect.writes { PathAccess::Write } else { PathAccess::Read },
                spots: spots(&redirect.target, shell_here),
                deep: false,
                redirect: true,
            });
        }
    }
    for layer in &seen.layers {
        for (word, access, deep) in operands(layer) {
            touches.push(Touch {
                shown: word.source.clone(),
                access,
                spots: spots(&word, here),
                deep,
                redirect: false,
            });
        }
    }
    touches
}

fn is_standard_device(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin" | "/dev/tty")
        || path.strip_prefix("/dev/fd/").is_some_and(|fd| fd.chars().all(|c| c.is_ascii_digit()))
}

/// The files that a command names among its words, as far as its program is one of these:
///
/// - made or changed: `tee`, `touch`, `truncate`, `mkdir`, `chmod`, `chown`, `chgrp`, `cp`,
///   `install`, `ln`, `dd of=`, `sed -i`, `sort -o`, `find -fprint`;
/// - removed with all below: `rm`, `rmdir`, `unlink`, `shred`, `mv`, `find -delete`;
/// - read: the programs that only look, and `dd if=`.
fn operands(words: &[Word]) -> Vec<(Word, PathAccess, bool)> {
    use PathAccess::{Read, Write};
    let Some(program) = words.first().and_then(Word::text).map(base_name) else {
        return Vec::new();
    };
    let arguments = words.get(1..).unwrap_or_default();
    let plain: Vec<&Word> = after_options(arguments);
    let all = |access, deep| plain.iter().map(|word| ((*word).clone(), access, deep)).collect();
    match program {
        "tee" | "touch" | "truncate" | "mkdir" => all(Write, false),
        "rm" | "rmdir" | "unlink" | "shred" => all(Write, true),
        "chmod" | "chown" | "chgrp" => {
            plain.iter().skip(1).map(|word| ((*word).clone(), Write, false)).collect()
        }
        "cp" | "install" | "ln" | "mv" => copies(program, arguments, &plain),
        "dd" => {
            let of = |prefix: &str, access| {
                let found = arguments.iter().filter_map(move |word| {
                    let text = word.source.strip_prefix(prefix)?;
                    let known = word.text().and_then(|text| text.strip_prefix(prefix));
                    Some((known.map_or_else(|| unknown(text), Word::literal), access, false))
                });
                found.collect::<Vec<_>>()
            };
            [of("of=", Write), of("if=", Read)].concat()
        }
        "sed" if known::has_option(arguments, &["-i", "--in-place"]) => {
            let given = known::has_option(arguments, &["-e", "-f", "--expression", "--file"]);
            plain
                .iter()
                .skip(usize::from(!given))
                .map(|word| ((*word).clone(), Write, false))
                .collect()
        }
        "sort" => {
            let mut files: Vec<(Word, PathAccess, bool)> =
                option_values(arguments, "-o", "--output=").map(|w| (w, Write, false)).collect();
            files.extend(reads(words));
            files
        }
        "find" => {
            let mut files: Vec<(Word, PathAccess, bool)> = Vec::new();
            for option in ["-fprint", "-fprint0", "-fprintf", "-fls"] {
                files.extend(option_values(arguments, option, "").map(|w| (w, Write, false)));
            }
            files.extend(reads(words));
            files
        }
        _ => reads(words),
    }
}

fn reads(words: &[Word]) -> Vec<(Word, PathAccess, bool)> {
    known::read_only_operands(words)
        .unwrap_or_default()
        .into_iter()
        .map(|word| (word.clone(), PathAccess::Read, false))
        .collect()
}

fn after_options(arguments: &[Word]) -> Vec<&Word> {
    let mut ended = false;
    arguments
        .iter()
        .filter(|word| {
            let mark = !ended && word.text() == Some("--");
            ended |= mark;
            !mark && (ended || !known::is_option(word))
        })
        .collect()
}

/// Words that follow an option or are fused with it.
fn option_values<'a>(
    arguments: &'a [Word],
    option: &'a str,
    long: &'a str,
) -> impl Iterator<Item = Word> + 'a {
    arguments.iter().enumerate().filter_map(move |(index, word)| {
        let text = word.text()?;
        if text == option {
            return arguments.get(index + 1).cloned();
        }
        let fused = text.strip_prefix(option).filter(|_| option.len() == 2);
        let value = fused.or_else(|| text.strip_prefix(long).filter(|_| !long.is_empty()))?;
        Some(Word::literal(value))
    })
}

/// What `cp`, `mv`, `ln` and `install` write: the target, or each source by its name below it.
fn copies(program: &str, arguments: &[Word], plain: &[&Word]) -> Vec<(Word, PathAccess, bool)> {
    let mut given = option_values(arguments, "-t", "--target-directory=");
    let given = given.next();
    let (target, sources): (Word, &[&Word]) = match (&given, plain) {
        // The value of `-t` is among the operands as well, which does no harm.
        (Some(folder), sources) => (folder.clone(), sources),
        (None, [source]) => ((*source).clone(), &plain[..0]),
        (None, [sources @ .., target]) => ((*target).clone(), sources),
        (None, []) => return Vec::new(),
    };
    let mut files = vec![(target.clone(), PathAccess::Write, false)];
    for source in sources {
        match program {
            // What is moved is gone from where it was.
            "mv" => files.push(((*source).clone(), PathAccess::Write, true)),
            // What is linked can be written through the link later.
            "ln" => files.push(((*source).clone(), PathAccess::Write, false)),
            _ => files.push(((*source).clone(), PathAccess::Read, false)),
        }
        files.push((below(&target, source), PathAccess::Write, false));
    }
    files
}

/// The file of the name of `source` in the folder `target`.
fn below(target: &Word, source: &Word) -> Word {
    let name = source.text().map(|text| base_name(text.trim_end_matches('/')));
    let (Some(name), false) = (name, matches!(target.kind, WordKind::Dynamic { .. })) else {
        return unknown(&target.source);
    };
    let join = |folder: &str| format!("{}/{name}", folder.trim_end_matches('/'));
    let kind = match &target.kind {
        WordKind::Home(rest) => WordKind::Home(join(rest)),
        _ => WordKind::Literal(join(target.text().unwrap_or_default())),
    };
    Word { source: join(&target.source), kind }
}

fn unknown(source: &str) -> Word {
    Word { source: source.to_owned(), kind: WordKind::Dynamic { substitution: false } }
}
