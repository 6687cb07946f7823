//! Which shell lines check something, and end with the status of that check.

use loon_api::receipt::CheckKind::{self, Build, Lint, Test};
use loon_permission::shell::{self, SimpleCommand};

/// Options with which nothing is checked.
const IDLE: [&str; 6] = ["--help", "-h", "--version", "--no-run", "--list", "--collect-only"];

/// Programs that run the program that follows, without options of their own that matter here.
const RUNNERS: [&str; 5] = ["time", "nice", "command", "exec", "env"];

/// What a line checks. Only a line whose parts are joined by nothing but `&&` ends with the status of
/// all of them; of a pipe, a list or a job in the background the check's own end is not known.
pub(super) fn of_line(line: &str) -> Option<CheckKind> {
    let bare = line.replace("&&", "").replace(">&", "").replace("&>", "");
    if bare.contains(['|', ';', '&', '\n', '!', '`']) || bare.contains("$(") {
        return None;
    }
    let script = shell::parse(line);
    if !script.doubts.is_empty() {
        return None;
    }
    // Of several checks the strongest names the line.
    script.commands.iter().filter_map(of_command).min_by_key(|kind| match kind {
        Test => 0,
        Build => 1,
        Lint => 2,
    })
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
        "make" | "just" | "gradle" | "gradlew" | "mvn" | "mvnw" => match first {
            "test" | "check" | "verify" => Some(Test),
            "" if program == "make" => Some(Build),
            "build" | "all" | "compile" | "package" | "assemble" => Some(Build),
            "lint" => Some(Lint),
            _ => None,
        },
        "tsc" => Some(Build),
        "eslint" | "ruff" | "flake8" | "pylint" | "mypy" | "pyright" | "shellcheck"
        | "golangci-lint" => Some(Lint),
        _ => None,
    }
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
