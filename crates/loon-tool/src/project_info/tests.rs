//! Tests of `project_info`.

use loon_exec::Spawner;
use serde_json::json;

use super::*;
use crate::fixture::{Fixture, run};

fn info(fixture: &Fixture) -> String {
    let tool = ProjectInfo::new(&fixture.workspace, &Spawner::new([]));
    told(fixture, &run(&tool, json!({})))
}

/// The description where all programs are installed.
fn info_with_all(fixture: &Fixture) -> String {
    let git = "git: not under version control";
    told(fixture, &describe(&fixture.workspace, git, &|_| true, &Sight::default()))
}

fn told(fixture: &Fixture, output: &ToolOutput) -> String {
    assert!(!output.result.is_error);
    let root = format!("root: {}\n", fixture.workspace.root().display());
    output.result.text.strip_prefix(&root).unwrap().to_owned()
}

#[test]
fn a_project_is_described_by_its_files() {
    let fixture = Fixture::new();
    fixture.put("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n");
    fixture.put("a/Cargo.toml", "[package]\nname = \"alpha\"\n");
    fixture.put("a/src/lib.rs", "fn a() {}\n");
    fixture.put(
        "package.json",
        json!({"name": "web", "scripts": {"test": "x", "lint": "y", "start": "z"}}).to_string(),
    );
    fixture.put("pnpm-lock.yaml", "");
    fixture.put("Makefile", "CC := cc\nall: test\n\ntest: a\n\tx\n.PHONY: all\nlint build:\n");
    fixture.put(".github/workflows/ci.yml", "on: push\n");
    fixture.put("AGENTS.md", "x\n");
    fixture.put("README.md", "y\n");
    fixture.put("a/README.md", "z\n");
    fixture.put("node_modules/b/package.json", "{}");
    fixture.put(".gitignore", "node_modules\n");
    assert_eq!(
        info_with_all(&fixture),
        "git: not under version control\nfiles: 11\nlanguages: Rust (1 file, 10 bytes), Prose (3 \
         files, 6 bytes)\nmanifest: Cargo.toml: workspace\nmanifest: Makefile: targets all test \
         lint\nmanifest: package.json: web, scripts test lint start\nmanifest: a/Cargo.toml: \
         alpha\nmanifest: .github/workflows/ci.yml\nguidance: AGENTS.md, README.md\ntest: cargo \
         test --workspace, pnpm run test, make test\nbuild: cargo build --workspace\nlint: cargo \
         clippy --all-targets --workspace, pnpm run lint, make lint"
    );
}

#[test]
fn python_and_go_projects_are_known() {
    let fixture = Fixture::new();
    fixture.put(
        "pyproject.toml",
        "[project]\nname = \"snake\"\n[tool.pytest.ini_options]\n[tool.ruff]\n",
    );
    fixture.put("go.mod", "module example.org/m\n\ngo 1.25\n");
    assert_eq!(
        info_with_all(&fixture),
        "git: not under version control\nfiles: 2\nmanifest: go.mod: example.org/m\nmanifest: \
         pyproject.toml: snake\ntest: go test ./..., pytest\nbuild: go build ./...\nlint: go vet \
         ./..., ruff check ."
    );
    let none = describe(&fixture.workspace, "", &|_| false, &Sight::default());
    assert!(none.result.text.ends_with("pyproject.toml: snake"), "{}", none.result.text);
}

#[test]
fn other_kinds_are_known_by_their_files() {
    let fixture = Fixture::new();
    fixture.put("mix.exs", "");
    fixture.put("build.gradle", "");
    fixture.put("build.gradle.kts", "");
    fixture.put("justfile", "check:\n\tx\ncompile:\n");
    let told = info_with_all(&fixture);
    let (_, commands) = told.split_once("\ntest: ").unwrap();
    assert_eq!(
        commands,
        "gradle test, mix test, just check\nbuild: gradle build, mix compile, just \
         compile\nlint: mix format --check-formatted"
    );
}

#[test]
fn the_state_of_git_is_one_line() {
    let mut status = StatusSummary {
        branch: Some("main".to_owned()),
        commit: Some("0123456789abcdef".to_owned()),
        upstream: Some("origin/main".to_owned()),
        ahead: 2,
        ..StatusSummary::default()
    };
    assert_eq!(state(&status), "main following origin/main, 2 ahead, clean");
    status.branch = None;
    status.upstream = None;
    status.changed = 3;
    status.untracked = 1;
    assert_eq!(state(&status), "detached at 0123456789, 2 ahead, 3 changed, 1 untracked");
    assert_eq!(
        state(&StatusSummary { branch: Some("b".to_owned()), ..StatusSummary::default() }),
        "b, no commit yet, clean"
    );
}

#[test]
fn a_repository_is_asked() {
    let fixture = Fixture::new();
    let git = |args: &[&str]| {
        let spawner = Spawner::new([]);
        let spawn = spawner.program("git", fixture.workspace.root()).args(args);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert!(runtime.block_on(spawn.run()).unwrap().exit.is_success());
    };
    git(&["init", "-q", "-b", "trunk"]);
    fixture.put("a", "x");
    assert_eq!(info(&fixture), "git: trunk, no commit yet, 1 untracked\nfiles: 1");
}
