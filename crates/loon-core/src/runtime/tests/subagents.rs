//! Children of a session: what they get, what they may do, and how their ends reach the parent.

use std::collections::HashMap;

use loon_api::event::{SubagentFinished, SubagentStarted};
use loon_api::{SessionAccess, SubagentStatus, UserPart};
use tokio::sync::Semaphore;

use super::*;
use crate::deps::Update;

mod inherited;
mod liveness;
mod person;

/// Models by name: each has a script of its own.
pub(super) struct Cast(pub(super) HashMap<&'static str, Arc<FakeModel>>);

impl Models for Cast {
    fn open(&self, name: &str) -> Result<Arc<Route>, ErrorInfo> {
        match self.0.get(name) {
            Some(model) => Ok(Route::to(Arc::clone(model) as Arc<dyn Model>)),
            None => Err(ErrorInfo::new(ErrorCode::Invalid, format!("no model {name}."))),
        }
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }
}

struct Stage {
    bench: Bench,
    parent: Arc<FakeModel>,
    child: Arc<FakeModel>,
}

pub(super) fn model(name: &str, steps: Vec<Step>) -> Arc<FakeModel> {
    let info = ModelInfo { name: name.into(), context_tokens: None, max_output_tokens: None };
    Arc::new(FakeModel {
        info,
        steps: Mutex::new(steps.into()),
        summaries: Mutex::default(),
        requests: Mutex::default(),
    })
}

/// A bench whose parent and children have different models. Profile `helper` uses the second.
fn stage(parent: Vec<Step>, child: Vec<Step>) -> Stage {
    let mut bench = bench([]);
    let (parent, child) = (model("lab/m", parent), model("lab/child", child));
    let cast = HashMap::from([("lab/m", Arc::clone(&parent)), ("lab/child", Arc::clone(&child))]);
    bench.deps.models = Arc::new(Cast(cast));
    bench.deps.options.definitions = vec![bench.deps.options.cwd.join("definitions")];
    let stage = Stage { bench, parent, child };
    stage.profile("helper", "model: lab/child");
    stage
}

impl Stage {
    #[expect(clippy::disallowed_methods, reason = "a test fixture, not a project's file")]
    fn profile(&self, name: &str, head: &str) {
        let folder = self.bench.deps.options.cwd.join("definitions/agents");
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\ndescription: Helps.\n{head}\n---\nMind the gap.");
        std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
    }

    async fn run(&self, prompts: &[&str]) -> Vec<Envelope> {
        run(&self.bench.deps, SessionChoice::New, prompts).await
    }

    fn records(&self, exec: ExecutionId) -> Vec<AgentEvent> {
        let records = self.bench.deps.store.read(exec).unwrap();
        records.map(|record| record.unwrap().event).collect()
    }

    fn is_cancelled(&self, exec: ExecutionId) -> bool {
        matches!(self.records(exec).last(), Some(AgentEvent::ExecutionCancelled(_)))
    }
}

fn order(tool: &str, agent: &str) -> AnswerPart {
    let arguments = json!({"agent": agent, "task": "look into it"});
    AnswerPart::Call { name: tool.into(), arguments }
}

fn about(tool: &str, arguments: Value) -> AnswerPart {
    AnswerPart::Call { name: tool.into(), arguments }
}

fn held(gate: &Arc<Semaphore>, parts: Vec<AnswerPart>) -> Step {
    let stop = StopReason::End;
    Step::Held(Arc::clone(gate), Answer { parts, stop, usage: Usage::default() })
}

fn words(text: &str) -> AnswerPart {
    AnswerPart::Text(text.into())
}

fn closed() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

fn starts(events: &[Envelope]) -> Vec<SubagentStarted> {
    let starts = events.iter().filter_map(|event| match &event.event {
        AgentEvent::SubagentStarted(started) => Some(started.clone()),
        _ => None,
    });
    starts.collect()
}

fn ends(events: &[Envelope]) -> Vec<SubagentFinished> {
    let ends = events.iter().filter_map(|event| match &event.event {
        AgentEvent::SubagentFinished(finished) => Some(finished.clone()),
        _ => None,
    });
    ends.collect()
}

/// Text and error flag of each call's result, in order.
fn results(events: &[Envelope]) -> Vec<(String, bool)> {
    let results = items(events).into_iter().filter_map(|item| match item.body {
        ItemBody::ToolCall(call) => call.result.map(|result| (result.text, result.is_error)),
        _ => None,
    });
    results.collect()
}

/// All words of the user and the runtime in one request.
fn user_words(model: &FakeModel, request: usize) -> Vec<String> {
    let requests = model.requests.lock().unwrap();
    let mut found = Vec::new();
    for message in &requests[request].messages {
        if let Message::User(parts) = message {
            found.extend(parts.iter().filter_map(|part| match part {
                UserPart::Text(text) => Some(text.clone()),
                UserPart::Image { .. } => None,
            }));
        }
    }
    found
}

fn usage(tokens: u64) -> Usage {
    Usage { input_tokens: Some(tokens), output_tokens: Some(1), ..Usage::default() }
}

fn costly(text: &str, tokens: u64) -> Step {
    let parts = vec![words(text)];
    Step::Answer(Answer { parts, stop: StopReason::End, usage: usage(tokens) })
}

#[tokio::test]
async fn h162_h166_h171_a_delegated_child_gets_the_task_alone_and_its_last_words_are_the_result() {
    let stage = stage(
        vec![calls(vec![order("delegate", "helper")]), say("thanks")],
        vec![calls(vec![call("change", 1)]), costly("It leaks.", 40)],
    );
    let events = stage.run(&["my secret wish"]).await;
    let (started, ended) = (starts(&events).remove(0), ends(&events).remove(0));
    assert_eq!((started.id.as_str(), started.agent.as_str()), ("a1", "helper"));
    assert!(!started.background);
    assert_eq!((ended.status, ended.steps), (SubagentStatus::Completed, 2));
    assert_eq!(ended.report.as_deref(), Some("It leaks."));
    let (text, is_error) = results(&events).remove(0);
    // The server did not say what its first step took.
    let used = ended.usage.total();
    assert!(used > 41 && ended.usage.input_tokens == Some(40), "{:?}", ended.usage);
    let facts = format!("[agent a1; session {}; 2 steps; about {used} tokens]", started.child);
    assert_eq!((text, is_error), (format!("It leaks.\n\n{facts}"), false));
    assert_eq!(user_words(&stage.child, 0), ["look into it"]);
    let told = stage.parent.requests.lock().unwrap()[0].system.clone();
    assert!(told.contains("\n- general: Works on any") && told.contains("\n- helper: Helps."));
    let requests = stage.child.requests.lock().unwrap().clone();
    assert!(requests[0].system.contains("Mind the gap."));
    let sent = format!("{requests:?}");
    assert!(!sent.contains("my secret wish") && !sent.contains("- helper: Helps."));
    let names: Vec<_> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["look", "change", "load_skill", "tool_search"], "no child has children");
    let AgentEvent::ExecutionStarted(first) = &stage.records(started.child)[0] else { panic!() };
    assert_eq!((first.kind, first.parent), (ExecutionKind::Subagent, Some(events[0].exec)));
    let Usage { input_tokens, output_tokens, .. } = finished(&events).usage;
    assert_eq!((input_tokens, output_tokens), (Some(40), Some(1)), "the tree's");
    let (store, index) = (stage.bench.deps.store.as_ref(), &stage.bench.deps.index);
    let filter = crate::index::Filter::default();
    assert_eq!(index.list(store, &filter).unwrap().len(), 1);
    let with_children = crate::index::Filter { children: true, ..filter };
    assert_eq!(index.list(store, &with_children).unwrap().len(), 2);
    let family = crate::sessions::family(store, events[0].exec).unwrap();
    assert_eq!(family, [events[0].exec, started.child]);
}

