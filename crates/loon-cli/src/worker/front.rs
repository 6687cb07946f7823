//! A run elsewhere that looks to the headless driver like one in this process.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::StreamFinished;
use loon_api::{
    AgentEvent, Clock, Command, Cost, Envelope, ErrorCode, ErrorInfo, ExecutionId, Outcome, Usage,
    VERSION,
};
use loon_core::Runtime;
use loon_kernel::{
    Dispatch, DispatchError, Dispatcher, JournalStore, Redactor, Settled, SystemClock, placement,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{PROMPT, PromptInput};

/// Events that may wait for a slow reader before the worker waits too.
const CAPACITY: usize = 256;

/// How long a worker may take to end its run once it was cancelled, or once its turn is over and nobody
/// wants more.
const PATIENCE: Duration = Duration::from_secs(5);

/// A prompt for a worker.
pub(crate) struct Elsewhere {
    /// The way to the worker.
    pub(crate) dispatcher: Arc<dyn Dispatcher>,
    /// What it gets; the prompt itself comes as a command.
    pub(crate) input: PromptInput,
    /// Our own journals, which a worker on this machine may share.
    pub(crate) store: Arc<dyn JournalStore>,
    /// Most time at work.
    pub(crate) deadline: Option<Duration>,
}

/// How the caller asked for an end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Interrupt,
    Terminate,
}

/// What is known of the run so far.
#[derive(Default)]
struct Progress {
    turn_over: bool,
    outcome: Option<Outcome>,
}

impl Elsewhere {
    /// Starts serving commands. The first prompt begins the run.
    pub(crate) fn start(self) -> Runtime {
        let (commands, receiver) = mpsc::channel(16);
        let (sender, events) = mpsc::channel(CAPACITY);
        let done = tokio::spawn(self.serve(receiver, sender));
        Runtime { commands, events, done }
    }

    async fn serve(
        self,
        mut commands: mpsc::Receiver<Command>,
        told: mpsc::Sender<Arc<Envelope>>,
    ) -> Outcome {
        let exec = ExecutionId::generate();
        let Some(Command::Prompt { text: prompt }) = commands.recv().await else {
            let error = ErrorInfo::new(ErrorCode::Cancelled, "Stopped before it began.");
            return finish(exec, &told, Outcome::Interrupted, Some(error)).await;
        };
        let (flow, version) = PROMPT;
        let dispatch = Dispatch {
            execution_id: exec,
            flow: flow.to_owned(),
            version,
            input: serde_json::json!(PromptInput { prompt, ..self.input }),
            deadline_ms: self
                .deadline
                .map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX)),
        };
        let (events, mut arriving) = mpsc::channel(CAPACITY);
        let mut run = self.dispatcher.dispatch(dispatch, events);
        let mut settled = None;
        let mut progress = Progress::default();
        let mut stop: Option<(Stop, Option<JoinHandle<bool>>)> = None;
        let mut listening = true;
        let mut until: Option<Instant> = None;
        while settled.is_none() || !arriving.is_empty() {
            tokio::select! {
                biased;
                Some(event) = arriving.recv() => {
                    match &event.event {
                        AgentEvent::TurnFinished(_) => progress.turn_over = true,
                        AgentEvent::StreamFinished(end) => progress.outcome = Some(end.outcome),
                        _ => {}
                    }
                    // The driver reads to the end.
                    let _ = told.send(event).await;
                }
                done = &mut run, if settled.is_none() => settled = Some(done),
                command = commands.recv(), if listening => {
                    listening = command.is_some();
                    if progress.turn_over && ends(command.as_ref()) {
                        // The worker comes to its end by itself, unless it is stuck.
                        until.get_or_insert_with(|| Instant::now() + PATIENCE);
                    }
                    let how = match command {
                        Some(Command::Interrupt) => Stop::Interrupt,
                        Some(Command::Terminate) => Stop::Terminate,
                        // Nothing else can be told to a worker.
                        _ => continue,
                    };
                    if stop.is_none() && !progress.turn_over {
                        let dispatcher = Arc::clone(&self.dispatcher);
                        let reason = Some("stopped by who started it".to_owned());
                        // The dispatch must go on meanwhile: it may be what carries the cancel.
                        let store = Arc::clone(&self.store);
                        let sent = async move {
                            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
                            let (place, redactor) = (dispatcher.as_ref(), Redactor::default());
                            let sent =
                                placement::cancel(place, &store, &clock, &redactor, exec, reason);
                            sent.await.unwrap_or(false)
                        };
                        stop = Some((how, Some(tokio::spawn(sent))));
                    }
                }
                heard = answer(&mut stop) => match heard {
                    (_, true) => until = Some(Instant::now() + PATIENCE),
                    (how, false) => {
                        let message =
                            "The worker could not be told to stop; the run may go on there.";
                        let error = ErrorInfo::new(ErrorCode::OutcomeUnknown, message);
                        return finish(exec, &told, outcome_of(how), Some(error)).await;
                    }
                },
                () = passed(until) => {
                    // With the way to it, a child is killed.
                    drop(run);
                    let message = format!(
                        "The worker did not end within {} s and is waited for no longer; `loon sessions \
                         show {exec}` tells how far it came, if it shares this data folder.",
                        PATIENCE.as_secs()
                    );
                    let error = ErrorInfo::new(ErrorCode::OutcomeUnknown, message);
                    let outcome = stop.map_or(Outcome::Failed, |(how, _)| outcome_of(how));
                    return finish(exec, &told, outcome, Some(error)).await;
                }
            }
        }
        if let Some(outcome) = progress.outcome {
            return outcome;
        }
        let (outcome, error) = unheard(settled);
        finish(exec, &told, outcome, error).await
    }
}

