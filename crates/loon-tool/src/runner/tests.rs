//! Tests of running: a real `cargo test`, and a package manager that is a script of the project.

use loon_kernel::NativeTool as _;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::fixture::{Fixture, admit, call, next_key, run};
use crate::run_tests::RunTests;

/// A crate without dependencies that is no member of another workspace.
const MANIFEST: &str =
    "[package]\nname = \"tiny\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n";

fn tool(fixture: &Fixture) -> RunTests {
    RunTests::new(&fixture.workspace, &Spawner::default())
}

#[test]
fn the_tests_of_a_crate_run_and_are_counted() {
    let fixture = Fixture::new();
    fixture.put("Cargo.toml", MANIFEST);
    fixture.put("lib.rs", "#[test] fn good() {}\n#[test] fn bad() { assert_eq!(1, 2); }\n");
    let arguments = json!({"options": ["--offline", "--lib"]});
    let output = run(&tool(&fixture), arguments.clone());
    let text = &output.result.text;
    assert!(text.starts_with("$ cargo test --workspace --offline --lib\n[in the workspace root: exit 101, 1 passed, 1 failed, 0 skipped after "), "{text}");
    assert!(text.contains("assertion `left == right` failed"), "{text}");
    assert!(output.result.is_error);
    assert_eq!(output.exit_code, Some(101));
    assert_eq!(output.summary, "exit 101, 1 passed, 1 failed, 0 skipped");

    let arguments = json!({"options": ["--offline", "--lib"], "filter": "good"});
    let tool = tool(&fixture);
    assert_eq!(
        tool.subjects(&serde_json::from_value(arguments.clone()).unwrap()),
        Ok(vec![Subject::Command {
            line: "cargo test --workspace --offline --lib good".to_owned(),
            cwd: fixture.workspace.root().to_owned(),
        }])
    );
    let output = run(&tool, arguments);
    assert!(!output.result.is_error, "{}", output.result.text);
    assert_eq!(output.summary, "exit 0, 1 passed, 0 failed, 0 skipped");
}

/// A project whose tests a program of its own environment runs.
fn scripted(script: &str) -> Fixture {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    fixture.put("pyproject.toml", "");
    fixture.put(".venv/bin/pytest", "");
    fixture.put(".venv/bin/python", format!("#!/bin/bash\n{script}\n"));
    let program = fixture.path(".venv/bin/python");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    fixture
}

#[test]
fn a_filter_is_one_word() {
    let fixture = scripted("printf '<%s>' \"$@\"");
    let filter = "it's $(touch ran) & more";
    let output = run(&tool(&fixture), json!({"filter": filter}));
    assert!(
        output.result.text.ends_with("<-m><pytest><-k><it's $(touch ran) & more>\n"),
        "{}",
        output.result.text
    );
    let args = serde_json::from_value(json!({"filter": filter})).unwrap();
    let subjects = tool(&fixture).subjects(&args).unwrap();
    let [Subject::Command { line, .. }] = subjects.as_slice() else { panic!("no command") };
    assert_eq!(shlex::split(line).unwrap(), [".venv/bin/python", "-m", "pytest", "-k", filter]);
    assert!(!fixture.path("ran").exists());
}

#[test]
fn much_output_keeps_its_ends_and_all_of_its_counts() {
    let fixture =
        scripted("echo first; echo '2 passed in 0.1s'; seq 30000; echo '3 failed in 0.1s'; exit 1");
    let output = run(&tool(&fixture), json!({}));
    let text = &output.result.text;
    assert!(text.len() < HEAD + TAIL + 1024);
    assert!(
        text.contains("first\n")
            && text.contains("bytes omitted")
            && text.ends_with("3 failed in 0.1s\n")
    );
    assert_eq!(output.summary, "exit 1, 2 passed, 3 failed");
}

#[test]
fn the_status_decides_and_counts_are_not_made_up() {
    let output = run(&tool(&scripted("echo '3 failed in 0.1s'")), json!({}));
    assert!(!output.result.is_error);
    let output = run(&tool(&scripted("exit 5")), json!({}));
    assert_eq!(
        (output.result.is_error, output.exit_code, output.summary.as_str()),
        (true, Some(5), "exit 5")
    );
}

#[test]
fn a_project_that_changed_since_the_decision_is_not_run() {
    let fixture = scripted("touch ran");
    let tool = tool(&fixture);
    let cx = admit(&tool, &json!({}), next_key(), &CancellationToken::new());
    fixture.put("pytest.ini", "");
    let output = call(&tool, json!({}), &cx);
    assert!(!output.result.is_error, "the same commands: {}", output.result.text);
    assert!(fixture.path("ran").exists());

    std::fs::rename(fixture.path(".venv"), fixture.path("venv")).unwrap();
    std::fs::remove_file(fixture.path("ran")).unwrap();
    let output = call(&tool, json!({}), &cx);
    assert!(output.result.is_error);
    assert_eq!(output.result.text, super::CHANGED);
    assert!(!fixture.path("ran").exists());
    assert!(!run(&tool, json!({})).result.is_error);
}

#[test]
fn what_was_left_for_a_command_is_told_in_tenths() {
    let told = |millis| tenths(Duration::from_millis(millis)).as_secs_f64();
    assert_eq!([told(1000), told(5432), told(0)].map(|it| it.to_string()), ["1", "5.4", "0"]);
}

#[test]
fn a_run_that_takes_too_long_is_ended_whole() {
    // How far it comes in its second is not said.
    let fixture = scripted("sleep 1000 & sleep 1000");
    let output = run(&tool(&fixture), json!({"timeout_secs": 1}));
    assert!(output.result.is_error);
    assert_eq!(output.exit_code, None);
    assert_eq!(output.summary, "timed out after 1 s and was ended");
}

#[test]
fn a_run_can_be_cancelled_and_is_told_live() {
    let fixture = scripted("echo begun; sleep 1000");
    let (progress, mut heard) = mpsc::channel(8);
    let cancel = CancellationToken::new();
    let tool = tool(&fixture);
    let cx = EffectContext { progress, ..admit(&tool, &json!({}), next_key(), &cancel) };
    let output =
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(
            async {
                let args = serde_json::from_value(json!({})).unwrap();
                let listen = async {
                    assert_eq!(heard.recv().await, Some(Progress::Output("begun\n".to_owned())));
                    cancel.cancel();
                };
                tokio::join!(tool.run(args, &cx), listen).0
            },
        );
    assert!(output.result.is_error);
    assert_eq!(output.summary, "cancelled and ended");
    assert!(output.result.text.ends_with("begun\n"), "{}", output.result.text);
}

#[test]
fn what_cannot_be_run_is_said() {
    let fixture = Fixture::new();
    fixture.put("pyproject.toml", "");
    fixture.put(".venv/bin/pytest", "");
    fixture.put(".venv/bin/python", "no program");
    let output = run(&tool(&fixture), json!({}));
    assert!(output.result.is_error);
    assert!(
        output.result.text.contains("$ .venv/bin/python -m pytest\nIt was not run: cannot start"),
        "{}",
        output.result.text
    );
    let output = run(&tool(&Fixture::new()), json!({}));
    assert!(output.result.text.starts_with("No project found"), "{}", output.result.text);
}
