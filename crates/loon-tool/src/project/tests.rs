//! Tests of finding commands: manifests in, commands out, nothing run.

use super::*;
use crate::fixture::Fixture;

const ALL: [&str; 12] = [
    "cargo",
    "cargo-clippy",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "go",
    "python3",
    "uv",
    "poetry",
    "ruff",
    "pytest",
];

fn request(purpose: Purpose) -> Request {
    Request { purpose, path: ".".to_owned(), kind: None, filter: None, args: Vec::new() }
}

fn fixture(files: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::new();
    for (name, text) in files {
        fixture.put(name, text);
    }
    fixture
}

/// The commands as words joined by spaces, one a line.
fn with(fixture: &Fixture, request: &Request, installed: &[&str]) -> Result<String, String> {
    let plan = plan(&fixture.workspace, request, &|program| installed.contains(&program))?;
    Ok(plan.commands.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join("\n"))
}

fn command(files: &[(&str, &str)], purpose: Purpose) -> Result<String, String> {
    with(&fixture(files), &request(purpose), &ALL)
}

fn filtered(files: &[(&str, &str)], filter: &str) -> String {
    let request = Request { filter: Some(filter.to_owned()), ..request(Purpose::Test) };
    with(&fixture(files), &request, &ALL).unwrap()
}

#[test]
fn cargo_projects_are_run_by_cargo() {
    let package = [("Cargo.toml", "[package]\nname = \"a\"\n")];
    assert_eq!(command(&package, Purpose::Test).unwrap(), "cargo test");
    assert_eq!(command(&package, Purpose::Build).unwrap(), "cargo build");
    assert_eq!(command(&package, Purpose::Lint).unwrap(), "cargo clippy --all-targets");
    let no_clippy = with(&fixture(&package), &request(Purpose::Lint), &["cargo"]);
    assert_eq!(no_clippy.unwrap(), "cargo check --all-targets");
    assert_eq!(filtered(&package, "a b"), "cargo test a b");
    let none = with(&fixture(&package), &request(Purpose::Test), &[]).unwrap_err();
    assert!(
        none.starts_with(
            "cargo is not installed, or not on PATH, and the workspace root needs it."
        ),
        "{none}"
    );
}

#[test]
fn a_cargo_workspace_is_meant_whole_unless_it_says_otherwise() {
    let members = ("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n");
    let member = ("a/Cargo.toml", "[package]\nname = \"a\"\n");
    assert_eq!(command(&[members], Purpose::Test).unwrap(), "cargo test --workspace");
    let default = ("Cargo.toml", "[workspace]\nmembers = [\"a\"]\ndefault-members = [\"a\"]\n");
    assert_eq!(command(&[default], Purpose::Test).unwrap(), "cargo test");
    let fixture = fixture(&[members, member, ("a/src/lib.rs", "")]);
    let args = |args: &[&str]| {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        with(&fixture, &Request { args, ..request(Purpose::Test) }, &ALL).unwrap()
    };
    assert_eq!(args(&["-p", "a"]), "cargo test -p a");
    assert_eq!(args(&["--package=a"]), "cargo test --package=a");
    assert_eq!(args(&["--release"]), "cargo test --workspace --release");
    for path in ["a", "a/src", "a/src/lib.rs"] {
        let request = Request { path: path.to_owned(), ..request(Purpose::Test) };
        let plan = plan(&fixture.workspace, &request, &|_| true).unwrap();
        assert_eq!(plan.folder, fixture.path("a"));
        assert_eq!(plan.commands, [["cargo", "test"]]);
    }
}

