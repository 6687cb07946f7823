//! What receipts say of records.

use loon_api::event::{
    ExecutionResumed, ItemCompleted, SessionForked, SubagentFinished, SubagentStarted,
};
use loon_api::receipt::{CheckCounts, CheckKind, NetChange, ProgramRun, Receipt, UnknownCause};
use loon_api::{
    CallId, Cost, ExecutionId, FileChange, Item, ItemBody, ItemId, SubagentStatus, ToolCallItem,
    ToolCallStatus, Usage,
};
use proptest::prelude::*;
use serde_json::json;

use super::{ReceiptFold, check};

fn call(tool: &str, status: ToolCallStatus) -> ToolCallItem {
    ToolCallItem {
        status,
        ms: Some(1),
        ..ToolCallItem::waiting(CallId::of(1, 0, 0), tool, json!({}))
    }
}

fn done(call: ToolCallItem) -> loon_api::AgentEvent {
    let item = Item { id: ItemId::new("1.0.c0"), turn: 1, body: ItemBody::ToolCall(call) };
    ItemCompleted { item }.into()
}

fn change(path: &str, before: Option<&str>, after: Option<&str>) -> FileChange {
    FileChange {
        path: path.into(),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
        ..FileChange::default()
    }
}

fn edit(changes: Vec<FileChange>) -> loon_api::AgentEvent {
    done(ToolCallItem { changes, ..call("edit", ToolCallStatus::Done) })
}

fn ran(line: &str, exit_code: i32) -> ProgramRun {
    ProgramRun {
        line: line.into(),
        exit_code: Some(exit_code),
        check: None,
        counts: CheckCounts::default(),
        unclear: false,
    }
}

fn bash(line: &str, exit_code: i32) -> loon_api::AgentEvent {
    done(ToolCallItem { runs: vec![ran(line, exit_code)], ..call("bash", ToolCallStatus::Done) })
}

fn fold(events: &[loon_api::AgentEvent]) -> Receipt {
    let mut fold = ReceiptFold::default();
    for event in events {
        fold.apply(event);
    }
    fold.receipt().unwrap_or_default()
}

fn net(path: &str, before: Option<&str>, after: Option<&str>, from: Option<&str>) -> NetChange {
    let own = |text: Option<&str>| text.map(str::to_owned);
    NetChange { path: path.into(), before: own(before), after: own(after), from: own(from) }
}

#[test]
fn only_commands_after_the_last_edit_are_listed() {
    let receipt = fold(&[
        bash("cargo test", 0),
        edit(vec![change("a", Some("1"), Some("2"))]),
        bash("cargo build", 0),
        edit(vec![change("a", Some("2"), Some("3"))]),
        bash("cargo test -p x", 101),
        bash("ls", 0),
    ]);
    assert_eq!(receipt.changes, [net("a", Some("1"), Some("3"), None)]);
    assert_eq!(receipt.runs_before, 2);
    let test = ProgramRun { check: Some(CheckKind::Test), ..ran("cargo test -p x", 101) };
    assert_eq!(receipt.runs, [test, ran("ls", 0)]);
    assert_eq!(receipt.line().unwrap(), "cargo test -p x FAILED after the last edit");
}

#[test]
fn changes_are_net() {
    let moved = |path: &str, from: &str, hash: &str| FileChange {
        from: Some(from.into()),
        ..change(path, None, Some(hash))
    };
    let receipt = fold(&[
        edit(vec![change("back", Some("1"), Some("2")), change("new", None, Some("n"))]),
        edit(vec![change("back", Some("2"), Some("1")), change("gone", Some("g"), None)]),
        edit(vec![change("brief", None, Some("b"))]),
        edit(vec![change("brief", Some("b"), None), moved("to", "from", "m")]),
        edit(vec![change("to", Some("m"), Some("m2"))]),
        edit(vec![moved("there", "here", "h"), moved("here", "there", "h")]),
    ]);
    assert_eq!(
        receipt.changes,
        [
            net("new", None, Some("n"), None),
            net("gone", Some("g"), None, None),
            net("to", Some("m"), Some("m2"), Some("from")),
        ]
    );
}

