//! Ultra Loop: only a reviewer's acceptance completes a turn, and nothing goes past a person.

use std::collections::HashMap;

use loon_api::event::ReviewFinished;
use loon_api::{ChecklistStep, RecordChange, ReviewVerdict, TurnReview, WorkStatus};

use super::subagents::{Cast, model};
use super::*;

struct Court {
    bench: Bench,
    agent: Arc<FakeModel>,
    judge: Arc<FakeModel>,
}

/// A bench whose sessions begin with Ultra Loop, and whose reviewer is a model of its own.
fn court(agent: Vec<Step>, judge: Vec<Step>) -> Court {
    let mut bench = bench([]);
    let (agent, judge) = (model("lab/m", agent), model("lab/judge", judge));
    let cast = HashMap::from([("lab/m", Arc::clone(&agent)), ("lab/judge", Arc::clone(&judge))]);
    bench.deps.models = Arc::new(Cast(cast));
    let ultra = &mut bench.deps.options.ultra;
    (ultra.enabled.value, ultra.model) = (true, Some("lab/judge".to_owned()));
    Court { bench, agent, judge }
}

impl Court {
    async fn run(&self, prompts: &[&str]) -> Vec<Envelope> {
        run(&self.bench.deps, SessionChoice::New, prompts).await
    }

    fn asked(&self) -> usize {
        self.judge.requests.lock().unwrap().len()
    }
}

