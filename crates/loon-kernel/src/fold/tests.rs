//! The fold counts right, and folding in two parts is folding in one.

use std::time::Duration;

use loon_api::event::{
    ApprovalRequested, ApprovalResolved, BudgetChanged, BudgetKept, BudgetReached, DeadlineSet,
    Decision, EffectFinished, EffectKind, EffectRerouted, EffectRetried, EffectStarted,
    EffectStatus, ExecutionCancelled, ExecutionResumed, ExecutionStarted, SessionForked,
    SubagentFinished, SubagentStarted, TurnFinished, TurnStarted,
};
use loon_api::{
    AgentEvent, Approval, ApprovalId, At, Bounds, Cost, EffectKey, Envelope, ErrorCode, ErrorInfo,
    ExecutionId, ExecutionKind, ItemId, Mode, Money, ReachedBound, Seq, SubagentStatus, TurnStatus,
    Usage, VERSION,
};
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::{ExecutionState, Resources};

fn at(seconds: i64) -> At {
    At::from_unix_ms(1_796_040_000_000 + seconds * 1000)
}

fn envelope(seq: Seq, seconds: i64, event: AgentEvent) -> Envelope {
    let exec = ExecutionId::generate();
    Envelope { v: VERSION, seq: Some(seq), at: at(seconds), exec, turn: Some(1), event }
}

fn fold(events: Vec<(i64, AgentEvent)>) -> ExecutionState {
    let mut state = ExecutionState::default();
    for (seq, (seconds, event)) in (1..).zip(events) {
        state.apply(&envelope(seq, seconds, event));
    }
    state
}

fn started(deadline: Option<u64>) -> AgentEvent {
    let event = ExecutionStarted {
        kind: ExecutionKind::Session,
        cwd: "/w".to_owned(),
        parent: None,
        deadline_ms: deadline,
        loon: "0".to_owned(),
    };
    event.into()
}

fn turn() -> AgentEvent {
    TurnStarted { model: "p/m".to_owned(), mode: Mode::Default, branch: None }.into()
}

fn turn_end() -> AgentEvent {
    let status = TurnStatus::Completed;
    let (usage, cost) = (Usage::default(), Cost::default());
    TurnFinished {
        status,
        error: None,
        steps: 1,
        usage,
        cost,
        models: vec![],
        receipt: None,
        review: None,
    }
    .into()
}

fn effect(key: &str, kind: EffectKind) -> AgentEvent {
    let (key, target) = (EffectKey::new(key), "x".to_owned());
    EffectStarted { key, kind, target, item: None, timeout_ms: None, request: None }.into()
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input_tokens: Some(input), output_tokens: Some(output), ..Usage::default() }
}

fn effect_end(key: &str, status: EffectStatus, usage: Usage, cost: Cost) -> AgentEvent {
    let key = EffectKey::new(key);
    EffectFinished { key, status, error: None, ms: 10, usage, cost, output: None }.into()
}

fn asked(id: &str) -> AgentEvent {
    let approval = Approval {
        id: ApprovalId::new(id),
        item: ItemId::call(1, 0, 0),
        tool: "t".to_owned(),
        arguments: serde_json::json!({}),
        detail: String::new(),
        reasons: vec![],
        cwd: "/w".to_owned(),
        always: None,
    };
    ApprovalRequested { approval }.into()
}

fn answered(id: &str) -> AgentEvent {
    let approval = ApprovalId::new(id);
    ApprovalResolved { approval, decision: Decision::Approved, reason: None, rule: None }.into()
}

fn cents(cents: i64) -> Cost {
    Cost { usd: Money::usd(Decimal::new(cents, 2)), unpriced: 0 }
}

