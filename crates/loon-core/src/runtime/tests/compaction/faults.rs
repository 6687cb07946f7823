//! Summaries that break or come to no end, and limits that servers name.

use loon_api::event::EffectRerouted;

use super::super::combos::{Combo, busy, member};
use super::*;

fn notices(events: &[Envelope]) -> Vec<&str> {
    let told = events.iter().filter_map(|event| match &event.event {
        AgentEvent::Notice(notice) => Some(notice.message.as_str()),
        _ => None,
    });
    told.collect()
}

fn reroutes(events: &[Envelope]) -> Vec<(&str, &str)> {
    let told = events.iter().filter_map(|event| match &event.event {
        AgentEvent::EffectRerouted(EffectRerouted { from, to, .. }) => {
            Some((from.as_str(), to.as_str()))
        }
        _ => None,
    });
    told.collect()
}

fn summaries_at(model: &FakeModel) -> usize {
    model.requests.lock().unwrap().iter().filter(|request| is_summary(request)).count()
}

/// A bench with a combo of two members that answer these requests for summaries.
fn pair(first: Vec<Step>, second: Vec<Step>) -> (Bench, Arc<FakeModel>, Arc<FakeModel>) {
    let one = member("lab/a", [say("one"), say("two"), say("three"), say("four")]);
    let other = member("other/b", []);
    one.summaries.lock().unwrap().extend(first);
    other.summaries.lock().unwrap().extend(second);
    let mut bench = bench([]);
    bench.deps.models = Arc::new(Combo(vec![Arc::clone(&one), Arc::clone(&other)]));
    bench.deps.options.model.value = Some("combo/fast".into());
    (bench, one, other)
}

#[tokio::test]
async fn a_summary_that_breaks_is_asked_for_anew() {
    let steps = vec![say("one"), say("two"), say("three")];
    let bench = windowed(Some(50_000), steps, vec![Step::Break("half"), say("port 4711")]);
    let commands = vec![long("a"), long("b"), compact(), prompt("c")];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    assert_eq!((failures(&events).len(), compactions(&events).len()), (0, 1));
    assert_eq!(
        notices(&events),
        ["The request for a summary failed: connection lost. Asking anew."]
    );
    assert!(words(&split(&bench).1[2]).contains("port 4711"));
}

#[tokio::test]
async fn a_summary_that_breaks_twice_goes_to_the_next_member() {
    let breaks = || vec![Step::Break("half"), Step::Break("half")];
    let commands = || vec![long("a"), long("b"), compact()];
    let (bench, one, other) = pair(breaks(), vec![say("port 4711")]);
    let events = drive(&bench.deps, SessionChoice::New, commands()).await;
    assert_eq!((summaries_at(&one), summaries_at(&other)), (2, 1));
    assert_eq!(reroutes(&events), [("lab/a", "other/b")]);
    assert_eq!(compactions(&events)[0].model, "other/b");

    let (bench, one, other) = pair(breaks(), breaks());
    let events = drive(&bench.deps, SessionChoice::New, commands()).await;
    assert_eq!((summaries_at(&one), summaries_at(&other)), (2, 2));
    let [failed] = failures(&events)[..] else { panic!("one failure") };
    assert_eq!(failed.error.code, ErrorCode::Network);
    assert!(failed.error.message.contains("connection lost"), "{}", failed.error.message);
}

#[tokio::test]
async fn the_member_that_wrote_a_piece_is_asked_first_for_the_next_one() {
    let (mut bench, one, other) = pair(vec![busy()], Vec::new());
    bench.deps.options.context = ContextLimits { max_tokens: Some(8_000), compact_at: None };
    let commands = vec![long("a"), long("b"), long("c"), prompt("d")];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    let [compaction] = compactions(&events)[..] else { panic!("one compaction") };
    assert_eq!((compaction.requests, compaction.model.as_str()), (3, "other/b"));
    assert_eq!((summaries_at(&one), summaries_at(&other)), (1, 3));
}