fn accept() -> Step {
    say(r#"{"verdict": "accept", "findings": []}"#)
}

fn reject(finding: &str) -> Step {
    say(&json!({"verdict": "reject", "findings": [finding]}).to_string())
}

fn reviews(events: &[Envelope]) -> Vec<ReviewFinished> {
    let reviews = events.iter().filter_map(|event| match &event.event {
        AgentEvent::ReviewFinished(finished) => Some(finished.clone()),
        _ => None,
    });
    reviews.collect()
}

fn verdicts(events: &[Envelope]) -> Vec<ReviewVerdict> {
    reviews(events).iter().map(|finished| finished.review.verdict).collect()
}

fn turn_review(events: &[Envelope]) -> Option<TurnReview> {
    events.iter().rev().find_map(|event| match &event.event {
        AgentEvent::TurnFinished(turn) => Some(turn.review),
        _ => None,
    })?
}

fn notices(events: &[Envelope]) -> Vec<String> {
    let notices = items(events).into_iter().filter_map(|item| match item.body {
        ItemBody::Notice { text, .. } => Some(text),
        _ => None,
    });
    notices.collect()
}

fn error_code(events: &[Envelope]) -> Option<ErrorCode> {
    finished(events).error.as_ref().map(|error| error.code)
}

#[tokio::test]
async fn findings_go_back_to_the_agent_and_acceptance_completes_the_turn() {
    let court = court(
        vec![
            calls(vec![call("change", 1)]),
            say("done"),
            calls(vec![call("change", 2)]),
            say("now"),
        ],
        vec![reject("change 2 is missing"), accept()],
    );
    let events = court.run(&["change both"]).await;
    assert_eq!(finished(&events).outcome, Outcome::Completed);
    assert_eq!(*court.bench.runs.lock().unwrap(), ["change1", "change2"]);
    assert_eq!(verdicts(&events), [ReviewVerdict::Findings, ReviewVerdict::Accepted]);
    assert_eq!(turn_review(&events), Some(TurnReview { accepted: true, reviews: 2 }));
    let told = notices(&events);
    let first =
        "Completion review 1 of 3: not accepted. The reviewer found:\n- change 2 is missing";
    assert!(told.len() == 1 && told[0].starts_with(first), "{told:?}");
    let sent = format!("{:?}", court.agent.requests.lock().unwrap()[2].messages);
    assert!(sent.contains("change 2 is missing"), "{sent}");
    let judged = court.judge.requests.lock().unwrap();
    assert!(judged.iter().all(|request| request.tools.is_empty()));
    let shown = format!("{:?}", judged[1].messages);
    assert!(shown.contains("change both") && shown.contains("change 2: done ok"), "{shown}");
}

#[tokio::test]
async fn what_a_review_used_counts_for_turn_and_session_also_after_a_resume() {
    let used = Usage { input_tokens: Some(70), output_tokens: Some(5), ..Usage::default() };
    let parts = vec![AnswerPart::Text(r#"{"verdict": "accept"}"#.into())];
    let verdict = Step::Answer(Answer { parts, stop: StopReason::End, usage: used });
    let court = court(vec![say("done"), say("more")], vec![verdict, accept()]);
    let events = court.run(&["go"]).await;
    // What the agent's own answers used is not reported here, and estimated.
    let reported = |usage: Usage| Usage { estimated_tokens: None, ..usage };
    assert_eq!(reported(finished(&events).usage), used);
    assert_eq!(reviews(&events)[0].review.usage, used);
    assert_eq!(reviews(&events)[0].review.model.as_deref(), Some("lab/judge"));
    let resumed =
        run(&court.bench.deps, SessionChoice::Resume(events[0].exec), &["and more"]).await;
    let AgentEvent::SessionOpened(opened) = &resumed[1].event else { panic!("opened second") };
    assert_eq!(reported(opened.session.usage), used);
    let records = court.bench.deps.store.read(events[0].exec).unwrap();
    let mut replay = crate::replay::Replay::new(None);
    assert!(records.map(Result::unwrap).all(|record| replay.take(&record)));
    assert_eq!(replay.finish().requests, 2, "reviews are no requests of the conversation");
}

/// Runs a turn of a session whose plan has an open step.
async fn with_open_plan(court: &mut Court) -> Vec<Envelope> {
    court.bench.deps.tools =
        Arc::new(|_| Ok(vec![Arc::new(Planner(planner_spec())) as Arc<dyn Tool>]));
    court.run(&["go"]).await
}

struct Planner(ToolSpec);

fn planner_spec() -> ToolSpec {
    ToolSpec {
        name: "plan".into(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        class: ToolClass::Session,
    }
}

impl Tool for Planner {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn title(&self, _arguments: &Value) -> String {
        String::new()
    }

    fn subjects(&self, _arguments: &Value) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    fn run<'a>(
        &'a self,
        _admitted: Admitted,
        arguments: &'a Value,
        _cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput> {
        let done = arguments["done"] == json!(true);
        let status = if done { WorkStatus::Completed } else { WorkStatus::Pending };
        let steps = vec![ChecklistStep { step: "test it".into(), status }];
        let record = vec![RecordChange::Checklist { steps }];
        Box::pin(async move { ToolOutput { record, ..ToolOutput::ok("ok", "") } })
    }
}

fn plan(done: bool) -> Step {
    calls(vec![AnswerPart::Call { name: "plan".into(), arguments: json!({ "done": done }) }])
}

#[tokio::test]
async fn h068_open_steps_are_never_accepted_and_cost_no_review() {
    let mut stubborn = court(
        vec![plan(false), say("done"), say("really"), say("I say so"), say("believe me")],
        vec![accept(), accept(), accept(), accept()],
    );
    let events = with_open_plan(&mut stubborn).await;
    assert_eq!(stubborn.asked(), 0, "the reviewer would have accepted");
    assert_eq!(
        (finished(&events).outcome, error_code(&events)),
        (Outcome::Stopped, Some(ErrorCode::NotAccepted))
    );
    assert_eq!(turn_review(&events), Some(TurnReview { accepted: false, reviews: 0 }));
    let told = notices(&events);
    assert_eq!(told.len(), 3);
    assert!(told[0].contains("Open steps and tasks: 1.\n- plan: [ ] test it"), "{}", told[0]);

    let mut diligent =
        court(vec![plan(false), say("done"), plan(true), say("now")], vec![accept()]);
    let events = with_open_plan(&mut diligent).await;
    assert_eq!((finished(&events).outcome, diligent.asked()), (Outcome::Completed, 1));
}

#[tokio::test]
async fn reviews_that_are_used_up_leave_the_work_not_accepted() {
    let mut court = court(
        vec![say("done"), say("done again"), say("never asked for")],
        vec![reject("no"), reject("still no"), accept()],
    );
    court.bench.deps.options.ultra.max_reviews = 2;
    let events = court.run(&["go"]).await;
    assert_eq!(error_code(&events), Some(ErrorCode::NotAccepted));
    assert_eq!(finished(&events).outcome, Outcome::Stopped);
    assert_eq!((court.asked(), court.agent.requests.lock().unwrap().len()), (2, 2));
    assert_eq!(turn_review(&events), Some(TurnReview { accepted: false, reviews: 2 }));
    assert_eq!(notices(&events).len(), 2, "the last findings are kept for the next turn");
}

#[tokio::test]
async fn a_broken_review_is_repeated_once_and_accepts_nothing() {
    let mended = court(vec![say("done")], vec![say("fine by me"), accept()]);
    let events = mended.run(&["go"]).await;
    assert_eq!(verdicts(&events), [ReviewVerdict::Failed, ReviewVerdict::Accepted]);
    assert_eq!(turn_review(&events), Some(TurnReview { accepted: true, reviews: 1 }));

    let auth = || Step::Fail(ModelError::new(ModelErrorKind::Auth, "bad key"));
    let broken = court(vec![say("done")], vec![auth(), auth(), accept()]);
    let events = broken.run(&["go"]).await;
    assert_eq!(verdicts(&events), [ReviewVerdict::Failed, ReviewVerdict::Failed]);
    assert_eq!(error_code(&events), Some(ErrorCode::NotAccepted));
    assert!(finished(&events).error.as_ref().unwrap().message.contains("bad key"));
    assert_eq!(turn_review(&events), Some(TurnReview { accepted: false, reviews: 1 }));

    let mut nameless = court(vec![say("done")], vec![]);
    nameless.bench.deps.options.ultra.model = Some("lab/none".into());
    let events = nameless.run(&["go"]).await;
    assert_eq!(error_code(&events), Some(ErrorCode::NotAccepted));
    assert!(finished(&events).error.as_ref().unwrap().message.contains("no model lab/none"));
}

#[tokio::test]
async fn h069_a_cancel_ends_the_loop_while_it_reviews() {
    let court = court(vec![say("done")], vec![Step::Hang("hm")]);
    let mut runtime = Runtime::start(court.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::ReviewStarted(started) => {
                assert_eq!((started.number, started.of), (1, 3));
                runtime.commands.send(Command::Interrupt).await.unwrap();
            }
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
        events.push((*event).clone());
    }
    assert_eq!(finished(&events).outcome, Outcome::Interrupted);
    assert_eq!(verdicts(&events), [ReviewVerdict::Failed]);
    assert_eq!(turn_review(&events), Some(TurnReview { accepted: false, reviews: 1 }));
}

#[tokio::test]
async fn h069_an_explicit_denial_in_the_last_step_ends_the_loop_without_a_review() {
    let mut court = court(vec![calls(vec![call("change", 1)]), say("done")], vec![accept()]);
    court.bench.deps.options.mode.value = Mode::Default;
    court.bench.deps.options.unattended = false;
    let mut runtime = Runtime::start(court.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::ApprovalRequested(request) => {
                let approval = request.approval.id.clone();
                let deny = Command::Deny { approval, reason: Some("not now".into()) };
                runtime.commands.send(deny).await.unwrap();
            }
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
        events.push((*event).clone());
    }
    assert_eq!((court.asked(), error_code(&events)), (0, Some(ErrorCode::Denied)));
    assert!(court.bench.runs.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_budget_of_the_tree_and_the_step_limit_end_the_loop() {
    let mut poor = court(vec![say("done")], vec![accept()]);
    poor.bench.deps.options.budget.max_requests = Some(1);
    let events = poor.run(&["go"]).await;
    assert_eq!((poor.asked(), error_code(&events)), (0, Some(ErrorCode::QuotaExceeded)));
    assert_eq!(finished(&events).outcome, Outcome::Stopped);
    assert_eq!(turn_review(&events), Some(TurnReview { accepted: false, reviews: 1 }));

    let mut brief = court(vec![say("done")], vec![reject("no"), accept()]);
    brief.bench.deps.options.limits.max_steps = 1;
    let events = brief.run(&["go"]).await;
    assert_eq!((brief.asked(), error_code(&events)), (1, Some(ErrorCode::TurnLimit)));
}

#[tokio::test]
async fn words_that_came_during_the_review_are_worked_on_before_the_end() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let parts = vec![AnswerPart::Text(r#"{"verdict": "accept"}"#.into())];
    let held = Answer { parts, stop: StopReason::End, usage: Usage::default() };
    let court = court(
        vec![say("done"), say("that too")],
        vec![Step::Held(Arc::clone(&gate), held), accept()],
    );
    let mut runtime = Runtime::start(court.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::ReviewStarted(started) if started.number == 1 => {
                runtime.commands.send(Command::Steer { text: "and this".into() }).await.unwrap();
            }
            AgentEvent::PromptQueued(_) => gate.add_permits(1),
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
        events.push((*event).clone());
    }
    assert_eq!(finished(&events).message.as_deref(), Some("that too"));
    assert_eq!(court.asked(), 2);
    let shown = format!("{:?}", court.judge.requests.lock().unwrap()[1].messages);
    assert!(shown.contains("and this"), "{shown}");
}

#[tokio::test]
async fn the_choice_is_a_record_that_a_resume_keeps() {
    let mut court = court(vec![say("one"), say("two"), say("three")], vec![accept(), accept()]);
    court.bench.deps.options.ultra.enabled.value = false;
    let mut runtime = Runtime::start(court.bench.deps.clone(), SessionChoice::New);
    for on in [true, true] {
        runtime.commands.send(Command::SetUltraLoop { on }).await.unwrap();
    }
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let (mut exec, mut switched) = (None, 0);
    while let Some(event) = runtime.events.recv().await {
        exec = Some(event.exec);
        match &event.event {
            AgentEvent::UltraLoopChanged(changed) => switched += u32::from(changed.on),
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
    }
    assert_eq!((switched, court.asked()), (1, 1));
    let resumed = run(&court.bench.deps, SessionChoice::Resume(exec.unwrap()), &["again"]).await;
    let AgentEvent::SessionOpened(opened) = &resumed[1].event else { panic!("opened second") };
    assert!(opened.session.ultra);
    assert_eq!(court.asked(), 2);
    let fresh = run(&court.bench.deps, SessionChoice::New, &["alone"]).await;
    assert_eq!((court.asked(), turn_review(&fresh)), (2, None));
}
