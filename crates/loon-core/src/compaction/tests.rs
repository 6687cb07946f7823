//! Properties of plans, pieces and the fold, over conversations of any shape.

use loon_api::event::{ContextCompacted, ItemCompleted, SessionRewound};
use loon_api::{
    AgentEvent, AssistantPart, CallId, Item, ItemBody, Message, ToolCallItem, ToolCallStatus,
    ToolResult, UserPart,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::conversation::Conversation;

/// One answer: words or none, and how long the results of its calls are.
#[derive(Clone, Debug)]
struct Step {
    words: usize,
    thinks: bool,
    results: Vec<usize>,
    remarked: bool,
}

/// One turn: how long the prompt is, the answers, and words of the user between them.
#[derive(Clone, Debug)]
struct Turn {
    prompt: usize,
    steps: Vec<Step>,
    steered: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (0..400usize, any::<bool>(), prop::collection::vec(0..3_000usize, 0..4), any::<bool>())
        .prop_map(|(words, thinks, results, remarked)| Step { words, thinks, results, remarked })
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (1..1_500usize, prop::collection::vec(step(), 0..5), any::<bool>())
        .prop_map(|(prompt, steps, steered)| Turn { prompt, steps, steered });
    prop::collection::vec(turn, 1..7)
}

fn complete(events: &mut Vec<AgentEvent>, id: ItemId, turn: u32, body: ItemBody) {
    events.push(ItemCompleted { item: Item { id, turn, body } }.into());
}

fn events_of(turns: &[Turn]) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    for (turn, what) in (1..).zip(turns) {
        let text = format!("P{turn}. {}", "p".repeat(what.prompt));
        let prompt = ItemBody::UserMessage { text, steer: false };
        complete(&mut events, ItemId::user(turn, 0), turn, prompt);
        for (number, step) in (0..).zip(&what.steps) {
            let mark = format!("T{turn}S{number}");
            if step.thinks {
                let thinking =
                    loon_api::Thinking { text: "hm".into(), model: "lab/m".into(), opaque: None };
                let body = ItemBody::Thinking(thinking);
                complete(&mut events, ItemId::thinking(turn, number, 0), turn, body);
            }
            let text = format!("{mark} {}", "w".repeat(step.words));
            let body = ItemBody::AssistantMessage { text, incomplete: false };
            complete(&mut events, ItemId::text(turn, number, 0), turn, body);
            for (index, size) in (0..).zip(&step.results) {
                let mark = format!("{mark}C{index};");
                let call = CallId::of(turn, number, index);
                let waiting = ToolCallItem::waiting(call, "read", json!({ "path": mark }));
                let result = Some(ToolResult::ok(format!("R{mark} {}", "r".repeat(*size))));
                let done = ToolCallItem { status: ToolCallStatus::Done, result, ..waiting };
                let body = ItemBody::ToolCall(done);
                complete(&mut events, ItemId::call(turn, number, index), turn, body);
            }
            if step.remarked && !step.results.is_empty() {
                let body = ItemBody::Notice { text: "again?".into(), about_call: true };
                complete(&mut events, ItemId::notice(turn, number), turn, body);
            }
        }
        if what.steered {
            let body = ItemBody::UserMessage { text: format!("STEER{turn};"), steer: true };
            complete(&mut events, ItemId::user(turn, 1), turn, body);
        }
    }
    events
}

fn fold(events: &[AgentEvent]) -> Conversation {
    let mut conversation = Conversation::default();
    let goal = loon_api::RecordChange::Goal { goal: Some("THE GOAL".into()) };
    conversation.apply(None, &loon_api::event::RecordChanged { change: goal }.into());
    for event in events {
        let turn = match event {
            AgentEvent::ItemCompleted(completed) => Some(completed.item.turn),
            _ => None,
        };
        conversation.apply(turn, event);
    }
    conversation
}

fn compacted(plan: &Plan, conversation: &Conversation) -> AgentEvent {
    let compaction = Compaction {
        kept_from: plan.kept_from.clone(),
        handoff: if plan.summarised.is_empty() {
            plan.handoff.clone()
        } else {
            Some("HANDOFF".into())
        },
        skills: Vec::new(),
        running: vec!["p1 [running] server".into()],
        cut_texts: plan.cut_texts,
        cut_prompts: plan.cut_prompts,
        tokens_before: 2,
        tokens_after: 1,
        requests: 1,
        usage: Usage::default(),
        cost: Cost::default(),
        model: "lab/m".into(),
        automatic: true,
        focus: None,
        at: At::from_unix_ms(0),
    };
    let item = ItemId::compaction(conversation.last_turn(), conversation.compactions());
    ContextCompacted { item, compaction }.into()
}