#[tokio::test]
async fn a_summary_without_an_end_is_stopped_and_says_so() {
    let endless: &'static str = Box::leak("word ".repeat(40_000).into_boxed_str());
    let steps = vec![say("one"), say("two")];
    let bench = windowed(Some(100_000), steps, vec![Step::Hang(endless), say("short")]);
    let commands = vec![long("a"), long("b"), compact(), compact()];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    let [failed] = failures(&events)[..] else { panic!("one failure") };
    assert_eq!(failed.error.code, ErrorCode::OutputLimit);
    let expected =
        "No summary: the model wrote more than 128 KiB without coming to an end, and was stopped.";
    assert_eq!(failed.error.message, expected);
    assert_eq!(compactions(&events).len(), 1);
    let bounds: Vec<_> = split(&bench).0.iter().map(|asked| asked.max_output_tokens).collect();
    assert_eq!(bounds, [Some(16 * 1024); 2]);
}

#[tokio::test]
async fn the_bound_of_a_summary_is_the_least_of_what_is_known() {
    for (window, own, expected) in [
        (Some(20_000), None, Some(10_000)),
        (Some(20_000), Some(2_000), Some(2_000)),
        (Some(1_000_000), None, Some(16_384)),
        (None, Some(4_000), Some(4_000)),
        (None, None, None),
    ] {
        let mut bench = windowed(window, vec![say("one"), say("two")], Vec::new());
        let info =
            ModelInfo { name: "lab/m".into(), context_tokens: window, max_output_tokens: own };
        bench.model = Arc::new(FakeModel {
            info,
            steps: Mutex::default(),
            summaries: Mutex::default(),
            requests: Mutex::default(),
        });
        bench.deps.models = Arc::new(OneModel(Arc::clone(&bench.model)));
        let commands = vec![long("a"), long("b"), compact()];
        drive(&bench.deps, SessionChoice::New, commands).await;
        let (asked, _) = split(&bench);
        assert_eq!(asked[0].max_output_tokens, expected, "{window:?} {own:?}");
    }
}

#[tokio::test]
async fn a_limit_that_the_server_names_holds_from_then_on() {
    let words = "This model's maximum context length is 5000 tokens. However, you requested 9000.";
    let overflow = failing(ModelErrorKind::ContextOverflow, words);
    let steps = vec![say("one"), say("two"), overflow, say("three"), say("four")];
    let bench = windowed(None, steps, Vec::new());
    let commands = vec![long("a"), long("b"), prompt("c"), prompt("d")];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    assert_eq!(finished(&events).outcome, Outcome::Completed, "{:?}", finished(&events).error);
    assert_eq!(estimates(&events)[0].threshold, None);
    assert_eq!(estimates(&events).last().unwrap().threshold, Some(4_000));
}

#[tokio::test]
async fn a_window_too_small_for_a_summary_is_told_in_the_servers_words() {
    let overflow = || failing(ModelErrorKind::ContextOverflow, "more than this server holds");
    let summaries = (0..20).map(|_| overflow()).collect();
    let bench = windowed(Some(20_000), vec![say("one"), say("two")], summaries);
    let commands = vec![long("a"), long("b"), compact()];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    let [failed] = failures(&events)[..] else { panic!("one failure") };
    let message = &failed.error.message;
    assert!(message.contains("has no room for a transcript"), "{message}");
    assert!(message.contains("more than this server holds"), "{message}");
}

#[tokio::test]
async fn a_session_that_only_compacts_ends_as_that_did() {
    let wide = windowed(None, vec![say("one"), say("two")], Vec::new());
    let exec = drive(&wide.deps, SessionChoice::New, vec![long("a"), long("b")]).await[0].exec;
    for (summary, outcome) in [
        (answer(Vec::new(), StopReason::End), Outcome::Failed),
        (say("port 4711"), Outcome::Completed),
    ] {
        let mut bench = windowed(Some(50_000), Vec::new(), vec![summary]);
        bench.deps.store = Arc::clone(&wide.deps.store);
        let events = drive(&bench.deps, SessionChoice::Resume(exec), vec![compact()]).await;
        let end = finished(&events);
        assert_eq!(end.outcome, outcome);
        let told = end.error.as_ref().map(|error| error.message.as_str());
        let failed = outcome == Outcome::Failed;
        assert_eq!(told, failed.then_some("No summary: the model's answer was empty."));
    }
}
