//! Which commands test, build and lint the project: those that `run_tests`, `run_build` and
//! `run_lint` would run, and those of other kinds of projects by the files at the root. Nothing is
//! started.

use super::manifest;
use crate::project::{Kind, Purpose, Request, plan};
use crate::runner::line;
use crate::workspace::Workspace;

/// Files of projects of other kinds, with their commands to test, build and lint.
const OTHERS: [(&str, [&str; 3]); 6] = [
    ("pom.xml", ["mvn test", "mvn package", ""]),
    ("build.gradle", ["gradle test", "gradle build", ""]),
    ("build.gradle.kts", ["gradle test", "gradle build", ""]),
    ("mix.exs", ["mix test", "mix compile", "mix format --check-formatted"]),
    ("Package.swift", ["swift test", "swift build", ""]),
    ("pubspec.yaml", ["dart test", "", "dart analyze"]),
];
/// Files with targets, and what runs these.
const TARGETS: [(&str, &str); 2] = [("Makefile", "make"), ("justfile", "just")];

/// Purposes with their commands, those without any left out.
pub(super) fn detect(
    workspace: &Workspace,
    installed: &dyn Fn(&str) -> bool,
) -> Vec<(Purpose, Vec<String>)> {
    let mut found = Purpose::ALL.map(|purpose| (purpose, planned(workspace, purpose, installed)));
    let root = workspace.root();
    let mut put = |purpose: Purpose, command: String| {
        for (_, commands) in found.iter_mut().filter(|(found, _)| *found == purpose) {
            if !commands.contains(&command) {
                commands.push(command.clone());
            }
        }
    };
    for (_, commands) in OTHERS.into_iter().filter(|(file, _)| root.join(file).is_file()) {
        for (purpose, command) in Purpose::ALL.into_iter().zip(commands) {
            if !command.is_empty() {
                put(purpose, command.to_owned());
            }
        }
    }
    for (file, runner) in TARGETS {
        for target in manifest::targets(&manifest::read(&root.join(file))) {
            if let Some(purpose) = purpose(&target) {
                put(purpose, format!("{runner} {target}"));
            }
        }
    }
    found.into_iter().filter(|(_, commands)| !commands.is_empty()).collect()
}

/// What would run at the root, for each kind of project there.
fn planned(
    workspace: &Workspace,
    purpose: Purpose,
    installed: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let request = |kind| Request {
        purpose,
        path: ".".to_owned(),
        kind: Some(kind),
        filter: None,
        args: Vec::new(),
    };
    let plans = Kind::ALL.into_iter().filter_map(|kind| {
        // Why there is none is said by the call that would run it.
        plan(workspace, &request(kind), installed).ok()
    });
    plans.flat_map(|plan| plan.commands).filter_map(|command| line(&command).ok()).collect()
}

/// What a target of this name is for.
fn purpose(name: &str) -> Option<Purpose> {
    match name {
        "test" | "tests" | "check" => Some(Purpose::Test),
        "build" | "compile" => Some(Purpose::Build),
        "lint" | "typecheck" | "type-check" => Some(Purpose::Lint),
        _ => None,
    }
}