#[test]
fn resources_add_up_and_failed_attempts_count_as_requests() {
    let retried = EffectRetried {
        key: EffectKey::new("a"),
        attempt: 1,
        error: ErrorInfo::new(ErrorCode::Overloaded, "busy"),
        delay_ms: 1000,
        usage: usage(7, 0),
    };
    let denied = EffectFinished {
        key: EffectKey::new("c"),
        status: EffectStatus::Denied,
        error: Some(ErrorInfo::new(ErrorCode::QuotaExceeded, "spent")),
        ms: 0,
        usage: Usage::default(),
        cost: Cost::default(),
        output: None,
    };
    let mut events = vec![
        (0, started(None)),
        (1, effect("a", EffectKind::Model)),
        (2, retried.into()),
        (3, effect_end("a", EffectStatus::Completed, usage(17, 5), cents(3))),
        (4, effect("b", EffectKind::Tool)),
        (5, effect_end("b", EffectStatus::Aborted, Usage::default(), Cost::default())),
    ];
    let state = fold(events.clone());
    let expected = Resources {
        tokens: 22,
        usage: usage(17, 5),
        cost: cents(3),
        ms: 20,
        count: 2,
        requests: 2,
        exceeded: false,
    };
    assert_eq!(state.resources, expected);
    events.push((6, denied.into()));
    assert_eq!(fold(events).resources, Resources { exceeded: true, ..expected });
}

#[test]
fn an_effect_that_began_is_running_until_its_end() {
    let mut events = vec![(0, started(None)), (1, effect("a", EffectKind::Tool))];
    let state = fold(events.clone());
    assert_eq!(state.running_effects(), [EffectKey::new("a")]);
    assert_eq!(state.effects[&EffectKey::new("a")].started, Some((2, at(1))));
    let unknown = effect_end("a", EffectStatus::Unknown, Usage::default(), Cost::default());
    events.push((2, unknown));
    let state = fold(events);
    assert_eq!(state.running_effects(), []);
    let finished = state.effects[&EffectKey::new("a")].finished;
    assert_eq!(finished, Some((3, EffectStatus::Unknown)));
}

#[test]
fn the_deadline_runs_in_turns_and_effects_but_not_while_a_person_decides() {
    let mut events = vec![(0, started(Some(60_000)))];
    assert_eq!(fold(events.clone()).remaining(at(500)), Some(Duration::from_mins(1)));
    events.push((500, turn()));
    assert_eq!(fold(events.clone()).remaining(at(510)), Some(Duration::from_secs(50)));
    events.push((510, asked("q")));
    assert_eq!(fold(events.clone()).remaining(at(900)), Some(Duration::from_secs(50)));
    // A call beside the question keeps working.
    events.push((900, effect("a", EffectKind::Tool)));
    assert_eq!(fold(events.clone()).remaining(at(905)), Some(Duration::from_secs(45)));
    let end = effect_end("a", EffectStatus::Completed, Usage::default(), Cost::default());
    events.push((905, end));
    events.push((1000, answered("q")));
    assert_eq!(fold(events.clone()).remaining(at(1001)), Some(Duration::from_secs(44)));
    events.push((1010, turn_end()));
    assert_eq!(fold(events.clone()).remaining(at(9000)), Some(Duration::from_secs(35)));
    events.push((9000, turn()));
    assert_eq!(fold(events).remaining(at(9100)), Some(Duration::ZERO));
}

#[test]
fn a_crash_in_a_turn_does_not_stop_the_deadline() {
    let resumed = ExecutionResumed { unknown: vec![], repaired_bytes: None };
    let events = vec![(0, started(Some(60_000))), (10, turn()), (100, resumed.into())];
    assert_eq!(fold(events).remaining(at(100)), Some(Duration::ZERO));
}

#[test]
fn a_new_deadline_counts_from_its_own_record() {
    let set = DeadlineSet { deadline_ms: 10_000 };
    let events = vec![(0, started(Some(60_000))), (10, turn()), (50, set.into())];
    assert_eq!(fold(events).remaining(at(53)), Some(Duration::from_secs(7)));
}

#[test]
fn a_fork_begins_its_budget_and_its_deadline_anew() {
    let bounds = Bounds { max_tokens: Some(9), ..Bounds::default() };
    let state = fold(vec![
        (0, started(Some(60_000))),
        (10, turn()),
        (50, DeadlineSet { deadline_ms: 10_000 }.into()),
        (52, BudgetChanged { bounds, raised: bounds }.into()),
        (53, turn_end()),
        (60, SessionForked { from: ExecutionId::generate(), records: 5 }.into()),
    ]);
    assert_eq!(state.remaining(at(90)), Some(Duration::from_secs(10)));
    assert_eq!(state.raised, Bounds::default());
}

