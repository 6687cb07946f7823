//! Compaction through whole sessions: when it happens, what it sends, and how it fails.

use loon_api::event::{CompactionFailed, ContextCompacted, ContextEstimated};
use loon_api::{AssistantPart, At, Compaction, Thinking, UserPart};
use loon_kernel::ManualClock;

use super::*;
use crate::ContextLimits;

mod faults;

/// Characters of a prompt that is about 2,300 tokens long.
const LONG: usize = 8_000;

/// A bench whose model has this window. Requests for summaries are answered by `summaries`.
fn windowed(window: Option<u64>, steps: Vec<Step>, summaries: Vec<Step>) -> Bench {
    let mut bench = bench([]);
    let info = ModelInfo { name: "lab/m".into(), context_tokens: window, max_output_tokens: None };
    bench.model = Arc::new(FakeModel {
        info,
        steps: Mutex::new(steps.into()),
        summaries: Mutex::new(summaries.into()),
        requests: Mutex::default(),
    });
    bench.deps.models = Arc::new(OneModel(Arc::clone(&bench.model)));
    bench
}

fn prompt(text: impl Into<String>) -> Command {
    Command::Prompt { text: text.into() }
}

fn compact() -> Command {
    Command::Compact { focus: None }
}

fn long(name: &str) -> Command {
    prompt(format!("{name} {}", "x".repeat(LONG)))
}

/// Gives commands one after another, each when what the former began has ended, then closes.
async fn drive(
    deps: &Dependencies,
    choice: SessionChoice,
    commands: Vec<Command>,
) -> Vec<Envelope> {
    let mut runtime = Runtime::start(deps.clone(), choice);
    let mut left = commands.into_iter();
    let mut events = Vec::new();
    runtime.commands.send(left.next().unwrap_or(Command::Close)).await.unwrap();
    while let Some(event) = runtime.events.recv().await {
        let ended = match &event.event {
            AgentEvent::TurnFinished(_) => true,
            AgentEvent::ContextCompacted(compacted) => !compacted.compaction.automatic,
            AgentEvent::CompactionFailed(failed) => !failed.automatic,
            _ => false,
        };
        if ended {
            runtime.commands.send(left.next().unwrap_or(Command::Close)).await.unwrap();
        }
        events.push((*event).clone());
    }
    events
}

fn is_summary(request: &ModelRequest) -> bool {
    request.system.starts_with("You write the handoff")
}

/// Requests for summaries, and the others.
fn split(bench: &Bench) -> (Vec<ModelRequest>, Vec<ModelRequest>) {
    bench.model.requests.lock().unwrap().iter().cloned().partition(is_summary)
}

fn words(request: &ModelRequest) -> String {
    let mut lines: Vec<String> = Vec::new();
    for message in &request.messages {
        match message {
            Message::User(parts) => lines.extend(parts.iter().filter_map(|part| match part {
                UserPart::Text(words) => Some(format!("\nU:{words}")),
                UserPart::Image { .. } => None,
            })),
            Message::Assistant(answer) => {
                lines.extend(answer.parts.iter().filter_map(|part| match part {
                    AssistantPart::Text(words) => Some(format!("\nA:{words}")),
                    AssistantPart::Call(call) => Some(format!("\nR:{}", call.result.text)),
                    AssistantPart::Thinking(_) => None,
                }));
            }
        }
    }
    lines.concat()
}

fn compactions(events: &[Envelope]) -> Vec<&Compaction> {
    events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::ContextCompacted(ContextCompacted { compaction, .. }) => Some(compaction),
            _ => None,
        })
        .collect()
}

fn failures(events: &[Envelope]) -> Vec<&CompactionFailed> {
    events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::CompactionFailed(failed) => Some(failed),
            _ => None,
        })
        .collect()
}

fn estimates(events: &[Envelope]) -> Vec<&ContextEstimated> {
    events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::ContextEstimated(estimated) => Some(estimated),
            _ => None,
        })
        .collect()
}

