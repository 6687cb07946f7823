//! Programs that run the program named in their arguments.

use crate::git;
use crate::known::{self, base_name};
use crate::shell::{self, MAX_DEPTH, Script, Word, WordKind};

/// What a command runs in the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The words of the command itself and of every command it wraps.
    pub(crate) layers: Vec<Vec<Word>>,
    /// Commands inside `sh -c` and the like.
    pub(crate) scripts: Vec<Script>,
    /// How many words an allow rule must speak of before it covers the command.
    pub(crate) reach: usize,
    /// Some wrapper changes the folder before the command runs.
    pub(crate) moves: bool,
    /// Variables that a wrapper sets.
    pub(crate) variables: Vec<String>,
    /// Why it is not fully known what runs.
    pub(crate) doubts: Vec<String>,
}

/// How the arguments of a wrapper are laid out before the command it runs.
struct Layout {
    name: &'static str,
    /// Options that stand alone; a single letter is a short one.
    flags: &'static [&'static str],
    /// Options that take a value.
    valued: &'static [&'static str],
    /// Operands before the command.
    operands: usize,
    /// `NAME=value` may stand before the command.
    assigns: bool,
}

const fn layout(
    name: &'static str,
    flags: &'static [&'static str],
    valued: &'static [&'static str],
) -> Layout {
    Layout { name, flags, valued, operands: 0, assigns: false }
}

const LAYOUTS: [Layout; 17] = [
    Layout {
        assigns: true,
        ..layout(
            "env",
            &["i", "0", "v", "-", "ignore-environment", "null", "debug"],
            &["u", "unset", "C", "chdir"],
        )
    },
    Layout {
        operands: 1,
        ..layout(
            "timeout",
            &["v", "foreground", "preserve-status", "verbose"],
            &["k", "s", "kill-after", "signal"],
        )
    },
    layout("nice", &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], &["n", "adjustment"]),
    layout("nohup", &[], &[]),
    layout("setsid", &["c", "f", "w", "ctty", "fork", "wait"], &[]),
    layout("stdbuf", &[], &["i", "o", "e", "input", "output", "error"]),
    layout("ionice", &["t", "ignore"], &["c", "n", "class", "classdata"]),
    layout("time", &["p", "v", "a", "portability", "verbose", "append"], &["f", "format"]),
    layout("command", &["p"], &[]),
    layout("builtin", &[], &[]),
    layout("exec", &["c", "l"], &["a"]),
    layout("busybox", &[], &[]),
    layout("toybox", &[], &[]),
    Layout {
        assigns: true,
        ..layout(
            "sudo",
            &["A", "b", "E", "H", "n", "P", "S", "k", "i", "s", "preserve-env", "non-interactive"],
            &["u", "g", "h", "p", "C", "r", "t", "T", "U", "D", "user", "group", "chdir"],
        )
    },
    layout("doas", &["n", "s"], &["u", "C"]),
    layout(
        "xargs",
        &["0", "r", "t", "p", "x", "null", "no-run-if-empty", "verbose", "exit", "interactive"],
        &[
            "I",
            "n",
            "P",
            "L",
            "s",
            "d",
            "a",
            "E",
            "max-args",
            "max-procs",
            "max-lines",
            "delimiter",
            "arg-file",
            "max-chars",
            "replace",
        ],
    ),
    layout(
        "watch",
        &["d", "t", "b", "e", "g", "c", "x", "differences", "no-title", "exec", "color"],
        &["n", "q", "interval"],
    ),
];

/// Looks through the wrappers of a command that itself stands inside `depth` others.
pub(crate) fn look_through(words: &[Word], depth: usize) -> Seen {
    let mut seen = Seen { reach: 1, ..Seen::default() };
    seen.look(words, 0, depth);
    seen
}

impl Seen {
    /// `offset` is where these words begin in the command.
    fn look(&mut self, words: &[Word], offset: usize, depth: usize) {
        if words.is_empty() {
            return;
        }
        self.reach = self.reach.max(offset + 1);
        self.layers.push(words.to_vec());
        if depth >= MAX_DEPTH {
            self.doubts.push("programs wrap each other too deeply".to_owned());
            return;
        }
        if let Some(doubt) = known::doubt(words) {
            self.doubts.push(doubt);
            return;
        }
        let Some(name) = words.first().and_then(Word::text).map(base_name) else { return };
        match name {
            "git" => self.look_at_git(words),
            "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh" | "fish" => {
                self.look_at_shell(name, words, offset, depth);
            }
            "find" => self.look_at_find(words, offset, depth),
            "trap" => self.look_at_trap(words, depth),
            _ => {
                if let Some(layout) = LAYOUTS.iter().find(|layout| layout.name == name) {
                    self.look_at_wrapper(layout, words, offset, depth);
                }
            }
        }
    }

