//! What a client is told, event by event.

use loon_api::event::{
    ApprovalRequested, ApprovalResolved, ContextEstimated, Decision, ItemCompleted, ItemDropped,
    ItemStarted, Notice, ResourcesUpdated,
};
use loon_api::{Approval, CallId, Money, Thinking, ToolResult, Usage};
use serde_json::{Value, json};

use super::*;

fn narrator(notices: bool) -> Narrator {
    Narrator::new(Client { notices }, PathBuf::from("/work"))
}

fn told(narrator: &mut Narrator, event: impl Into<AgentEvent>) -> Vec<Value> {
    let updates = narrator.tell(&event.into());
    updates.iter().map(|update| serde_json::to_value(update).unwrap()).collect()
}

fn text(id: &ItemId, text: &str) -> ItemCompleted {
    let body = ItemBody::AssistantMessage { text: text.to_owned(), incomplete: false };
    ItemCompleted { item: Item { id: id.clone(), turn: 1, body } }
}

fn delta(id: &ItemId, of: DeltaKind, text: &str) -> ItemDelta {
    ItemDelta { item: id.clone(), of, text: text.to_owned() }
}

fn call(status: loon_api::ToolCallStatus, arguments: Value) -> Item {
    let call =
        ToolCallItem { status, ..ToolCallItem::waiting(CallId::of(1, 0, 0), "bash", arguments) };
    Item { id: ItemId::call(1, 0, 0), turn: 1, body: ItemBody::ToolCall(call) }
}

#[test]
fn what_was_streamed_is_not_told_again() {
    let mut narrator = narrator(false);
    let id = ItemId::text(1, 0, 0);
    let streamed = told(&mut narrator, delta(&id, DeltaKind::Text, "Hel\u{1b}"));
    assert_eq!(
        streamed,
        [json!({"sessionUpdate": "agent_message_chunk", "messageId": "1.0.m0",
            "content": {"type": "text", "text": "Hel\u{fffd}"}})]
    );
    let rest = told(&mut narrator, text(&id, "Hel\u{1b}lo"));
    assert_eq!(rest[0]["content"]["text"], "lo");
    told(&mut narrator, delta(&id, DeltaKind::Text, "all"));
    assert_eq!(told(&mut narrator, text(&id, "all")), [] as [Value; 0]);
    assert_eq!(told(&mut narrator, text(&id, "new"))[0]["content"]["text"], "new");
}

#[test]
fn reasoning_is_a_thought() {
    let mut narrator = narrator(false);
    let id = ItemId::thinking(1, 0, 0);
    let thinking = Thinking { text: "hm".to_owned(), model: "lab/coder".to_owned(), opaque: None };
    let item = Item { id, turn: 1, body: ItemBody::Thinking(thinking) };
    let told = told(&mut narrator, ItemCompleted { item });
    assert_eq!(told[0]["sessionUpdate"], "agent_thought_chunk");
    assert_eq!(told[0]["content"]["text"], "hm");
}

#[test]
fn a_call_is_told_once_and_then_updated() {
    use loon_api::ToolCallStatus::{Running, Waiting};
    let mut narrator = narrator(false);
    let mut kinds = Vec::new();
    for (status, arguments) in
        [(Waiting, Value::Null), (Waiting, json!({"command": "ls"})), (Running, Value::Null)]
    {
        let update = told(&mut narrator, ItemStarted { item: call(status, arguments) }).remove(0);
        kinds.push((update["sessionUpdate"].clone(), update["status"].clone()));
    }
    assert_eq!(
        kinds,
        [
            // Pending is what a new call is without a word.
            (json!("tool_call"), Value::Null),
            (json!("tool_call_update"), json!("pending")),
            (json!("tool_call_update"), json!("in_progress")),
        ]
    );
}

#[test]
fn live_output_is_told_until_the_result_takes_its_place() {
    let mut narrator = narrator(false);
    let running = call(loon_api::ToolCallStatus::Running, json!({}));
    told(&mut narrator, ItemStarted { item: running.clone() });
    assert_eq!(
        told(&mut narrator, delta(&running.id, DeltaKind::Output, "one\n")),
        [] as [Value; 0]
    );
    let due = narrator.next_due().unwrap();
    let live = serde_json::to_value(&narrator.tell_due(due)[0]).unwrap();
    assert_eq!(live["content"][0]["content"]["text"], "```\none\n```");
    told(&mut narrator, delta(&running.id, DeltaKind::Output, "two\n"));
    let mut done = call(loon_api::ToolCallStatus::Done, json!({}));
    if let ItemBody::ToolCall(call) = &mut done.body {
        call.result = Some(ToolResult::ok("one\ntwo\n"));
    }
    let end = told(&mut narrator, ItemCompleted { item: done });
    assert_eq!(end[0]["status"], "completed");
    assert_eq!(end[0]["content"][0]["content"]["text"], "```\none\ntwo\n```");
    assert_eq!(narrator.next_due(), None);
}

