//! A pool, a gate over it, and the server of `server.py`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loon_api::{
    Approval, BoxFuture, CallId, EffectKey, ExecutionKind, Item, ItemBody, ItemId, McpServer,
    Money, ToolCallItem, ToolCallStatus, Usage,
};
use loon_exec::{LineChild, Spawner};
use loon_kernel::{
    ApprovalAnswer, Approver, Circuits, Execution, Follow, Gate, GateOptions, MemoryStore, Pricing,
    Progress, Redactor, RemoteTools, RetryPolicy, StartOptions, SystemClock, ToolEffect, Tree,
};
use loon_mcp::{Pool, PoolOptions, ServerConfig, Way};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server.py");

pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) pool: Arc<Pool>,
    gate: Arc<Gate>,
    calls: std::sync::atomic::AtomicU32,
}

/// A call that came to its end.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) status: ToolCallStatus,
    pub(crate) text: String,
    pub(crate) progress: String,
}

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

/// Collects progress, and cancels once some of it holds the words.
struct Listener {
    heard: String,
    until: Option<(&'static str, CancellationToken)>,
}

impl Follow for Listener {
    fn take(&mut self, progress: Progress) -> BoxFuture<'_, ()> {
        if let Progress::Output(text) = progress {
            self.heard.push_str(&text);
        }
        if let Some((words, cancel)) = &self.until
            && self.heard.contains(words)
        {
            cancel.cancel();
        }
        Box::pin(std::future::ready(()))
    }
}

impl Bench {
    /// A pool with these servers.
    pub(crate) async fn new(configs: Vec<ServerConfig>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let circuits = Circuits::new(Arc::new(SystemClock));
        let pool = Arc::new(Pool::new(PoolOptions {
            spawner: Spawner::default(),
            circuits: circuits.clone(),
            redactor: Redactor::default(),
            folder: dir.path().join("mcp"),
        }));
        pool.apply(configs);
        let options = StartOptions {
            exec: None,
            kind: ExecutionKind::Session,
            cwd: "/".to_owned(),
            parent: None,
            deadline: None,
        };
        let (sender, mut events) = tokio::sync::mpsc::channel(64);
        tokio::spawn(async move { while events.recv().await.is_some() {} });
        let store = Arc::new(MemoryStore::default());
        let clock = Arc::new(SystemClock);
        let execution =
            Execution::start(store, clock, Redactor::default(), options, sender).await.unwrap();
        let gate = Gate::new(
            &execution,
            GateOptions {
                tools: vec![],
                remote: Arc::<Pool>::clone(&pool),
                authorities: vec![],
                approver: Arc::new(Nobody),
                pricing: Arc::new(Nobody),
                retry: RetryPolicy::default(),
                tool_timeout: Some(Duration::from_mins(1)),
                approval_prefix: String::new(),
                tree: Tree::default(),
                circuits,
            },
        );
        Self { _dir: dir, pool, gate: Arc::new(gate), calls: 0.into() }
    }

    /// Makes a call and waits for its end.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Called {
        self.call_until(tool, arguments, None).await
    }

    /// The same; it is cancelled once its progress holds the words.
    pub(crate) async fn call_until(
        &self,
        tool: &str,
        arguments: Value,
        until: Option<&'static str>,
    ) -> Called {
        let number = self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let call = ToolCallItem::waiting(CallId::of(1, number, 0), tool, arguments);
        let cancel = CancellationToken::new();
        let mut listener =
            Listener { heard: String::new(), until: until.map(|words| (words, cancel.clone())) };
        let effect = ToolEffect {
            turn: 1,
            key: EffectKey::call(1, number, 0),
            item: Item { id: ItemId::call(1, number, 0), turn: 1, body: ItemBody::ToolCall(call) },
            unmasked: None,
            by_user: false,
            cwd: "/".to_owned(),
            follow: &mut listener,
            cancel,
        };
        let item = self.gate.tool(effect).await.unwrap();
        let ItemBody::ToolCall(call) = item.body else { panic!("no call") };
        let text = call.result.unwrap().text;
        Called { status: call.status, text, progress: listener.heard }
    }

    /// One server, once it is there or has failed.
    pub(crate) async fn settled(&self, name: &str) -> McpServer {
        self.pool.test(name).await.expect("a server of that name")
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.pool.now().iter().map(|tool| tool.spec().name.clone()).collect()
    }
}

/// `server.py` as a program with these flags.
pub(crate) fn stdio(name: &str, flags: &[&str]) -> ServerConfig {
    let command = ["python3", SERVER].iter().chain(flags).map(|word| (*word).to_owned());
    config(name, Way::Stdio { command: command.collect(), env: vec![], cwd: "/".into() })
}

pub(crate) fn config(name: &str, way: Way) -> ServerConfig {
    ServerConfig {
        name: name.to_owned(),
        way,
        target: "test".to_owned(),
        warm: false,
        startup_timeout: Duration::from_secs(30),
        call_timeout: None,
    }
}

/// `server.py` listening, and its URL.
pub(crate) async fn listening(flags: &[&str]) -> (LineChild, String) {
    let spawn = Spawner::default().program("python3", Path::new("/")).args([SERVER, "--http"]);
    let mut child = spawn.args(flags.iter().copied()).start_lines().unwrap();
    let port = child.next(100).await.unwrap().expect("a port");
    (child, format!("http://127.0.0.1:{}/mcp", String::from_utf8(port).unwrap()))
}

/// What a server was asked, by its log.
pub(crate) fn asked(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The methods among that.
pub(crate) fn methods(log: &Path) -> Vec<String> {
    let asked = asked(log);
    asked.iter().filter_map(|message| Some(message["method"].as_str()?.to_owned())).collect()
}