fn failing(kind: ModelErrorKind, message: &str) -> Step {
    Step::Fail(ModelError::new(kind, message))
}

fn thought() -> AnswerPart {
    let text = "let me think".into();
    AnswerPart::Thinking(Thinking { text, model: "lab/m".into(), opaque: None })
}

#[tokio::test]
async fn h020_a_full_window_is_compacted_and_a_resume_asks_the_same() {
    let summaries = vec![say("part one"), say("part two"), say("all: use port 4711")];
    let steps = vec![say("one"), say("two"), say("three"), say("four"), say("five")];
    let bench = windowed(Some(8_000), steps, summaries);
    let events = drive(
        &bench.deps,
        SessionChoice::New,
        vec![long("first"), long("second"), long("third"), prompt("fourth")],
    )
    .await;
    assert_eq!(finished(&events).outcome, Outcome::Completed);
    let (asked, sent) = split(&bench);
    assert_eq!((asked.len(), sent.len()), (3, 4));
    for request in &asked {
        assert!(request.tools.is_empty());
        let size = crate::estimate::text(&request.system) + crate::estimate::text(&words(request));
        assert!(size <= 4_000, "{size} tokens in a request of half a window");
    }
    assert!(words(&asked[0]).contains("first xxx") && words(&asked[1]).contains("second xxx"));
    assert!(words(&asked[2]).contains("part one") && words(&asked[2]).contains("part two"));
    let third = words(&sent[2]);
    assert!(third.contains("use port 4711") && third.contains("A:two"), "{third}");
    assert!(third.contains(&format!("U:third {}", "x".repeat(LONG))));
    assert!(
        !third.contains("first x") && !third.contains("second x") && !third.contains("part one")
    );
    // Later requests begin with the same bytes.
    assert!(words(&sent[3]).starts_with(&third));
    let [compaction] = compactions(&events)[..] else { panic!("one compaction") };
    assert!(compaction.automatic && compaction.requests == 3);
    assert!(compaction.tokens_after < compaction.tokens_before);
    // The transcript keeps everything.
    let kept = items(&events);
    assert!(
        matches!(&kept[0].body, ItemBody::UserMessage { text, .. } if text.starts_with("first"))
    );
    assert_eq!(kept.iter().filter(|item| matches!(item.body, ItemBody::Compaction(_))).count(), 1);

    let exec = events[0].exec;
    drive(&bench.deps, SessionChoice::Resume(exec), vec![prompt("fifth")]).await;
    let (_, sent) = split(&bench);
    assert_eq!(words(&sent[4]), format!("{}\nA:four\nU:fifth", words(&sent[3])));

    // Before the compaction, the old window is back.
    let back = Command::Rewind { to: ItemId::user(3, 0), files: false };
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::Resume(exec));
    runtime.commands.send(back).await.unwrap();
    runtime.commands.send(prompt("instead")).await.unwrap();
    while let Some(event) = runtime.events.recv().await {
        if matches!(event.event, AgentEvent::TurnFinished(_)) {
            runtime.commands.send(Command::Close).await.unwrap();
        }
    }
    let (_, sent) = split(&bench);
    let rewound = words(sent.last().unwrap());
    assert!(rewound.contains("first xxx") && !rewound.contains("4711"), "{}", rewound.len());
}

