//! Which commands test, build and check a project, by the files at its root. Names only: nothing
//! is started.

use std::path::Path;

use super::manifest;

/// Purposes with their commands, those without any left out.
pub(super) fn detect(root: &Path) -> Vec<(&'static str, Vec<String>)> {
    let mut found = [("test", Vec::new()), ("build", Vec::new()), ("lint", Vec::new())];
    let there = |name: &str| root.join(name).is_file();
    let mut put = |place: usize, command: String| {
        if !found[place].1.contains(&command) {
            found[place].1.push(command);
        }
    };
    let plain: [(&str, [&str; 3]); 8] = [
        ("Cargo.toml", ["cargo test", "cargo build", "cargo clippy"]),
        ("go.mod", ["go test ./...", "go build ./...", "go vet ./..."]),
        ("pom.xml", ["mvn test", "mvn package", ""]),
        ("build.gradle", ["gradle test", "gradle build", ""]),
        ("build.gradle.kts", ["gradle test", "gradle build", ""]),
        ("mix.exs", ["mix test", "mix compile", "mix format --check-formatted"]),
        ("Package.swift", ["swift test", "swift build", ""]),
        ("pubspec.yaml", ["dart test", "", "dart analyze"]),
    ];
    for (file, commands) in plain {
        if there(file) {
            for (place, command) in
                commands.into_iter().enumerate().filter(|(_, it)| !it.is_empty())
            {
                put(place, command.to_owned());
            }
        }
    }
    if there("package.json") {
        let runner = runner(root);
        for script in manifest::script_names(&manifest::read(&root.join("package.json"))) {
            if let Some(place) = purpose(&script) {
                put(place, format!("{runner} {script}"));
            }
        }
    }
    if ["pyproject.toml", "setup.py", "setup.cfg"].into_iter().any(there) {
        let settings =
            manifest::read(&root.join("pyproject.toml")) + &manifest::read(&root.join("setup.cfg"));
        let pytest = settings.contains("pytest")
            || there("pytest.ini")
            || there("conftest.py")
            || root.join("tests/conftest.py").is_file();
        put(0, if pytest { "pytest" } else { "python -m unittest" }.to_owned());
        for checker in ["ruff", "mypy", "flake8", "pylint"] {
            if settings.contains(&format!("[tool.{checker}"))
                || settings.contains(&format!("[{checker}]"))
            {
                put(2, checker.to_owned());
            }
        }
    }
    for (file, runner) in [("Makefile", "make"), ("justfile", "just")] {
        if there(file) {
            for target in manifest::targets(&manifest::read(&root.join(file))) {
                if let Some(place) = purpose(&target) {
                    put(place, format!("{runner} {target}"));
                }
            }
        }
    }
    found.into_iter().filter(|(_, commands)| !commands.is_empty()).collect()
}

/// What a script or target of this name is for.
fn purpose(name: &str) -> Option<usize> {
    match name {
        "test" | "tests" | "check" => Some(0),
        "build" | "compile" => Some(1),
        "lint" | "typecheck" | "type-check" => Some(2),
        _ => None,
    }
}

/// What runs the scripts of a `package.json`, by the lock file beside it.
fn runner(root: &Path) -> &'static str {
    let there = |name: &str| root.join(name).is_file();
    if there("pnpm-lock.yaml") {
        "pnpm run"
    } else if there("yarn.lock") {
        "yarn run"
    } else if there("bun.lock") || there("bun.lockb") {
        "bun run"
    } else {
        "npm run"
    }
}