/// All calls that are sent, each with its result, in order.
fn sent_calls(messages: &[Message]) -> Vec<String> {
    let parts = messages.iter().flat_map(|message| match message {
        Message::Assistant(answer) => answer.parts.as_slice(),
        Message::User(_) => &[],
    });
    parts
        .filter_map(|part| match part {
            AssistantPart::Call(call) => Some(call.id.to_string()),
            _ => None,
        })
        .collect()
}

fn user_words(messages: &[Message]) -> String {
    let parts = messages.iter().flat_map(|message| match message {
        Message::User(parts) => parts.as_slice(),
        Message::Assistant(_) => &[],
    });
    parts
        .filter_map(|part| match part {
            UserPart::Text(text) => Some(text.as_str()),
            UserPart::Image { .. } => None,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Calls of one answer are all sent or none of them is.
fn check_batches(turns: &[Turn], sent: &[String]) -> Result<(), TestCaseError> {
    for (turn, what) in (1..).zip(turns) {
        for (number, step) in (0..).zip(&what.steps) {
            let ids = (0..step.results.len() as u32).map(|index| CallId::of(turn, number, index));
            let there = ids.filter(|id| sent.contains(&id.to_string())).count();
            prop_assert!(
                there == 0 || there == step.results.len(),
                "T{}S{}: {} of {}",
                turn,
                number,
                there,
                step.results.len()
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn c060_a_cut_never_falls_inside_a_batch_and_what_is_pinned_stays(
        turns in turns(),
        tail in 0..3_000u64,
        longest in prop::option::of(20..1_000u64),
        more in turns(),
    ) {
        let mut events = events_of(&turns);
        let before = fold(&events);
        let Some(plan) = Plan::of(&before, Room { tail, newest: longest, prompts: longest }) else { return Ok(()) };
        events.push(compacted(&plan, &before));
        let after = fold(&events);
        let messages = after.messages();
        check_batches(&turns, &sent_calls(&messages))?;

        // Everything that is not in the window is in what was summarised, and the other way round.
        let kept = sent_calls(&messages);
        let summarised: String =
            plan.summarised.iter().map(|unit| before.unit_text(unit.clone(), 1 << 20)).collect();
        for (turn, what) in (1..).zip(&turns) {
            for (number, step) in (0..).zip(&what.steps) {
                for index in 0..step.results.len() as u32 {
                    let is_kept = kept.contains(&CallId::of(turn, number, index).to_string());
                    let result = format!("RT{turn}S{number}C{index};");
                    let told = summarised.contains(&result);
                    prop_assert!(is_kept != told, "T{}S{}C{}", turn, number, index);
                }
            }
        }
        let words = user_words(&messages);
        prop_assert!(words.contains("Goal: THE GOAL") && words.contains("p1 [running] server"));
        let newest = turns.len();
        let begins = format!("P{newest}. ");
        prop_assert!(words.contains(&begins));
        if plan.cut_prompts.is_none() {
            let prompt = format!("P{newest}. {}", "p".repeat(turns[newest - 1].prompt));
            prop_assert_eq!(words.matches(&prompt).count(), 1);
        }
        if turns[newest - 1].steered {
            let steer = format!("STEER{newest};");
            prop_assert_eq!(words.matches(&steer).count(), 1);
        }
        prop_assert!(plan.summarised.is_empty() || words.contains("HANDOFF"));
        // The window is measured as it is sent.
        let window = after.window();
        prop_assert_eq!(&window.messages, &messages);

        // The fold gives the same whenever it is made, and a rewind brings the old window back.
        prop_assert_eq!(&fold(&events), &after);
        let mut taken_back = events.clone();
        let last = ItemId::user(u32::try_from(newest).unwrap(), 0);
        let rewound = SessionRewound { to: last.clone(), text: String::new(), record: before.record().as_ref().clone() };
        taken_back.push(rewound.clone().into());
        let mut never = events_of(&turns);
        never.push(rewound.into());
        prop_assert_eq!(fold(&taken_back).messages(), fold(&never).messages());

        // What is said later comes behind the same beginning, and can be compacted again.
        let base = turns.len() as u32;
        for event in events_of(&more) {
            if let AgentEvent::ItemCompleted(mut completed) = event {
                completed.item.turn += base;
                if let ItemBody::UserMessage { .. } = completed.item.body {
                    completed.item.id = ItemId::user(completed.item.turn, 0);
                    events.push(completed.into());
                }
            }
        }
        let longer = fold(&events);
        let longer_messages = longer.messages();
        let same = messages.len() - 1;
        prop_assert_eq!(&longer_messages[..same], &messages[..same]);
        if let Some(second) = Plan::of(&longer, Room { tail, newest: longest, prompts: longest }) {
            if !second.summarised.is_empty() && !plan.summarised.is_empty() {
                prop_assert!(second.earlier.contains("HANDOFF"));
            }
            events.push(compacted(&second, &longer));
            check_batches(&turns, &sent_calls(&fold(&events).messages()))?;
        }
    }

    #[test]
    fn h021_each_piece_fits_and_no_unit_is_torn(turns in turns(), room in 200..4_000u64) {
        let conversation = fold(&events_of(&turns));
        let Some(plan) = Plan::of(&conversation, Room { tail: 0, newest: None, prompts: None }) else { return Ok(()) };
        let pieces = chunks::transcript(&conversation, &plan, room);
        for piece in &pieces {
            prop_assert!(estimate::text(piece) <= room + 1, "{} > {}", estimate::text(piece), room);
        }
        for unit in &plan.summarised {
            let mark = conversation.unit_text(unit.clone(), 1 << 20);
            let Some(first) = mark.split([' ', '\n']).find(|word| word.starts_with('T')) else { continue };
            let holding = pieces.iter().filter(|piece| piece.contains(&format!("[assistant]\n{first} "))).count();
            prop_assert!(holding <= 1, "{} is in {} pieces", first, holding);
        }
        let groups = chunks::groups(&pieces, room);
        prop_assert!(pieces.len() < 2 || groups.len() <= pieces.len().div_ceil(2) + pieces.len() / 3);
        for group in &groups {
            prop_assert!(estimate::text(group) <= room + 1);
        }
    }
}

#[test]
fn a_text_too_long_for_any_window_is_cut_with_a_mark_and_only_where_it_is_sent() {
    let turns = [Turn {
        prompt: 10,
        steps: vec![Step {
            words: 5,
            thinks: false,
            results: vec![5_000_000, 10],
            remarked: false,
        }],
        steered: false,
    }];
    let mut events = events_of(&turns);
    let before = fold(&events);
    let plan =
        Plan::of(&before, Room { tail: 1_000, newest: Some(1_000), prompts: Some(1_000) }).unwrap();
    assert!(plan.summarised.is_empty() && plan.cut_prompts.is_none());
    events.push(compacted(&plan, &before));
    let after = fold(&events);
    let Message::Assistant(answer) = &after.messages()[1] else { panic!("the answer") };
    let AssistantPart::Call(call) = &answer.parts[1] else { panic!("a call") };
    assert!(call.result.text.starts_with("RT1S0C0;") && call.result.text.ends_with("rrr"));
    assert!(call.result.text.contains("bytes are left out here"));
    assert!(after.window().parts.total() < 1_200);
    let ItemBody::ToolCall(kept) = &after.items()[2].body else { panic!("the item") };
    assert!(kept.result.as_ref().unwrap().text.len() > 5_000_000);
}

#[test]
fn what_is_learned_of_one_model_says_nothing_of_another() {
    let mut keeper = ContextKeeper { sent: 1_000, ..ContextKeeper::default() };
    keeper.note_usage(Usage { input_tokens: Some(2_000), ..Usage::default() }, "lab/a");
    let scale = |keeper: &ContextKeeper, model| Of::known(keeper.scale.as_ref(), model);
    assert_eq!((scale(&keeper, "lab/a"), scale(&keeper, "lab/b")), (Some(2.0), None));
    let overflowed = |keeper: &ContextKeeper, model| Of::known(keeper.overflowed.as_ref(), model);
    keeper.note_too_long("lab/b", "too long");
    assert_eq!((overflowed(&keeper, "lab/a"), overflowed(&keeper, "lab/b")), (None, Some(1_000)));
    keeper.note_too_long("lab/a", "too long");
    assert_eq!(overflowed(&keeper, "lab/a"), Some(2_000), "the least of one model only");
    assert_eq!(keeper.learned("lab/a"), Some(1_800));
    // What a server names outlasts a choice of another model.
    keeper.note_too_long("lab/a", "maximum context length is 900 tokens");
    assert_eq!(keeper.learned("lab/a"), Some(900));
    keeper.forget_model();
    assert_eq!((keeper.learned("lab/a"), keeper.learned("lab/b")), (Some(900), None));
}
