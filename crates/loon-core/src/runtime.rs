//! The runtime: one session after another, commands in, one stream of events out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{Notice, NoticeLevel, StreamFinished};
use loon_api::{
    AgentEvent, Command, Cost, Envelope, ErrorCode, ErrorInfo, ExecutionId, ExecutionKind, Outcome,
    Usage, VERSION,
};
use loon_kernel::{Execution, KernelError, StartOptions, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::conversation::Conversation;
use crate::deps::{Dependencies, Given};
use crate::session::{Leave, OPENING_ITEMS, Session, Summary};
use crate::subagent::Lineage;

/// Events that may wait for a slow front end before the session waits too.
const EVENT_CAPACITY: usize = 256;

/// How long a session may take to come to its end once another process ended it.
const CLOSING: Duration = Duration::from_secs(1);

/// How long a front end may take for the last event of such a session.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Commands that may wait.
const COMMAND_CAPACITY: usize = 64;

/// Which session to serve first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one.
    New,
    /// A new one under this id.
    NewAs(ExecutionId),
    /// This one.
    Resume(ExecutionId),
}

impl SessionChoice {
    /// The id that a new session shall have, if one was chosen.
    fn new_id(self) -> Option<ExecutionId> {
        match self {
            Self::NewAs(exec) => Some(exec),
            Self::New | Self::Resume(_) => None,
        }
    }
}

/// Why a runtime cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The journal or the gate failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something handed in is wrong.
    #[error("{}", .0.message)]
    Setup(ErrorInfo),
    /// A step was asked for outside a turn.
    #[error("no turn is running; this is a fault in Loom")]
    NoTurn,
}

impl RuntimeError {
    /// The error as events carry it.
    pub fn info(&self) -> ErrorInfo {
        match self {
            Self::Kernel(error) => error.info(),
            Self::Store(error) => error.info(),
            Self::Setup(error) => error.clone(),
            Self::NoTurn => ErrorInfo::new(ErrorCode::Internal, self.to_string()),
        }
    }
}

/// A running runtime, as a front end holds it.
pub struct Runtime {
    /// Where commands go. Dropping it ends the session in good order.
    pub commands: mpsc::Sender<Command>,
    /// The one stream of events. Ends with `stream.finished`.
    pub events: mpsc::Receiver<Arc<Envelope>>,
    /// Completes after the stream has ended.
    pub done: JoinHandle<Outcome>,
}

impl Runtime {
    /// Starts serving. Must be called inside a tokio runtime. A session that cannot be opened ends
    /// the stream with outcome `usage` or `failed`.
    pub fn start(deps: Dependencies, choice: SessionChoice) -> Self {
        Self::start_when_ready(std::future::ready(deps), choice)
    }

    /// The same with dependencies that take time to come about, so that a front end can show itself
    /// meanwhile.
    pub fn start_when_ready(
        deps: impl Future<Output = Dependencies> + Send + 'static,
        choice: SessionChoice,
    ) -> Self {
        let (commands, receiver) = mpsc::channel(COMMAND_CAPACITY);
        let (sender, events) = mpsc::channel(EVENT_CAPACITY);
        let done = tokio::spawn(async move {
            let server = Server { deps: deps.await, events: sender };
            Box::pin(server.serve(choice, receiver)).await
        });
        Self { commands, events, done }
    }
}

struct Server {
    deps: Dependencies,
    events: mpsc::Sender<Arc<Envelope>>,
}

/// A session that can be served.
struct OpenSession {
    execution: Execution,
    conversation: Conversation,
    /// What a person should know of its journal.
    remarks: Vec<String>,
}

/// Records that this version does not know.
#[derive(Default)]
struct Foreign {
    records: u64,
    kinds: BTreeSet<String>,
}

impl Foreign {
    fn look_at(&mut self, event: &AgentEvent) {
        if let AgentEvent::Unknown { kind } = event {
            self.records += 1;
            self.kinds.insert(kind.clone());
        }
    }

    fn remark(&self) -> Option<String> {
        let kinds: Vec<&str> = self.kinds.iter().map(String::as_str).collect();
        (self.records > 0).then(|| {
            format!(
                "This version of Loom does not know some records of the session and passes over \
                 them: {} of type {}.",
                self.records,
                kinds.join(", ")
            )
        })
    }
}

fn torn_remark(bytes: u64) -> String {
    format!("A crash left a record of the session unfinished; its {bytes} bytes were moved aside.")
}

