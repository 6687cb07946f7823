//! Tests of the tools for processes, with real ones.

use std::path::PathBuf;

use loon_api::{CheckCounts, Subject};
use loon_exec::Spawner;
use loon_kernel::{NativeTool, native_tool};
use serde_json::{Value, json};

use super::*;
use crate::Workspace;
use crate::fixture::{admit, next_key};
use crate::process_list::ProcessList;
use crate::process_poll::ProcessPoll;
use crate::process_start::ProcessStart;
use crate::process_stop::ProcessStop;
use crate::process_write::ProcessWrite;

struct Desk {
    folder: tempfile::TempDir,
    cancel: CancellationToken,
    processes: Arc<Processes>,
    start: ProcessStart,
    poll: ProcessPoll,
    write: ProcessWrite,
    stop: ProcessStop,
    list: ProcessList,
}

fn desk() -> Desk {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
    let processes: Arc<Processes> = Arc::default();
    Desk {
        cancel: CancellationToken::new(),
        start: ProcessStart::new(&workspace, &Spawner::new(["HOME".to_owned()]), &processes),
        poll: ProcessPoll::new(&processes),
        write: ProcessWrite::new(&processes),
        stop: ProcessStop::new(&processes),
        list: ProcessList::new(&processes),
        processes,
        folder,
    }
}

impl Desk {
    /// The running time is left out of the report.
    async fn call<T: NativeTool>(&self, tool: &T, arguments: Value) -> ToolOutput {
        let cx = admit(tool, &arguments, next_key(), &self.cancel);
        let mut output = tool.run(serde_json::from_value(arguments).unwrap(), &cx).await;
        let time = regex::Regex::new(r"( running) for \d+ s").unwrap();
        output.result.text = time.replace(&output.result.text, "$1").into_owned();
        output
    }

    async fn start(&self, command: &str) -> String {
        self.call(&self.start, json!({ "command": command })).await.result.text
    }

    /// Starts it as the process `id` and takes what it says until that is `expected`.
    async fn start_until(&self, arguments: Value, id: &str, expected: &str) {
        let first = self.call(&self.start, arguments).await.result.text;
        self.hear(id, first, expected).await;
    }

    async fn write_until(&self, arguments: Value, expected: &str) {
        let id = arguments["id"].as_str().unwrap().to_owned();
        let first = self.call(&self.write, arguments).await.result.text;
        self.hear(&id, first, expected).await;
    }

    /// Polls until all that was said since `said` is `expected`, in however many reports it comes.
    async fn hear(&self, id: &str, said: String, expected: &str) {
        let silent = format!("[{id} running, no new output]");
        let mut said = said.trim_end_matches(&silent).to_owned();
        while said != expected {
            let output = self.poll(id).await.result;
            assert!(!output.is_error && output.text != silent, "{said:?} is not {expected:?}");
            said.truncate(said.trim_end_matches(&format!("[{id} running]")).len());
            said.push_str(&output.text);
        }
    }

    /// Starts it and gives the ids of processes that it says, one a line.
    async fn start_tree(&self, command: &str, count: usize) -> Vec<String> {
        self.start(command).await;
        let entry = self.entry("p1");
        loop {
            let piece = entry.process().output_since(0);
            let text = String::from_utf8(piece.bytes).unwrap();
            if text.lines().count() == count {
                let pids: Vec<String> = text.lines().map(str::to_owned).collect();
                assert!(pids.iter().all(|pid| runs(pid)), "{text}");
                return pids;
            }
            entry.process().output_after(piece.end).await;
        }
    }

    async fn poll(&self, id: &str) -> ToolOutput {
        self.call(&self.poll, json!({ "id": id, "wait_secs": 60 })).await
    }

    async fn stop(&self, id: &str) -> ToolOutput {
        self.call(&self.stop, json!({ "id": id })).await
    }

    fn entry(&self, id: &str) -> Arc<Entry> {
        self.processes.find(id).unwrap()
    }

    async fn list(&self) -> String {
        self.call(&self.list, json!({})).await.result.text
    }
}

/// True if it runs; who has ended and was not collected does not.
fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