#[tokio::test]
async fn h179_what_cannot_be_built_fails_at_once() {
    let names = ["nobody", "lost"];
    for tool in ["delegate", "background_spawn"] {
        let stage = stage(
            vec![calls(names.iter().map(|name| order(tool, name)).collect()), say("ok")],
            vec![],
        );
        stage.profile("lost", "model: lab/none");
        let events = stage.run(&["go"]).await;
        let results = results(&events);
        let known = "There is no agent called \"nobody\". There are: general, helper, lost.";
        assert_eq!(results[0], (known.to_owned(), true));
        let lost = "The model lab/none of agent lost cannot be used: no model lab/none.";
        assert_eq!(results[1], (lost.to_owned(), true));
        assert!(starts(&events).is_empty());
        assert_eq!(stage.bench.deps.store.list().unwrap().len(), 1, "no journal of a child");
    }
}

#[tokio::test]
async fn h167_a_child_cannot_delegate_although_its_profile_names_the_tool() {
    let stage = stage(
        vec![calls(vec![order("delegate", "manager")]), say("ok")],
        vec![
            calls(vec![order("delegate", "helper"), order("background_spawn", "helper")]),
            say("no"),
        ],
    );
    stage.profile("manager", "model: lab/child\ntools: [delegate, background_spawn, look]");
    let events = stage.run(&["go"]).await;
    assert_eq!(starts(&events).len(), 1);
    let refused = stage.records(starts(&events)[0].child).into_iter().filter(|event| {
        matches!(event, AgentEvent::ItemCompleted(done) if matches!(&done.item.body,
            ItemBody::ToolCall(call) if call.status == ToolCallStatus::Failed))
    });
    assert_eq!(refused.count(), 2);
    let offered = stage.child.requests.lock().unwrap()[0].tools.len();
    assert_eq!(offered, 1, "only what the profile names");
}

