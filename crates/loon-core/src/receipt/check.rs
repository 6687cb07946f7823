//! Which shell lines check something, and end with the status of that check.

use loon_api::ProgramRun;
use loon_api::receipt::CheckKind::{self, Build, Lint, Test};
use loon_permission::shell::{self, SimpleCommand};

/// Options with which nothing is checked.
const IDLE: [&str; 8] =
    ["--help", "-h", "--version", "--no-run", "--list", "--collect-only", "--co", "--dry-run"];

/// Builtins after which the line's status is not surely that of the programs that follow, or a name
/// stands for another program.
const ENDS_LINE: [&str; 13] = [
    "exit", "return", "trap", "eval", "source", ".", "set", "shopt", "hash", "enable", "alias",
    "unalias", "function",
];

/// Programs that run the program that follows, without options of their own that matter here.
const RUNNERS: [&str; 5] = ["time", "nice", "command", "exec", "env"];

/// Statuses with which a shell says that a program is not there or cannot be run.
const NOT_RUN: [i32; 2] = [126, 127];

/// What a line checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checks {
    pub(super) kind: CheckKind,
    /// Nothing else in the line can fail.
    alone: bool,
}

/// The run with what its line checks, and whether its failure is surely one of the check.
pub(super) fn judged(run: &ProgramRun) -> ProgramRun {
    let checks = if run.check.is_none() { of_line(&run.line) } else { None };
    let Some(checks) = checks else { return run.clone() };
    let may_be_another = |code: i32| code != 0 && (!checks.alone || NOT_RUN.contains(&code));
    let unclear = run.exit_code.is_some_and(may_be_another) && !run.counts.has_failures();
    ProgramRun { check: Some(checks.kind), unclear, ..run.clone() }
}

/// What a line checks. Only a line whose parts are joined by nothing but `&&` ends with the status of
/// all of them; of a pipe, a list or a job in the background the check's own end is not known.
pub(super) fn of_line(line: &str) -> Option<Checks> {
    let bare = line.replace("&&", "").replace(">&", "").replace("&>", "");
    if bare.contains(['|', ';', '&', '\n', '!', '`']) || bare.contains("$(") {
        return None;
    }
    // The parser looks through this word, and nobody waits for what follows it.
    if bare.split_whitespace().any(|word| word == "coproc") {
        return None;
    }
    let script = shell::parse(line);
    if !script.doubts.is_empty() {
        return None;
    }
    let last = script.commands.len().saturating_sub(1);
    if script.commands.iter().enumerate().any(|(at, command)| hides_status(command, at == last)) {
        return None;
    }
    // Of several checks the strongest names the line.
    let kinds = script.commands.iter().filter_map(of_command);
    let kind = kinds.min_by_key(|kind| match kind {
        Test => 0,
        Build => 1,
        Lint => 2,
    })?;
    let is_nothing_else = |command: &SimpleCommand| {
        command.words.is_empty() && command.redirects.is_empty() || of_command(command).is_some()
    };
    Some(Checks { kind, alone: script.commands.iter().all(is_nothing_else) })
}

/// True for what ends or replaces the shell before it comes to the programs behind it, or only asks
/// where a program is.
fn hides_status(command: &SimpleCommand, is_last: bool) -> bool {
    let mut words = command.words.iter().map(|word| word.text());
    match words.next().flatten() {
        Some("exec") => !is_last,
        Some("command" | "builtin") => words
            .flatten()
            .any(|word| matches!(word, "-v" | "-V" | "exec") || ENDS_LINE.contains(&word)),
        Some(program) => ENDS_LINE.contains(&program),
        None => false,
    }
}

fn of_command(command: &SimpleCommand) -> Option<CheckKind> {
    let words: Option<Vec<&str>> = command.words.iter().map(|word| word.text()).collect();
    let words = words?;
    if words.iter().any(|word| IDLE.contains(word)) {
        return None;
    }
    of_words(&words)
}