#[tokio::test]
async fn a_conversation_with_a_process() {
    let desk = desk();
    assert_eq!(desk.start("cat; exit 3").await, "[p1 running, no new output]");
    let hello = json!({ "id": "p1", "input": "hello" });
    desk.write_until(hello, "hello\n[p1 running]").await;
    assert_eq!(desk.list().await, "p1 [running] cat; exit 3");
    let bye = json!({ "id": "p1", "input": "bye", "newline": false, "eof": true });
    desk.write_until(bye, "bye\n[p1 exit 3]").await;
    assert_eq!(desk.list().await, "No process was started, or all have ended.");
    let again = desk.poll("p1").await.result;
    assert!(again.is_error);
    assert_eq!(again.text, "p1 has ended and is not kept any more.");
}

#[tokio::test]
async fn a_poll_waits_for_output_and_for_the_end() {
    let desk = desk();
    let fifo = "mkfifo go; (read x < go; echo first; read x < go; exit 7)";
    assert_eq!(desk.start(fifo).await, "[p1 running, no new output]");
    let go = desk.folder.path().join("go");
    let (output, ()) = tokio::join!(desk.poll("p1"), async {
        tokio::fs::write(&go, "\n").await.unwrap();
    });
    assert_eq!(output.result.text, "first\n[p1 running]");
    assert_eq!((output.exit_code, output.summary.as_str()), (None, "running"));
    let (output, ()) = tokio::join!(desk.poll("p1"), async {
        tokio::fs::write(&go, "\n").await.unwrap();
    });
    assert_eq!(output.result.text, "[p1 exit 7]");
    assert_eq!((output.exit_code, output.summary.as_str()), (Some(7), "exit 7"));
    assert!(!output.result.is_error);
}

#[tokio::test]
async fn an_end_that_was_not_told_is_kept() {
    let desk = desk();
    assert_eq!(desk.start("read x; kill -SEGV $$").await, "[p1 running, no new output]");
    let entry = desk.entry("p1");
    entry.process().write(b"\n").await.unwrap();
    entry.process().ended().await;
    assert_eq!(desk.list().await, "p1 [killed by SIGSEGV] read x; kill -SEGV $$");
    assert_eq!(desk.poll("p1").await.result.text, "[p1 killed by SIGSEGV]");
}

#[tokio::test]
async fn a_cancel_ends_the_wait_and_loses_nothing() {
    let desk = desk();
    desk.start("cat").await;
    let (output, ()) = tokio::join!(desk.poll("p1"), async { desk.cancel.cancel() });
    assert!(output.result.is_error);
    assert_eq!(output.result.text, "Cancelled; p1 was left as it is.");
    let desk = Desk { cancel: CancellationToken::new(), ..desk };
    let input = json!({ "id": "p1", "input": "still here" });
    desk.write_until(input, "still here\n[p1 running]").await;
}

#[tokio::test]
async fn a_stop_ends_the_tree_and_says_so() {
    let desk = desk();
    let command = "echo $$; sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait";
    let pids = desk.start_tree(command, 3).await;
    let output = desk.stop("p1").await;
    let end = "[p1 stopped: killed by SIGTERM]\n[no process of it is left]";
    assert!(output.result.text.ends_with(end), "{}", output.result.text);
    assert!(!output.result.is_error);
    assert_eq!(output.exit_code, None);
    assert!(!pids.iter().any(|pid| runs(pid)));
    assert!(desk.stop("p1").await.result.is_error);
}

#[tokio::test]
async fn who_had_ended_before_the_stop_is_no_error() {
    let desk = desk();
    desk.start("read x; echo bye; exit 5").await;
    let entry = desk.entry("p1");
    entry.process().end_input().await.unwrap();
    entry.process().ended().await;
    let output = desk.stop("p1").await;
    assert_eq!(output.result.text, "bye\n[p1 exit 5]\n[no process of it is left]");
    assert_eq!(output.exit_code, Some(5));
}

