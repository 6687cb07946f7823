//! Verdicts that are and are not, and what a reviewer is shown.

use loon_api::event::{ItemCompleted, SubagentStarted, TurnStarted};
use loon_api::receipt::{CheckCounts, CheckKind, ProgramRun};
use loon_api::{
    AgentEvent, CallId, ChecklistStep, ExecutionId, FileChange, Item, ItemBody, ItemId, Mode,
    RecordChange, ReviewVerdict, StopReason, Task, ToolCallItem, ToolCallStatus, ToolResult,
    WorkStatus, WorkingRecord,
};
use proptest::prelude::*;
use serde_json::json;

use super::evidence::evidence;
use super::open_work;
use super::verdict::parse;
use crate::conversation::Conversation;

fn judged(words: &str) -> (ReviewVerdict, Vec<String>) {
    let review = parse(words, StopReason::End);
    (review.verdict, review.findings)
}

#[test]
fn a_verdict_is_read_with_and_without_words_around_it() {
    for words in [
        r#"{"verdict": "accept", "findings": []}"#,
        r#"{"verdict": "accept"}"#,
        "Looks good.\n```json\n{\"verdict\": \"accept\", \"findings\": []}\n```\nDone.",
    ] {
        assert_eq!(judged(words), (ReviewVerdict::Accepted, vec![]), "{words}");
    }
    let words = r#"{"verdict": "reject", "findings": ["no\ttest", "  ", "a.rs:3 leaks"]}"#;
    let findings = vec!["no test".to_owned(), "a.rs:3 leaks".to_owned()];
    assert_eq!(judged(words), (ReviewVerdict::Findings, findings));
}

#[test]
fn what_is_no_clear_verdict_accepts_nothing() {
    for (words, why) in [
        ("", "said nothing"),
        ("I accept.", "no JSON object"),
        ("{\"verdict\": \"maybe\"}", "not the JSON"),
        ("{\"verdict\": \"accept\", \"findings\": [\"but\"]}", "accepts and has findings"),
        ("{\"verdict\": \"reject\", \"findings\": []}", "rejects without a finding"),
        ("{\"verdict\": \"accept\", \"findings\": [}", "not the JSON"),
        ("} {", "no JSON object"),
    ] {
        let review = parse(words, StopReason::End);
        assert_eq!(review.verdict, ReviewVerdict::Failed, "{words}");
        let message = review.error.unwrap().message;
        assert!(message.contains(why), "{words}: {message}");
    }
    let cut = parse("{\"verdict\": \"accept\"}", StopReason::Length);
    assert_eq!(cut.verdict, ReviewVerdict::Failed);
}

proptest! {
    #[test]
    fn no_words_make_the_parser_fail_or_accept_by_accident(words in ".{0,300}") {
        let accepts = words.contains("accept");
        prop_assert!(accepts || judged(&words).0 != ReviewVerdict::Accepted);
    }
}

fn step(text: &str, status: WorkStatus) -> ChecklistStep {
    ChecklistStep { step: text.to_owned(), status }
}

#[test]
fn open_steps_and_tasks_are_named_and_finished_ones_are_not() {
    let mut record = WorkingRecord::default();
    assert_eq!(open_work(&record), None);
    let steps =
        vec![step("write it", WorkStatus::Completed), step("test it", WorkStatus::InProgress)];
    record.apply(&RecordChange::Checklist { steps });
    let task = Task {
        id: 1,
        title: "tell them".to_owned(),
        description: String::new(),
        status: WorkStatus::Pending,
        blocked_by: vec![],
    };
    record.apply(&RecordChange::Task { task });
    let open = "Open steps and tasks: 2.\n- plan: [>] test it\n- task: [ ] 1: tell them";
    assert_eq!(open_work(&record).unwrap(), open);
    record.apply(&RecordChange::TaskRemoved { id: 1 });
    record.apply(&RecordChange::Checklist { steps: vec![step("test it", WorkStatus::Completed)] });
    assert_eq!(open_work(&record), None);
}

fn take(conversation: &mut Conversation, turn: u32, event: impl Into<AgentEvent>) {
    conversation.apply(Some(turn), &event.into());
}