#[tokio::test]
async fn h169_the_step_limit_gives_a_result_that_says_it_is_incomplete() {
    let stage = stage(
        vec![calls(vec![order("delegate", "brief")]), say("ok")],
        vec![
            answer(vec![words("So far, nothing."), call("change", 1)], StopReason::ToolCalls),
            say("never asked for"),
        ],
    );
    stage.profile("brief", "model: lab/child\nmaxTurns: 1\neffort: low");
    let events = stage.run(&["go"]).await;
    let (text, is_error) = results(&events).remove(0);
    assert!(is_error);
    let first = "Incomplete: The turn reached its limit of 1 model requests.\n\nSo far, nothing.";
    assert!(text.starts_with(first), "{text}");
    assert_eq!(ends(&events)[0].status, SubagentStatus::Incomplete);
    let requests = stage.child.requests.lock().unwrap();
    assert_eq!((requests.len(), requests[0].effort), (1, Some(loon_api::Effort::Low)));
}

#[tokio::test]
async fn h177_a_report_comes_with_the_next_request_and_once() {
    let gate = closed();
    let stage = stage(
        vec![
            calls(vec![order("background_spawn", "helper")]),
            held(&gate, vec![call("change", 7)]),
            say("seen"),
            say("again"),
        ],
        vec![say("Done it.")],
    );
    let mut runtime = Runtime::start(stage.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let (mut events, mut turns) = (Vec::new(), 0);
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            // The parent's second request is under way.
            AgentEvent::SubagentFinished(_) => gate.add_permits(1),
            AgentEvent::TurnFinished(_) => {
                turns += 1;
                let next = if turns == 1 {
                    Command::Prompt { text: "and?".into() }
                } else {
                    Command::Close
                };
                runtime.commands.send(next).await.unwrap();
            }
            _ => {}
        }
        events.push((*event).clone());
    }
    let child = starts(&events)[0].child;
    let used = ends(&events)[0].usage.total();
    let report = format!(
        "Agent a1 (helper) finished.\nDone it.\n\n[agent a1; session {child}; 1 step; about {used} \
         tokens]"
    );
    assert_eq!(user_words(&stage.parent, 1), ["go"]);
    assert_eq!(user_words(&stage.parent, 2), ["go".to_owned(), report.clone()]);
    assert_eq!(user_words(&stage.parent, 3), ["go", &report, "and?"]);
    let resumed = run(&stage.bench.deps, SessionChoice::Resume(events[0].exec), &["more"]).await;
    assert!(ends(&resumed).is_empty());
    assert_eq!(user_words(&stage.parent, 4), ["go", &report, "and?", "more"]);
}

#[tokio::test]
async fn h178_a_report_after_the_last_step_comes_with_the_next_turn() {
    let gate = closed();
    let stage = stage(
        vec![calls(vec![order("background_spawn", "helper")]), say("bye"), say("seen")],
        vec![held(&gate, vec![words("Late.")])],
    );
    let mut runtime = Runtime::start(stage.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut turns = 0;
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::SubagentFinished(finished) => {
                assert_eq!((turns, event.turn), (1, None), "between two turns");
                assert_eq!(finished.report.as_deref(), Some("Late."));
                runtime.commands.send(Command::Prompt { text: "and?".into() }).await.unwrap();
            }
            AgentEvent::TurnFinished(_) => {
                turns += 1;
                if turns == 1 {
                    gate.add_permits(1);
                } else {
                    runtime.commands.send(Command::Close).await.unwrap();
                }
            }
            _ => {}
        }
    }
    let words = user_words(&stage.parent, 2);
    assert_eq!(words[..2], ["go", "and?"]);
    assert!(words[2].starts_with("Agent a1 (helper) finished.\nLate."), "{words:?}");
}