#[test]
fn what_is_not_known_is_named() {
    let started = ToolCallItem {
        summary: "p1, running".into(),
        title: "npm run dev".into(),
        ..call("process_start", ToolCallStatus::Done)
    };
    let other =
        ToolCallItem { summary: "p2, running".into(), title: "x".into(), ..started.clone() };
    let stop = ToolCallItem {
        arguments: json!({"id": "p2"}),
        ..call("process_stop", ToolCallStatus::Done)
    };
    let never_began = ToolCallItem { ms: None, ..call("bash", ToolCallStatus::Cancelled) };
    let receipt = fold(&[
        done(ToolCallItem { title: "rm x".into(), ..call("bash", ToolCallStatus::Unknown) }),
        done(ToolCallItem { title: "sleep".into(), ..call("bash", ToolCallStatus::Cancelled) }),
        done(never_began),
        done(started),
        done(other),
        done(stop),
    ]);
    let unknown: Vec<(&str, UnknownCause)> =
        receipt.unknown.iter().map(|work| (work.what.as_str(), work.cause)).collect();
    assert_eq!(
        unknown,
        [
            ("bash rm x", UnknownCause::OutcomeUnknown),
            ("bash sleep", UnknownCause::Stopped),
            ("p1 (npm run dev)", UnknownCause::StillRunning),
        ]
    );
}

fn agent(id: &str, background: bool, worktree: Option<&str>) -> loon_api::AgentEvent {
    SubagentStarted {
        id: id.into(),
        agent: "worker".into(),
        child: ExecutionId::generate(),
        task: String::new(),
        model: "lab/m".into(),
        effort: None,
        background,
        worktree: worktree.map(str::to_owned),
    }
    .into()
}

fn ended(id: &str, receipt: Option<Receipt>) -> loon_api::AgentEvent {
    SubagentFinished {
        id: id.into(),
        agent: "worker".into(),
        child: ExecutionId::generate(),
        status: SubagentStatus::Completed,
        error: None,
        report: None,
        steps: 1,
        usage: Usage::default(),
        cost: Cost::default(),
        ms: None,
        effects: None,
        worktree: None,
        receipt,
    }
    .into()
}

#[test]
fn agents_in_the_same_tree_count() {
    let theirs = fold(&[
        bash("ls", 0),
        edit(vec![change("b", Some("1"), Some("2"))]),
        bash("cargo test", 0),
    ]);
    let waited =
        fold(&[bash("pwd", 0), agent("a1", false, None), ended("a1", Some(theirs.clone()))]);
    assert_eq!(waited.changes, theirs.changes);
    assert_eq!((waited.runs.len(), waited.runs_before), (1, 2));
    let beside =
        fold(&[agent("a1", true, None), bash("cargo test", 0), ended("a1", Some(theirs.clone()))]);
    assert_eq!((beside.runs.len(), beside.runs_before), (0, 3));
    let elsewhere = fold(&[agent("a1", false, Some("/w")), ended("a1", Some(theirs.clone()))]);
    assert!(elsewhere.is_empty());
    let working = fold(&[agent("a1", true, None)]);
    assert_eq!(working.unknown[0].what, "agent a1 (worker)");
}

#[test]
fn what_a_child_ran_proves_nothing_once_another_changed_files_beside_it() {
    let ran_only = fold(&[bash("cargo test", 0)]);
    let wrote = fold(&[edit(vec![change("c", None, Some("1"))])]);
    let mine = || edit(vec![change("a", None, Some("1"))]);
    let begin = |id: &str| agent(id, true, None);
    let end = |id: &str, receipt: &Receipt| ended(id, Some(receipt.clone()));
    let (tested, nothing) =
        ("cargo test passed after the last edit", "nothing was run after the last edit");
    let cases = [
        ("it began after my edit", vec![mine(), begin("a1"), end("a1", &ran_only)], tested),
        ("I edited meanwhile", vec![begin("a1"), mine(), end("a1", &ran_only)], nothing),
        ("I edited after it", vec![begin("a1"), end("a1", &ran_only), mine()], nothing),
        (
            "another child wrote meanwhile",
            vec![begin("a1"), begin("a2"), end("a2", &wrote), end("a1", &ran_only)],
            nothing,
        ),
        (
            "another child wrote, and ended later",
            vec![begin("a1"), begin("a2"), end("a1", &ran_only), end("a2", &wrote)],
            nothing,
        ),
        (
            "another one wrote in a tree of its own",
            vec![
                mine(),
                begin("a1"),
                agent("a2", true, Some("/w")),
                end("a2", &wrote),
                end("a1", &ran_only),
            ],
            tested,
        ),
        (
            "it ran in a tree of its own",
            vec![mine(), agent("a1", true, Some("/w")), end("a1", &ran_only)],
            nothing,
        ),
        (
            "a call waited for it while another child wrote",
            vec![begin("a2"), agent("a1", false, None), end("a2", &wrote), end("a1", &ran_only)],
            nothing,
        ),
    ];
    for (what, events, expected) in cases {
        assert_eq!(fold(&events).line().as_deref(), Some(expected), "{what}");
    }
    // Also if the edit was in a turn before.
    let mut former = ReceiptFold::default();
    for event in [begin("a1"), mine()] {
        former.apply(&event);
    }
    let mut next = former.carried_over();
    next.apply(&end("a1", &ran_only));
    let receipt = next.receipt().unwrap();
    assert_eq!((receipt.runs.len(), receipt.runs_before), (0, 1));
}

