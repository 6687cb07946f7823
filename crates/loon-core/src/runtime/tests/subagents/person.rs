//! What a person does about children: lists, watches, steers and stops them.

use loon_api::SubagentState;

use super::*;

#[tokio::test]
async fn a_person_lists_watches_steers_and_stops_a_child() {
    let (first, second) = (closed(), closed());
    let stage = stage(
        vec![calls(vec![order("background_spawn", "helper")]), say("bye")],
        vec![
            held(&first, vec![call("change", 1)]),
            held(&second, vec![call("change", 2)]),
            say("never asked for"),
        ],
    );
    stage.profile("helper", "model: lab/child\neffort: low");
    let mut runtime = Runtime::start(stage.bench.deps.clone(), SessionChoice::New);
    let id = || "a1".to_owned();
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let (mut events, mut shown) = (Vec::new(), Vec::new());
    let (mut listed, mut steered) = (None, false);
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::TurnFinished(_) => {
                runtime.commands.send(Command::ListSubagents).await.unwrap();
                runtime.commands.send(Command::WatchSubagent { id: Some(id()) }).await.unwrap();
            }
            AgentEvent::SubagentShown(more) if !steered => {
                steered = true;
                shown.extend(more.items.clone());
                let steer = Command::SteerSubagent { id: id(), text: "look left".into() };
                runtime.commands.send(steer).await.unwrap();
                // It is answered once the words are on their way.
                runtime.commands.send(Command::ListModels).await.unwrap();
            }
            AgentEvent::ModelsListed(_) => first.add_permits(1),
            AgentEvent::SubagentShown(more) => {
                shown.extend(more.items.clone());
                if more.items.iter().any(|item| item.id == ItemId::user(1, 1)) {
                    runtime.commands.send(Command::StopSubagent { id: id() }).await.unwrap();
                }
            }
            AgentEvent::SubagentProgressed(progressed) => match progressed.agent.state {
                SubagentState::Stopping => second.add_permits(1),
                _ => listed = listed.or_else(|| Some(progressed.agent.clone())),
            },
            AgentEvent::SubagentFinished(_) => {
                for id in ["a1", "a9"] {
                    let stop = Command::StopSubagent { id: id.into() };
                    runtime.commands.send(stop).await.unwrap();
                }
                runtime.commands.send(Command::Close).await.unwrap();
            }
            _ => {}
        }
        events.push((*event).clone());
    }
    let listed = listed.unwrap();
    assert_eq!((listed.id.as_str(), listed.model.as_str()), ("a1", "lab/child"));
    assert_eq!(listed.effort, Some(loon_api::Effort::Low));
    assert_eq!(ends(&events)[0].status, SubagentStatus::Cancelled);
    assert_eq!(*stage.bench.runs.lock().unwrap(), ["change1", "change2"]);
    assert_eq!(user_words(&stage.child, 1), ["look into it", "look left"]);
    let has = |id: &ItemId, done: bool| {
        shown.iter().any(|item: &Item| match &item.body {
            ItemBody::ToolCall(call) => {
                item.id == *id && (call.status == ToolCallStatus::Done) == done
            }
            _ => item.id == *id && done,
        })
    };
    assert!(has(&ItemId::user(1, 0), true), "what it was told");
    let second_call = ItemId::call(1, 1, 0);
    assert!(has(&second_call, false) && has(&second_call, true), "a call, begun and ended");
    let child = ends(&events)[0].child;
    let Some(AgentEvent::ExecutionCancelled(cancelled)) = stage.records(child).pop() else {
        panic!("the child's journal goes on");
    };
    assert_eq!(cancelled.reason.as_deref(), Some("The user ended it."));
    let warned: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.event {
            AgentEvent::Notice(notice) => Some(notice.message.as_str()),
            _ => None,
        })
        .collect();
    assert!(warned[0].starts_with("Agent a1 has finished"), "{warned:?}");
    assert!(warned[1].starts_with("There is no agent \"a9\""), "{warned:?}");
}