#[tokio::test]
async fn h022_c061_a_summary_without_text_says_why_and_changes_nothing() {
    let cut = answer(vec![AnswerPart::Text("three short words".into())], StopReason::Length);
    let refused = answer(Vec::new(), StopReason::Refused);
    let server = failing(ModelErrorKind::Invalid, "scripted status 500");
    let cases = [
        (answer(Vec::new(), StopReason::End), "No summary: the model's answer was empty."),
        (say("  \n"), "No summary: the model's answer was empty."),
        (answer(vec![thought()], StopReason::End), "the model only reasoned and wrote no text"),
        (cut, "cut at the output limit, after 3 words"),
        (refused, "refused to write it"),
        (server, "The request for a summary failed: scripted status 500."),
        (Step::Break("half a"), "The request for a summary failed: connection lost."),
        (calls(vec![call("look", 1)]), "the model called look, which it was not offered"),
    ];
    let (answers, causes): (Vec<Step>, Vec<&str>) = cases.into_iter().unzip();
    let tries = causes.len();
    let mut summaries = vec![say("use port 4711")];
    for answer in answers {
        // What breaks once is asked for anew.
        if let Step::Break(_) = answer {
            summaries.push(Step::Break("half"));
        }
        summaries.push(answer);
    }
    summaries.push(say("still: use port 4711"));
    let steps = (0..6).map(|n| say(&format!("answer {n}"))).collect();
    let bench = windowed(Some(100_000), steps, summaries);
    let mut commands = vec![long("a"), long("b"), compact(), long("c"), long("d")];
    commands.extend(std::iter::repeat_n(compact(), tries));
    commands.extend([prompt("unchanged"), compact(), prompt("after")]);
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    let told: Vec<&str> =
        failures(&events).iter().map(|failed| failed.error.message.as_str()).collect();
    assert_eq!(told.len(), tries, "{told:?}");
    for (told, cause) in told.iter().zip(&causes) {
        assert!(told.contains(cause), "{told} is not {cause}");
        assert!(!told.contains("empty summary"));
    }
    let (asked, sent) = split(&bench);
    let unchanged = words(&sent[4]);
    assert!(unchanged.contains("use port 4711") && unchanged.contains("U:c xxx"));
    assert!(unchanged.contains("U:d xxx") && unchanged.ends_with("U:unchanged"));
    // The earlier handoff goes into the new one.
    assert!(words(asked.last().unwrap()).contains("[earlier handoff]\nuse port 4711"));
    let after = words(&sent[5]);
    assert!(after.contains("still: use port 4711") && !after.contains("c xxx"), "{after}");
    assert!(
        after.contains("U:The user's newest message, word for word:\n\nunchanged")
            || after.contains("U:unchanged")
    );
    assert_eq!(compactions(&events).len(), 2);
    assert!(bench.deps.store.verify(events[0].exec).unwrap().is_sound());
}