    fn look_at_git(&mut self, words: &[Word]) {
        self.doubts.extend(git::doubt(words));
        if git::global_options(words) > 0 {
            self.layers.push(git::without_global_options(words));
        }
    }

    fn look_at_wrapper(&mut self, layout: &Layout, words: &[Word], offset: usize, depth: usize) {
        // `command -v` and `-V` only look a program up.
        let looks_up = |word: &Word| matches!(word.text(), Some("-v" | "-V"));
        if layout.name == "command" && words.get(1).is_some_and(looks_up) {
            return;
        }
        let Some(mut at) = options_end(layout, words) else {
            self.doubts.push(format!("an option of `{}` is not known", layout.name));
            return;
        };
        let options = words.get(1..at).unwrap_or_default();
        let moves = match layout.name {
            "env" => known::has_option(options, &["-C", "--chdir"]),
            "sudo" => known::has_option(options, &["-D", "--chdir", "-i"]),
            _ => false,
        };
        self.moves |= moves;
        if layout.assigns {
            while let Some(name) = words.get(at).and_then(assigned_name) {
                self.variables.push(name);
                at += 1;
            }
        }
        at += layout.operands;
        let before = words.get(1..at).unwrap_or_default();
        if before.iter().any(|word| matches!(word.kind, WordKind::Dynamic { .. })) {
            // It may turn into several words, and so into a program.
            self.doubts.push(format!("which program `{}` runs is known only then", layout.name));
        }
        let shell = matches!(layout.name, "sudo" | "doas");
        if shell && known::has_option(options, &["-i", "-s"]) {
            self.doubts.push(format!("`{}` starts a shell", layout.name));
        }
        let mut inner = words.get(at..).unwrap_or_default().to_vec();
        if inner.is_empty() {
            return;
        }
        match layout.name {
            "watch" => return self.run_text(&inner, offset + at, depth, "watch"),
            "xargs" => {
                let marks: Vec<String> = replaced_marks(options);
                make_dynamic(&mut inner, &marks);
                inner.push(unknown_word());
            }
            _ => {}
        }
        self.look(&inner, offset + at, depth + 1);
    }

    fn look_at_shell(&mut self, name: &str, words: &[Word], offset: usize, depth: usize) {
        let mut at = 1;
        let mut runs_text = false;
        let mut reads_input = false;
        while let Some(word) = words.get(at) {
            let Some(text) = word.text() else {
                self.doubts.push(format!("what `{name}` runs is known only when it runs"));
                return;
            };
            if text == "-" || text == "--" {
                at += 1;
                break;
            }
            if matches!(text, "--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O") {
                at += 2;
            } else if text.starts_with("--") {
                at += 1;
            } else if text.starts_with(['-', '+']) {
                runs_text |= text.starts_with('-') && text.contains('c');
                reads_input |= text.starts_with('-') && text.contains('s');
                // Letters that take a value end the cluster where the value would begin.
                at += if text.ends_with(['o', 'O']) { 2 } else { 1 };
            } else {
                break;
            }
        }
        let Some(first) = words.get(at) else {
            self.doubts.push(format!("`{name}` runs what it reads"));
            return;
        };
        if !runs_text {
            if reads_input
                || matches!(
                    first.text(),
                    None | Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
                )
            {
                self.doubts.push(format!("`{name}` runs what it reads"));
            }
            return;
        }
        let script = words.get(at..=at).unwrap_or_default();
        self.run_text(script, offset + at, depth, name);
        if let Some(text) = first.text() {
            let dialect = match name {
                "bash" => false,
                "zsh" | "ksh" | "fish" => true,
                _ => ["$'", "[[", "((", "<<<", "&>", "|&", "<(", ">("]
                    .iter()
                    .any(|m| text.contains(m)),
            };
            if dialect {
                self.doubts.push(format!("`{name}` may read the text in another way"));
            }
        }
    }

    /// Reads words as the text of a script.
    fn run_text(&mut self, words: &[Word], offset: usize, depth: usize, name: &str) {
        self.reach = self.reach.max(offset + words.len());
        let texts: Option<Vec<&str>> = words.iter().map(Word::text).collect();
        let Some(texts) = texts else {
            self.doubts.push(format!("what `{name}` runs is known only when it runs"));
            return;
        };
        self.scripts.push(shell::parse_nested(&texts.join(" "), depth + 1));
    }