impl Server {
    async fn serve(
        mut self,
        mut choice: SessionChoice,
        mut commands: mpsc::Receiver<Command>,
    ) -> Outcome {
        let mut current: Option<ExecutionId> = None;
        loop {
            let opened = match self.open(choice).await {
                Ok(opened) => opened,
                Err(error) => match current.take() {
                    // Asked for from inside a session: say so and go back to it.
                    Some(former) => {
                        self.warn(former, error.info()).await;
                        choice = SessionChoice::Resume(former);
                        continue;
                    }
                    None => return self.fail(None, error.info()).await,
                },
            };
            let exec = opened.execution.exec();
            current = Some(exec);
            let over = opened.execution.cancel_token().clone();
            self.deps.catch_up();
            let mut deps = self.deps.clone();
            deps.options.remarks.extend(opened.remarks);
            let session =
                Session::new(deps, Lineage::Root, opened.execution, opened.conversation, commands);
            let served = match session {
                // Whatever it waits for, it ends: others were told that it is over.
                Ok(session) => tokio::select! {
                    biased;
                    served = Box::pin(session.serve()) => served,
                    () = self.moment_after(&over) => {
                        return self.fail(current, StoreError::Fenced { exec }.info()).await;
                    }
                },
                Err(error) => return self.fail(current, error).await,
            };
            commands = served.commands;
            match (served.leave, served.summary) {
                (_, Err(error)) => return self.fail(current, error.info()).await,
                (Leave::Open(next), Ok(_)) => {
                    choice = next.map_or(SessionChoice::New, SessionChoice::Resume);
                }
                (leave, Ok(summary)) => return self.finish(exec, &leave, summary).await,
            }
        }
    }

    async fn open(&self, choice: SessionChoice) -> Result<OpenSession, RuntimeError> {
        let mut conversation = match choice {
            SessionChoice::New | SessionChoice::NewAs(_) => Conversation::default(),
            SessionChoice::Resume(_) => Conversation::newest(OPENING_ITEMS),
        };
        let mut foreign = Foreign::default();
        let store = Arc::clone(&self.deps.store);
        let clock = Arc::clone(&self.deps.clock);
        let options = &self.deps.options;
        let execution = match choice {
            SessionChoice::New | SessionChoice::NewAs(_) => {
                let start = StartOptions {
                    exec: choice.new_id(),
                    kind: ExecutionKind::Session,
                    cwd: options.cwd.display().to_string(),
                    parent: None,
                    deadline: options.deadline.value,
                };
                Execution::start(store, clock, start, self.events.clone()).await?
            }
            SessionChoice::Resume(exec) => {
                let mut fold = |envelope: &Envelope| {
                    conversation.apply(envelope.turn, &envelope.event);
                    foreign.look_at(&envelope.event);
                };
                let execution =
                    Execution::resume(store, clock, exec, self.events.clone(), &mut fold).await?;
                if let Given { value: Some(deadline), explicit: true } = options.deadline {
                    execution.set_deadline(deadline).await?;
                }
                execution
            }
        };
        let torn = execution.repaired_bytes().map(torn_remark);
        let remarks = torn.into_iter().chain(foreign.remark()).collect();
        Ok(OpenSession { execution, conversation, remarks })
    }

    async fn finish(&self, exec: ExecutionId, leave: &Leave, summary: Summary) -> Outcome {
        let (mut outcome, error) = match summary.last {
            Some(end) => (end.status.into(), end.error),
            None => {
                let error = ErrorInfo::new(ErrorCode::Invalid, "There was nothing to run.");
                (Outcome::Stopped, Some(error))
            }
        };
        if matches!(leave, Leave::Terminate) {
            outcome = Outcome::Terminated;
        }
        let finished = StreamFinished {
            outcome,
            exit_code: u32::from(outcome.exit_code()),
            error,
            message: summary.message,
            usage: summary.usage,
            cost: summary.cost,
        };
        self.send(exec, finished).await;
        outcome
    }

    async fn fail(&self, exec: Option<ExecutionId>, error: ErrorInfo) -> Outcome {
        let outcome = match error.code {
            ErrorCode::NotFound | ErrorCode::Invalid => Outcome::Usage,
            ErrorCode::Fenced => Outcome::Terminated,
            _ => Outcome::Failed,
        };
        let finished = StreamFinished {
            outcome,
            exit_code: u32::from(outcome.exit_code()),
            error: Some(error),
            message: None,
            usage: Usage::default(),
            cost: Cost::default(),
        };
        let told = self.send(exec.unwrap_or_else(ExecutionId::generate), finished);
        if outcome == Outcome::Terminated {
            // Another process ended this session; a front end that takes nothing must not delay that.
            tokio::select! {
                () = told => {}
                () = self.deps.clock.sleep(LAST_WORDS) => {}
            }
        } else {
            told.await;
        }
        outcome
    }

    async fn moment_after(&self, over: &CancellationToken) {
        over.cancelled().await;
        self.deps.clock.sleep(CLOSING).await;
    }

    async fn warn(&self, exec: ExecutionId, error: ErrorInfo) {
        let notice =
            Notice { level: NoticeLevel::Warning, message: error.message, hints: error.hints };
        self.send(exec, notice).await;
    }

    async fn send(&self, exec: ExecutionId, event: impl Into<AgentEvent>) {
        let at = self.deps.clock.now();
        let event = event.into();
        let envelope = Envelope { v: VERSION, seq: None, at, exec, turn: None, event };
        // A front end that is gone has nothing left to be told.
        let _ = self.events.send(Arc::new(envelope)).await;
    }
}

#[cfg(test)]
mod tests;