fn begin(conversation: &mut Conversation, turn: u32, text: &str) {
    let started = TurnStarted { model: "lab/m".into(), mode: Mode::Auto, branch: None };
    take(conversation, turn, started);
    let body = ItemBody::UserMessage { text: text.to_owned(), steer: false };
    let item = Item { id: ItemId::user(turn, 0), turn, body };
    take(conversation, turn, ItemCompleted { item });
}

fn call(turn: u32, index: u32, tool: &str, title: &str) -> ToolCallItem {
    let waiting = ToolCallItem::waiting(CallId::of(turn, 0, index), tool, json!({}));
    ToolCallItem { status: ToolCallStatus::Done, title: title.to_owned(), ms: Some(1), ..waiting }
}

fn made(conversation: &mut Conversation, turn: u32, index: u32, call: ToolCallItem) {
    let item = Item { id: ItemId::call(turn, 0, index), turn, body: ItemBody::ToolCall(call) };
    take(conversation, turn, ItemCompleted { item });
}

#[test]
fn a_reviewer_is_shown_records_and_the_claim_as_a_claim() {
    let mut conversation = Conversation::default();
    begin(&mut conversation, 1, "make the pager");
    begin(&mut conversation, 2, "now mend the bound");
    let change = FileChange {
        path: "src/pager.rs".into(),
        before: Some("1".into()),
        after: Some("2".into()),
        diff: "-old bound\n+new bound".into(),
        ..FileChange::default()
    };
    let edit = ToolCallItem { changes: vec![change], ..call(2, 0, "edit", "src/pager.rs") };
    made(&mut conversation, 2, 0, edit);
    let counts = CheckCounts { passed: Some(3), failed: Some(1), ..CheckCounts::default() };
    let line = "cargo test".to_owned();
    let run = ProgramRun {
        line,
        exit_code: Some(101),
        check: Some(CheckKind::Test),
        counts,
        unclear: false,
    };
    let test = ToolCallItem {
        runs: vec![run],
        exit_code: Some(101),
        result: Some(ToolResult::error("1 failed: off by one")),
        ..call(2, 1, "bash", "cargo test")
    };
    made(&mut conversation, 2, 1, test);
    let lost =
        ToolCallItem { status: ToolCallStatus::Unknown, ..call(2, 2, "bash", "make deploy") };
    made(&mut conversation, 2, 2, lost);
    let child = SubagentStarted {
        id: "a1".into(),
        agent: "helper".into(),
        child: ExecutionId::generate(),
        task: "look into it".into(),
        model: "lab/m".into(),
        effort: None,
        background: true,
        worktree: Some("/w".into()),
    };
    take(&mut conversation, 2, child);
    let shown = evidence(&conversation, 2, "All tests pass.", 64 * 1024);
    let section = |name: &str| {
        let (_, rest) = shown.split_once(&format!("<{name}>\n")).unwrap();
        rest.split_once(&format!("\n</{name}>")).unwrap().0.to_owned()
    };
    assert_eq!(section("request"), "now mend the bound");
    assert_eq!(section("earlier-requests"), "make the pager");
    assert_eq!(section("claim"), "All tests pass.");
    let receipt = section("receipt");
    assert!(receipt.contains("- src/pager.rs (changed)"), "{receipt}");
    assert!(receipt.contains("- exit 101: cargo test  {\"passed\":3,\"failed\":1}"), "{receipt}");
    assert!(receipt.contains("Effect unknown (outcome_unknown): bash make deploy"), "{receipt}");
    assert!(section("diffs").contains("+new bound"));
    assert!(section("results").contains("1 failed: off by one"));
    assert!(section("calls").contains("bash make deploy: unknown"));
    assert_eq!(section("agents"), "a1 (helper): still at work; its task: look into it");
}

#[test]
fn evidence_fits_the_room_that_a_small_model_has() {
    let mut conversation = Conversation::default();
    begin(&mut conversation, 1, &"long ".repeat(40_000));
    for index in 0..300 {
        let result = Some(ToolResult::ok("x".repeat(4_000)));
        let run =
            ToolCallItem { exit_code: Some(0), result, ..call(1, index, "bash", &"y".repeat(200)) };
        made(&mut conversation, 1, index, run);
    }
    let shown = evidence(&conversation, 1, &"done ".repeat(10_000), 8 * 1024);
    assert!(shown.len() < 10 * 1024, "{}", shown.len());
    assert!(shown.contains("earlier calls]") || shown.contains("</calls>"));
}
