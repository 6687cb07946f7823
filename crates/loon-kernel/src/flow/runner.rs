//! Starting, resuming, signalling and cancelling flows.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use loon_api::event::{ExecutionCompleted, ExecutionFailed, FlowStarted, SignalReceived};
use loon_api::{Clock, Envelope, ErrorCode, ErrorInfo, ExecutionId, ExecutionKind, Seq, VERSION};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};

use super::context::{FlowContext, diverged};
use super::replay::Divergence;
use super::state::FlowEnd;
use super::timers::Tended;
use super::{Flow, FlowError, Flows};
use crate::blocking::off_runtime;
use crate::error::KernelError;
use crate::execution::{Cancelled, Execution, StartOptions, cancel_now, read_state, state_of};
use crate::fold::ExecutionState;
use crate::gate::{Gate, GateOptions};
use crate::placement::Settled;
use crate::recorder::later;
use crate::secrets::Redactor;
use crate::store::{JournalStore, StoreError};

/// Longest wait for the record of who took an execution over.
const SETTLES: Duration = Duration::from_secs(2);

/// Makes what the gate of an execution is built from.
pub type GateMaker = dyn Fn(&Execution) -> GateOptions + Send + Sync;

/// How a flow begins.
#[derive(Clone, Debug)]
pub struct Start {
    /// Id of the execution; absent makes one.
    pub exec: Option<ExecutionId>,
    /// Name of the flow.
    pub flow: String,
    /// Version of the flow; absent is the newest.
    pub version: Option<u32>,
    /// What it gets.
    pub input: Value,
    /// Absolute folder it works in.
    pub cwd: String,
    /// The execution that starts it.
    pub parent: Option<ExecutionId>,
    /// In place of the flow's own deadline.
    pub deadline: Option<Duration>,
}

/// A signal from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// Its name.
    pub on: String,
    /// Which of the signals of that name.
    pub correlation: String,
    /// What it brings.
    pub payload: Value,
}

/// Why a flow cannot be run to its rest.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// This process has no such flow.
    #[error("there is no flow {flow}{}", version.map(|v| format!(" of version {v}")).unwrap_or_default())]
    NoFlow {
        /// Name.
        flow: String,
        /// Version; absent is any.
        version: Option<u32>,
    },
    /// The execution is something else.
    #[error("execution {exec} is no flow")]
    NotAFlow {
        /// The execution.
        exec: ExecutionId,
    },
    /// The flow's code changed without a new version. The journal is as it was.
    #[error("execution {exec} cannot go on: {divergence}")]
    Diverged {
        /// The execution.
        exec: ExecutionId,
        /// Where.
        divergence: Divergence,
    },
    /// The journal failed, or the execution is over or another's.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl RunError {
    /// The error as events carry it.
    pub fn info(&self) -> ErrorInfo {
        match self {
            Self::NoFlow { .. } => ErrorInfo::new(ErrorCode::NotFound, self.to_string()),
            Self::NotAFlow { .. } => ErrorInfo::new(ErrorCode::Invalid, self.to_string()),
            Self::Diverged { .. } => ErrorInfo::new(ErrorCode::Conflict, self.to_string())
                .hint("run it with the code that began it, or give the changed code a new version"),
            Self::Kernel(error) => error.info(),
        }
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Kernel(error.into())
    }
}

/// Why a signal was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    /// The flow knows no such signal.
    #[error("the flow {flow} knows no signal {on}")]
    Unknown {
        /// Name of the flow.
        flow: String,
        /// Name of the signal.
        on: String,
    },
    /// The payload is not what the flow's schema wants.
    #[error("the payload of the signal {on} does not fit: {reason}")]
    Invalid {
        /// Name of the signal.
        on: String,
        /// What is wrong.
        reason: String,
    },
    /// The execution cannot take it.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<KernelError> for SignalError {
    fn from(error: KernelError) -> Self {
        Self::Run(error.into())
    }
}

/// A cancel on its way to whoever drives the execution.
struct CancelCall {
    reason: Option<String>,
    reply: oneshot::Sender<Result<bool, KernelError>>,
}

/// An execution that this process drives.
struct Live {
    cancels: mpsc::Sender<CancelCall>,
    /// Taken when the execution comes to rest. Held while something is recorded for it from outside,
    /// so that it does not come to rest meanwhile.
    execution: tokio::sync::Mutex<Option<Execution>>,
    signalled: Notify,
}

/// Runs flows of one store.
pub struct FlowRunner {
    pub(super) store: Arc<dyn JournalStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) redactor: Redactor,
    flows: Flows,
    gate: Arc<GateMaker>,
    live: Mutex<HashMap<ExecutionId, Arc<Live>>>,
    pub(super) tended: Tended,
}