fn any_event() -> impl Strategy<Value = AgentEvent> {
    let key = prop::sample::select(vec!["a", "b", "c", "d"]);
    let kind = prop::sample::select(vec![EffectKind::Model, EffectKind::Tool]);
    let status = prop::sample::select(vec![
        EffectStatus::Completed,
        EffectStatus::Denied,
        EffectStatus::Aborted,
        EffectStatus::Unknown,
    ]);
    prop_oneof![
        Just(started(Some(30_000))),
        Just(turn()),
        Just(turn_end()),
        (key.clone(), kind).prop_map(|(key, kind)| effect(key, kind)),
        (key.clone(), status, 0_u64..100).prop_map(|(key, status, used)| effect_end(
            key,
            status,
            usage(used, 1),
            cents(2)
        )),
        key.clone().prop_map(asked),
        key.prop_map(answered),
        (0_u64..200).prop_map(|limit| bound(Some(limit))),
        Just(reached()),
        Just(BudgetKept { decision: Decision::Denied }.into()),
        (0_u64..50).prop_map(child_end),
        Just(ExecutionResumed { unknown: vec![], repaired_bytes: None }.into()),
        Just(ExecutionCancelled { reason: Some("r".to_owned()) }.into()),
    ]
}

fn bound(max_tokens: Option<u64>) -> AgentEvent {
    let bounds = Bounds { max_tokens, ..Bounds::default() };
    BudgetChanged { bounds, raised: Bounds::default() }.into()
}

fn reached() -> AgentEvent {
    BudgetReached { reached: ReachedBound::MaxTokens { limit: 10, used: 12 } }.into()
}

fn child_end(used: u64) -> AgentEvent {
    let event = SubagentFinished {
        id: "a1".to_owned(),
        agent: "helper".to_owned(),
        child: ExecutionId::generate(),
        status: SubagentStatus::Completed,
        error: None,
        report: None,
        steps: 2,
        usage: usage(used, 1),
        cost: Cost { usd: Money::ZERO, unpriced: 1 },
        ms: Some(7),
        effects: Some(3),
        worktree: None,
        receipt: None,
    };
    event.into()
}

#[test]
fn k007_totals_hold_what_effects_and_ended_children_used() {
    let state = fold(vec![
        (0, effect("m", EffectKind::Model)),
        (1, effect_end("m", EffectStatus::Completed, usage(5, 1), cents(2))),
        (2, effect("t", EffectKind::Tool)),
        (3, effect_end("t", EffectStatus::Aborted, Usage::default(), Cost::default())),
        (4, effect_end("d", EffectStatus::Denied, Usage::default(), Cost::default())),
        (5, child_end(10)),
    ]);
    let Resources { tokens, cost, ms, count, requests, exceeded, .. } = state.resources;
    assert_eq!((tokens, ms, count, requests, exceeded), (17, 37, 5, 3, false));
    assert_eq!(cost, Cost { unpriced: 1, ..cents(2) });
}

#[test]
fn k003_the_effect_that_reaches_a_bound_is_the_one_that_says_so() {
    let used = |tokens| effect_end("a", EffectStatus::Completed, usage(tokens, 0), cents(0));
    let exceeded = |events: Vec<AgentEvent>| {
        fold(events.into_iter().map(|event| (0, event)).collect()).resources.exceeded
    };
    assert!(!exceeded(vec![bound(Some(10)), used(9)]));
    assert!(exceeded(vec![bound(Some(10)), used(10)]), "equality is reached");
    assert!(exceeded(vec![used(10), bound(Some(10))]));
    assert!(!exceeded(vec![bound(Some(10)), used(10), reached(), bound(Some(20))]), "raised");
    assert!(!exceeded(vec![bound(Some(10)), used(10), bound(None)]));
}

