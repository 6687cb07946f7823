//! Shows the screen without a runtime: plays a scripted turn with a growing plan for every prompt.
//!
//! `cargo run -p loon-tui --example replay -- [stream] [long] [ascii] [nocolor] [panic] [THEME]`

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{
    ApprovalRequested, ApprovalResolved, ContextEstimated, Decision, DeltaKind, EffectFinished,
    EffectKind, EffectStarted, EffectStatus, ExecutionStarted, HistoryPage, ItemCompleted,
    ItemDelta, ItemStarted, MeterUpdated, ModeChanged, ModelChanged, ModelsListed, QueueReturned,
    RecordChanged, ResourcesUpdated, RewindPreviewed, SessionOpened, SessionRewound, SessionState,
    SessionsFound, SessionsListed, StreamFinished, TurnFinished, TurnStarted,
};
use loon_api::{
    AgentEvent, Approval, ApprovalId, At, Bounds, CallId, ChecklistStep, Command, Cost, EffectKey,
    Envelope, ExecutionId, ExecutionKind, FileChange, Item, ItemBody, ItemId, Mode, Outcome,
    PermissionRule, RecordChange, Task, Thinking, ToolCallItem, ToolCallStatus, ToolResult,
    TurnStatus, Usage, WorkStatus,
};
use loon_tui::{ScreenOptions, Theme, run};
use tokio::sync::mpsc;

const ANSWER: &str = "The last page is lost because `end` is exclusive while `len` counts from one. I will change \
the bound and pin it with a **test**.\n\n1. read the pager\n2. change the bound\n   - keep the signature\n3. run the suite\n\n\
```rust\n/// Pages needed for all lines.\nfn last(&self) -> usize {\n    self.len.div_ceil(self.size) // not `/`\n}\n```\n\n\
| case | before | after |\n|---|---:|---:|\n| empty | 0 | 0 |\n| 你好 full page | 3 | 4 |\n\n> See [the docs](https://doc.rust-lang.org/std) for `div_ceil`.\n";

const DIFF: &str = "--- a/src/pager.rs\n+++ b/src/pager.rs\n@@ -41,3 +41,3 @@\n fn last(&self) -> usize {\n-    self.len / self.size\n+    self.len.div_ceil(self.size)\n }\n";

/// What the plan of every turn consists of.
const STEPS: [&str; 5] = [
    "read pager.rs",
    "reproduce the lost page",
    "change the bound and keep the signature of last()",
    "add a test",
    "run the suite",
];

struct Script {
    events: mpsc::Sender<Arc<Envelope>>,
    commands: mpsc::Receiver<Command>,
    exec: ExecutionId,
    turn: u32,
    clock: i64,
    endless: bool,
    queued: Vec<String>,
    closed: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let theme = words.iter().find_map(|word| Theme::embedded(word)).unwrap_or_default();
    let (command_sender, commands) = mpsc::channel(16);
    let (events, event_receiver) = mpsc::channel(256);
    let script = Script {
        events,
        commands,
        exec: ExecutionId::generate(),
        turn: 0,
        clock: 1_796_040_000_000,
        endless: has("stream"),
        queued: Vec::new(),
        closed: false,
    };
    if has("panic") {
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            panic!("asked for on the command line");
        });
    }
    let player = tokio::spawn(script.play(has("long")));
    let options = ScreenOptions {
        theme,
        ascii: has("ascii"),
        color: !has("nocolor"),
        mouse: true,
        placeholder: "what next?".to_owned(),
        spinner: "working".to_owned(),
    };
    let options = tokio::sync::watch::channel(options).1;
    let exit = run(options, command_sender, event_receiver).await?;
    player.abort();
    std::process::exit(i32::from(exit.exit_code()));
}

impl Script {
    async fn play(mut self, long: bool) {
        let started = ExecutionStarted {
            kind: ExecutionKind::Session,
            cwd: "/home/me/src/pager".to_owned(),
            parent: None,
            deadline_ms: None,
            loon: "0.1.0".to_owned(),
        };
        self.open(long).await;
        self.send(started).await;
        while let Some(command) = self.commands.recv().await {
            match command {
                Command::Prompt { text } | Command::Steer { text } => self.run_turn(text).await,
                other => self.answer(other).await,
            }
            while !self.closed && !self.queued.is_empty() {
                let text = self.queued.remove(0);
                self.run_turn(text).await;
            }
            if self.closed {
                return;
            }
        }
    }

