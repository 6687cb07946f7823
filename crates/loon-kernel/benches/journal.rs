//! What the journal and the gate cost: `cargo bench -p loon-kernel`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints its table, and fails by panicking"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use loon_api::event::{Notice, NoticeLevel, TurnStarted};
use loon_api::{
    Approval, BoxFuture, CallId, EffectKey, Envelope, ExecutionKind, Item, ItemBody, ItemId, Mode,
    Money, Subject, ToolCallItem, ToolClass, ToolSpec, Usage,
};
use loon_kernel::{
    Admitted, ApprovalAnswer, Approver, CancelMode, Circuits, EffectContext, Execution, FileStore,
    Follow, Gate, GateOptions, JournalStore, MemoryStore, Pricing, Progress, Redactor, RetryPolicy,
    StartOptions, SystemClock, Tool, ToolEffect, ToolOutput, Tree, cancel_by_id,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() {
    println!("| what | median |\n|---|---|");
    appends().await;
    reading().await;
    cancels().await;
    gate().await;
}

fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples[samples.len() / 2]
}

fn micros(duration: Duration) -> String {
    format!("{:.1} µs", duration.as_secs_f64() * 1e6)
}

fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

async fn start(store: &Arc<dyn JournalStore>) -> (Execution, mpsc::Receiver<Arc<Envelope>>) {
    let (events, told) = mpsc::channel(1 << 20);
    let options = StartOptions {
        exec: None,
        kind: ExecutionKind::Session,
        cwd: "/w".to_owned(),
        parent: None,
        deadline: None,
    };
    let clock = Arc::new(SystemClock);
    let execution =
        Execution::start(Arc::clone(store), clock, Redactor::default(), options, events)
            .await
            .unwrap();
    let turn = TurnStarted { model: "lab/m".to_owned(), mode: Mode::Auto, branch: None };
    execution.recorder().record(Some(1), turn).await.unwrap();
    (execution, told)
}

fn note(bytes: usize) -> Notice {
    Notice { level: NoticeLevel::Info, message: "x".repeat(bytes), hints: vec![] }
}

fn files() -> (tempfile::TempDir, Arc<dyn JournalStore>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::new(dir.path()));
    (dir, store)
}

async fn appends() {
    let (_dir, store) = files();
    let (execution, _told) = start(&store).await;
    let recorder = execution.recorder();
    let mut written = Vec::new();
    let mut durable = Vec::new();
    for _ in 0..5_000 {
        let began = Instant::now();
        recorder.record(Some(1), note(200)).await.unwrap();
        written.push(began.elapsed());
    }
    for _ in 0..200 {
        let began = Instant::now();
        recorder.record(Some(1), note(200)).await.unwrap();
        recorder.make_durable().await.unwrap();
        durable.push(began.elapsed());
    }
    row("a record of 400 bytes, written", &micros(median(written)));
    row("the same, durable", &millis(median(durable)));
}

async fn reading() {
    const RECORDS: usize = 20_000;
    let (_dir, store) = files();
    let (execution, told) = start(&store).await;
    drop(told);
    for _ in 0..RECORDS / 100 {
        let batch = (0..100).map(|_| note(300).into()).collect();
        execution.recorder().record_all(Some(1), batch).await.unwrap();
    }
    execution.recorder().make_durable().await.unwrap();
    let exec = execution.exec();
    drop(execution);
    let bytes = store.verify(exec).unwrap().bytes;
    let per = |took: Duration| {
        let each = micros(took / u32::try_from(RECORDS).unwrap());
        format!("{each} a record, {} a megabyte", millis(took.div_f64(bytes as f64 / 1e6)))
    };
    let mut checks = Vec::new();
    let mut folds = Vec::new();
    let mut resumes = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        store.verify(exec).unwrap();
        checks.push(began.elapsed());
        let began = Instant::now();
        let mut state = loon_kernel::ExecutionState::default();
        store.read(exec).unwrap().for_each(|record| state.apply(&record.unwrap()));
        folds.push(began.elapsed());
        let (events, _told) = mpsc::channel(1024);
        let began = Instant::now();
        let (port, clock) = (Arc::clone(&store), Arc::new(SystemClock));
        let resumed =
            Execution::resume(port, clock, Redactor::default(), exec, events, &mut |_| {})
                .await
                .unwrap();
        resumes.push(began.elapsed());
        drop(resumed);
    }
    row("check of a journal", &per(median(checks)));
    row("read and fold", &per(median(folds)));
    row("resume", &per(median(resumes)));
}

async fn cancels() {
    let (_dir, store) = files();
    let mut settled = Vec::new();
    let mut heard = Vec::new();
    for _ in 0..50 {
        let (execution, _told) = start(&store).await;
        for _ in 0..200 {
            execution.recorder().record(Some(1), note(200)).await.unwrap();
        }
        let (port, exec) = (Arc::clone(&store), execution.exec());
        let began = Instant::now();
        let cancelling = tokio::task::spawn_blocking(move || {
            cancel_by_id(
                port.as_ref(),
                &SystemClock,
                &Redactor::default(),
                exec,
                CancelMode::Now,
                None,
            )
            .unwrap();
            began.elapsed()
        });
        execution.cancel_token().cancelled().await;
        heard.push(began.elapsed());
        settled.push(cancelling.await.unwrap());
    }
    row("cancel of a live execution until its owner stops", &millis(median(heard)));
    row("the same until the last record is durable", &millis(median(settled)));
}

struct Nothing(ToolSpec);

impl Tool for Nothing {
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
        _arguments: &'a Value,
        _cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(std::future::ready(ToolOutput::ok("ok", "")))
    }
}

struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _approval: &'a Approval) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::pending())
    }
}

impl Pricing for Nobody {
    fn price(&self, _model: &str, _usage: &Usage) -> Option<Money> {
        None
    }
}

impl Follow for Nobody {
    fn take(&mut self, _progress: Progress) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

async fn gate() {
    let memory: Arc<dyn JournalStore> = Arc::new(MemoryStore::default());
    let (_dir, on_disk) = files();
    let stores = [("in memory", memory), ("in files", on_disk)];
    for (place, store) in stores {
        let (execution, _told) = start(&store).await;
        let tool = Nothing(ToolSpec {
            name: "nothing".to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            class: ToolClass::Reads,
        });
        let options = GateOptions {
            tools: vec![Arc::new(tool)],
            authorities: vec![],
            approver: Arc::new(Nobody),
            remote: Arc::new(loon_kernel::NoRemoteTools),
            pricing: Arc::new(Nobody),
            retry: RetryPolicy::default(),
            tool_timeout: Some(Duration::from_mins(1)),
            approval_prefix: String::new(),
            circuits: Circuits::new(Arc::new(SystemClock)),
            tree: Tree::default(),
        };
        let gate = Gate::new(&execution, options);
        let mut samples = Vec::new();
        for step in 0..5_000 {
            let call = ToolCallItem::waiting(CallId::of(1, step, 0), "nothing", json!({}));
            let effect = ToolEffect {
                turn: 1,
                key: EffectKey::call(1, step, 0),
                item: Item {
                    id: ItemId::call(1, step, 0),
                    turn: 1,
                    body: ItemBody::ToolCall(call),
                },
                unmasked: None,
                by_user: false,
                cwd: "/w".to_owned(),
                follow: &mut Nobody,
                cancel: CancellationToken::new(),
            };
            let began = Instant::now();
            gate.tool(effect).await.unwrap();
            samples.push(began.elapsed());
        }
        row(
            &format!("the gate around a call that does nothing, journal {place}"),
            &micros(median(samples)),
        );
    }
}