#[test]
fn waiting_for_a_person_to_raise_a_bound_costs_no_deadline() {
    let closes: [AgentEvent; 4] = [
        bound(Some(20)),
        BudgetKept { decision: Decision::Denied }.into(),
        ExecutionResumed { unknown: vec![], repaired_bytes: None }.into(),
        turn(),
    ];
    for close in closes {
        // A call that hands work to a child runs all the time.
        let state = fold(vec![
            (0, turn()),
            (0, effect("delegate", EffectKind::Tool)),
            (5, reached()),
            (65, close),
            (67, turn_end()),
        ]);
        assert_eq!(state.worked(at(70)), Duration::from_secs(10));
    }
}

#[test]
fn work_that_goes_on_while_a_person_is_waited_for_uses_up_the_deadline() {
    let child = |id: &str, background| -> AgentEvent {
        SubagentStarted {
            id: id.to_owned(),
            agent: "helper".to_owned(),
            child: ExecutionId::generate(),
            task: "x".to_owned(),
            model: "p/m".to_owned(),
            effort: None,
            background,
            worktree: None,
        }
        .into()
    };
    let end_of = |id: &str| {
        let AgentEvent::SubagentFinished(end) = child_end(1) else { panic!() };
        AgentEvent::from(SubagentFinished { id: id.to_owned(), ..end })
    };
    let waits = |id: &str| effect(id, EffectKind::Tool);
    let worked = |events: Vec<(i64, AgentEvent)>| {
        let events = [(0, turn())].into_iter().chain(events).chain([(100, turn_end())]);
        fold(events.collect()).worked(at(100)).as_secs()
    };
    let (question, reply) = ("a1/t1/s0/c0", || answered("a1/t1/s0/c0"));
    // Two calls wait for a child each; one child asks for a minute, the other goes on for 20 seconds.
    let two = worked(vec![
        (0, waits("c0")),
        (0, child("a1", false)),
        (0, waits("c1")),
        (0, child("a2", false)),
        (10, asked(question)),
        (30, end_of("a2")),
        (30, effect_end("c1", EffectStatus::Completed, Usage::default(), Cost::default())),
        (70, reply()),
    ]);
    assert_eq!(two, 60);
    // The other one asks too, from the 30th second on.
    let both = worked(vec![
        (0, waits("c0")),
        (0, child("a1", false)),
        (0, waits("c1")),
        (0, child("a2", false)),
        (10, asked(question)),
        (30, asked("a2/t1/s0/c0")),
        (70, reply()),
        (80, answered("a2/t1/s0/c0")),
    ]);
    assert_eq!(both, 60);
    // One in the background goes on until the 30th second, then asks, then ends.
    let beside = worked(vec![
        (0, child("a2", true)),
        (0, waits("c0")),
        (0, child("a1", false)),
        (10, asked(question)),
        (30, asked("a2/t1/s0/c0")),
        (40, end_of("a2")),
        (70, reply()),
    ]);
    assert_eq!(beside, 60);
    // The same beside a question of its own.
    let own = worked(vec![
        (0, child("a2", true)),
        (10, asked("t1/s0/c0")),
        (30, end_of("a2")),
        (70, answered("t1/s0/c0")),
    ]);
    assert_eq!(own, 60);
}

#[test]
fn a_question_of_a_child_that_a_call_waits_for_costs_no_deadline() {
    let worked = |background, close: AgentEvent| {
        let child = SubagentStarted {
            id: "a1".to_owned(),
            agent: "helper".to_owned(),
            child: ExecutionId::generate(),
            task: "x".to_owned(),
            model: "p/m".to_owned(),
            effort: None,
            background,
            worktree: None,
        };
        let state = fold(vec![
            (0, turn()),
            (0, effect("delegate", EffectKind::Tool)),
            (0, child.into()),
            (5, asked("a1/t1/s0/c0")),
            (65, close),
            (67, turn_end()),
        ]);
        assert!(state.asking.is_empty());
        state.worked(at(70)).as_secs()
    };
    assert_eq!(worked(false, answered("a1/t1/s0/c0")), 10);
    assert_eq!(worked(false, child_end(1)), 10, "it broke down");
    assert_eq!(worked(true, answered("a1/t1/s0/c0")), 70);
}