    fn look_at_find(&mut self, words: &[Word], offset: usize, depth: usize) {
        let is = |word: &Word, texts: &[&str]| word.text().is_some_and(|t| texts.contains(&t));
        let mut index = 1;
        while let Some(word) = words.get(index) {
            if is(word, &["-exec", "-execdir", "-ok", "-okdir"]) {
                let rest = words.get(index + 1..).unwrap_or_default();
                let length = rest.iter().position(|w| is(w, &[";", "+"])).unwrap_or(rest.len());
                let mut inner = rest.get(..length).unwrap_or_default().to_vec();
                make_dynamic(&mut inner, &["{}".to_owned()]);
                self.moves |= is(word, &["-execdir", "-okdir"]);
                self.look(&inner, offset + index + 1, depth + 1);
                index += length;
            } else if is(word, &["-delete"]) {
                self.reach = self.reach.max(offset + index + 1);
                let mut removal = vec![Word::literal("rm")];
                let starts = words.iter().skip(1).take_while(|w| !known::is_option(w));
                removal.extend(starts.cloned());
                self.layers.push(removal);
            } else if matches!(word.kind, WordKind::Dynamic { .. }) {
                // An unknown word may well be one of the above.
                self.reach = self.reach.max(offset + index + 1);
            }
            index += 1;
        }
    }

    fn look_at_trap(&mut self, words: &[Word], depth: usize) {
        let Some(action) = words.iter().skip(1).find(|word| word.text() != Some("--")) else {
            return;
        };
        let listing = known::is_option(action) && words.len() <= 3;
        if !listing && words.len() > 2 {
            self.run_text(std::slice::from_ref(action), 1, depth, "trap");
        }
    }
}

/// Where the options of a wrapper end, unless one is unknown.
fn options_end(layout: &Layout, words: &[Word]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = match &word.kind {
            WordKind::Literal(text) => text,
            WordKind::Home(_) | WordKind::Dynamic { .. } => return Some(at),
        };
        let is_flag = |name: &str| layout.flags.contains(&name);
        let is_valued = |name: &str| layout.valued.contains(&name);
        if text == "--" {
            return Some(at + 1);
        } else if let Some(long) = text.strip_prefix("--") {
            let (key, fused) = long.split_once('=').map_or((long, false), |(key, _)| (key, true));
            if key.len() < 2 || !(is_flag(key) || is_valued(key)) {
                return None;
            }
            at += if is_valued(key) && !fused { 2 } else { 1 };
        } else if text.len() > 1 && text.starts_with('-') {
            at += short_options(text, is_flag, is_valued)?;
        } else if text == "-" && is_flag("-") {
            at += 1;
        } else {
            return Some(at);
        }
    }
    Some(at.min(words.len()))
}

/// How many words a cluster of short options takes, unless one is unknown.
fn short_options(
    text: &str,
    is_flag: impl Fn(&str) -> bool,
    is_valued: impl Fn(&str) -> bool,
) -> Option<usize> {
    let letters: Vec<(usize, char)> = text.char_indices().skip(1).collect();
    for (index, letter) in letters {
        let end = index + letter.len_utf8();
        let option = text.get(index..end)?;
        if is_valued(option) {
            return Some(if end == text.len() { 2 } else { 1 });
        }
        if !is_flag(option) {
            return None;
        }
    }
    Some(1)
}

/// The `NAME` of a word `NAME=value`, as programs read it: any text before the sign is a name.
fn assigned_name(word: &Word) -> Option<String> {
    word.text()?.split_once('=').map(|(name, _)| name.to_owned())
}

/// Texts that `xargs` replaces by what it reads.
fn replaced_marks(options: &[Word]) -> Vec<String> {
    let texts: Vec<&str> = options.iter().filter_map(Word::text).collect();
    let mut marks = vec!["{}".to_owned()];
    for (index, text) in texts.iter().enumerate() {
        if *text == "-I" || *text == "--replace" {
            marks.extend(texts.get(index + 1).map(|mark| (*mark).to_owned()));
        } else if let Some((_, mark)) = text.split_once("-I").or(text.split_once("--replace=")) {
            marks.push(mark.to_owned());
        }
    }
    marks.retain(|mark| !mark.is_empty());
    marks
}

fn make_dynamic(words: &mut [Word], marks: &[String]) {
    for word in words {
        let replaced = word.text().is_some_and(|text| marks.iter().any(|mark| text.contains(mark)));
        if replaced {
            word.kind = WordKind::Dynamic { substitution: false };
        }
    }
}

fn unknown_word() -> Word {
    Word { source: "..".to_owned(), kind: WordKind::Dynamic { substitution: false } }
}