#[tokio::test]
async fn h023_after_a_failure_automatic_tries_pause_for_a_minute() {
    let clock = ManualClock::new(At::from_unix_ms(1_000_000));
    let empty = || answer(Vec::new(), StopReason::End);
    let steps = (0..8).map(|n| say(&format!("answer {n}"))).collect();
    let mut bench = windowed(None, steps, vec![empty(), say("good")]);
    bench.deps.clock = Arc::new(clock.clone());
    bench.deps.options.context = ContextLimits { max_tokens: None, compact_at: Some(4_000) };
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(long("a")).await.unwrap();
    let mut seen = Vec::new();
    let mut turns = 0;
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::CompactionFailed(_) => seen.push("failed".to_owned()),
            AgentEvent::ContextCompacted(_) => seen.push("compacted".to_owned()),
            AgentEvent::TurnFinished(_) => {
                turns += 1;
                seen.push(format!("turn {turns}"));
                let next = match turns {
                    1 => long("b"),
                    2 => prompt("c"),
                    3 => {
                        clock.advance(Duration::from_secs(61));
                        prompt("d")
                    }
                    _ => Command::Close,
                };
                runtime.commands.send(next).await.unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(seen, ["turn 1", "failed", "turn 2", "turn 3", "compacted", "turn 4"]);
    let (_, sent) = split(&bench);
    assert!(words(&sent[2]).contains("U:a xxx"));
    assert!(!words(&sent[3]).contains("U:a xxx"));
}

#[tokio::test]
async fn h024_an_asked_compaction_does_not_wait_for_the_pause() {
    let clock = ManualClock::new(At::from_unix_ms(1_000_000));
    let empty = answer(Vec::new(), StopReason::End);
    let steps = (0..8).map(|n| say(&format!("answer {n}"))).collect();
    let mut bench = windowed(None, steps, vec![empty, say("good")]);
    bench.deps.clock = Arc::new(clock);
    bench.deps.options.context = ContextLimits { max_tokens: None, compact_at: Some(4_000) };
    let commands = vec![long("a"), long("b"), prompt("c"), compact(), prompt("d")];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    assert_eq!((failures(&events).len(), compactions(&events).len()), (1, 1));
    assert!(!compactions(&events)[0].automatic);
    assert!(!words(split(&bench).1.last().unwrap()).contains("U:a xxx"));
}

#[tokio::test]
async fn c061_a_broken_summarizer_is_asked_at_most_twice_for_one_input() {
    let clock = ManualClock::new(At::from_unix_ms(0));
    let steps: Vec<Step> = (0..9).map(|n| calls(vec![call("change", n)])).collect();
    let empties = (0..20).map(|_| answer(Vec::new(), StopReason::End)).collect();
    let mut bench = windowed(None, steps, empties);
    bench.deps.options.context = ContextLimits { max_tokens: None, compact_at: Some(1_000) };
    bench.deps.clock = Arc::new(clock.clone());
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(long("go")).await.unwrap();
    let mut tries = 0;
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            // Every step comes after the pause.
            AgentEvent::EffectFinished(_) => clock.advance(Duration::from_secs(100)),
            AgentEvent::CompactionFailed(failed) if failed.error.code == ErrorCode::Protocol => {
                tries += 1;
            }
            AgentEvent::TurnFinished(turn) => {
                assert_eq!(turn.status, TurnStatus::Completed);
                runtime.commands.send(Command::Close).await.unwrap();
            }
            _ => {}
        }
    }
    assert!((1..=2).contains(&tries), "{tries} tries");
    assert_eq!(split(&bench).1.len(), 10);
}

#[tokio::test]
async fn an_overflow_is_compacted_for_as_long_as_that_gains() {
    let overflow = || failing(ModelErrorKind::ContextOverflow, "too long");
    let mut steps = vec![say("one"), say("two"), overflow(), say("three")];
    steps.extend([overflow(), overflow(), say("four")]);
    steps.extend((0..50).map(|_| overflow()));
    let bench = windowed(None, steps, Vec::new());
    let commands = vec![long("a"), long("b"), prompt("c"), long("d"), prompt("e")];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    let ends: Vec<TurnStatus> = events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::TurnFinished(turn) => Some(turn.status),
            _ => None,
        })
        .collect();
    let ok = TurnStatus::Completed;
    assert_eq!(ends, [ok, ok, ok, ok, TurnStatus::Failed]);
    let made = compactions(&events);
    assert!(made.iter().all(|made| made.automatic));
    assert!(made.iter().all(|made| made.tokens_after < made.tokens_before));
    let (_, sent) = split(&bench);
    // Each pass had a smaller request for the same step.
    let size = |at: usize| words(&sent[at]).len();
    assert!(size(4) > size(5) && size(5) > size(6), "{} {} {}", size(4), size(5), size(6));
    assert!((8..20).contains(&sent.len()), "{} requests", sent.len());
    let error = finished(&events).error.clone().unwrap();
    assert!(error.message.contains("too long"), "{}", error.message);
    assert!(error.hints.iter().any(|hint| hint.contains("/compact")), "{:?}", error.hints);
    assert!(words(&sent[2]).contains("a xxx") && !words(&sent[3]).contains("a xxx"));
    assert!(words(&sent[3]).contains("U:c"));
}