    async fn open(&mut self, long: bool) {
        let mut items = Vec::new();
        if long {
            for turn in 1..=200 {
                self.turn = turn;
                items.push(user(turn, "again, please"));
                items.push(answer_item(turn, &format!("Answer {turn}.\n\n{ANSWER}")));
            }
        }
        let session = SessionState {
            cwd: "/home/me/src/pager".to_owned(),
            model: Some("lab/sonnet".to_owned()),
            mode: Mode::Default,
            branch: Some("main*".to_owned()),
            title: None,
            resumed: long,
            items,
            more: false,
            queued: Vec::new(),
            usage: Usage::default(),
            cost: Cost::default(),
            record: loon_api::WorkingRecord::default(),
            ultra: false,
            watched: None,
        };
        self.send(SessionOpened { session }).await;
    }

    async fn send(&mut self, event: impl Into<AgentEvent>) {
        self.clock += 7;
        let envelope = Envelope {
            v: loon_api::VERSION,
            seq: None,
            at: At::from_unix_ms(self.clock),
            exec: self.exec,
            turn: Some(self.turn),
            event: event.into(),
        };
        if self.events.send(Arc::new(envelope)).await.is_err() {
            self.closed = true;
        }
    }

    async fn answer(&mut self, command: Command) {
        match command {
            Command::SetMode { mode } => self.send(ModeChanged { mode }).await,
            Command::SetModel { model } => self.send(ModelChanged { model }).await,
            Command::ListModels => {
                let models = ["lab/sonnet", "lab/small", "local/coder"].map(str::to_owned).to_vec();
                self.send(ModelsListed { models }).await;
            }
            Command::ListSessions { .. } => {
                self.send(SessionsListed { sessions: Vec::new() }).await;
            }
            Command::SearchSessions { query, .. } => {
                self.send(SessionsFound { query, hits: Vec::new() }).await;
            }
            Command::History { .. } => {
                self.send(HistoryPage { items: Vec::new(), more: false }).await;
            }
            Command::Rewind { to, .. } => {
                self.send(SessionRewound {
                    to,
                    text: "fix the off-by-one\nand add a test".to_owned(),
                    record: loon_api::WorkingRecord::default(),
                })
                .await;
            }
            Command::PreviewRewind { to } => {
                let detail = format!("src/old.rs: changed by hand since, stays as it is\n{DIFF}");
                self.send(RewindPreviewed { to, detail: Some(detail) }).await;
            }
            Command::SetGoal { goal } => {
                self.send(RecordChanged { change: RecordChange::Goal { goal } }).await;
            }
            Command::LeavePlan => self.send(ModeChanged { mode: Mode::Default }).await,
            Command::Undo { redo } => {
                let title = if redo { "the newest undo" } else { "src/pager.rs" };
                let mut undo = done(&call(self.turn, 40, "undo", title), "1 file", 3, "taken back");
                if let ItemBody::ToolCall(call) = &mut undo.body {
                    call.by_user = true;
                }
                self.send(ItemCompleted { item: undo }).await;
            }
            Command::Unqueue => {
                let texts = std::mem::take(&mut self.queued);
                self.send(QueueReturned { texts }).await;
            }
            Command::OpenSession { .. } | Command::Fork { .. } => self.open(false).await,
            Command::Close => self.close().await,
            _ => {}
        }
    }

    async fn close(&mut self) {
        self.closed = true;
        let finished = StreamFinished {
            outcome: Outcome::Completed,
            exit_code: 0,
            error: None,
            message: None,
            usage: Usage::default(),
            cost: Cost::default(),
        };
        self.send(finished).await;
    }

    async fn run_turn(&mut self, text: String) {
        self.turn += 1;
        let turn = self.turn;
        self.send(TurnStarted {
            model: "lab/sonnet".to_owned(),
            mode: Mode::Default,
            branch: None,
        })
        .await;
        self.send(ItemCompleted { item: user(turn, &text) }).await;
        let status =
            if self.steps(turn).await { TurnStatus::Completed } else { TurnStatus::Interrupted };
        let finished = TurnFinished {
            status,
            error: None,
            steps: 1,
            usage: Usage::default(),
            cost: Cost::default(),
            models: Vec::new(),
            receipt: None,
            review: None,
        };
        self.send(finished).await;
    }

