//! What counts as given, and until when.

use loon_api::event::{ContextCompacted, ItemCompleted, SessionRewound};
use loon_api::{
    At, CallId, Compaction, Cost, FileChange, Item, ItemId, ToolCallStatus, TurnNumber, Usage,
    WorkingRecord,
};
use serde_json::json;

use super::*;

const PATH: &str = "src/AGENTS.md";

fn complete(conversation: &mut Conversation, item: Item) {
    conversation.apply(Some(item.turn), &ItemCompleted { item }.into());
}

fn say(conversation: &mut Conversation, turn: TurnNumber) {
    let body = ItemBody::UserMessage { text: "go".into(), steer: false };
    complete(conversation, Item { id: ItemId::user(turn, 0), turn, body });
}

/// A call that ends so, bringing this version of the file.
fn bring(
    conversation: &mut Conversation,
    turn: TurnNumber,
    status: ToolCallStatus,
    sha256: &str,
    text: Option<&str>,
) {
    let guidance = Guidance {
        path: PATH.into(),
        scope: GuidanceScope::Folder { folder: "src".into() },
        sha256: sha256.into(),
        text: text.map(str::to_owned),
    };
    let waiting = ToolCallItem::waiting(CallId::of(turn, 0, 0), "read", json!({}));
    let call = ToolCallItem { status, guidance: vec![guidance], ..waiting };
    let id = ItemId::call(turn, 0, 0);
    complete(conversation, Item { id, turn, body: ItemBody::ToolCall(call) });
}

fn given(conversation: &Conversation) -> bool {
    conversation.given().has(PATH, "v1")
}

#[test]
fn only_calls_that_were_made_or_held_bring_guidance() {
    for (status, counts) in [
        (ToolCallStatus::Done, true),
        (ToolCallStatus::Failed, true),
        (ToolCallStatus::Denied, false),
        (ToolCallStatus::Cancelled, false),
    ] {
        let mut conversation = Conversation::default();
        bring(&mut conversation, 1, status, "v1", Some("words"));
        assert_eq!(given(&conversation), counts, "{status:?}");
        let told = format!("{:?}", conversation.messages()).contains("words");
        assert_eq!(told, counts, "{status:?}");
    }
    let mut conversation = Conversation::default();
    bring(&mut conversation, 1, ToolCallStatus::Failed, "v1", None);
    assert!(!given(&conversation));
}

#[test]
fn another_version_is_not_given_and_the_same_answer_had_not_seen_it() {
    let mut conversation = Conversation::default();
    bring(&mut conversation, 3, ToolCallStatus::Done, "v1", Some("words"));
    let known = conversation.given();
    assert!(!known.has(PATH, "v2") && !known.has("AGENTS.md", "v1"));
    assert!(!known.had_before(PATH, "v1", Some("3.0")));
    assert!(known.had_before(PATH, "v1", Some("3.1")));
    assert_eq!(known.folders().collect::<Vec<_>>(), ["src"]);
    bring(&mut conversation, 4, ToolCallStatus::Done, "v2", Some("other words"));
    assert!(!given(&conversation) && conversation.given().has(PATH, "v2"));
}

#[test]
fn what_the_model_wrote_itself_it_knows() {
    let mut conversation = Conversation::default();
    let change =
        FileChange { path: PATH.into(), after: Some("v1".into()), ..FileChange::default() };
    let undone =
        FileChange { undoes: Some(loon_api::EffectKey::new("t1/s0/c0")), ..change.clone() };
    for (turn, change, knows) in [(1, undone, false), (2, change, true)] {
        let waiting = ToolCallItem::waiting(CallId::of(turn, 0, 0), "write", json!({}));
        let call = ToolCallItem { status: ToolCallStatus::Done, changes: vec![change], ..waiting };
        let id = ItemId::call(turn, 0, 0);
        complete(&mut conversation, Item { id, turn, body: ItemBody::ToolCall(call) });
        assert_eq!(given(&conversation), knows);
    }
}

#[test]
fn a_rewind_takes_it_back_and_a_compaction_leaves_it_out() {
    let mut conversation = Conversation::default();
    say(&mut conversation, 1);
    bring(&mut conversation, 1, ToolCallStatus::Done, "v1", Some("words"));
    say(&mut conversation, 2);
    let compaction = |kept_from| Compaction {
        kept_from: Some(kept_from),
        handoff: Some("handoff".into()),
        skills: Vec::new(),
        running: Vec::new(),
        cut_texts: None,
        cut_prompts: None,
        tokens_before: 2,
        tokens_after: 1,
        requests: 1,
        usage: Usage::default(),
        cost: Cost::default(),
        model: "lab/m".into(),
        automatic: false,
        focus: None,
        at: At::from_unix_ms(0),
    };
    let compact = |conversation: &mut Conversation, number, from| {
        let item = ItemId::compaction(2, number);
        let compacted = ContextCompacted { item, compaction: compaction(from) };
        conversation.apply(Some(2), &compacted.into());
    };
    compact(&mut conversation, 0, ItemId::user(1, 0));
    assert!(given(&conversation), "it is still sent");
    compact(&mut conversation, 1, ItemId::user(2, 0));
    assert!(!given(&conversation));
    let rewound =
        |to: ItemId| SessionRewound { to, text: String::new(), record: WorkingRecord::default() };
    // The window from before the compactions is back.
    conversation.apply(None, &rewound(ItemId::user(2, 0)).into());
    assert!(given(&conversation));
    conversation.apply(None, &rewound(ItemId::user(1, 0)).into());
    assert!(!given(&conversation));
}