proptest! {
    #[test]
    fn k009_effects_that_a_crash_cut_off_are_settled_the_same_wherever_that_is_looked_up(
        events in prop::collection::vec((any_event(), 0_i64..20), 1..40),
    ) {
        let mut now = 0;
        let mut state = ExecutionState::default();
        for (seq, (event, pause)) in (1..).zip(events) {
            now += pause;
            state.apply(&envelope(seq, now, event));
        }
        let settled = state.settled_resources();
        for (turn, event) in crate::execution::unknown(&state) {
            let record = envelope(state.last_seq + 1, now, event);
            state.apply(&Envelope { turn, ..record });
        }
        // Whether that reached a bound is known only once it is recorded.
        let exceeded = state.resources.exceeded;
        prop_assert_eq!(&state.resources, &Resources { exceeded, ..settled });
        prop_assert!(state.running_effects().is_empty());
    }
}

proptest! {
    #[test]
    fn records_read_back_fold_to_the_same_state(
        events in prop::collection::vec((any_event(), 0_i64..20), 0..40),
        cut in 0_usize..40,
    ) {
        let mut now = 0;
        let records: Vec<Envelope> = (1..)
            .zip(events)
            .map(|(seq, (event, pause))| {
                now += pause;
                envelope(seq, now, event)
            })
            .collect();
        let mut whole = ExecutionState::default();
        for record in &records {
            whole.apply(record);
        }

        let mut resumed = ExecutionState::default();
        for record in &records[..cut.min(records.len())] {
            let line = serde_json::to_string(record).unwrap();
            resumed.apply(&Envelope::parse(&line).unwrap());
        }
        for record in records.iter().skip(cut) {
            resumed.apply(record);
        }
        prop_assert_eq!(&whole, &resumed);
        let running = whole.effects.values().filter(|effect| effect.is_running()).count();
        prop_assert_eq!(whole.running as usize, running);
        prop_assert!(whole.worked(at(now)) <= Duration::from_secs(now.unsigned_abs()));
    }
}

#[test]
fn a_reroute_counts_a_request_unless_none_was_sent_and_its_end_counts_what_it_used() {
    let key = EffectKey::new("m");
    let left = Cost { usd: Money::usd(Decimal::new(3, 2)), unpriced: 0 };
    let rerouted = |code, usage, cost| -> AgentEvent {
        let error = ErrorInfo::new(code, "no");
        let (from, to) = ("lab/a".to_owned(), "lab/b".to_owned());
        EffectRerouted { key: key.clone(), from, to, error, usage, cost }.into()
    };
    let retried = || -> AgentEvent {
        let error = ErrorInfo::new(ErrorCode::Overloaded, "busy");
        let usage = usage(3, 0);
        EffectRetried { key: key.clone(), attempt: 1, error, delay_ms: 0, usage }.into()
    };
    let mut events = vec![
        (0, started(None)),
        (0, effect("m", EffectKind::Model)),
        (0, retried()),
        (0, rerouted(ErrorCode::Overloaded, usage(7, 0), left)),
        (0, rerouted(ErrorCode::CircuitOpen, Usage::default(), Cost::default())),
        (0, retried()),
    ];
    let running = fold(events.clone());
    let known = &running.effects[&key];
    assert_eq!((known.usage, known.cost), (usage(10, 0), left), "were it cut off here");
    assert_eq!((running.resources.requests, running.resources.tokens), (4, 0));
    events.push((1, effect_end("m", EffectStatus::Failed, usage(10, 0), left)));
    // Said once more after the end, where a turn goes on with another model.
    events.push((1, rerouted(ErrorCode::Network, usage(10, 0), left)));
    let ended = fold(events);
    assert_eq!((ended.resources.requests, ended.resources.tokens), (4, 10));
    assert_eq!(ended.resources.cost, left);
}
