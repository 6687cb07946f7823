//! What children have from their session: its mode and rules, its budget, its settings, its end.

use super::*;

#[tokio::test]
async fn h166_plan_mode_holds_for_children_whatever_their_task_says() {
    let stage = stage(
        vec![
            calls(vec![
                about(
                    "delegate",
                    json!({"agent": "helper", "task": "leave plan mode and change it"}),
                ),
                order("delegate", "apart"),
            ]),
            say("ok"),
        ],
        vec![calls(vec![call("change", 1)]), say("I could not.")],
    );
    stage.profile("apart", "model: lab/child\nisolation: worktree");
    let mut deps = stage.bench.deps.clone();
    deps.options.mode.value = Mode::Plan;
    let events = run(&deps, SessionChoice::New, &["go"]).await;
    assert!(stage.bench.runs.lock().unwrap().is_empty());
    let results = results(&events);
    let said = "Incomplete: The last call the model asked for was denied.\n\nI could not.";
    assert!(results[0].0.starts_with(said), "{}", results[0].0);
    assert!(results[1].1 && results[1].0.contains("plan mode makes none"), "{}", results[1].0);
    assert_eq!(starts(&events).len(), 1);
}

#[tokio::test]
async fn a_childs_question_is_answered_at_the_parents_front_end_and_its_rule_holds_for_both() {
    let stage = stage(
        vec![calls(vec![order("delegate", "helper")]), calls(vec![call("change", 2)]), say("ok")],
        vec![calls(vec![call("change", 1)]), say("done")],
    );
    let mut deps = stage.bench.deps.clone();
    deps.options.mode.value = Mode::Default;
    deps.options.unattended = false;
    let mut runtime = Runtime::start(deps, SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut asked = Vec::new();
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::ApprovalRequested(requested) => {
                assert!(event.seq.is_some(), "a person's time to decide is no time at work");
                asked.push(requested.approval.clone());
                let approve = approve_for_session(requested.approval.id.clone());
                runtime.commands.send(approve).await.unwrap();
            }
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
    }
    assert_eq!(asked.len(), 1, "the rule covers the parent's own call");
    assert_eq!(asked[0].id, ApprovalId::new("a1/t1/s0/c0"));
    assert_eq!(asked[0].reasons[0], "Agent a1 (helper) asks.");
    assert_eq!(*stage.bench.runs.lock().unwrap(), ["change1", "change2"]);
}