/// Takes the execution off the table of those that are driven here, also when its driver is dropped.
struct OnTable<'a> {
    runner: &'a FlowRunner,
    exec: ExecutionId,
}

impl Drop for OnTable<'_> {
    fn drop(&mut self) {
        self.runner.live().remove(&self.exec);
    }
}

/// How a flow's code came to rest.
enum Rest {
    Done(Result<Value, FlowError>),
    /// It waits for a signal, and nothing else is at work.
    Waits,
    Diverged(Divergence),
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<Value, FlowError>> + Send + 'a>>;

impl FlowRunner {
    /// A runner of these flows. `redactor` masks what they record; `gate` makes the gate of each execution.
    pub fn new(
        store: Arc<dyn JournalStore>,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        flows: Flows,
        gate: Arc<GateMaker>,
    ) -> Self {
        Self {
            store,
            clock,
            redactor,
            flows,
            gate,
            live: Mutex::default(),
            tended: Tended::default(),
        }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<ExecutionId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a flow and runs it to its rest. `events` gets its records; a closed channel is fine.
    pub async fn start(
        &self,
        start: Start,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> Result<Settled, RunError> {
        let flow = self.flow(&start.flow, start.version)?;
        let options = StartOptions {
            exec: start.exec,
            kind: ExecutionKind::Flow,
            cwd: start.cwd,
            parent: start.parent,
            deadline: start.deadline.or_else(|| flow.deadline()),
        };
        let started =
            FlowStarted { flow: start.flow, version: flow.version(), input: start.input.clone() };
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let (redactor, more) = (self.redactor.clone(), vec![started.into()]);
        let execution =
            Execution::start_with(store, clock, redactor, options, more, events).await?;
        self.drive(flow, execution, start.input).await
    }

    /// Goes on with a flow and runs it to its rest. One that came to its end gives what it gave then;
    /// a cancelled one is refused.
    pub async fn resume(
        &self,
        exec: ExecutionId,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> Result<Settled, RunError> {
        let state = state_of(&self.store, exec).await?;
        let Some(started) = state.flow.started else { return Err(RunError::NotAFlow { exec }) };
        if let Some(reason) = state.cancelled {
            return Err(KernelError::Cancelled { exec, reason }.into());
        }
        match state.flow.end {
            Some(FlowEnd::Completed(output)) => return Ok(Settled::Completed { output }),
            Some(FlowEnd::Failed(error)) => return Ok(Settled::Failed { error }),
            None => {}
        }
        let flow = self.flow(&started.flow, Some(started.version))?;
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let redactor = self.redactor.clone();
        let resumed = Execution::resume(store, clock, redactor, exec, events, &mut |_| {}).await;
        let execution = match resumed {
            // Its deadline passed while it was parked; it was cancelled as it was opened.
            Err(KernelError::Expired { reason, .. }) => {
                return Ok(Settled::Cancelled { reason: Some(reason) });
            }
            resumed => resumed?,
        };
        self.drive(flow, execution, started.input).await
    }

    /// Cancels an execution by its id, wherever it stands: one that runs here through its driver, any
    /// other by a newer fence. False if it was over before.
    pub async fn cancel(
        &self,
        exec: ExecutionId,
        reason: Option<String>,
    ) -> Result<bool, KernelError> {
        let reason = reason.map(|reason| self.redactor.text(reason));
        let live = self.live().get(&exec).cloned();
        if let Some(live) = live {
            let (reply, answer) = oneshot::channel();
            let call = CancelCall { reason: reason.clone(), reply };
            if live.cancels.send(call).await.is_ok()
                && let Ok(answer) = answer.await
            {
                return answer;
            }
        }
        let cancelled = cancel_now(&self.store, &self.clock, &self.redactor, exec, reason).await?;
        Ok(cancelled == Cancelled::Now)
    }

    /// Records a signal for a flow, checked against the flow's schema before. True if the flow runs
    /// here and has been told; else [`FlowRunner::resume`] lets it go on.
    pub async fn signal(&self, exec: ExecutionId, signal: Signal) -> Result<bool, SignalError> {
        let state = state_of(&self.store, exec).await?;
        let Some(started) = &state.flow.started else {
            return Err(RunError::NotAFlow { exec }.into());
        };
        check(self.flow(&started.flow, Some(started.version))?.as_ref(), &signal)?;
        let received = SignalReceived {
            on: signal.on,
            correlation: signal.correlation,
            payload: signal.payload,
        };
        let live = self.live().get(&exec).cloned();
        if let Some(live) = live
            && let Some(execution) = live.execution.lock().await.as_ref()
        {
            execution.recorder().record(None, received).await?;
            execution.recorder().make_durable().await?;
            live.signalled.notify_one();
            return Ok(true);
        }
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let redactor = self.redactor.clone();
        let appended = move || append(store.as_ref(), clock.as_ref(), &redactor, exec, received);
        off_runtime(exec, "recording a signal", appended).await?;
        Ok(false)
    }

    fn flow(&self, name: &str, version: Option<u32>) -> Result<Arc<dyn Flow>, RunError> {
        let none = || RunError::NoFlow { flow: name.to_owned(), version };
        self.flows.get(name, version).cloned().ok_or_else(none)
    }

    /// What became of an execution that another process took over. Whoever takes it writes a record
    /// right after the fence: the cancel, or that it goes on there. `last` is the last one of ours.
    async fn taken_over(&self, exec: ExecutionId, last: Seq) -> Result<Settled, RunError> {
        let mut changes = self.store.changes(exec)?;
        let next = async {
            loop {
                let state = state_of(&self.store, exec).await?;
                if state.last_seq > last || changes.seen.changed().await.is_err() {
                    return Ok::<_, RunError>(state.cancelled);
                }
            }
        };
        match tokio::time::timeout(SETTLES, next).await {
            Ok(Ok(Some(reason))) => Ok(Settled::Cancelled { reason }),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) | Err(_) => Err(StoreError::Fenced { exec }.into()),
        }
    }

    /// Runs a flow's code to its rest, under its deadline and its cancel.
    async fn drive(
        &self,
        flow: Arc<dyn Flow>,
        execution: Execution,
        input: Value,
    ) -> Result<Settled, RunError> {
        let exec = execution.exec();
        let (cancels, mut calls) = mpsc::channel(4);
        let live = Arc::new(Live {
            cancels,
            execution: Some(execution.clone()).into(),
            signalled: Notify::new(),
        });
        self.live().insert(exec, Arc::clone(&live));
        let on_table = OnTable { runner: self, exec };
        let gate = Gate::new(&execution, (self.gate)(&execution));
        let cx = FlowContext::new(Arc::clone(&flow), execution.clone(), gate);
        let mut run: Running<'_> = Box::pin(unpanicked(flow.run(&cx, input)));
        let settled = loop {
            let rest = tokio::select! {
                biased;
                () = execution.cancel_token().cancelled() => break None,
                Some(call) = calls.recv() => {
                    break stop(&execution, &mut run, &cx, call).await?;
                }
                () = execution.deadline_passed() => {
                    break expire(&execution, &mut run, &cx).await?;
                }
                () = live.signalled.notified() => {
                    cx.signalled();
                    continue;
                }
                rest = rest(&mut run, &cx) => rest,
            };
            // From here on nothing is recorded from outside.
            let mut held = live.execution.lock().await;
            if let Rest::Waits = rest {
                let told = live.signalled.notified().now_or_never().is_some();
                if told || has_woken(&execution, &cx) {
                    cx.signalled();
                    continue;
                }
            }
            held.take();
            match rest {
                Rest::Diverged(divergence) => return Err(RunError::Diverged { exec, divergence }),
                Rest::Done(ended) => break settle(&execution, &cx, ended).await?,
                Rest::Waits => {
                    let due = execution.recorder().with_state(|state| state.flow.next_due());
                    break Some(Settled::Suspended { due });
                }
            }
        };
        drop(run);
        if settled.is_some() {
            execution.recorder().come_to_rest().await?;
        }
        let last = execution.recorder().with_state(|state| state.last_seq);
        drop((cx, execution));
        drop(on_table);
        if let Some(Settled::Suspended { due: Some(due) }) = &settled {
            self.tended.add(*due, exec);
        }
        match settled {
            Some(settled) => Ok(settled),
            None => self.taken_over(exec, last).await,
        }
    }
}

/// Appends a signal to a journal that nobody writes.
fn append(
    store: &dyn JournalStore,
    clock: &dyn Clock,
    redactor: &Redactor,
    exec: ExecutionId,
    received: SignalReceived,
) -> Result<(), KernelError> {
    let mut writer = store.open(exec)?.writer;
    let state = read_state(store, exec)?;
    if let Some(reason) = state.cancelled {
        return Err(KernelError::Cancelled { exec, reason });
    }
    if state.is_over() {
        return Err(KernelError::Ended { exec });
    }
    let envelope = redactor.envelope(Envelope {
        v: VERSION,
        seq: Some(state.last_seq + 1),
        at: later(clock.now(), &state),
        exec,
        turn: None,
        event: received.into(),
    });
    writer.append(&[envelope])?;
    Ok(writer.sync()?)
}

/// Whether a signal came that ends a wait of which the code has not heard.
fn has_woken(execution: &Execution, cx: &FlowContext) -> bool {
    let open = execution.recorder().with_state(|state| {
        state.flow.suspensions.iter().filter(|wait| wait.woken.is_none()).count()
    });
    cx.turns().counts().parked > open
}

/// The code, with a panic as its failure.
async fn unpanicked(
    run: impl Future<Output = Result<Value, FlowError>>,
) -> Result<Value, FlowError> {
    AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|_| {
        let message = "the flow's code broke down";
        Err(ErrorInfo::new(ErrorCode::Internal, message).into())
    })
}

/// Runs the code until it is done, or until all its parts wait for somebody else.
async fn rest(run: &mut Running<'_>, cx: &FlowContext) -> Rest {
    std::future::poll_fn(|task| {
        loop {
            let moves = cx.turns().counts().moves;
            if let Poll::Ready(done) = run.as_mut().poll(task) {
                return Poll::Ready(match diverged(cx) {
                    Some(divergence) => Rest::Diverged(divergence),
                    None => Rest::Done(done),
                });
            }
            let counts = cx.turns().counts();
            if counts.busy > 0 {
                return Poll::Pending;
            }
            if counts.early > 0 {
                if counts.moves != moves {
                    // A turn was taken after the part that waits for the next was looked at.
                    continue;
                }
                if let Some(divergence) = cx.turns().stuck() {
                    return Poll::Ready(Rest::Diverged(divergence));
                }
            }
            return if counts.parked > 0 { Poll::Ready(Rest::Waits) } else { Poll::Pending };
        }
    })
    .await
}

/// Cancels a flow while its code may still end what it does.
async fn end(
    execution: &Execution,
    run: &mut Running<'_>,
    cx: &FlowContext,
    reason: Option<String>,
) -> Result<bool, KernelError> {
    let mut cancel = std::pin::pin!(execution.cancel(reason));
    let mut at_work = true;
    loop {
        tokio::select! {
            biased;
            ended = &mut cancel => return ended,
            _ = rest(run, cx), if at_work => at_work = false,
        }
    }
}

async fn stop(
    execution: &Execution,
    run: &mut Running<'_>,
    cx: &FlowContext,
    call: CancelCall,
) -> Result<Option<Settled>, RunError> {
    let CancelCall { reason, reply } = call;
    let ended = end(execution, run, cx, reason.clone()).await;
    let settled = match &ended {
        Ok(true) => Some(Settled::Cancelled { reason }),
        // Somebody else ended it.
        Ok(false) | Err(_) => None,
    };
    // Who asked may be gone.
    let _ = reply.send(ended);
    Ok(settled)
}

async fn expire(
    execution: &Execution,
    run: &mut Running<'_>,
    cx: &FlowContext,
) -> Result<Option<Settled>, RunError> {
    let reason = Some(execution.recorder().with_state(ExecutionState::past_deadline));
    match end(execution, run, cx, reason.clone()).await {
        Ok(true) => Ok(Some(Settled::Cancelled { reason })),
        Ok(false) | Err(KernelError::Store(StoreError::Fenced { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Records how the code ended.
async fn settle(
    execution: &Execution,
    cx: &FlowContext,
    ended: Result<Value, FlowError>,
) -> Result<Option<Settled>, RunError> {
    let exec = execution.exec();
    let (event, settled) = match ended {
        Ok(output) => {
            cx.turns().finish().map_err(|divergence| RunError::Diverged { exec, divergence })?;
            let event = ExecutionCompleted { output: output.clone() }.into();
            (event, Settled::Completed { output })
        }
        Err(FlowError::Diverged(divergence)) => {
            return Err(RunError::Diverged { exec, divergence });
        }
        Err(FlowError::Kernel(KernelError::Store(StoreError::Fenced { .. }))) => return Ok(None),
        Err(FlowError::Kernel(error)) => return Err(error.into()),
        Err(error) => {
            let error = error.info();
            (ExecutionFailed { error: error.clone() }.into(), Settled::Failed { error })
        }
    };
    match execution.recorder().record_all(None, vec![event]).await {
        Ok(_) => {}
        Err(KernelError::Cancelled { .. } | KernelError::Store(StoreError::Fenced { .. })) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Some(settled))
}

/// Holds a signal against the flow's schema.
fn check(flow: &dyn Flow, signal: &Signal) -> Result<(), SignalError> {
    let on = signal.on.clone();
    let Some(schema) = flow.signal_schema(&on) else {
        return Err(SignalError::Unknown { flow: flow.name().to_owned(), on });
    };
    let invalid = |reason: String| SignalError::Invalid { on: on.clone(), reason };
    let validator = jsonschema::validator_for(&schema)
        .map_err(|error| invalid(format!("the flow's schema is wrong: {error}")))?;
    validator.validate(&signal.payload).map_err(|error| invalid(error.to_string()))
}