fn of_words(words: &[&str]) -> Option<CheckKind> {
    let (program, rest) = words.split_first()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let plain: Vec<&str> = rest
        .iter()
        .copied()
        .filter(|word| !word.starts_with('-') && !word.starts_with('+'))
        .collect();
    let first = plain.first().copied().unwrap_or_default();
    let second = plain.get(1).copied().unwrap_or_default();
    match program {
        _ if RUNNERS.contains(&program) => of_words(&plain_program(rest)),
        "timeout" => of_words(plain.get(1..).unwrap_or_default()),
        // It only says its version.
        "cargo" if rest.contains(&"-V") => None,
        "cargo" => match first {
            "test" | "nextest" | "t" => Some(Test),
            "build" | "check" | "b" | "c" => Some(Build),
            "clippy" => Some(Lint),
            "fmt" if rest.contains(&"--check") => Some(Lint),
            _ => None,
        },
        "go" => match first {
            "test" => Some(Test),
            "build" | "install" => Some(Build),
            "vet" => Some(Lint),
            _ => None,
        },
        "npm" | "pnpm" | "yarn" | "bun" => match (first, second) {
            ("t", _) => Some(Test),
            ("run" | "run-script", script) | (script, _) => of_script(script),
        },
        "npx" | "bunx" | "bundle" | "poetry" | "uv" | "pipenv" | "rye" | "hatch" => {
            let skip = usize::from(matches!(first, "run" | "exec"));
            of_words(plain.get(skip..).unwrap_or_default())
        }
        "python" | "python3" | "py" => {
            let module = rest.iter().position(|word| *word == "-m")?;
            match rest.get(module + 1).copied()? {
                "pytest" | "unittest" | "tox" | "nox" => Some(Test),
                "mypy" | "ruff" | "flake8" | "pylint" => Some(Lint),
                _ => None,
            }
        }
        "pytest" | "jest" | "vitest" | "mocha" | "ava" | "tox" | "nox" | "ctest" | "rspec"
        | "phpunit" => Some(Test),
        "playwright" | "mix" | "rake" | "swift" | "dotnet" | "bazel" | "deno" | "zig" => {
            match (first, second) {
                ("test", _) | ("build", "test") => Some(Test),
                ("build" | "compile", _) => Some(Build),
                ("lint", _) => Some(Lint),
                _ => None,
            }
        }
        // It shows what it would do, or goes on after what fails.
        "make" if rest.iter().any(|word| matches!(*word, "-n" | "-t" | "-i")) => None,
        "make" | "just" | "gradle" | "gradlew" | "mvn" | "mvnw" => match first {
            "test" | "check" | "verify" => Some(Test),
            "" if program == "make" => Some(Build),
            "build" | "all" | "compile" | "package" | "assemble" => Some(Build),
            "lint" => Some(Lint),
            _ => None,
        },
        "tsc" => Some(Build),
        "bash" | "sh" | "zsh" => of_file(rest.first().copied()?),
        "eslint" | "ruff" | "flake8" | "pylint" | "mypy" | "pyright" | "shellcheck"
        | "golangci-lint" => Some(Lint),
        _ => of_file(program),
    }
}

/// What a shell script is for, by its name.
fn of_file(path: &str) -> Option<CheckKind> {
    let name = path.rsplit('/').next()?.strip_suffix(".sh")?;
    matches!(name, "test" | "tests" | "run-tests" | "run_tests" | "runtests").then_some(Test)
}

/// The program after a runner, its assignments and options.
fn plain_program<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let own = |word: &&&str| word.starts_with('-') || word.contains('=');
    words.iter().skip_while(own).copied().collect()
}

/// What a script of a package is called for.
fn of_script(name: &str) -> Option<CheckKind> {
    match name.split(':').next().unwrap_or_default() {
        "test" => Some(Test),
        "build" | "typecheck" | "type-check" | "compile" => Some(Build),
        "lint" => Some(Lint),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_line(line: &str) -> Option<CheckKind> {
        super::of_line(line).map(|checks| checks.kind)
    }

    #[test]
    fn what_may_end_the_shell_or_rename_a_program_vouches_for_nothing() {
        for before in [
            "eval exit 0",
            "command exit 0",
            "builtin exit",
            "set -n",
            ". ./env.sh",
            "source ./env.sh",
            "hash -p /bin/true cargo",
            "alias cargo=true",
            "enable -n exit",
        ] {
            assert_eq!(of_line(&format!("{before} && cargo test")), None, "{before}");
        }
        assert_eq!(of_line("cargo -V test"), None);
        assert_eq!(of_line("command cargo test"), Some(Test));
        assert_eq!(of_line("ctest -V"), Some(Test));
    }

    #[test]
    fn a_script_of_tests_is_known_by_its_name() {
        for line in ["bash test.sh", "sh ./ci/run-tests.sh", "./test.sh", "cd x && bash test.sh"] {
            assert_eq!(of_line(line), Some(Test), "{line}");
        }
        for line in ["bash deploy.sh", "cat test.sh", "bash -n test.sh"] {
            assert_eq!(of_line(line), None, "{line}");
        }
    }

    #[test]
    fn a_line_whose_status_is_not_that_of_the_check_checks_nothing() {
        for line in [
            "trap \"exit 0\" EXIT && cargo test",
            "exit 0 && cargo test",
            "exec true && cargo test",
            "command -v cargo test",
            "coproc cargo test",
            "make -i test",
            "make -n test",
            "pytest --co",
        ] {
            assert_eq!(of_line(line), None, "{line}");
        }
        assert_eq!(of_line("exec cargo test"), Some(Test));
        assert_eq!(of_line("make test"), Some(Test));
    }
}