    /// Plays the turn; false if it was interrupted.
    async fn steps(&mut self, turn: u32) -> bool {
        let key = EffectKey::model(turn, 0);
        let started = EffectStarted {
            key: key.clone(),
            kind: EffectKind::Model,
            target: "lab/sonnet".to_owned(),
            item: None,
            timeout_ms: None,
            request: None,
        };
        self.send(started).await;
        let thought = ItemId::thinking(turn, 0, 0);
        let thinking = |text: &str| Item {
            id: ItemId::thinking(turn, 0, 0),
            turn,
            body: ItemBody::Thinking(Thinking {
                text: text.to_owned(),
                model: "lab/sonnet".to_owned(),
                opaque: None,
            }),
        };
        let words = "The pager counts from one, so integer division drops the last page. Rounding up mends it.";
        self.send(ItemStarted { item: thinking("") }).await;
        if !self.stream(&thought, DeltaKind::Thinking, words, 20).await {
            return false;
        }
        self.send(ItemCompleted { item: thinking(words) }).await;
        let answer = ItemId::text(turn, 0, 0);
        self.send(ItemStarted { item: answer_item(turn, "") }).await;
        loop {
            if !self
                .stream(&answer, DeltaKind::Text, ANSWER, if self.endless { 5 } else { 15 })
                .await
            {
                return false;
            }
            if !self.endless {
                break;
            }
        }
        self.send(ItemCompleted { item: answer_item(turn, ANSWER) }).await;
        self.plan(turn, 6, 0).await;
        let usage = Usage {
            input_tokens: Some(12_400),
            cached_tokens: Some(9_000),
            output_tokens: Some(810),
            ..Usage::default()
        };
        let cost =
            Cost { usd: serde_json::from_str("\"0.0312\"").unwrap_or_default(), unpriced: 0 };
        let finished = EffectFinished {
            key,
            status: EffectStatus::Completed,
            error: None,
            ms: 900,
            usage,
            cost,
            output: None,
        };
        self.send(finished).await;
        self.send(ResourcesUpdated {
            tokens: usage.total(),
            usage,
            cost,
            ms: 900,
            count: 1,
            requests: 1,
            exceeded: false,
            bounds: Bounds::default(),
        })
        .await;
        self.tools(turn).await
    }

    /// The plan with its first `completed` steps done, as the model writes it down.
    async fn plan(&mut self, turn: u32, index: u32, completed: usize) {
        let steps = STEPS.iter().enumerate().map(|(at, step)| ChecklistStep {
            step: (*step).to_owned(),
            status: match at.cmp(&completed) {
                Ordering::Less => WorkStatus::Completed,
                Ordering::Equal => WorkStatus::InProgress,
                Ordering::Greater => WorkStatus::Pending,
            },
        });
        let changes = vec![RecordChange::Checklist { steps: steps.collect() }];
        self.write_down(turn, index, "todo_write", changes).await;
    }

    async fn write_down(&mut self, turn: u32, index: u32, tool: &str, changes: Vec<RecordChange>) {
        let mut item = done(&call(turn, index, tool, ""), "", 0, "written down");
        if let ItemBody::ToolCall(call) = &mut item.body {
            call.record = changes;
            call.ms = None;
        }
        self.send(ItemCompleted { item }).await;
    }

    async fn tools(&mut self, turn: u32) -> bool {
        let read = call(turn, 2, "read", "src/pager.rs");
        self.send(ItemCompleted { item: done(&read, "120 lines", 4, "fn last() {}\n") }).await;
        self.plan(turn, 7, 2).await;
        let tasks =
            [("fix the pager", vec![]), ("fix the footer", vec![]), ("release", vec![1, 2])];
        let tasks = (1..).zip(tasks).map(|(id, (title, blocked_by))| RecordChange::Task {
            task: Task {
                id,
                title: title.to_owned(),
                description: String::new(),
                status: if id == 1 { WorkStatus::InProgress } else { WorkStatus::Pending },
                blocked_by,
            },
        });
        self.write_down(turn, 8, "task", tasks.collect()).await;
        let edit = call(turn, 3, "edit", "src/pager.rs");
        let mut edited = done(&edit, "+1 -1", 2, "edited src/pager.rs");
        if let ItemBody::ToolCall(call) = &mut edited.body {
            call.changes = vec![FileChange {
                path: "src/pager.rs".to_owned(),
                added: 1,
                removed: 1,
                diff: DIFF.to_owned(),
                ..FileChange::default()
            }];
        }
        self.send(ItemCompleted { item: edited }).await;
        self.plan(turn, 9, 4).await;
        let text = "len counts from one, end is exclusive".to_owned();
        self.write_down(turn, 10, "note", vec![RecordChange::Note { text }]).await;
        let bash = call(turn, 4, "bash", "cargo test -p pager");
        self.send(ItemStarted { item: with_status(&bash, ToolCallStatus::Asking) }).await;
        if !self.ask(turn, &bash).await {
            self.send(ItemCompleted { item: with_status(&bash, ToolCallStatus::Denied) }).await;
            return true;
        }
        self.send(ItemStarted { item: with_status(&bash, ToolCallStatus::Running) }).await;
        let output: Vec<String> =
            (1..=14).map(|at| format!("test pager::case_{at} ... ok")).collect();
        let output = output.join("\n");
        if !self.stream(&bash.id, DeltaKind::Output, &output, 20).await {
            self.send(ItemCompleted { item: with_status(&bash, ToolCallStatus::Cancelled) }).await;
            return false;
        }
        self.send(ItemCompleted { item: done(&bash, "exit 0", 2_130, &output) }).await;
        self.plan(turn, 11, STEPS.len()).await;
        let failing = call(turn, 5, "bash", "cargo clippy");
        let mut failed =
            done(&failing, "exit 101", 860, "error: unused variable `x`\n --> src/pager.rs:4:9\n");
        if let ItemBody::ToolCall(call) = &mut failed.body {
            call.status = ToolCallStatus::Failed;
        }
        self.send(ItemCompleted { item: failed }).await;
        true
    }