#[tokio::test]
async fn a_window_too_small_for_anything_ends_plainly_and_the_session_goes_on() {
    let bench = windowed(Some(700), vec![say("never")], Vec::new());
    let commands = vec![long("a"), compact(), prompt("b")];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    assert!(bench.model.requests.lock().unwrap().is_empty());
    let error = finished(&events).error.clone().unwrap();
    assert_eq!(error.code, ErrorCode::ContextOverflow);
    assert!(error.message.contains("at most 700 are allowed"), "{}", error.message);
    assert!(error.hints.iter().any(|hint| hint.contains("lean")), "{:?}", error.hints);
    assert!(error.hints.iter().any(|hint| hint.contains("/compact")), "{:?}", error.hints);
    assert!(!failures(&events).is_empty() && compactions(&events).is_empty());
}

#[tokio::test]
async fn a_summarizer_whose_window_is_too_small_says_so() {
    // Answers fit, but half the window has no room for a transcript.
    let mut bench = windowed(None, vec![say("one"), say("two")], Vec::new());
    let exec = drive(&bench.deps, SessionChoice::New, vec![prompt("a"), prompt("b")]).await[0].exec;
    let small = windowed(Some(700), Vec::new(), Vec::new());
    bench.deps.options.tools = ToolSet::Lean;
    bench.deps.models = Arc::new(OneModel(Arc::clone(&small.model)));
    let events = drive(&bench.deps, SessionChoice::Resume(exec), vec![compact()]).await;
    let [failed] = failures(&events)[..] else { panic!("one failure") };
    assert!(failed.error.message.contains("has no room for a transcript"), "{:?}", failed.error);
    assert!(small.model.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_pass_that_gains_nothing_is_no_compaction() {
    let wordy = say(&"word ".repeat(2_000));
    let bench = windowed(Some(50_000), vec![say("one"), say("two"), say("three")], vec![wordy]);
    let commands = vec![prompt("a"), prompt("b"), compact(), prompt("c")];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    let [failed] = failures(&events)[..] else { panic!("one failure") };
    assert!(failed.error.message.contains("gains nothing"), "{}", failed.error.message);
    assert_eq!(words(&split(&bench).1[2]), "\nU:a\nA:one\nU:b\nA:two\nU:c");
    let nothing = drive(&bench.deps, SessionChoice::New, vec![compact()]).await;
    assert_eq!(failures(&nothing)[0].error.code, ErrorCode::Conflict);
}

#[tokio::test]
async fn an_interrupt_stops_a_compaction_and_prompts_wait_for_its_end() {
    let steps = vec![say("one"), say("two"), say("three")];
    let bench = windowed(Some(50_000), steps, vec![Step::Hang("half")]);
    let first = drive(&bench.deps, SessionChoice::New, vec![long("a"), long("b")]).await;
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::Resume(first[0].exec));
    runtime.commands.send(compact()).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::CompactionProgress(_) => {
                let back = Command::Rewind { to: ItemId::user(1, 0), files: false };
                runtime.commands.send(back).await.unwrap();
                runtime.commands.send(prompt("c")).await.unwrap();
            }
            AgentEvent::PromptQueued(_) => runtime.commands.send(Command::Interrupt).await.unwrap(),
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
        events.push((*event).clone());
    }
    let [failed] = failures(&events)[..] else { panic!("one failure") };
    assert_eq!(failed.error.code, ErrorCode::Cancelled);
    let refused = events.iter().any(|event| {
        matches!(&event.event,
        AgentEvent::Notice(notice) if notice.message.contains("A compaction is running"))
    });
    assert!(refused);
    let last = words(split(&bench).1.last().unwrap());
    assert!(last.contains("U:a xxx") && last.ends_with("U:c"), "{}", last.len());
}

