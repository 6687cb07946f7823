//! Turns that ask a combo.

use loon_api::event::TurnFinished;
use loon_kernel::{Member, Route};

use super::*;

/// A combo of models with these names and scripts.
pub(super) struct Combo(pub(super) Vec<Arc<FakeModel>>);

impl Models for Combo {
    fn open(&self, name: &str) -> Result<Arc<Route>, ErrorInfo> {
        let members = self
            .0
            .iter()
            .map(|model| Member { model: Arc::clone(model) as Arc<dyn Model>, retries: Some(0) });
        Ok(Arc::new(Route::combo(name.to_owned(), members).unwrap()))
    }

    fn names(&self) -> Vec<String> {
        vec!["combo/fast".into()]
    }
}

pub(super) fn member<const N: usize>(name: &str, steps: [Step; N]) -> Arc<FakeModel> {
    let info = ModelInfo { name: name.into(), context_tokens: None, max_output_tokens: None };
    Arc::new(FakeModel {
        info,
        steps: Mutex::new(steps.into_iter().collect()),
        summaries: Mutex::default(),
        requests: Mutex::default(),
    })
}

pub(super) fn busy() -> Step {
    Step::Fail(ModelError::new(ModelErrorKind::Overloaded, "busy"))
}

async fn asked(members: Vec<Arc<FakeModel>>) -> (Vec<Envelope>, Vec<usize>) {
    let mut bench = bench([]);
    bench.deps.models = Arc::new(Combo(members.clone()));
    bench.deps.options.model.value = Some("combo/fast".into());
    let events = run(&bench.deps, SessionChoice::New, &["go"]).await;
    let requests = members.iter().map(|model| model.requests.lock().unwrap().len()).collect();
    (events, requests)
}

fn turn_end(events: &[Envelope]) -> TurnFinished {
    let mut ends = events.iter().filter_map(|event| match &event.event {
        AgentEvent::TurnFinished(end) => Some(end.clone()),
        _ => None,
    });
    ends.next().unwrap()
}

fn reroutes(events: &[Envelope]) -> Vec<(String, String, String)> {
    events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::EffectRerouted(event) => {
                Some((event.key.to_string(), event.from.clone(), event.to.clone()))
            }
            _ => None,
        })
        .collect()
}

fn reroute(key: &str, from: &str, to: &str) -> (String, String, String) {
    (key.into(), from.into(), to.into())
}

#[tokio::test]
async fn a_turn_stays_with_the_model_that_answered_and_names_it() {
    let (events, requests) = asked(vec![
        member("lab/a", [busy()]),
        member("other/b", [calls(vec![call("change", 1)]), say("done")]),
    ])
    .await;
    assert_eq!(finished(&events).message.as_deref(), Some("done"));
    assert_eq!(requests, [1, 2]);
    assert_eq!(reroutes(&events), [reroute("t1/s0/model", "lab/a", "other/b")]);
    assert_eq!(turn_end(&events).models, ["other/b"]);
}

#[tokio::test]
async fn the_others_are_still_there_when_that_one_fails_too() {
    let (events, requests) = asked(vec![
        member("lab/a", [busy(), say("done")]),
        member("other/b", [calls(vec![call("change", 1)]), busy()]),
    ])
    .await;
    assert_eq!(finished(&events).message.as_deref(), Some("done"));
    assert_eq!(requests, [2, 2]);
    assert_eq!(turn_end(&events).models, ["other/b", "lab/a"]);
}

#[tokio::test]
async fn an_answer_that_breaks_twice_goes_to_the_next_model() {
    let (events, requests) = asked(vec![
        member("lab/a", [Step::Break("Hel"), Step::Break("Hell")]),
        member("other/b", [say("Hello")]),
    ])
    .await;
    assert_eq!(finished(&events).message.as_deref(), Some("Hello"));
    assert_eq!(requests, [2, 1]);
    assert_eq!(reroutes(&events), [reroute("t1/s1/model", "lab/a", "other/b")]);
    let texts = items(&events).into_iter().filter(|item| item.id != ItemId::user(1, 0));
    assert_eq!(texts.count(), 1, "what had arrived is void");
    assert_eq!(turn_end(&events).steps, 3);
}

#[tokio::test]
async fn answers_that_break_everywhere_end_the_turn() {
    let (events, requests) = asked(vec![
        member("lab/a", [Step::Break("a"), Step::Break("b")]),
        member("other/b", [Step::Break("c"), Step::Break("d")]),
    ])
    .await;
    assert_eq!(finished(&events).outcome, Outcome::Failed);
    assert_eq!(requests, [2, 2]);
    let last = ItemBody::AssistantMessage { text: "d".into(), incomplete: true };
    assert_eq!(items(&events).last().unwrap().body, last);
    let error = finished(&events).error.clone().unwrap();
    assert_eq!(
        error.message,
        "no model of combo/fast gave a whole answer. lab/a: connection lost; other/b: connection lost"
    );
}

#[tokio::test]
async fn a_single_model_needs_no_mention_in_its_turn() {
    let bench = bench([say("done")]);
    let events = run(&bench.deps, SessionChoice::New, &["go"]).await;
    assert_eq!(turn_end(&events).models, [""; 0]);
}

#[tokio::test]
async fn a_window_is_learned_of_the_model_that_it_belongs_to_and_the_handoff_names_its_writer() {
    let overflow = Step::Fail(ModelError::new(ModelErrorKind::ContextOverflow, "too long"));
    let first = member("lab/a", [say("one"), say("two"), busy(), say("three")]);
    let second = member("lab/b", [overflow]);
    let mut bench = bench([]);
    bench.deps.models = Arc::new(Combo(vec![first, second]));
    bench.deps.options.model.value = Some("combo/fast".into());
    let long = "x".repeat(8_000);
    let events = run(&bench.deps, SessionChoice::New, &[&long, &long, "go"]).await;
    assert_eq!(finished(&events).outcome, Outcome::Completed);
    let writers: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::ContextCompacted(compacted) => Some(compacted.compaction.model.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(writers, ["lab/b"]);
    let limits: Vec<Option<u64>> = events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::ContextEstimated(estimated) => Some(estimated.threshold),
            _ => None,
        })
        .collect();
    assert!(limits.iter().all(Option::is_none), "nothing is known of lab/a: {limits:?}");
}