    async fn ask(&mut self, turn: u32, bash: &Item) -> bool {
        let id = ApprovalId::new(format!("a{turn}"));
        let approval = Approval {
            id: id.clone(),
            item: bash.id.clone(),
            tool: "bash".to_owned(),
            arguments: serde_json::json!({"command": "cargo test -p pager"}),
            detail: "cargo test -p pager".to_owned(),
            reasons: vec!["mode default asks before a command runs".to_owned()],
            cwd: "~/src/pager".to_owned(),
            always: Some(PermissionRule {
                tool: "bash".to_owned(),
                path_prefix: None,
                command_prefix: Some("cargo test".to_owned()),
                host: None,
            }),
        };
        self.send(ApprovalRequested { approval }).await;
        let approved = loop {
            match self.commands.recv().await {
                Some(Command::Approve { .. }) => break true,
                Some(Command::Deny { .. } | Command::Interrupt) | None => break false,
                Some(Command::Close) => {
                    self.close().await;
                    return false;
                }
                Some(other) => self.answer(other).await,
            }
        };
        let decision = if approved { Decision::Approved } else { Decision::Denied };
        self.send(ApprovalResolved { approval: id, decision, reason: None, rule: None }).await;
        approved
    }

    /// Streams text piece by piece; false if it was interrupted.
    async fn stream(&mut self, item: &ItemId, of: DeltaKind, text: &str, pause_ms: u64) -> bool {
        let characters: Vec<char> = text.chars().collect();
        let mut tokens = 0;
        for piece in characters.chunks(20) {
            let piece: String = piece.iter().collect();
            self.send(ItemDelta { item: item.clone(), of, text: piece }).await;
            tokens += 5;
            self.send(MeterUpdated { tokens, ms: tokens * pause_ms / 5 + 1, estimated: true })
                .await;
            self.send(ContextEstimated {
                tokens: 12_000 + tokens,
                capacity: Some(32_768),
                limit: None,
                threshold: None,
                parts: None,
            })
            .await;
            let pause = tokio::time::sleep(Duration::from_millis(pause_ms));
            tokio::select! {
                () = pause => {}
                command = self.commands.recv() => match command {
                    Some(Command::Interrupt) | None => return false,
                    Some(Command::Close) => { self.close().await; return false; }
                    Some(Command::Prompt { text } | Command::Steer { text }) => {
                        self.send(loon_api::event::PromptQueued { text: text.clone(), steer: false }).await;
                        self.queued.push(text);
                    }
                    Some(other) => self.answer(other).await,
                }
            }
            if self.closed {
                return false;
            }
        }
        true
    }
}

fn user(turn: u32, text: &str) -> Item {
    let body = ItemBody::UserMessage { text: text.to_owned(), steer: false };
    Item { id: ItemId::user(turn, 0), turn, body }
}

fn answer_item(turn: u32, text: &str) -> Item {
    let body = ItemBody::AssistantMessage { text: text.to_owned(), incomplete: false };
    Item { id: ItemId::text(turn, 0, 0), turn, body }
}

fn call(turn: u32, index: u32, tool: &str, title: &str) -> Item {
    let body = ItemBody::ToolCall(ToolCallItem {
        title: title.to_owned(),
        ..ToolCallItem::waiting(CallId::of(turn, 0, index), tool, serde_json::Value::Null)
    });
    Item { id: ItemId::call(turn, 0, index), turn, body }
}

fn with_status(item: &Item, status: ToolCallStatus) -> Item {
    let mut item = item.clone();
    if let ItemBody::ToolCall(call) = &mut item.body {
        call.status = status;
    }
    item
}

fn done(item: &Item, summary: &str, ms: u64, output: &str) -> Item {
    let mut item = with_status(item, ToolCallStatus::Done);
    if let ItemBody::ToolCall(call) = &mut item.body {
        summary.clone_into(&mut call.summary);
        call.ms = Some(ms);
        call.result = Some(ToolResult::ok(output));
    }
    item
}