#[test]
fn the_lock_file_names_the_package_manager() {
    let package = ("package.json", r#"{"scripts": {"test": "x", "lint": "y"}}"#);
    assert_eq!(command(&[package], Purpose::Test).unwrap(), "npm run test");
    for (lock, expected) in [
        ("package-lock.json", "npm run lint"),
        ("pnpm-lock.yaml", "pnpm run lint"),
        ("yarn.lock", "yarn run lint"),
        ("bun.lock", "bun run lint"),
        ("bun.lockb", "bun run lint"),
    ] {
        assert_eq!(command(&[package, (lock, "")], Purpose::Lint).unwrap(), expected);
    }
    let two = [package, ("yarn.lock", ""), ("package-lock.json", "")];
    let error = command(&two, Purpose::Test).unwrap_err();
    assert!(error.starts_with("Both yarn.lock and package-lock.json are there"), "{error}");
    let named = r#"{"packageManager": "pnpm@9.1.0+sha", "scripts": {"test": "x"}}"#;
    let named = [("package.json", named), ("yarn.lock", ""), ("package-lock.json", "")];
    assert_eq!(command(&named, Purpose::Test).unwrap(), "pnpm run test");
    let missing = with(&fixture(&named), &request(Purpose::Test), &["npm"]).unwrap_err();
    assert!(missing.starts_with("pnpm is not installed"), "{missing}");
    // The lock file of a workspace lies at its root.
    let inner = fixture(&[("pnpm-lock.yaml", ""), ("p/package.json", package.1)]);
    let request = Request { path: "p".to_owned(), ..request(Purpose::Test) };
    assert_eq!(with(&inner, &request, &ALL).unwrap(), "pnpm run test");
}

#[test]
fn filters_reach_the_script() {
    let package = ("package.json", r#"{"scripts": {"test": "x"}}"#);
    assert_eq!(filtered(&[package], "adds"), "npm run test -- adds");
    assert_eq!(filtered(&[package, ("yarn.lock", "")], "adds"), "yarn run test adds");
    let fixture = fixture(&[package]);
    let plan = plan(&fixture.workspace, &request(Purpose::Test), &|_| true).unwrap();
    assert_eq!(plan.variables, [("CI", "true")]);
}

#[test]
fn a_missing_script_is_said() {
    let text =
        r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1", "dev": "x"}}"#;
    let package = [("package.json", text)];
    assert_eq!(
        command(&package, Purpose::Test).unwrap_err(),
        "package.json in the workspace root has no test script; it has dev. Add one, or run the right command by bash."
    );
    assert!(
        command(&package, Purpose::Build).unwrap_err().contains("has no build script; it has dev.")
    );
    assert!(command(&[("package.json", "{}")], Purpose::Lint).unwrap_err().contains("it has none"));
    let broken = command(&[("package.json", "{")], Purpose::Test).unwrap_err();
    assert!(broken.starts_with("package.json in the workspace root cannot be read: "), "{broken}");
}

#[test]
fn go_tests_packages() {
    let module = [("go.mod", "module a\n"), ("p/a_test.go", "")];
    assert_eq!(command(&module, Purpose::Test).unwrap(), "go test ./...");
    assert_eq!(command(&module, Purpose::Build).unwrap(), "go build ./...");
    assert_eq!(command(&module, Purpose::Lint).unwrap(), "go vet ./...");
    assert_eq!(filtered(&module, "TestA"), "go test -run=TestA ./...");
    assert_eq!(filtered(&module, "p"), "go test ./p/...");
    assert_eq!(filtered(&module, "./p/a_test.go"), "go test ./p");
}

#[test]
fn python_is_run_by_what_keeps_its_environment() {
    let project = (
        "pyproject.toml",
        "[build-system]\nrequires = []\n[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n",
    );
    let locked = "[[package]]\nname = \"pytest\"\n[[package]]\nname = \"ruff\"\n[[package]]\nname = \"mypy\"\n";
    let uv = [project, ("uv.lock", locked), ("tests/test_a.py", "")];
    assert_eq!(command(&uv, Purpose::Test).unwrap(), "uv run pytest");
    assert_eq!(command(&uv, Purpose::Build).unwrap(), "uv build");
    assert_eq!(command(&uv, Purpose::Lint).unwrap(), "uv run ruff check .\nuv run mypy .");
    assert_eq!(filtered(&uv, "adds"), "uv run pytest -k adds");
    assert_eq!(filtered(&uv, "tests/test_a.py::test_x"), "uv run pytest tests/test_a.py::test_x");
    let poetry = [project, ("poetry.lock", locked)];
    assert_eq!(command(&poetry, Purpose::Test).unwrap(), "poetry run pytest");
    let no_uv = with(&fixture(&uv), &request(Purpose::Test), &["python3"]).unwrap_err();
    assert!(no_uv.starts_with("uv is not installed"), "{no_uv}");
    let venv = [project, (".venv/bin/python", ""), (".venv/bin/pytest", "")];
    assert_eq!(command(&venv, Purpose::Test).unwrap(), ".venv/bin/python -m pytest");
    let args = Request { args: vec!["--fix".to_owned()], ..request(Purpose::Lint) };
    assert_eq!(with(&fixture(&uv), &args, &ALL).unwrap(), "uv run ruff check --fix .");
}

#[test]
fn python_without_pytest_uses_unittest() {
    let project = [("setup.py", ""), ("tests/test_a.py", "")];
    let bare = |filter: Option<&str>| {
        let request = Request { filter: filter.map(str::to_owned), ..request(Purpose::Test) };
        with(&fixture(&project), &request, &["python3"]).unwrap()
    };
    assert_eq!(bare(None), "python3 -m unittest discover");
    assert_eq!(bare(Some("adds")), "python3 -m unittest discover -k adds");
    assert_eq!(bare(Some("tests.test_a.Case")), "python3 -m unittest tests.test_a.Case");
    assert_eq!(bare(Some("tests/test_a.py")), "python3 -m unittest tests/test_a.py");
    assert_eq!(command(&project, Purpose::Test).unwrap(), "pytest");
    let configured = [("pytest.ini", "")];
    let error = with(&fixture(&configured), &request(Purpose::Test), &["python3"]).unwrap_err();
    assert!(
        error.starts_with(
            "The tests of the workspace root are for pytest, which is not installed or not on PATH."
        ),
        "{error}"
    );
    let needed = [("requirements.txt", "pytest>=8\n")];
    assert!(with(&fixture(&needed), &request(Purpose::Test), &["python3"]).is_err());
    let none = with(&fixture(&project), &request(Purpose::Lint), &["python3"]).unwrap_err();
    assert!(none.starts_with("No linter for the workspace root"), "{none}");
    let nothing = command(&[("requirements.txt", "")], Purpose::Build).unwrap_err();
    assert!(nothing.starts_with("There is nothing to build"), "{nothing}");
    let set_up = command(&[("mypy.ini", "")], Purpose::Lint);
    assert!(set_up.is_err(), "mypy.ini alone is no manifest");
    let set_up = command(&[("setup.py", ""), ("mypy.ini", "")], Purpose::Lint).unwrap_err();
    assert!(set_up.contains("is set up for mypy, which is not installed"), "{set_up}");
}

#[test]
fn several_projects_in_one_folder_are_told_apart() {
    let cargo = ("Cargo.toml", "[package]\n");
    let scripts = ("package.json", r#"{"scripts": {"test": "x"}}"#);
    let both = fixture(&[cargo, scripts]);
    assert_eq!(
        with(&both, &request(Purpose::Test), &ALL).unwrap_err(),
        "the workspace root holds several projects: Cargo.toml (kind cargo), package.json (kind node). Say which by kind."
    );
    let node = Request { kind: Some(Kind::Node), ..request(Purpose::Test) };
    assert_eq!(with(&both, &node, &ALL).unwrap(), "npm run test");
    // It has no build script, so only one project can be meant.
    assert_eq!(with(&both, &request(Purpose::Build), &ALL).unwrap(), "cargo build");
}

#[test]
fn without_a_project_it_is_said_where_one_lies() {
    let fixture = fixture(&[("b/go.mod", ""), ("a/Cargo.toml", ""), ("c/x.ipynb", "{}")]);
    let error = with(&fixture, &request(Purpose::Test), &ALL).unwrap_err();
    assert!(error.starts_with("No project found in the workspace root or above: none of Cargo.toml, package.json, go.mod, pyproject.toml"), "{error}");
    assert!(error.ends_with("Give one of these folders as path: a, b."), "{error}");
    let below = Request { path: "c".to_owned(), ..request(Purpose::Test) };
    assert!(with(&fixture, &below, &ALL).unwrap_err().contains("No project found in c or above"));
    let gone = Request { path: "d".to_owned(), ..request(Purpose::Test) };
    assert!(with(&fixture, &gone, &ALL).unwrap_err().contains("d does not exist"));
}

#[test]
fn pipes_among_its_files_hold_nobody_up() {
    let fixture = fixture(&[("setup.py", "")]);
    for name in ["uv.lock", "setup.cfg", "pyproject.toml", "tox.ini"] {
        nix::unistd::mkfifo(&fixture.path(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let test = with(&fixture, &request(Purpose::Test), &["python3", "uv"]).unwrap();
    assert_eq!(test, "python3 -m unittest discover");
    let lint = with(&fixture, &request(Purpose::Lint), &["ruff"]).unwrap();
    assert_eq!(lint, "ruff check .");
}

#[test]
fn a_filter_is_no_option() {
    let fixture = fixture(&[("go.mod", "")]);
    for (filter, expected) in
        [("-exec=x", "looks like an option"), (" ", "is empty"), ("a\0", "NUL")]
    {
        let request = Request { filter: Some(filter.to_owned()), ..request(Purpose::Test) };
        let error = with(&fixture, &request, &ALL).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn nothing_is_waited_for() {
    let mode = nix::sys::stat::Mode::S_IRWXU;
    let fixture = fixture(&[("requirements.txt", "")]);
    for pipe in ["uv.lock", "poetry.lock", "pyproject.toml", "setup.cfg", "requirements-dev.txt"] {
        nix::unistd::mkfifo(&fixture.path(pipe), mode).unwrap();
    }
    assert_eq!(
        with(&fixture, &request(Purpose::Test), &["python3"]).as_deref(),
        Ok("python3 -m unittest discover")
    );
    assert!(
        with(&fixture, &request(Purpose::Lint), &["python3"]).unwrap_err().contains("No linter")
    );
    assert!(with(&fixture, &request(Purpose::Build), &["python3"]).is_err());
}
