//! The working record through whole sessions: resume, rewind, and what requests show of it.

use loon_api::{ChecklistStep, RecordChange, UserPart, WorkStatus, WorkingRecord};

use super::*;

/// Writes a checklist with the step `n`.
struct Plan(ToolSpec);

impl Tool for Plan {
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
        let record = vec![RecordChange::Checklist { steps: steps(&arguments["n"]) }];
        Box::pin(async move { ToolOutput { record, ..ToolOutput::ok("planned", "") } })
    }
}

fn steps(n: &Value) -> Vec<ChecklistStep> {
    vec![ChecklistStep { step: format!("step {n}"), status: WorkStatus::Pending }]
}

fn record_of(n: u32) -> WorkingRecord {
    WorkingRecord { steps: steps(&json!(n)), ..WorkingRecord::default() }
}

fn shown(n: u32) -> String {
    format!("Working record:\nChecklist, 0 of 1 done:\n[ ] step {n}")
}

/// A bench with tools of these names, all of which plan.
fn bench_of(names: &'static [&'static str], script: impl IntoIterator<Item = Step>) -> Bench {
    let mut bench = bench(script);
    bench.deps.tools = Arc::new(move |_| {
        let plan = |name: &&str| {
            let spec = ToolSpec {
                name: (*name).to_owned(),
                description: String::new(),
                parameters: json!({"type": "object", "properties": {}}),
                class: ToolClass::Session,
            };
            Arc::new(Plan(spec)) as Arc<dyn Tool>
        };
        Ok(names.iter().map(plan).collect())
    });
    bench
}

fn plan(n: u32) -> Step {
    calls(vec![call("plan", n)])
}

/// The texts of the last message of the user in a request.
fn last_words(request: &ModelRequest) -> Vec<&str> {
    fn user(message: &Message) -> Option<&Vec<UserPart>> {
        match message {
            Message::User(parts) => Some(parts),
            Message::Assistant(_) => None,
        }
    }
    fn text(part: &UserPart) -> &str {
        match part {
            UserPart::Text(text) => text,
            UserPart::Image { .. } => panic!("no image was sent"),
        }
    }
    request.messages.iter().rev().find_map(user).unwrap().iter().map(text).collect()
}

#[tokio::test]
async fn a_resumed_session_has_the_record_and_shows_it_to_the_model() {
    let bench = bench_of(&["plan"], [plan(1), say("one"), say("two")]);
    let first = run(&bench.deps, SessionChoice::New, &["go"]).await;
    let second = run(&bench.deps, SessionChoice::Resume(first[0].exec), &["again"]).await;
    let AgentEvent::SessionOpened(opened) = &second[1].event else { panic!("opened second") };
    assert_eq!(opened.session.record, record_of(1));
    let requests = bench.model.requests.lock().unwrap();
    assert_eq!(last_words(&requests[1]), ["go"]);
    assert_eq!(last_words(&requests[2]), [&shown(1), "again"]);
}

#[tokio::test]
async fn each_request_begins_with_the_one_before_it_whatever_the_record_becomes() {
    let script = [
        plan(1),
        say("one"),
        plan(2),
        plan(3),
        say("two"),
        say("three"),
        say("four"),
        plan(4),
        say("five"),
    ];
    let bench = bench_of(&["plan"], script);
    let first = run(&bench.deps, SessionChoice::New, &["a", "b", "c", "d"]).await;
    run(&bench.deps, SessionChoice::Resume(first[0].exec), &["e"]).await;
    let requests = bench.model.requests.lock().unwrap();
    assert_eq!(requests.len(), 9);
    for pair in requests.windows(2) {
        assert!(pair[1].messages.starts_with(&pair[0].messages));
        assert_eq!(pair[1].system, pair[0].system);
    }
    // Within a turn the text stays what it was at the start, also after the record changed.
    assert_eq!(last_words(&requests[2]), [&shown(1), "b"]);
    assert_eq!(last_words(&requests[4]), [&shown(1), "b"]);
    // What stands in the conversation already is not said again.
    assert_eq!(last_words(&requests[5]), [&shown(3), "c"]);
    assert_eq!(last_words(&requests[6]), ["d"]);
    assert_eq!(last_words(&requests[8]), ["e"]);
}

#[tokio::test]
async fn a_goal_is_shown_from_the_next_turn_on_until_it_is_taken_away() {
    let bench = bench_of(&["plan"], [say("one"), say("two"), say("three")]);
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::New);
    for goal in [Some("ship it"), None] {
        let goal = goal.map(str::to_owned);
        runtime.commands.send(Command::SetGoal { goal }).await.unwrap();
        runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
        while let Some(event) = runtime.events.recv().await {
            if matches!(event.event, AgentEvent::TurnFinished(_)) {
                break;
            }
        }
    }
    runtime.commands.send(Command::Close).await.unwrap();
    while runtime.events.recv().await.is_some() {}
    let requests = bench.model.requests.lock().unwrap();
    assert_eq!(last_words(&requests[0]), ["Working record:\nGoal: ship it", "go"]);
    assert_eq!(
        last_words(&requests[1]),
        ["Working record: nothing is written down any more.", "go"]
    );
}

#[tokio::test]
async fn a_rewind_takes_the_record_to_where_it_stood_and_no_further() {
    let script = [plan(1), say("one"), plan(2), say("two"), plan(3), say("three")];
    let bench = bench_of(&["plan"], script);
    let first = run(&bench.deps, SessionChoice::New, &["a", "b", "c"]).await;
    let exec = first[0].exec;
    // The record that a session opened anew holds, after a rewind to the message of this turn.
    for (turn, left) in [(3, record_of(2)), (2, record_of(1)), (1, WorkingRecord::default())] {
        let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::Resume(exec));
        let to = ItemId::user(turn, 0);
        runtime.commands.send(Command::Rewind { to, files: false }).await.unwrap();
        runtime.commands.send(Command::Close).await.unwrap();
        while runtime.events.recv().await.is_some() {}
        let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::Resume(exec));
        runtime.commands.send(Command::Close).await.unwrap();
        let mut opened = None;
        while let Some(event) = runtime.events.recv().await {
            if let AgentEvent::SessionOpened(session) = &event.event {
                opened = Some(session.session.record.clone());
            }
        }
        assert_eq!(opened, Some(left), "turn {turn}");
    }
    run(&bench.deps, SessionChoice::Resume(exec), &["anew"]).await;
    let requests = bench.model.requests.lock().unwrap();
    assert_eq!(last_words(requests.last().unwrap()), ["anew"]);
}

#[tokio::test]
async fn the_system_text_asks_for_a_record_only_where_it_can_be_kept() {
    for (names, asked) in [
        (&["todo_read", "todo_write", "note"][..], true),
        (&["todo_read", "todo_write", "task"], false),
    ] {
        let bench = bench_of(names, [say("done")]);
        run(&bench.deps, SessionChoice::New, &["go"]).await;
        let requests = bench.model.requests.lock().unwrap();
        assert_eq!(requests[0].system.contains("todo_write"), asked, "{names:?}");
    }
}