#[tokio::test]
async fn h172_h173_h174_h175_a_message_steers_a_running_child_and_fails_for_a_finished_one() {
    let (gate, done) = (closed(), closed());
    let message = || about("background_message", json!({"id": "a1", "message": "look left"}));
    let stage = stage(
        vec![
            calls(vec![order("background_spawn", "helper")]),
            calls(vec![message(), about("background_list", json!({}))]),
            held(&done, vec![message(), about("background_list", json!({}))]),
            say("ok"),
        ],
        vec![held(&gate, vec![words("right")]), say("left")],
    );
    let mut runtime = Runtime::start(stage.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::EffectFinished(effect) if effect.key.as_str() == "t1/s1/c1" => {
                gate.add_permits(1);
            }
            AgentEvent::SubagentFinished(_) => done.add_permits(1),
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
        events.push((*event).clone());
    }
    let results = results(&events);
    assert_eq!(results[1], ("Agent a1 reads it at its next step.".to_owned(), false));
    assert!(results[2].0.starts_with("a1 (helper): running; "), "{}", results[2].0);
    assert!(results[3].1 && results[3].0.contains("has finished"), "{:?}", results[3]);
    assert!(results[4].0.starts_with("a1 (helper): completed\nleft\n"), "{}", results[4].0);
    assert_eq!(user_words(&stage.child, 1), ["look into it", "look left"]);
}

#[tokio::test]
async fn h176_a_killed_child_ends_its_step_and_its_journal_says_so() {
    let (gate, begun) = (closed(), closed());
    let stage = stage(
        vec![
            calls(vec![order("background_spawn", "helper")]),
            held(&begun, vec![about("background_kill", json!({"id": "a1"}))]),
            say("ok"),
        ],
        vec![held(&gate, vec![call("change", 5)]), say("never asked for")],
    );
    let mut runtime = Runtime::start(stage.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let child = Arc::clone(&stage.child);
    tokio::spawn(async move {
        while child.requests.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        begun.add_permits(1);
    });
    let mut events = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::TurnFinished(_) => gate.add_permits(1),
            AgentEvent::SubagentFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
        events.push((*event).clone());
    }
    let ended = ends(&events).remove(0);
    assert_eq!(ended.status, SubagentStatus::Cancelled);
    assert_eq!(*stage.bench.runs.lock().unwrap(), ["change5"], "the step came to its end");
    assert_eq!(stage.child.requests.lock().unwrap().len(), 1);
    let Some(AgentEvent::ExecutionCancelled(cancelled)) = stage.records(ended.child).pop() else {
        panic!("the child's journal goes on");
    };
    assert_eq!(cancelled.reason.unwrap(), "The parent ended it with background_kill.");
}

#[tokio::test]
async fn h170_an_interrupt_of_the_parent_cancels_the_child_it_waits_for() {
    let stage =
        stage(vec![calls(vec![order("delegate", "helper")])], vec![Step::Hang("I was about to")]);
    let mut runtime = Runtime::start(stage.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::SubagentStarted(_) => {
                runtime.commands.send(Command::Interrupt).await.unwrap();
            }
            AgentEvent::TurnFinished(turn) => {
                assert_eq!(turn.status, TurnStatus::Interrupted);
                runtime.commands.send(Command::Close).await.unwrap();
            }
            _ => {}
        }
        events.push((*event).clone());
    }
    let ended = ends(&events).remove(0);
    assert_eq!(ended.status, SubagentStatus::Cancelled);
    assert!(stage.is_cancelled(ended.child));
}

#[tokio::test]
async fn h170_a_session_that_closes_ends_its_children() {
    let stage = stage(
        vec![
            calls(vec![order("background_spawn", "helper"), order("background_spawn", "helper")]),
            say("bye"),
        ],
        vec![Step::Hang("one"), Step::Hang("two")],
    );
    let events = stage.run(&["go"]).await;
    let ended = ends(&events);
    assert_eq!(ended.len(), 2);
    for child in ended {
        assert_eq!(child.status, SubagentStatus::Cancelled);
        assert!(stage.is_cancelled(child.child));
    }
    assert!(matches!(events.last().unwrap().event, AgentEvent::StreamFinished(_)));
}