/// The caller wants nothing more.
fn ends(command: Option<&Command>) -> bool {
    matches!(command, None | Some(Command::Close | Command::Interrupt | Command::Terminate))
}

/// Completes at an instant, or never without one.
async fn passed(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn outcome_of(stop: Stop) -> Outcome {
    match stop {
        Stop::Interrupt => Outcome::Interrupted,
        Stop::Terminate => Outcome::Terminated,
    }
}

/// The answer to a cancel, once. Never completes if none was sent.
async fn answer(stop: &mut Option<(Stop, Option<JoinHandle<bool>>)>) -> (Stop, bool) {
    let Some((how, sent)) = stop else { return std::future::pending().await };
    let Some(answer) = sent else { return std::future::pending().await };
    let heard = answer.await.unwrap_or(false);
    *sent = None;
    (*how, heard)
}

/// How a run ended whose own end nobody heard.
fn unheard(settled: Option<Result<Settled, DispatchError>>) -> (Outcome, Option<ErrorInfo>) {
    match settled {
        Some(Ok(Settled::Completed { .. })) => (Outcome::Completed, None),
        Some(Ok(Settled::Cancelled { reason })) => {
            let message = reason.unwrap_or_else(|| "It was cancelled.".to_owned());
            (Outcome::Terminated, Some(ErrorInfo::new(ErrorCode::Cancelled, message)))
        }
        Some(Ok(Settled::Suspended { .. })) => {
            let message = "It waits for something, and was let go.";
            (Outcome::Stopped, Some(ErrorInfo::new(ErrorCode::Conflict, message)))
        }
        Some(Ok(Settled::Failed { error })) => {
            let outcome = match error.code {
                ErrorCode::Invalid | ErrorCode::NotFound => Outcome::Usage,
                _ => Outcome::Failed,
            };
            (outcome, Some(error))
        }
        Some(Err(error)) => (Outcome::Failed, Some(error.info())),
        None => (Outcome::Failed, None),
    }
}

/// Ends the stream.
async fn finish(
    exec: ExecutionId,
    told: &mpsc::Sender<Arc<Envelope>>,
    outcome: Outcome,
    error: Option<ErrorInfo>,
) -> Outcome {
    let finished = StreamFinished {
        outcome,
        exit_code: outcome.exit_code().into(),
        error,
        message: None,
        usage: Usage::default(),
        cost: Cost::default(),
    };
    let (at, event) = (SystemClock.now(), finished.into());
    let end = Envelope { v: VERSION, seq: None, at, exec, turn: None, event };
    // A driver that is gone needs no end.
    let _ = told.send(Arc::new(end)).await;
    outcome
}