#[test]
fn a_process_counts_with_its_end_and_from_where_it_began() {
    let start = |line: &str| {
        done(ToolCallItem {
            arguments: json!({"command": line}),
            summary: "p1, running".into(),
            title: line.into(),
            ..call("process_start", ToolCallStatus::Done)
        })
    };
    let told = |tool: &str, runs: Vec<ProgramRun>| {
        done(ToolCallItem {
            arguments: json!({"id": "p1"}),
            exit_code: runs.first().and_then(|run| run.exit_code),
            runs,
            ..call(tool, ToolCallStatus::Done)
        })
    };
    let mine = || edit(vec![change("a", None, Some("1"))]);
    let end = |code| told("process_poll", vec![ran("cargo test", code)]);
    let killed = ProgramRun { exit_code: None, ..ran("cargo test", 0) };
    let at_once = done(ToolCallItem {
        runs: vec![ran("cargo test", 101)],
        exit_code: Some(101),
        summary: "p1, exit 101".into(),
        ..call("process_start", ToolCallStatus::Done)
    });
    for (events, expected) in [
        (vec![mine(), start("cargo test"), end(0)], "cargo test passed after the last edit"),
        (vec![mine(), start("cargo test"), end(101)], "cargo test FAILED after the last edit"),
        (vec![mine(), at_once], "cargo test FAILED after the last edit"),
        (vec![start("cargo test"), mine(), end(0)], "nothing was run after the last edit"),
        (
            vec![mine(), start("cargo test"), told("process_poll", vec![])],
            "nothing was run after the last edit; 1 call whose effect is unknown",
        ),
        (
            vec![mine(), start("cargo test"), told("process_stop", vec![killed])],
            "cargo test did not end after the last edit",
        ),
    ] {
        assert_eq!(fold(&events).line().as_deref(), Some(expected));
    }
    let before = fold(&[start("cargo test"), mine(), end(0)]);
    assert_eq!((before.runs_before, before.unknown.len()), (1, 0));
}

#[test]
fn a_failure_is_the_checks_only_if_nothing_else_in_the_line_can_fail() {
    let some = |failed| CheckCounts { passed: Some(1), failed, ..CheckCounts::default() };
    for (line, code, counts, unclear) in [
        ("false && cargo test", 1, CheckCounts::default(), true),
        ("cd lost && make test", 1, CheckCounts::default(), true),
        ("cd x && cargo test", 101, some(Some(1)), false),
        ("cargo test && ./deploy", 1, some(Some(0)), true),
        ("cargo test && ./deploy", 0, some(Some(0)), false),
        ("cargo build && cargo test", 101, CheckCounts::default(), false),
        ("CI=1 cargo test", 101, CheckCounts::default(), false),
        ("cargo test", 127, CheckCounts::default(), true),
        ("./test.sh", 126, CheckCounts::default(), true),
        ("cargo test", 101, CheckCounts::default(), false),
    ] {
        let run = ProgramRun { counts, ..ran(line, code) };
        let judged = check::judged(&run);
        assert_eq!((judged.unclear, judged.check.is_some()), (unclear, true), "{line}");
    }
    // A tool that names its check ran that and nothing else.
    let own = ProgramRun { check: Some(CheckKind::Test), ..ran("sh -c x && y", 1) };
    assert_eq!(check::judged(&own), own);
    assert!(!check::judged(&ran("false && ls", 1)).unclear);
}