#[test]
fn a_broken_answer_is_said_to_be_void() {
    let mut narrator = narrator(false);
    let id = ItemId::text(1, 0, 0);
    told(&mut narrator, delta(&id, DeltaKind::Text, "I will"));
    let void = told(&mut narrator, ItemDropped { item: id });
    assert!(void[0]["content"]["text"].as_str().unwrap().contains("does not count"));
    told(&mut narrator, ItemStarted { item: call(loon_api::ToolCallStatus::Waiting, json!({})) });
    let void = told(&mut narrator, ItemDropped { item: ItemId::call(1, 0, 0) });
    assert_eq!(void[0]["status"], "failed");
    let unseen = told(&mut narrator, ItemDropped { item: ItemId::text(1, 1, 0) });
    assert_eq!(unseen, [] as [Value; 0]);
}

#[test]
fn remarks_stand_apart_or_are_notices() {
    let notice = || Notice {
        level: NoticeLevel::Warning,
        message: "The settings changed.".to_owned(),
        hints: vec!["Look at them.".to_owned()],
    };
    let as_text = told(&mut narrator(false), notice());
    assert_eq!(as_text[0]["sessionUpdate"], "agent_message_chunk");
    let words = "\n\n> **Loom:** The settings changed.\n> Look at them.\n\n";
    assert_eq!(as_text[0]["content"]["text"], words);
    assert_eq!(
        told(&mut narrator(true), notice()),
        [json!({"sessionUpdate": "notice", "severity": "warning",
            "title": "The settings changed.", "description": "Look at them."})]
    );
}

#[test]
fn the_checklist_is_the_plan() {
    let mut done = call(loon_api::ToolCallStatus::Done, json!({}));
    if let ItemBody::ToolCall(call) = &mut done.body {
        let step = |step: &str, status| ChecklistStep { step: step.to_owned(), status };
        let steps = vec![step("look", WorkStatus::Completed), step("fix", WorkStatus::InProgress)];
        call.record = vec![RecordChange::Checklist { steps }];
    }
    let updates = told(&mut narrator(false), ItemCompleted { item: done });
    assert_eq!(
        updates[1],
        json!({"sessionUpdate": "plan", "entries": [
            {"content": "look", "priority": "medium", "status": "completed"},
            {"content": "fix", "priority": "medium", "status": "in_progress"},
        ]})
    );
}

#[test]
fn usage_is_told_once_the_window_is_known() {
    let mut narrator = narrator(false);
    let spent = |cents: &str| ResourcesUpdated {
        tokens: 5,
        usage: Usage::default(),
        cost: Cost { usd: cents.parse::<Money>().unwrap(), unpriced: 0 },
        ms: 1,
        count: 1,
        requests: 1,
        exceeded: false,
        bounds: loon_api::Bounds::default(),
    };
    let full = |capacity| ContextEstimated {
        tokens: 10,
        capacity,
        limit: None,
        threshold: None,
        parts: None,
    };
    assert_eq!(told(&mut narrator, spent("0.25")), [] as [Value; 0]);
    assert_eq!(told(&mut narrator, full(None)), [] as [Value; 0]);
    let usage = told(&mut narrator, full(Some(100)));
    assert_eq!(
        usage,
        [json!({"sessionUpdate": "usage_update", "used": 10, "size": 100,
            "cost": {"amount": 0.25, "currency": "USD"}})]
    );
    assert_eq!(told(&mut narrator, spent("0.25")), [] as [Value; 0]);
    assert_eq!(told(&mut narrator, spent("0.5"))[0]["cost"]["amount"], 0.5);
}

#[test]
fn a_child_that_asks_is_a_call_of_its_own() {
    let mut narrator = narrator(false);
    let id = ApprovalId::new("a1/t1/s0/c0");
    let approval = Approval {
        id: id.clone(),
        item: ItemId::call(1, 0, 0),
        tool: "bash".to_owned(),
        arguments: json!({}),
        detail: "ls".to_owned(),
        reasons: Vec::new(),
        cwd: "/work".to_owned(),
        always: None,
    };
    let asked = told(&mut narrator, ApprovalRequested { approval });
    assert_eq!(asked[0]["sessionUpdate"], "tool_call");
    assert_eq!(asked[0]["toolCallId"], "a1/t1/s0/c0");
    let answered =
        |decision| ApprovalResolved { approval: id.clone(), decision, reason: None, rule: None };
    let answered = told(&mut narrator, answered(Decision::Denied));
    assert_eq!(
        (&answered[0]["toolCallId"], &answered[0]["status"]),
        (&json!("a1/t1/s0/c0"), &json!("failed"))
    );
}
