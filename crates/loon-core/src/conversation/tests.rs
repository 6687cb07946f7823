//! Tests of the conversation fold.

use loon_api::event::{ItemCompleted, PromptQueued, SessionRewound, TurnStarted};
use loon_api::{AssistantPart, CallId, Message, Thinking, ToolCallStatus, ToolResult};
use serde_json::json;

use super::*;

fn complete(conversation: &mut Conversation, item: Item) {
    let turn = item.turn;
    conversation.apply(Some(turn), &ItemCompleted { item }.into());
}

fn user(turn: TurnNumber, text: &str) -> Item {
    let body = ItemBody::UserMessage { text: text.into(), steer: false };
    Item { id: ItemId::user(turn, 0), turn, body }
}

fn words(turn: TurnNumber, step: u32, text: &str) -> Item {
    let body = ItemBody::AssistantMessage { text: text.into(), incomplete: false };
    Item { id: ItemId::text(turn, step, 0), turn, body }
}

fn call(turn: TurnNumber, step: u32, index: u32, status: ToolCallStatus) -> Item {
    let result = (status == ToolCallStatus::Done).then(|| ToolResult::ok("fine"));
    let waiting =
        ToolCallItem::waiting(CallId::of(turn, step, index), "read", json!({"path": "a"}));
    let body = ItemBody::ToolCall(ToolCallItem { status, result, ..waiting });
    Item { id: ItemId::call(turn, step, index), turn, body }
}

fn begin(conversation: &mut Conversation, turn: TurnNumber) {
    let started = TurnStarted { model: "lab/m".into(), mode: Mode::Default, branch: None };
    conversation.apply(Some(turn), &started.into());
}

fn shape(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .map(|message| match message {
            Message::User(parts) => format!("user*{}", parts.len()),
            Message::Assistant(answer) => {
                let parts: Vec<&str> = answer
                    .parts
                    .iter()
                    .map(|part| match part {
                        AssistantPart::Text(_) => "text",
                        AssistantPart::Thinking(_) => "thinking",
                        AssistantPart::Call(_) => "call",
                    })
                    .collect();
                parts.join("+")
            }
        })
        .collect()
}

#[test]
fn the_items_of_one_step_are_one_answer_and_steps_stay_apart() {
    let mut conversation = Conversation::default();
    begin(&mut conversation, 1);
    complete(&mut conversation, user(1, "go"));
    complete(&mut conversation, words(1, 0, "looking"));
    complete(&mut conversation, call(1, 0, 0, ToolCallStatus::Done));
    complete(&mut conversation, call(1, 0, 1, ToolCallStatus::Done));
    complete(&mut conversation, words(1, 1, "done"));
    assert_eq!(shape(&conversation.messages()), ["user*1", "text+call+call", "text"]);
}

#[test]
fn a_later_item_with_the_same_id_replaces_the_earlier_in_its_place() {
    let mut conversation = Conversation::default();
    complete(&mut conversation, call(1, 0, 0, ToolCallStatus::Waiting));
    complete(&mut conversation, words(1, 1, "x"));
    complete(&mut conversation, call(1, 0, 0, ToolCallStatus::Done));
    assert_eq!(conversation.items().len(), 2);
    assert!(conversation.unfinished_calls().is_empty());
}

#[test]
fn a_call_without_a_result_is_answered_with_what_is_known() {
    let mut conversation = Conversation::default();
    complete(&mut conversation, call(1, 0, 0, ToolCallStatus::Unknown));
    let [Message::Assistant(answer)] = &conversation.messages()[..] else { panic!("one answer") };
    let [AssistantPart::Call(call)] = &answer.parts[..] else { panic!("one call") };
    assert!(call.result.is_error);
    assert!(call.result.text.contains("unknown"));
}

#[test]
fn reasoning_without_words_or_calls_is_not_sent_as_an_answer() {
    let mut conversation = Conversation::default();
    complete(&mut conversation, user(1, "go"));
    let thinking = Thinking { text: "hm".into(), model: "lab/m".into(), opaque: None };
    let body = ItemBody::Thinking(thinking);
    complete(&mut conversation, Item { id: ItemId::thinking(1, 0, 0), turn: 1, body });
    assert_eq!(shape(&conversation.messages()), ["user*1"]);
}

#[test]
fn a_rewind_takes_the_message_and_all_after_it_and_turn_numbers_go_on() {
    let mut conversation = Conversation::default();
    for turn in 1..=2 {
        begin(&mut conversation, turn);
        complete(&mut conversation, user(turn, "go"));
        complete(&mut conversation, words(turn, 0, "ok"));
    }
    let rewound = SessionRewound {
        to: ItemId::user(2, 0),
        text: "go".into(),
        record: WorkingRecord::default(),
    };
    conversation.apply(None, &rewound.into());
    assert_eq!(conversation.items().len(), 2);
    assert_eq!(conversation.last_turn(), 2);
    assert_eq!(shape(&conversation.messages()), ["user*1", "text"]);
}

#[test]
fn queued_words_leave_the_queue_when_they_enter_the_transcript() {
    let mut conversation = Conversation::default();
    begin(&mut conversation, 1);
    for text in ["a", "b"] {
        conversation.apply(Some(1), &PromptQueued { text: text.into(), steer: true }.into());
    }
    complete(&mut conversation, user(1, "a"));
    assert_eq!(conversation.queued(), [Queued { text: "b".into(), steer: true }]);
}

#[test]
fn pages_end_before_the_given_item_and_say_whether_older_ones_exist() {
    let mut conversation = Conversation::default();
    for turn in 1..=5 {
        complete(&mut conversation, user(turn, "x"));
    }
    let (page, more) = conversation.page(Some(&ItemId::user(4, 0)), 2);
    let ids: Vec<&str> = page.iter().map(|item| item.id.as_str()).collect();
    assert_eq!((ids, more), (vec!["2.u0", "3.u0"], true));
    assert!(!conversation.page(None, 9).1);
}

#[test]
fn a_conversation_of_the_newest_says_what_it_left_out() {
    let mut newest = Conversation::newest(3);
    for turn in 1..=7 {
        begin(&mut newest, turn);
        complete(&mut newest, user(turn, "x"));
    }
    let ids: Vec<&str> = newest.items().iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids, ["5.u0", "6.u0", "7.u0"]);
    assert_eq!(newest.page(None, 9).1, !newest.is_whole());
    assert_eq!((newest.turns(), newest.title()), (7, Some("x")));
    let to = ItemId::user(6, 0);
    newest.apply(
        None,
        &SessionRewound { to, text: "x".into(), record: WorkingRecord::default() }.into(),
    );
    assert_eq!(newest.items().len(), 1);
    let to = ItemId::user(2, 0);
    newest.apply(
        None,
        &SessionRewound { to, text: "x".into(), record: WorkingRecord::default() }.into(),
    );
    assert!(newest.items().is_empty());
}
