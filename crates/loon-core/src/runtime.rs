//! The runtime: one session after another, commands in, one stream of events out.

mod lean;
mod watching;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{ExecutionResumed, Notice, NoticeLevel, StreamFinished};
use loon_api::{
    AgentEvent, Command, Cost, Envelope, ErrorCode, ErrorInfo, ExecutionId, ExecutionKind, Outcome,
    SessionAccess, SessionHolder, Usage, VERSION,
};
use loon_kernel::{
    Execution, JournalStore, KernelError, Opening, ResumeOptions, StartOptions, StoreError, end_of,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::lean::LeanItems;
use crate::conversation::Conversation;
use crate::deps::{Dependencies, Given};
use crate::session::{Leave, OPENING_ITEMS, Session, Summary};
use crate::subagent::Lineage;
use crate::turn::sentence;

/// Events that may wait for a slow front end before the session waits too.
const EVENT_CAPACITY: usize = 256;

/// How long a session may take to come to its end once another process ended it.
const CLOSING: Duration = Duration::from_secs(1);

/// Between two looks for the one who took a session over, and how many there are at most.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 10;

/// How long a front end may take for the last event of such a session.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Commands that may wait.
const COMMAND_CAPACITY: usize = 64;

/// Which session to serve, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one.
    New,
    /// A new one under this id.
    NewAs(ExecutionId),
    /// This one, unless another process works in it.
    Resume(ExecutionId),
    /// This one, only to see what another process does in it.
    Watch(ExecutionId),
    /// This one, also if another process works in it, which can write nothing more.
    TakeOver(ExecutionId),
}

impl SessionChoice {
    /// The choice of a command.
    pub(crate) fn of(exec: Option<ExecutionId>, access: SessionAccess) -> Self {
        match (exec, access) {
            (None, _) => Self::New,
            (Some(exec), SessionAccess::Write) => Self::Resume(exec),
            (Some(exec), SessionAccess::Watch) => Self::Watch(exec),
            (Some(exec), SessionAccess::TakeOver) => Self::TakeOver(exec),
        }
    }

    /// The id that a new session shall have, if one was chosen.
    fn new_id(self) -> Option<ExecutionId> {
        match self {
            Self::NewAs(exec) => Some(exec),
            _ => None,
        }
    }

    /// The session, unless it is a new one.
    pub fn exec(self) -> Option<ExecutionId> {
        match self {
            Self::New | Self::NewAs(_) => None,
            Self::Resume(exec) | Self::Watch(exec) | Self::TakeOver(exec) => Some(exec),
        }
    }
}

/// The process that works in a session.
pub(crate) fn held_by(store: &dyn JournalStore, exec: ExecutionId) -> Option<SessionHolder> {
    let holder = store.holder(exec)?;
    Some(SessionHolder { pid: Some(holder.pid), words: holder.words() })
}

/// Why a session that was chosen cannot be gone on in, if it has come to its end. Asked before the
/// present one is left, so that a turn there goes on.
pub(crate) async fn end_of_choice(deps: &Dependencies, choice: SessionChoice) -> Option<ErrorInfo> {
    let (SessionChoice::Resume(exec) | SessionChoice::TakeOver(exec)) = choice else { return None };
    let store = Arc::clone(&deps.store);
    let end = tokio::task::spawn_blocking(move || end_of(store.as_ref(), exec)).await;
    Some(end.ok()??.info())
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

/// A session that was branched off and in which nothing was done yet.
#[derive(Default)]
struct Branch {
    from: Option<ExecutionId>,
}

impl Branch {
    fn look_at(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::SessionForked(forked) => self.from = Some(forked.from),
            AgentEvent::TurnStarted(_) => self.from = None,
            _ => {}
        }
    }

    fn remark(&self) -> Option<String> {
        self.from.map(|from| {
            format!(
                "This session is a fork of {from}, which stays as it is. Files are shared by both. \
                 /undo takes back changes made before the fork while the files are as those left \
                 them; what was deleted or moved away before it lies with the other session."
            )
        })
    }
}

fn torn_remark(bytes: u64) -> String {
    format!("A crash left a record of the session unfinished; its {bytes} bytes were moved aside.")
}

fn taken_remark(former: &SessionHolder) -> String {
    format!(
        "This session was taken over from {}. What was under way there may have taken effect or not.",
        former.words
    )
}

/// An error in the words of a remark.
fn remark_of(error: ErrorInfo) -> String {
    let sentences = std::iter::once(error.message).chain(error.hints);
    sentences.map(|words| sentence(&words)).collect::<Vec<_>>().join(" ")
}