#[tokio::test]
async fn the_end_of_the_tools_is_the_end_of_the_processes() {
    let desk = desk();
    let pids = desk.start_tree("echo $$; sleep 1000 & echo $!; wait", 2).await;
    drop(desk);
    while pids.iter().any(|pid| runs(pid)) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_flood_is_cut_and_counted() {
    let desk = desk();
    desk.start("read x; yes 0123456789 | head -c 40000; read x; yes | head -c 1000000").await;
    let entry = desk.entry("p1");
    let flood = async |total: u64| {
        entry.process().write(b"\n").await.unwrap();
        while entry.process().written() < total {
            entry.process().output_after(entry.process().written()).await;
        }
        desk.poll("p1").await.result.text
    };
    let text = flood(40_000).await;
    assert!(text.starts_with("0123456789\n") && text.ends_with("0123\n[p1 running]"), "{text}");
    let omitted = omitted(&text);
    assert!((7_000..8_000).contains(&omitted), "{omitted}");
    entry.process().write(b"\n").await.unwrap();
    entry.process().ended().await;
    let text = desk.poll("p1").await.result.text;
    assert!(text.starts_with("[... "), "{text}");
    assert!(text.ends_with("y\n[p1 exit 0]") && text.len() <= SHOWN + 100);
    assert_eq!(
        text.lines().filter(|line| *line == "y").count() * 2 + self::omitted(&text),
        1_000_000
    );
}

fn omitted(text: &str) -> usize {
    text.split_once("[... ").unwrap().1.split_once(' ').unwrap().0.parse().unwrap()
}

#[tokio::test]
async fn a_character_in_two_pieces_is_one() {
    let desk = desk();
    let command = "printf 'a\\303'; read x; printf '\\244\\033[1'; read x; printf 'mb\\n'";
    desk.start_until(json!({ "command": command }), "p1", "a\n[p1 running]").await;
    desk.write_until(json!({ "id": "p1" }), "ä\n[p1 running]").await;
    desk.write_until(json!({ "id": "p1" }), "b\n[p1 exit 0]").await;
}

#[tokio::test]
async fn a_terminal_is_there_if_asked_for() {
    let desk = desk();
    let line = "test -t 0 && echo tty $TERM; echo ${HOME-none}";
    let arguments = json!({ "command": line, "pty": true });
    desk.start_until(arguments, "p1", "tty xterm-256color\nnone\n[p1 exit 0]").await;
    let arguments = json!({ "command": "test -t 0 || echo none $TERM" });
    desk.start_until(arguments, "p2", "none dumb\n[p2 exit 0]").await;
    desk.start_until(json!({ "command": "echo up; cat", "pty": true }), "p3", "up\n[p3 running]")
        .await;
    desk.write_until(json!({ "id": "p3", "input": "hello" }), "hello\nhello\n[p3 running]").await;
    let arguments = json!({ "id": "p3", "input": "\u{3}", "newline": false });
    desk.write_until(arguments, "^C\n[p3 killed by SIGINT]").await;
}

#[tokio::test]
async fn who_reads_no_input_is_named() {
    let desk = desk();
    let command = json!({ "command": "exec 0<&-; echo up; sleep 1000" });
    desk.start_until(command, "p1", "up\n[p1 running]").await;
    let output = desk.call(&desk.write, json!({ "id": "p1", "input": "x" })).await.result;
    assert!(output.is_error);
    assert!(output.text.starts_with("p1 does not read its input: "), "{}", output.text);
}

#[tokio::test]
async fn folders_are_entered_and_lost_ones_named() {
    let desk = desk();
    std::fs::create_dir(desk.folder.path().join("sub")).unwrap();
    let root = desk.folder.path().canonicalize().unwrap();
    let arguments = json!({ "command": "pwd; read x", "cwd": "sub", "name": "reader" });
    let said = format!("{}/sub\n[p1 running]", root.display());
    desk.start_until(arguments, "p1", &said).await;
    assert_eq!(desk.list().await, "p1 [running] reader: pwd; read x in sub");
    let lost = json!({ "command": "pwd", "cwd": "lost" });
    let output = desk.call(&desk.start, lost).await.result;
    assert!(output.is_error && output.text.contains("/lost does not exist"), "{}", output.text);
}

#[tokio::test]
async fn only_the_end_tells_what_ran_and_what_it_counted() {
    let counting = "cargo() { echo 'test result: FAILED. 1 passed; 2 failed'; return 4; }";
    let counts = CheckCounts { passed: Some(1), failed: Some(2), ..CheckCounts::default() };
    let of = |line: &str, exit_code, counts| {
        let line = format!("{counting}; read x; {line}");
        ProgramRun { line, exit_code, check: None, counts, unclear: false }
    };
    for expected in [
        of("cargo test", Some(4), counts),
        // Counts of output that was lost would be wrong.
        of("cargo test; head -c 20000000 /dev/zero", Some(0), CheckCounts::default()),
        of("exec sleep 600", None, CheckCounts::default()),
    ] {
        let desk = desk();
        let started = desk.call(&desk.start, json!({ "command": expected.line })).await;
        assert_eq!(started.runs, []);
        let entry = desk.entry("p1");
        let output = if expected.exit_code.is_some() {
            entry.process().write(b"\n").await.unwrap();
            entry.process().ended().await;
            desk.poll("p1").await
        } else {
            desk.stop("p1").await
        };
        assert_eq!(output.runs, [expected]);
    }
}

fn start_plain(desk: &Desk, spawn: Spawn) -> Arc<Entry> {
    let (line, title) = ("x".to_owned(), "x".to_owned());
    desk.processes.start(spawn, Console::Pipes, line, title, PathBuf::new()).unwrap()
}

#[tokio::test]
async fn there_are_only_so_many() {
    let desk = desk();
    for _ in 0..RUNNING {
        let spawn = Spawner::default().bash("read x", desk.folder.path());
        start_plain(&desk, spawn);
    }
    assert!(desk.start("true").await.starts_with("16 processes run already"));
    desk.stop("p3").await;
    assert!(desk.start("true").await.starts_with("[p17 "));
    assert!(
        desk.poll("p99")
            .await
            .result
            .text
            .starts_with("There is no process p99. There are: p1, p2, p4,")
    );
    assert!(desk.poll("\u{1b}").await.result.text.starts_with("There is no process ␛."));
}

#[tokio::test]
async fn ended_ones_are_forgotten_when_there_are_too_many() {
    let desk = desk();
    let mut last = None;
    for _ in 0..=ENDED + 1 {
        let spawn = Spawner::default().bash("true", desk.folder.path());
        let entry = start_plain(&desk, spawn);
        entry.process().ended().await;
        last = Some(entry);
    }
    assert_eq!(last.unwrap().id(), "p18");
    let list = desk.list().await;
    assert_eq!(list.lines().count(), ENDED + 1);
    assert!(list.starts_with("p2 [exit 0] x\n"), "{list}");
}

#[tokio::test]
async fn what_a_call_touches_is_declared() {
    let desk = desk();
    let root = desk.folder.path().canonicalize().unwrap();
    let start = |arguments| desk.start.subjects(&serde_json::from_value(arguments).unwrap());
    let line = Subject::Command { line: "make watch".to_owned(), cwd: root.join("sub") };
    assert_eq!(start(json!({ "command": "make watch", "cwd": "sub" })), Ok(vec![line]));
    assert!(start(json!({ "command": " " })).is_err());

    desk.start("cat").await;
    let write = |arguments| desk.write.subjects(&serde_json::from_value(arguments).unwrap());
    let line = Subject::Command { line: "rm -rf x␃\nls".to_owned(), cwd: root };
    assert_eq!(write(json!({ "id": "p1", "input": "rm -rf x\u{3}\nls" })), Ok(vec![line]));
    assert_eq!(write(json!({ "id": "p1", "eof": true })), Ok(vec![]));
    let judged = |input: &str| match write(json!({ "id": "p1", "input": input })).unwrap().pop() {
        Some(Subject::Command { line, .. }) => line,
        other => panic!("{other:?}"),
    };
    for (given, newline, next, whole) in [
        ("git pu", false, "sh", "git push"),
        ("sh", true, "ls", "ls"),
        ("git \\", true, "push", "git \\\npush"),
        ("push", true, "ls", "ls"),
        ("echo \\\\", true, "ls", "ls"),
    ] {
        desk.call(&desk.write, json!({ "id": "p1", "input": given, "newline": newline })).await;
        assert_eq!(judged(next), whole, "after {given:?}");
    }
    assert!(write(json!({ "id": "p2", "input": "x" })).is_err());
    let args = serde_json::from_value(json!({ "id": "p1", "input": "a\u{1b}" })).unwrap();
    assert_eq!(desk.write.preview(&args).unwrap(), "to p1 [running] cat:\na␛");
}

#[tokio::test]
async fn a_line_in_pieces_is_judged_whole() {
    let desk = desk();
    desk.start_until(json!({ "command": "echo up; cat" }), "p1", "up\n[p1 running]").await;
    let piece = |input: &str| json!({ "id": "p1", "input": input, "newline": false });
    let judged = |arguments: &Value| -> Vec<String> {
        let args = serde_json::from_value(arguments.clone()).unwrap();
        let subjects = desk.write.subjects(&args).unwrap().into_iter();
        let line = |subject| match subject {
            Subject::Command { line, .. } => line,
            other => panic!("no command: {other:?}"),
        };
        subjects.map(line).collect()
    };
    let whole = json!({ "id": "p1", "input": "m -rf x" });
    let early = admit(&desk.write, &whole, next_key(), &desk.cancel);
    assert_eq!(judged(&piece("ls\nr")), ["ls\nr"]);
    desk.write_until(piece("ls\nr"), "ls\nr\n[p1 running]").await;
    assert_eq!(judged(&whole), ["rm -rf x"]);
    assert_eq!(judged(&json!({ "id": "p1" })), ["r"]);
    let args = serde_json::from_value(whole.clone()).unwrap();
    assert_eq!(
        desk.write.preview(&args).unwrap(),
        "to p1 [running] echo up; cat:\nrm -rf x\n(an earlier call wrote the beginning)"
    );
    // It was decided on before the line was begun.
    let output = desk.write.run(args, &early).await.result;
    assert!(output.is_error && output.text.starts_with("Something else was written to p1"));
    desk.write_until(whole.clone(), "m -rf x\n[p1 running]").await;
    assert_eq!(judged(&whole), ["m -rf x"]);
    assert_eq!(judged(&json!({ "id": "p1" })), [""; 0]);
}

#[test]
fn where_a_line_ends_is_the_consoles_to_say() {
    let terminal = Console::Terminal(loon_exec::WindowSize { rows: 1, columns: 1 });
    for (typed, on_pipes, on_terminal) in [
        ("", None, None),
        ("rm", None, None),
        ("ls\nr", Some(2), Some(2)),
        ("a\nb\n", Some(3), Some(3)),
        ("a\rb", None, Some(1)),
        ("a\u{3}b", None, Some(1)),
        ("ls\nr\\\nm", Some(2), Some(2)),
        ("r\\\rm", None, None),
        ("r\\\u{3}m", None, Some(2)),
    ] {
        let ends = [Console::Pipes, terminal].map(|it| last_line_end(typed.as_bytes(), it));
        assert_eq!(ends, [on_pipes, on_terminal], "{typed:?}");
    }
}

#[test]
fn one_look_at_a_silent_process_differs_from_the_next() {
    let look = |millis| running("p1", Duration::from_millis(millis), true);
    assert_eq!(look(40_900), "[p1 running for 40 s, no new output]");
    assert_eq!(look(41_000), "[p1 running for 41 s, no new output]");
    assert_eq!(running("p2", Duration::ZERO, false), "[p2 running for 0 s]");
}

#[test]
fn the_gate_waits_longer_than_the_tool() {
    let poll = ProcessPoll::new(&Arc::default());
    let gate =
        |wait: Value| poll.timeout(&serde_json::from_value(wait).unwrap()).unwrap().as_secs();
    assert_eq!(gate(json!({ "id": "p1" })), 16);
    assert_eq!(gate(json!({ "id": "p1", "wait_secs": 100 })), 106);
    assert_eq!(gate(json!({ "id": "p1", "wait_secs": 1_000_000 })), 606);
}

#[test]
fn what_models_are_told_is_short() {
    let Desk { start, poll, write, stop, list, .. } = desk();
    let tools = [
        native_tool(start),
        native_tool(poll),
        native_tool(write),
        native_tool(stop),
        native_tool(list),
    ];
    for tool in tools {
        let spec = tool.spec();
        let schema = json!({ "type": "function", "function": {
            "name": spec.name, "description": spec.description, "parameters": spec.parameters,
        }});
        let size = schema.to_string().len();
        assert!(size <= 380, "{size} bytes: {schema}");
    }
}
