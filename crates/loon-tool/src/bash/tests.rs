//! Tests of the shell tool with real programs.

use std::path::PathBuf;

use loon_kernel::native_tool;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;

struct Shell {
    folder: tempfile::TempDir,
    bash: Bash,
    cx: EffectContext,
    heard: mpsc::Receiver<Progress>,
}

fn shell() -> Shell {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
    let (progress, heard) = mpsc::channel(64);
    let cx = EffectContext {
        hidden: [].into(),
        key: loon_api::EffectKey::call(1, 0, 0),
        subjects: Arc::new([]),
        cancel: CancellationToken::new(),
        progress,
    };
    Shell { folder, bash: Bash::new(&workspace, &Spawner::new(["HOME".to_owned()])), cx, heard }
}

impl Shell {
    async fn run(&self, command: &str) -> ToolOutput {
        self.bash.run(args(command), &self.cx).await
    }

    fn heard(&mut self) -> String {
        let mut text = String::new();
        while let Ok(Progress::Output(piece)) = self.heard.try_recv() {
            text.push_str(&piece);
        }
        text
    }
}

fn args(command: &str) -> Args {
    Args { command: command.to_owned(), timeout_ms: None, description: None }
}

#[tokio::test]
async fn output_and_status_are_told() {
    let mut shell = shell();
    let output = shell.run("echo out; echo err >&2; exit 3").await;
    assert_eq!(output.result.text, "out\nerr\n[exit 3]");
    assert!(!output.result.is_error);
    assert_eq!(output.exit_code, Some(3));
    assert_eq!(output.summary, "exit 3");
    assert_eq!(shell.heard(), "out\nerr\n");
    assert_eq!(shell.run("true").await.result.text, "[exit 0]");
}

#[tokio::test]
async fn every_call_is_a_new_shell_in_the_root() {
    let shell = shell();
    let root = shell.folder.path().canonicalize().unwrap();
    shell.run("mkdir -p d/e && cd d/e && X=1 && pwd").await;
    let output = shell.run("rm -rf d; pwd; echo ${X-unset}").await;
    assert_eq!(output.result.text, format!("{}\nunset\n[exit 0]", root.display()));
}

#[tokio::test]
async fn a_lost_root_is_said() {
    let shell = shell();
    std::fs::remove_dir_all(shell.folder.path()).unwrap();
    let output = shell.run("pwd").await;
    assert!(output.result.is_error);
    assert!(output.result.text.contains("is not there any more"), "{}", output.result.text);
}

#[tokio::test]
async fn hidden_variables_are_hidden() {
    let output = shell().run("echo ${HOME-none} $PAGER $TERM").await;
    assert_eq!(output.result.text, "none cat dumb\n[exit 0]");
}

#[tokio::test]
async fn standard_input_is_empty() {
    let shell = shell();
    assert_eq!(shell.run("cat; echo rc=$?").await.result.text, "rc=0\n[exit 0]");
    assert_eq!(shell.run("read q; echo rc=$?").await.result.text, "rc=1\n[exit 0]");
}

#[tokio::test]
async fn hostile_bytes_are_made_safe() {
    let mut shell = shell();
    let output = shell.run(r"printf 'a\0b\377c\355\240\200d\033[31mred\033[0m\rEND\n'").await;
    let safe = "a␀b\u{FFFD}c\u{FFFD}\u{FFFD}\u{FFFD}dred␍END\n";
    assert_eq!(output.result.text, format!("{safe}[exit 0]"));
    let heard = shell.heard();
    assert!(!heard.chars().any(|ch| ch.is_control() && ch != '\n'), "{heard:?}");
}

