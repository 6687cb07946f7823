//! Flows in virtual time, with journals that end at any record.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loon_api::event::EffectStatus;
use loon_api::{
    AgentEvent, Approval, At, BoxFuture, Envelope, ErrorCode, ErrorInfo, ExecutionId, Money, Usage,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Flow, FlowContext, FlowError, FlowRunner, Flows, RunError, Signal, Start, Woken};
use crate::clock::{ManualClock, SystemClock};
use crate::gate::{ApprovalAnswer, Approver, GateOptions, Pricing, RetryPolicy};
use crate::placement::Settled;
use crate::secrets::Redactor;
use crate::store::{JournalStore, MemoryStore};
use crate::supervision::Circuits;
use crate::tree::Tree;

mod deadlines;
mod kill_points;
mod replays;
mod signals;

struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _: &'a Approval) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::pending())
    }
}

impl Pricing for Nobody {
    fn price(&self, _: &str, _: &Usage) -> Option<Money> {
        None
    }
}

fn gate_options() -> GateOptions {
    GateOptions {
        tools: vec![],
        authorities: vec![],
        approver: Arc::new(Nobody),
        remote: Arc::new(crate::NoRemoteTools),
        pricing: Arc::new(Nobody),
        retry: RetryPolicy::default(),
        tool_timeout: None,
        approval_prefix: String::new(),
        circuits: Circuits::new(Arc::new(SystemClock)),
        tree: Tree::default(),
    }
}

/// What steps did to the world: how often each ran.
#[derive(Clone, Default)]
struct World(Arc<Mutex<BTreeMap<String, u32>>>);

impl World {
    fn touch(&self, what: &str) -> Value {
        *self.0.lock().unwrap().entry(what.to_owned()).or_default() += 1;
        json!(format!("{what} done"))
    }

    fn times(&self, what: &str) -> u32 {
        self.0.lock().unwrap().get(what).copied().unwrap_or(0)
    }
}

type Code =
    dyn for<'a> Fn(&'a FlowContext, World) -> BoxFuture<'a, Result<Value, FlowError>> + Send + Sync;

/// A flow made of a closure.
struct Coded {
    deadline: Option<Duration>,
    world: World,
    code: Box<Code>,
}

impl Flow for Coded {
    fn name(&self) -> &'static str {
        "coded"
    }

    fn version(&self) -> u32 {
        1
    }

    fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    fn signal_schema(&self, on: &str) -> Option<Value> {
        (on == "approval").then(|| {
            json!({"type": "object", "required": ["by"], "properties": {"by": {"type": "string"}}})
        })
    }

    fn run<'a>(
        &'a self,
        cx: &'a FlowContext,
        _input: Value,
    ) -> BoxFuture<'a, Result<Value, FlowError>> {
        (self.code)(cx, self.world.clone())
    }
}

/// A store with a clock and a world, in which processes come and go.
struct House {
    store: MemoryStore,
    clock: ManualClock,
    world: World,
    exec: ExecutionId,
}

fn house() -> House {
    House {
        store: MemoryStore::default(),
        clock: ManualClock::new(At::from_unix_ms(1_796_040_000_000)),
        world: World::default(),
        exec: ExecutionId::generate(),
    }
}

fn unheard() -> mpsc::Sender<Arc<Envelope>> {
    mpsc::channel(1).0
}

impl House {
    /// A process with this code.
    fn process<C>(&self, deadline: Option<Duration>, code: C) -> Arc<FlowRunner>
    where
        C: for<'a> Fn(&'a FlowContext, World) -> BoxFuture<'a, Result<Value, FlowError>>
            + Send
            + Sync
            + 'static,
    {
        let flow = Coded { deadline, world: self.world.clone(), code: Box::new(code) };
        Arc::new(FlowRunner::new(
            Arc::new(self.store.clone()),
            Arc::new(self.clock.clone()),
            Redactor::default(),
            Flows::default().with(Arc::new(flow)),
            Arc::new(|_| gate_options()),
        ))
    }

    fn begin(&self) -> Start {
        Start {
            exec: Some(self.exec),
            flow: "coded".to_owned(),
            version: None,
            input: Value::Null,
            cwd: "/w".to_owned(),
            parent: None,
            deadline: None,
        }
    }

    async fn start(&self, runner: &FlowRunner) -> Result<Settled, RunError> {
        runner.start(self.begin(), unheard()).await
    }

    async fn resume(&self, runner: &FlowRunner) -> Result<Settled, RunError> {
        runner.resume(self.exec, unheard()).await
    }

    fn records(&self) -> Vec<Envelope> {
        self.store.read(self.exec).unwrap().map(Result::unwrap).collect()
    }

    fn kinds(&self) -> Vec<String> {
        self.records().iter().map(|record| record.event.kind().to_owned()).collect()
    }

    fn count(&self, kind: &str) -> usize {
        self.kinds().iter().filter(|it| *it == kind).count()
    }
}

fn approval(correlation: &str) -> Signal {
    Signal {
        on: "approval".to_owned(),
        correlation: correlation.to_owned(),
        payload: json!({"by": "ann"}),
    }
}

/// A step that touches the world under its own name.
async fn touch(cx: &FlowContext, world: &World, key: &str) -> Result<Value, FlowError> {
    let world = world.clone();
    let name = key.to_owned();
    cx.perform(key, "world", None, |_, _| async move { Ok(world.touch(&name)) }).await
}

fn completed(output: Value) -> Settled {
    Settled::Completed { output }
}

fn failed_with(settled: &Settled) -> &ErrorInfo {
    match settled {
        Settled::Failed { error } => error,
        other => panic!("{other:?}"),
    }
}

fn reason(settled: &Settled) -> &str {
    match settled {
        Settled::Cancelled { reason } => reason.as_deref().unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_step_used_is_metered() {
    let house = house();
    let runner = house.process(None, |cx, _| {
        Box::pin(async move {
            let used = crate::gate::StepOutput {
                value: Value::Null,
                usage: Usage { input_tokens: Some(7), ..Usage::default() },
                ..Default::default()
            };
            cx.perform("a", "x", None, |_, _| async move { Ok(used) }).await
        })
    });
    assert_eq!(house.start(&runner).await.unwrap(), completed(Value::Null));
    let state = crate::execution::read_state(&house.store, house.exec).unwrap();
    assert_eq!((state.resources.tokens, state.resources.count), (7, 1));
}

#[tokio::test]
async fn code_that_breaks_down_is_a_failure_and_a_second_look_gives_it_again() {
    let house = house();
    let runner = house.process(None, |_, _| Box::pin(async { panic!("out of cheese") }));
    let settled = house.start(&runner).await.unwrap();
    assert_eq!(failed_with(&settled).code, ErrorCode::Internal);
    assert_eq!(house.resume(&runner).await.unwrap(), settled);
    assert_eq!(house.kinds(), ["execution.started", "flow.started", "execution.failed"]);
    assert!(!runner.cancel(house.exec, None).await.unwrap());
    assert_eq!(house.count("execution.cancelled"), 0);
}