#[test]
fn lines_that_check_something_are_told_by_their_commands() {
    use CheckKind::{Build, Lint, Test};
    for (line, expected) in [
        ("cargo test", Some(Test)),
        ("cargo +nightly test -p x -- --nocapture", Some(Test)),
        ("RUST_LOG=debug cargo test 2>&1", Some(Test)),
        ("cd x && cargo build && cargo test", Some(Test)),
        ("timeout 60 cargo clippy --all-targets", Some(Lint)),
        ("env A=1 cargo check", Some(Build)),
        ("python3 -m pytest -q tests", Some(Test)),
        ("uv run pytest", Some(Test)),
        ("npm test", Some(Test)),
        ("npm run test:unit", Some(Test)),
        ("pnpm run build", Some(Build)),
        ("npx tsc --noEmit", Some(Build)),
        ("go test ./...", Some(Test)),
        ("./gradlew check", Some(Test)),
        ("make", Some(Build)),
        ("cargo test --no-run", None),
        ("cargo test || true", None),
        ("cargo test; echo done", None),
        ("cargo test | tail -5", None),
        ("cargo test &", None),
        ("! cargo test", None),
        ("echo cargo test", None),
        ("echo $(cargo test)", None),
        ("grep -r 'cargo test' .", None),
        ("if cargo test; then echo ok; fi", None),
        ("cargo fmt", None),
        ("npm install", None),
        ("sh -c 'cargo test'", None),
    ] {
        assert_eq!(check::of_line(line).map(|checks| checks.kind), expected, "{line}");
    }
}

#[test]
fn a_turn_begins_with_the_work_that_still_goes_on() {
    let process = ToolCallItem {
        summary: "p1, running".into(),
        title: "npm start".into(),
        ..call("process_start", ToolCallStatus::Done)
    };
    let mut former = ReceiptFold::default();
    for event in [agent("a1", true, None), done(process), edit(vec![change("a", None, Some("1"))])]
    {
        former.apply(&event);
    }
    let mut next = former.carried_over();
    let whats = |fold: &ReceiptFold| -> Vec<String> {
        fold.receipt().unwrap_or_default().unknown.into_iter().map(|work| work.what).collect()
    };
    assert_eq!(whats(&next), ["p1 (npm start)", "agent a1 (worker)"]);
    assert!(next.receipt().unwrap().changes.is_empty());
    let receipt = Receipt { changes: vec![net("b", None, Some("2"), None)], ..Receipt::default() };
    next.apply(&ended("a1", Some(receipt)));
    assert_eq!(next.receipt().unwrap().changes[0].path, "b", "what it did is not lost");

    let mut resumed = former.clone();
    resumed.apply(&ExecutionResumed { unknown: vec![], repaired_bytes: None }.into());
    assert_eq!(resumed.receipt().unwrap().unknown[0].cause, UnknownCause::OutcomeUnknown);
    assert_eq!(whats(&resumed.carried_over()), ["agent a1 (worker)"]);
    let from = ExecutionId::generate();
    former.apply(&SessionForked { from, records: 1 }.into());
    assert!(whats(&former).is_empty());
}

proptest! {
    /// However changes follow each other, the receipt compares first states with last ones.
    #[test]
    fn a_receipt_compares_the_first_state_with_the_last(
        writes in prop::collection::vec((0usize..4, 0u8..4), 0..40)
    ) {
        let mut disk: [u8; 4] = [0; 4];
        let mut events = Vec::new();
        let hash = |state: u8| (state > 0).then(|| format!("h{state}"));
        for (file, state) in writes {
            if disk[file] != state {
                let (before, after) = (hash(disk[file]), hash(state));
                let path = format!("f{file}");
                events.push(edit(vec![FileChange { path, before, after, ..FileChange::default() }]));
                disk[file] = state;
            }
        }
        let mut found: Vec<(String, Option<String>)> =
            fold(&events).changes.into_iter().map(|change| (change.path, change.after)).collect();
        found.sort();
        let expected: Vec<(String, Option<String>)> = (0..4)
            .filter(|file| disk[*file] != 0)
            .map(|file| (format!("f{file}"), hash(disk[file])))
            .collect();
        prop_assert_eq!(found, expected);
    }
}