#[tokio::test]
async fn texts_of_five_megabytes_end_in_a_usable_session() {
    let huge = "y".repeat(5 * 1024 * 1024);
    let arguments = json!({ "n": huge.clone() });
    let big_call = calls(vec![AnswerPart::Call { name: "change".into(), arguments }]);
    let steps = vec![say("read it"), big_call, say("done"), say("end")];
    let bench = windowed(Some(8_000), steps, Vec::new());
    let commands = vec![prompt(format!("begin {huge} end")), prompt("call it"), prompt("and now")];
    let events = drive(&bench.deps, SessionChoice::New, commands).await;
    assert_eq!(finished(&events).outcome, Outcome::Completed, "{:?}", finished(&events).error);
    let (_, sent) = split(&bench);
    let first = words(&sent[0]);
    assert!(first.contains("U:begin yyy") && first.ends_with("yyy end"), "{}", first.len());
    assert!(first.contains("bytes are left out here"));
    for request in &sent {
        assert!(crate::estimate::text(&words(request)) < 8_000);
    }
    // The journal has every byte.
    assert!(items(&events).iter().any(
        |item| matches!(&item.body, ItemBody::UserMessage { text, .. } if text.contains(&huge))
    ));
}

#[tokio::test]
async fn h011_the_context_is_told_by_part_and_corrected_by_what_was_counted() {
    let reported = Usage { input_tokens: Some(2_000), ..Usage::default() };
    let counted = Step::Answer(Answer {
        parts: vec![AnswerPart::Text("one".into())],
        stop: StopReason::End,
        usage: reported,
    });
    let mut bench = windowed(Some(100_000), vec![counted, say("two")], Vec::new());
    bench.deps.options.context =
        ContextLimits { max_tokens: Some(50_000), compact_at: Some(45_000) };
    let events = drive(&bench.deps, SessionChoice::New, vec![prompt("a"), prompt("b")]).await;
    let told = estimates(&events);
    for estimated in &told {
        assert_eq!(estimated.parts.unwrap().total(), estimated.tokens);
        assert_eq!((estimated.capacity, estimated.limit), (Some(100_000), Some(50_000)));
        assert_eq!(estimated.threshold, Some(40_000));
    }
    assert!(told[0].parts.unwrap().system > 300 && told[0].parts.unwrap().skills > 300);
    let scale = 2_000.0 / told[0].tokens as f64;
    let expected = told[0].parts.unwrap().system as f64 * scale;
    assert!((told[1].parts.unwrap().system as f64 - expected).abs() < 2.0);
    assert!(told[1].tokens.abs_diff(2_000) < 60, "{}", told[1].tokens);
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::Resume(events[0].exec));
    runtime.commands.send(Command::MeasureContext).await.unwrap();
    while let Some(event) = runtime.events.recv().await {
        if let AgentEvent::ContextEstimated(estimated) = &event.event {
            assert!(estimated.parts.unwrap().assistant > 0);
            runtime.commands.send(Command::Close).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_summary_that_was_paid_for_is_not_asked_again() {
    let wide = windowed(None, vec![say("one"), say("two"), say("three"), say("four")], Vec::new());
    let commands = vec![long("a"), long("b"), long("c"), long("d")];
    let exec = drive(&wide.deps, SessionChoice::New, commands).await[0].exec;
    let down = failing(ModelErrorKind::Invalid, "down");
    let summaries = vec![say("part one"), down, say("part two"), say("part three"), say("folded")];
    let mut bench = windowed(Some(8_000), vec![say("five")], summaries);
    bench.deps.store = Arc::clone(&wide.deps.store);
    let commands = vec![compact(), compact(), prompt("e")];
    let events = drive(&bench.deps, SessionChoice::Resume(exec), commands).await;
    assert_eq!((failures(&events).len(), compactions(&events).len()), (1, 1));
    let (asked, sent) = split(&bench);
    let first = asked.iter().filter(|request| words(request).contains("a xxx")).count();
    assert_eq!((first, asked.len()), (1, 5));
    assert!(words(&asked[4]).contains("part one") && words(&sent[0]).contains("folded"));
}