#[tokio::test]
async fn ten_children_may_work_in_the_background() {
    let spawns = (0..11).map(|_| order("background_spawn", "helper")).collect();
    let stage = stage(vec![calls(spawns), say("bye")], (0..11).map(|_| Step::Hang("x")).collect());
    let events = stage.run(&["go"]).await;
    let results = results(&events);
    assert!(results[9].0.starts_with("Agent a10 is at work"), "{}", results[9].0);
    assert!(results[10].1 && results[10].0.starts_with("10 agents work"), "{}", results[10].0);
    assert_eq!(ends(&events).len(), 10);
    assert!(events.iter().all(|event| event.exec == events[0].exec));
    let piecemeal = events
        .iter()
        .filter(|event| matches!(&event.event, AgentEvent::ItemDelta(delta) if delta.text == "x"));
    assert_eq!(piecemeal.count(), 0, "words of children stay in their own streams");
}

#[tokio::test]
async fn children_of_a_process_that_died_are_settled_as_unknown() {
    let stage = stage(
        vec![calls(vec![order("background_spawn", "helper")]), Step::Hang("x")],
        vec![
            Step::Answer(Answer {
                parts: vec![words("Begun."), call("change", 1)],
                stop: StopReason::ToolCalls,
                usage: usage(30),
            }),
            Step::Hang("y"),
        ],
    );
    let mut runtime = Runtime::start(stage.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut started = None;
    while let Some(event) = runtime.events.recv().await {
        if let AgentEvent::SubagentStarted(start) = &event.event {
            started = Some((event.exec, start.child));
            break;
        }
    }
    let (exec, child) = started.unwrap();
    while stage.child.requests.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    // As a kill does: what the process would still do never happens.
    let store = stage.bench.deps.store.as_ref();
    drop(store.take_over(exec).unwrap());
    drop(store.take_over(child).unwrap());
    runtime.done.await.unwrap();
    *stage.parent.steps.lock().unwrap() = [say("I see")].into();
    let mut runtime = Runtime::start(stage.bench.deps.clone(), SessionChoice::Resume(exec));
    runtime.commands.send(Command::Prompt { text: "how is it?".into() }).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        if event.turn == Some(2) && matches!(event.event, AgentEvent::TurnFinished(_)) {
            runtime.commands.send(Command::Close).await.unwrap();
        }
        events.push((*event).clone());
    }
    let ended = ends(&events).remove(0);
    assert_eq!((ended.status, ended.child, ended.steps), (SubagentStatus::Unknown, child, 2));
    assert_eq!(ended.report.as_deref(), Some("Begun."));
    assert_eq!(ended.usage, usage(30));
    let last = stage.parent.requests.lock().unwrap().len() - 1;
    let told = user_words(&stage.parent, last);
    let first =
        "Agent a1 (helper) finished.\nOutcome unknown: The process ended while it was at work.";
    assert!(told.last().unwrap().starts_with(first), "{told:?}");
}

#[tokio::test]
async fn a_child_that_breaks_down_is_a_failed_one() {
    let stage = stage(
        vec![calls(vec![order("delegate", "helper")]), say("ok")],
        vec![calls(vec![call("change", 1)])],
    );
    let mut deps = stage.bench.deps.clone();
    let tree = deps.branch;
    // Each session asks when it is made and when a turn begins: the fourth is the child's turn.
    let asked = Mutex::new(0);
    deps.branch = Arc::new(move || {
        *asked.lock().unwrap() += 1;
        assert_ne!(*asked.lock().unwrap(), 4, "a fault");
        tree()
    });
    let events = run(&deps, SessionChoice::New, &["go"]).await;
    let ended = ends(&events).remove(0);
    assert_eq!(ended.status, SubagentStatus::Failed);
    assert_eq!(ended.error.unwrap().code, ErrorCode::Internal);
    let (text, is_error) = results(&events).remove(0);
    assert!(is_error && text.starts_with("Failed: It broke down"), "{text}");
    assert_eq!(finished(&events).message.as_deref(), Some("ok"), "the parent goes on");
}
