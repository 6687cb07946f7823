//! Children of which nothing is heard.

use loon_api::{At, SubagentState};
use loon_kernel::ManualClock;

use super::*;

const QUIET: Duration = Duration::from_mins(5);

fn states(events: &[Envelope]) -> Vec<SubagentState> {
    let states = events.iter().filter_map(|event| match &event.event {
        AgentEvent::SubagentProgressed(progressed) => Some(progressed.agent.state),
        _ => None,
    });
    states.collect()
}

#[tokio::test]
async fn a_silent_child_is_reported_once_to_person_and_model_and_goes_on() {
    let (gate, last, silent) = (closed(), closed(), closed());
    let stage = stage(
        vec![
            calls(vec![order("background_spawn", "helper")]),
            held(&gate, vec![call("change", 1)]),
            held(&last, vec![words("seen")]),
            say("over"),
        ],
        vec![held(&silent, vec![words("Here I am.")])],
    );
    let clock = ManualClock::new(At::from_unix_ms(0));
    let mut deps = stage.bench.deps.clone();
    deps.clock = Arc::new(clock.clone());
    let mut runtime = Runtime::start(deps, SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let (mut events, mut told, mut silenced) = (Vec::new(), Vec::new(), false);
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::SubagentStarted(_) => {
                runtime.commands.send(Command::ListSubagents).await.unwrap();
            }
            // Once its request is counted, everything it did so far was heard.
            AgentEvent::SubagentProgressed(progressed) if !silenced => {
                silenced = progressed.agent.steps == 1;
                if silenced {
                    clock.sleeper(QUIET).await;
                    clock.advance(QUIET);
                } else {
                    runtime.commands.send(Command::ListSubagents).await.unwrap();
                }
            }
            AgentEvent::Notice(notice) => {
                told.push(notice.message.clone());
                gate.add_permits(1);
            }
            AgentEvent::EffectStarted(effect) if effect.key.as_str() == "t1/s2/model" => {
                silent.add_permits(1);
            }
            AgentEvent::SubagentFinished(_) => last.add_permits(1),
            AgentEvent::TurnFinished(_) => runtime.commands.send(Command::Close).await.unwrap(),
            _ => {}
        }
        events.push((*event).clone());
    }
    let message =
        "Agent a1 (helper) gave no sign of life for 5 min. It made no call yet. It goes on.";
    assert_eq!(told, [message]);
    let words = user_words(&stage.parent, 2);
    assert!(words.iter().any(|words| words.starts_with(message)), "{words:?}");
    assert_eq!(ends(&events)[0].status, SubagentStatus::Completed);
    let states = states(&events);
    let stalled = states.iter().filter(|state| **state == SubagentState::Stalled).count();
    assert_eq!(stalled, 1);
    assert_eq!(states.last(), Some(&SubagentState::Running), "it was heard of again");
}

#[tokio::test]
async fn nobody_waits_for_time_to_pass_without_a_child_or_while_a_person_decides() {
    let stage = stage(
        vec![calls(vec![order("background_spawn", "helper")]), say("bye")],
        vec![calls(vec![call("change", 1)]), say("done")],
    );
    let clock = ManualClock::new(At::from_unix_ms(0));
    let mut deps = stage.bench.deps.clone();
    deps.clock = Arc::new(clock.clone());
    deps.options.mode.value = Mode::Default;
    deps.options.unattended = false;
    let mut runtime = Runtime::start(deps, SessionChoice::New);
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let (mut asked, mut idle) = (None, false);
    let (mut checked_while_asked, mut checked_after) = (false, false);
    while let Some(event) = runtime.events.recv().await {
        match &event.event {
            AgentEvent::ApprovalRequested(request) => asked = Some(request.approval.id.clone()),
            AgentEvent::TurnFinished(_) => idle = true,
            AgentEvent::ModelsListed(_) if !checked_while_asked => {
                // Only an owner that waits for news again answers the second question.
                checked_while_asked = true;
                assert!(!clock.is_sleeper(QUIET), "a person decides");
                let approval = asked.clone().unwrap();
                let approve = Command::Approve { approval, scope: ApprovalScope::Once, rule: None };
                runtime.commands.send(approve).await.unwrap();
            }
            AgentEvent::ModelsListed(_) => {
                checked_after = true;
                assert!(!clock.is_sleeper(QUIET), "no child is left");
                runtime.commands.send(Command::Close).await.unwrap();
            }
            AgentEvent::SubagentFinished(_) => {
                runtime.commands.send(Command::ListModels).await.unwrap();
            }
            _ => {}
        }
        if idle && asked.is_some() && !checked_while_asked {
            idle = false;
            runtime.commands.send(Command::ListModels).await.unwrap();
        }
    }
    assert!(checked_while_asked && checked_after);
}