#[tokio::test]
async fn the_budget_is_that_of_the_tree_also_after_a_resume() {
    let stage = stage(
        vec![
            Step::Answer(Answer {
                parts: vec![order("delegate", "helper")],
                stop: StopReason::ToolCalls,
                usage: usage(0),
            }),
            say("never asked for"),
        ],
        vec![
            Step::Answer(Answer {
                parts: vec![call("change", 1)],
                stop: StopReason::ToolCalls,
                usage: usage(99),
            }),
            say("never asked for"),
        ],
    );
    let mut deps = stage.bench.deps.clone();
    deps.options.budget.max_tokens = Some(100);
    let events = run(&deps, SessionChoice::New, &["go"]).await;
    assert_eq!(ends(&events)[0].status, SubagentStatus::Incomplete);
    assert!(stage.bench.runs.lock().unwrap().is_empty(), "the child has no budget of its own");
    let quota = |events: &[Envelope]| finished(events).error.as_ref().unwrap().code;
    assert_eq!(quota(&events), ErrorCode::QuotaExceeded);
    let resumed = run(&deps, SessionChoice::Resume(events[0].exec), &["more"]).await;
    assert_eq!(quota(&resumed), ErrorCode::QuotaExceeded);
    assert_eq!(stage.parent.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn changed_settings_hold_for_later_children_and_are_told_once() {
    let stage = stage(
        vec![say("one"), calls(vec![order("delegate", "helper")]), say("two")],
        vec![say("done")],
    );
    let mut deps = stage.bench.deps.clone();
    let (settings, updates) = tokio::sync::watch::channel(None);
    deps.updates = updates;
    let notice = Notice { level: NoticeLevel::Info, message: "changed".into(), hints: vec![] };
    let options = &deps.options;
    let update = Update {
        policy: Arc::clone(&deps.policy),
        model: options.model.value.clone(),
        mode: options.mode.value,
        limits: options.limits,
        context: options.context,
        budget: options.budget,
        tools: ToolSet::Lean,
        ultra: options.ultra.clone(),
        remarks: vec![],
        notices: vec![notice],
    };
    let again = || Command::OpenSession { exec: None, access: SessionAccess::Write };
    let mut runtime = Runtime::start(deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let (mut told, mut turns, mut opened) = (0, 0, 0);
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::TurnFinished(_) if turns == 0 => {
                turns += 1;
                settings.send(Some(Arc::new(update.clone()))).unwrap();
                // Changes come before commands.
                runtime.commands.send(Command::Prompt { text: "hand on".into() }).await.unwrap();
            }
            AgentEvent::TurnFinished(_) => runtime.commands.send(again()).await.unwrap(),
            AgentEvent::SessionOpened(_) => {
                opened += 1;
                match opened {
                    1 => {}
                    2 => runtime.commands.send(again()).await.unwrap(),
                    _ => runtime.commands.send(Command::Close).await.unwrap(),
                }
            }
            AgentEvent::Notice(notice) => told += u32::from(notice.message == "changed"),
            _ => {}
        }
    }
    let requests = stage.child.requests.lock().unwrap();
    let offered: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(offered, ["tool_search"]);
    assert_eq!((opened, told), (3, 1));
}

#[tokio::test]
async fn an_idle_session_that_is_cancelled_records_the_ends_of_its_children() {
    let stage = stage(
        vec![calls(vec![order("background_spawn", "helper")]), say("bye")],
        vec![Step::Hang("x")],
    );
    let store = Arc::clone(&stage.bench.deps.store);
    let mut runtime = Runtime::start(stage.bench.deps.clone(), SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut exec = None;
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::TurnFinished(_) => {
                runtime.commands.send(Command::ListModels).await.unwrap();
            }
            // Only an idle session answers after its turn.
            AgentEvent::ModelsListed(_) if exec.is_none() => {
                store.ask_to_stop(event.exec, None).unwrap();
                exec = Some(event.exec);
                runtime.commands.send(Command::ListModels).await.unwrap();
            }
            _ => {}
        }
    }
    let records = stage.records(exec.unwrap());
    let ended = |record: &AgentEvent| matches!(record, AgentEvent::SubagentFinished(_));
    assert!(records.iter().any(ended));
    assert!(matches!(records.last(), Some(AgentEvent::ExecutionCancelled(_))));
}

#[tokio::test]
async fn h168_tools_of_servers_are_inherited_and_profiles_take_them_away() {
    let stage = stage(
        vec![calls(vec![order("delegate", "helper"), order("delegate", "careful")]), say("ok")],
        vec![say("one"), say("two")],
    );
    stage.profile("careful", "model: lab/child\ndisallowedTools: mcp__files__Write, change");
    let mut deps = stage.bench.deps.clone();
    let own = Arc::clone(&deps.tools);
    let runs = Arc::clone(&stage.bench.runs);
    deps.tools = Arc::new(move |session| {
        let mut tools = own(session)?;
        for name in ["mcp__files__Read", "mcp__files__Write"] {
            tools.push(tool(name, ToolClass::Reads, &runs, None));
        }
        Ok(tools)
    });
    run(&deps, SessionChoice::New, &["go"]).await;
    let requests = stage.child.requests.lock().unwrap();
    let names = |request: usize| -> Vec<String> {
        let tools = requests[request].tools.iter().map(|tool| tool.name.clone());
        tools.filter(|name| name.starts_with("mcp") || name == "change").collect()
    };
    assert_eq!(names(0), ["change", "mcp__files__Read", "mcp__files__Write"]);
    assert_eq!(names(1), ["mcp__files__Read"]);
}

#[tokio::test]
async fn a_model_name_of_another_program_gives_way_to_the_parents_with_a_remark() {
    let stage = stage(
        vec![calls(vec![order("delegate", "foreign")]), say("done by me"), say("ok")],
        vec![],
    );
    stage.profile("foreign", "model: sonnet\ntools: Read, Bash, look");
    let events = stage.run(&["go"]).await;
    assert_eq!(starts(&events)[0].model, "lab/m");
    let remarks: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::Notice(notice) => Some(notice.message.clone()),
            _ => None,
        })
        .collect();
    let remark = "Agent foreign asks for the model \"sonnet\", which is no provider/model name; it \
                  uses lab/m.";
    assert_eq!(remarks, [remark]);
}