impl Server {
    async fn serve(
        mut self,
        mut choice: SessionChoice,
        mut commands: mpsc::Receiver<Command>,
    ) -> Outcome {
        // What is shown now, to go back to.
        let mut current: Option<SessionChoice> = None;
        // Why another session was not opened: told once the former one shows again.
        let mut refused: Option<ErrorInfo> = None;
        loop {
            if let SessionChoice::Watch(exec) = choice {
                match self.watch(exec, refused.take(), &mut commands).await {
                    Ok(Leave::Open(next)) => {
                        current = Some(choice);
                        choice = next;
                    }
                    Ok(leave) => return self.end_watching(exec, &leave).await,
                    Err(error) => match current.take() {
                        Some(former) => {
                            refused = Some(self.told(choice, &error));
                            choice = former;
                        }
                        None => return self.fail(None, error.info()).await,
                    },
                }
                continue;
            }
            let opened = match self.open(choice).await {
                Ok(opened) => opened,
                Err(error) => match current.take() {
                    // Asked for from inside a session: go back to it and say so.
                    Some(former) => {
                        refused = Some(self.told(choice, &error));
                        choice = former;
                        continue;
                    }
                    None => return self.fail(None, self.told(choice, &error)).await,
                },
            };
            let exec = opened.execution.exec();
            current = Some(SessionChoice::Resume(exec));
            let current = Some(exec);
            let over = opened.execution.cancel_token().clone();
            let missed = self.deps.catch_up();
            let mut deps = self.deps.clone();
            deps.options.remarks.extend(missed);
            deps.options.remarks.extend(opened.remarks);
            deps.options.remarks.extend(refused.take().map(remark_of));
            let session =
                Session::new(deps, Lineage::Root, opened.execution, opened.conversation, commands);
            let served = match session {
                // Whatever it waits for, it ends: others were told that it is over.
                Ok(session) => tokio::select! {
                    biased;
                    served = Box::pin(session.serve()) => served,
                    () = self.moment_after(&over) => {
                        return self.end(current, self.fenced(exec).await, Outcome::Terminated).await;
                    }
                },
                Err(error) => return self.fail(current, error).await,
            };
            commands = served.commands;
            self.deps.updates = served.updates;
            match (served.leave, served.summary) {
                (_, Err(error)) if error.info().code == ErrorCode::Fenced => {
                    return self.end(current, self.fenced(exec).await, Outcome::Terminated).await;
                }
                (_, Err(error)) => return self.fail(current, error.info()).await,
                (Leave::Open(next), Ok(_)) => choice = next,
                (leave, Ok(summary)) => return self.finish(exec, &leave, summary).await,
            }
        }
    }

    async fn open(&self, choice: SessionChoice) -> Result<OpenSession, RuntimeError> {
        let mut conversation = match choice {
            SessionChoice::New | SessionChoice::NewAs(_) => Conversation::default(),
            _ => Conversation::newest(OPENING_ITEMS),
        };
        let mut foreign = Foreign::default();
        let mut branch = Branch::default();
        let mut lean = LeanItems::default();
        let store = Arc::clone(&self.deps.store);
        let clock = Arc::clone(&self.deps.clock);
        let redactor = self.deps.redactor.clone();
        let options = &self.deps.options;
        let former = match choice {
            SessionChoice::TakeOver(exec) => held_by(store.as_ref(), exec),
            _ => None,
        };
        let execution = match choice.exec() {
            None => {
                let start = StartOptions {
                    exec: choice.new_id(),
                    kind: ExecutionKind::Session,
                    cwd: options.cwd.display().to_string(),
                    parent: None,
                    deadline: options.deadline.value,
                };
                Execution::start(store, clock, redactor, start, self.events.clone()).await?
            }
            Some(exec) => {
                let mut fold = |envelope: &Envelope| {
                    conversation.apply(envelope.turn, &envelope.event);
                    lean.look_at(envelope);
                    foreign.look_at(&envelope.event);
                    branch.look_at(&envelope.event);
                };
                let Given { value: deadline, explicit } = options.deadline;
                let deadline = deadline.filter(|_| explicit);
                let events = self.events.clone();
                let opening = if matches!(choice, SessionChoice::TakeOver(_)) {
                    Opening::TakeOver
                } else {
                    Opening::IfFree
                };
                let how = ResumeOptions { exec, opening, deadline };
                let execution =
                    Execution::resume_with(store, clock, redactor, how, events, &mut fold).await?;
                lean.refill(self.deps.store.as_ref(), exec, &mut conversation)?;
                // What it did to go on was recorded after that.
                let resumed = ExecutionResumed { unknown: Vec::new(), repaired_bytes: None };
                conversation.apply(None, &resumed.into());
                execution
            }
        };
        let torn = execution.repaired_bytes().map(torn_remark);
        let damage = match choice.exec() {
            Some(exec) => self.damage(exec).await,
            None => None,
        };
        let taken = former.as_ref().map(taken_remark);
        let remarks = taken.into_iter().chain(torn).chain(damage);
        let remarks = remarks.chain(foreign.remark()).chain(branch.remark()).collect();
        Ok(OpenSession { execution, conversation, remarks })
    }