#[tokio::test]
async fn a_flood_is_cut_in_the_middle() {
    let shell = shell();
    let output = shell.run("echo BEGIN; yes 0123456789 | head -c 3000000; echo; echo END").await;
    let text = output.result.text;
    assert!(
        text.starts_with("BEGIN\n0123456789\n") && text.ends_with("0123456789\n012\nEND\n[exit 0]")
    );
    assert!(text.len() < 2 * KEEP + 200);
    let omitted: usize =
        text.split_once("[... ").unwrap().1.split_once(' ').unwrap().0.parse().unwrap();
    let mark = format!("[... {omitted} bytes omitted ...]\n[exit 0]");
    assert_eq!(text.len() - mark.len() + omitted, "BEGIN\n\nEND\n".len() + 3_000_000);
}

#[tokio::test]
async fn a_timeout_is_told_and_keeps_the_output() {
    let shell = shell();
    let args = Args { timeout_ms: Some(150), ..args("echo begun; sleep 60") };
    let output = shell.bash.run(args, &shell.cx).await;
    assert_eq!(output.result.text, "begun\n[timed out after 0.15 s and was ended]");
    assert!(output.result.is_error);
    assert_eq!(output.exit_code, None);
}

#[tokio::test]
async fn a_cancel_is_told() {
    let mut shell = shell();
    let cancel = shell.cx.cancel.clone();
    let (output, ()) =
        tokio::join!(shell.bash.run(args("echo begun; sleep 60"), &shell.cx), async {
            assert_eq!(shell.heard.recv().await, Some(Progress::Output("begun\n".to_owned())));
            cancel.cancel();
        });
    assert_eq!(output.result.text, "begun\n[cancelled and ended]");
    assert!(output.result.is_error);
}

#[tokio::test]
async fn background_processes_are_named() {
    let shell = shell();
    let output = shell.run("sleep 60 & sleep 60 & echo started").await;
    assert_eq!(
        output.result.text,
        "started\n[exit 0]\n[2 background processes still ran and had to be ended; process_start keeps one running]"
    );
}

#[tokio::test]
async fn signals_have_names() {
    assert_eq!(shell().run("kill -SEGV $$").await.result.text, "[killed by SIGSEGV]");
}

#[tokio::test]
async fn a_closed_channel_stops_nothing() {
    let mut shell = shell();
    shell.heard.close();
    assert_eq!(shell.run("echo a; sleep 0.15; echo b").await.result.text, "a\nb\n[exit 0]");
}

#[test]
fn the_line_and_its_folder_are_declared() {
    let shell = shell();
    let root = shell.folder.path().canonicalize().unwrap();
    assert_eq!(
        shell.bash.subjects(&args("ls -la")),
        Ok(vec![Subject::Command { line: "ls -la".to_owned(), cwd: root }])
    );
    assert!(shell.bash.subjects(&args("  ")).is_err());
    assert!(shell.bash.subjects(&args("a\0b")).is_err());
}

#[test]
fn titles_are_one_safe_line() {
    let shell = shell();
    let title = |command: &str, description: Option<&str>| {
        shell.bash.title(&Args { description: description.map(str::to_owned), ..args(command) })
    };
    assert_eq!(title("cargo test", None), "cargo test");
    assert_eq!(title("cd a &&\nls", Some("List")), "cd a &&… (List)");
    assert_eq!(title("printf '\u{1b}[31m'", None), "printf '␛[31m'");
    assert_eq!(title(&"x".repeat(500), None).chars().count(), TITLE + 1);
}

#[test]
fn what_models_are_told_is_short() {
    let spec = native_tool(shell().bash).spec().clone();
    assert_eq!(spec.parameters["required"], json!(["command"]));
    let size = spec.description.len() + spec.parameters.to_string().len();
    assert!(size <= 450, "{size} bytes: {}", spec.parameters);
}

#[test]
fn timeouts_are_bounded() {
    let shell = shell();
    let timeout = |ms| shell.bash.timeout(&Args { timeout_ms: ms, ..args("x") }).unwrap();
    assert_eq!(timeout(None), TIMEOUT + GATE_MARGIN);
    assert_eq!(timeout(Some(9_000_000)), MAX_TIMEOUT + GATE_MARGIN);
}
