//! Replays of records that were tampered with, and scripts of sessions.

use loon_api::event::{EffectFinished, EffectKind, EffectStarted, EffectStatus, TurnFinished};
use loon_api::{
    AgentEvent, At, Cost, EffectKey, Envelope, ExecutionId, Item, ItemBody, ItemId, TurnStatus,
    Usage, VERSION,
};
use loon_kernel::gate::request_digest;

use super::script::ScriptWriter;
use super::{Replay, Replayed};
use crate::conversation::Conversation;

fn envelope(seq: u64, event: impl Into<AgentEvent>) -> Envelope {
    let (at, exec) = (At::from_unix_ms(seq as i64), ExecutionId::generate());
    Envelope { v: VERSION, seq: Some(seq), at, exec, turn: Some(1), event: event.into() }
}

fn words(text: &str) -> AgentEvent {
    let body = ItemBody::UserMessage { text: text.to_owned(), steer: false };
    loon_api::event::ItemCompleted { item: Item { id: ItemId::user(1, 0), turn: 1, body } }.into()
}

fn started(request: Option<String>) -> AgentEvent {
    EffectStarted {
        key: EffectKey::model(1, 0),
        kind: EffectKind::Model,
        target: "lab/m".into(),
        item: None,
        timeout_ms: None,
        request,
    }
    .into()
}

fn finished(receipt: Option<loon_api::Receipt>) -> AgentEvent {
    TurnFinished {
        status: TurnStatus::Completed,
        error: None,
        steps: 1,
        usage: Usage::default(),
        cost: Cost::default(),
        models: vec![],
        receipt,
        review: None,
    }
    .into()
}

fn digest_of(text: &str) -> String {
    let mut conversation = Conversation::default();
    conversation.apply(Some(1), &words(text));
    request_digest(&conversation.request_messages())
}

fn replay(events: Vec<AgentEvent>, only: Option<u32>) -> Replayed {
    let mut replay = Replay::new(only);
    for (seq, event) in (1..).zip(events) {
        if !replay.take(&envelope(seq, event)) {
            break;
        }
    }
    replay.finish()
}

#[test]
fn the_same_records_give_the_same_requests() {
    let found = replay(vec![words("go"), started(Some(digest_of("go"))), finished(None)], None);
    assert_eq!(found, Replayed { requests: 1, ..Replayed::default() });
}

#[test]
fn the_first_difference_is_told_with_its_place() {
    let events = vec![words("go"), started(Some(digest_of("stop"))), started(Some("x".into()))];
    let difference = replay(events.clone(), None).difference.unwrap();
    assert_eq!((difference.seq, difference.what.as_str()), (2, "request t1/s0/model"));
    assert_eq!(difference.recorded, digest_of("stop"));
    assert_eq!(difference.now, format!("{}, 1 messages with 1 parts", digest_of("go")));
    assert_eq!(replay(events, Some(2)), Replayed::default());
}

#[test]
fn what_cannot_be_compared_is_counted_or_said() {
    let found = replay(vec![words("go"), started(None)], None);
    assert_eq!(found, Replayed { without_digest: 1, ..Replayed::default() });
    let unknown = AgentEvent::Unknown { kind: "session.dreamt".into() };
    let found = replay(vec![unknown, started(Some("x".into()))], None);
    assert!(found.ended.unwrap().contains("session.dreamt") && found.difference.is_none());
}

#[test]
fn a_receipt_that_the_records_do_not_give_is_a_difference() {
    let receipt = loon_api::Receipt { runs_before: 3, ..loon_api::Receipt::default() };
    let difference = replay(vec![words("go"), finished(Some(receipt))], None).difference.unwrap();
    assert_eq!((difference.what.as_str(), difference.now.as_str()), ("receipt", "none"));
}

#[test]
fn summaries_and_tools_are_no_steps_of_a_script() {
    let effect = |key: EffectKey, kind| {
        let (target, output) = ("lab/m".into(), serde_json::json!({"stop": "end", "items": 0}));
        let begun = EffectStarted {
            key: key.clone(),
            kind,
            target,
            item: None,
            timeout_ms: None,
            request: None,
        };
        let ended = EffectFinished {
            key,
            status: EffectStatus::Completed,
            error: None,
            ms: 1,
            usage: Usage::default(),
            cost: Cost::default(),
            output: Some(output),
        };
        [AgentEvent::from(begun), ended.into()]
    };
    let steps = |events: [AgentEvent; 2]| {
        let mut writer = ScriptWriter::default();
        writer.take(&envelope(1, words("go")));
        for event in events {
            writer.take(&envelope(2, event));
        }
        writer.finish().lines().filter(|line| !line.starts_with('#')).count()
    };
    assert_eq!(steps(effect(EffectKey::model(1, 0), EffectKind::Model)), 1);
    assert_eq!(steps(effect(EffectKey::summary("ab", 0), EffectKind::Model)), 0);
    assert_eq!(steps(effect(EffectKey::call(1, 0, 0), EffectKind::Tool)), 0);
}