    /// What is wrong with the journal of a session that was opened, in words for a person. Its records
    /// can be read all the same, but they are not what was written.
    async fn damage(&self, exec: ExecutionId) -> Option<String> {
        let store = Arc::clone(&self.deps.store);
        let verified =
            tokio::task::spawn_blocking(move || store.verify(exec).ok()).await.ok()??;
        let damage = verified.damage.filter(|_| !verified.unfinished)?;
        Some(format!(
            "The journal of the session is damaged at line {}: {}. What is shown may not be what \
             happened; `loon sessions verify {exec}` and `loon sessions repair {exec}` tell more.",
            damage.line, damage.reason
        ))
    }

    async fn finish(&self, exec: ExecutionId, leave: &Leave, summary: Summary) -> Outcome {
        self.index(exec);
        let (mut outcome, error) = match summary.last.or(summary.compaction) {
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

    /// What to say of a session that was not opened.
    fn told(&self, choice: SessionChoice, error: &RuntimeError) -> ErrorInfo {
        let info = error.info();
        let held = choice.exec().and_then(|exec| {
            let busy = info.code == ErrorCode::Busy;
            busy.then(|| Some((exec, held_by(self.deps.store.as_ref(), exec)?))).flatten()
        });
        let Some((exec, holder)) = held else { return info };
        let message = format!("session {exec} is in use by {}", holder.words);
        ErrorInfo::new(ErrorCode::Busy, message)
            .hint(format!("`loon sessions watch {exec}` shows what it does"))
            .hint(format!(
                "`loon --resume {exec} --take-over` ends its work there and goes on here"
            ))
            .hint(format!("`loon sessions fork {exec}` branches off from it"))
    }

    /// What to say when another process took the session over, or cancelled it.
    async fn fenced(&self, exec: ExecutionId) -> ErrorInfo {
        let own = std::process::id();
        // Who takes it writes the cancel, or says who works in it now, right after the fence.
        for _ in 0..LOOKS {
            if let Some(end) = end_of(self.deps.store.as_ref(), exec) {
                return end.info();
            }
            // It may have come to its end since.
            let holder = self.deps.store.last_holder(exec);
            if let Some(holder) = holder.filter(|holder| holder.pid != own) {
                let message = format!(
                    "session {exec} was taken over from this process ({own}) by {}; nothing more is \
                     written here",
                    holder.words()
                );
                return ErrorInfo::new(ErrorCode::Fenced, message)
                    .hint(format!("`loon sessions watch {exec}` shows what happens in it"));
            }
            self.deps.clock.sleep(LOOK).await;
        }
        StoreError::Fenced { exec }.info()
    }

    async fn end_watching(&self, exec: ExecutionId, leave: &Leave) -> Outcome {
        let outcome = match leave {
            Leave::Terminate => Outcome::Terminated,
            _ => Outcome::Completed,
        };
        let finished = StreamFinished {
            outcome,
            exit_code: u32::from(outcome.exit_code()),
            error: None,
            message: None,
            usage: Usage::default(),
            cost: Cost::default(),
        };
        self.send(exec, finished).await;
        outcome
    }

    async fn fail(&self, exec: Option<ExecutionId>, error: ErrorInfo) -> Outcome {
        let outcome = match error.code {
            ErrorCode::NotFound | ErrorCode::Invalid => Outcome::Usage,
            ErrorCode::Fenced => Outcome::Terminated,
            ErrorCode::DeadlineExceeded => Outcome::DeadlineExceeded,
            _ => Outcome::Failed,
        };
        self.end(exec, error, outcome).await
    }

    /// Ends the stream with an error.
    async fn end(&self, exec: Option<ExecutionId>, error: ErrorInfo, outcome: Outcome) -> Outcome {
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

    /// Takes what the session wrote into the index. Nothing waits for it: what is missed is found by the
    /// next look.
    fn index(&self, exec: ExecutionId) {
        let (index, store) = (self.deps.index.clone(), Arc::clone(&self.deps.store));
        tokio::task::spawn_blocking(move || index.refresh_one(store.as_ref(), exec));
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
        let _ = self.events.send(Arc::new(self.deps.redactor.envelope(envelope))).await;
    }
}

#[cfg(test)]
mod tests;
