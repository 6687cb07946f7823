//! The headless driver: sends a prompt, passes events on to a writer, and ends with the stream.
//!
//! It never waits for a human. Signals, input and events are attended to together; writing happens
//! on a thread of its own, so that a slow reader cannot keep a signal from being heard.

mod input;
mod output;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loon_api::event::StreamFinished;
use loon_api::{
    AgentEvent, ApprovalId, Clock as _, Command, Cost, Envelope, ErrorCode, ErrorInfo, ExecutionId,
    ItemBody, Outcome, Usage, VERSION,
};
use loon_core::Runtime;
use loon_kernel::SystemClock;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub(crate) use self::input::{Line, next_line};
pub(crate) use self::output::Format;
use self::output::{Output, Place, WriteError};
use crate::failure::{Failure, say_error};
use crate::headless::input::CommandReader;
use crate::signals::{Asked, Signals};

/// Exit status when the reader of standard output went away.
const READER_GONE: u8 = 141;

/// How long a reader of standard output that takes nothing is waited for once the run is being ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a headless run is told to do.
pub(crate) struct Task {
    /// What begins the work; none if commands come from standard input.
    pub(crate) opening: Option<Command>,
    /// Read commands from standard input.
    pub(crate) commands_from_stdin: bool,
    /// How to print.
    pub(crate) format: Format,
    /// Where the model's last message goes.
    pub(crate) last_message: Option<PathBuf>,
}

/// Prints the end of a stream that could not begin: a program that reads events gets its terminal
/// event also then.
pub(crate) fn print_end(failure: &Failure) -> Result<(), Failure> {
    let outcome = failure.outcome();
    let event = StreamFinished {
        outcome,
        exit_code: outcome.exit_code().into(),
        error: Some(failure.error().clone()),
        message: None,
        usage: Usage::default(),
        cost: Cost::default(),
    };
    let (exec, at) = (ExecutionId::generate(), SystemClock.now());
    let end = Envelope { v: VERSION, seq: None, at, exec, turn: None, event: event.into() };
    output::print(&end)
        .map_err(|error| Failure::other(format!("Cannot write to standard output: {error}")))
}

/// Runs to the end of the stream. Gives the exit status.
pub(crate) async fn drive(runtime: Runtime, task: Task) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let Runtime { commands, mut events, mut done } = runtime;
    let mut driver = Driver {
        output: Output::start(task.format),
        waiting: None,
        haste: Haste::None,
        commands: Some(commands),
        turns_owed: 0,
        steers_owed: 0,
        compactions_owed: 0,
        turn_running: false,
        input_ended: !task.commands_from_stdin,
        asked_to_raise: false,
        asking: task.commands_from_stdin.then(Vec::new),
    };
    if let Some(opening) = task.opening {
        driver.turns_owed += 1;
        driver.send(opening).await;
    }
    let mut input = task.commands_from_stdin.then(CommandReader::start);
    let mut finished = None;
    let mut outcome = None;
    while finished.is_none() || driver.waiting.is_some() {
        tokio::select! {
            event = events.recv(), if driver.waiting.is_none() => match event {
                Some(event) => finished = driver.take(event).await,
                None => break,
            },
            place = driver.output.place(), if driver.waiting.is_some() => driver.write_waiting(place),
            asked = signals.next() => driver.obey(asked).await,
            () = driver.output.broken() => {
                // Nobody reads any more: stop the work, keep the session.
                driver.give_up();
                driver.send(Command::Terminate).await;
            }
            ended = &mut done, if outcome.is_none() => {
                let ended = ended.unwrap_or(Outcome::Failed);
                outcome = Some(ended);
                if ended == Outcome::Terminated {
                    driver.hurry_up();
                }
            }
            // Only who takes nothing is given up: work may take its time to end.
            () = driver.haste.runs_out(), if driver.waiting.is_some() => driver.give_up(),
            line = next_command(&mut input) => match line {
                Some(Ok(command)) => driver.forward(command).await,
                Some(Err(problem)) => say_error(&problem),
                None => {
                    input = None;
                    driver.end_of_input().await;
                }
            },
        }
    }
    driver.commands = None;
    let written = driver.output.finish(driver.haste.left()).await;
    let status = match (&finished, outcome) {
        (Some(finished), _) => u8::try_from(finished.exit_code).unwrap_or(1),
        (None, Some(outcome)) => outcome.exit_code(),
        (None, None) => done.await.unwrap_or(Outcome::Failed).exit_code(),
    };
    if let Some(path) = task.last_message {
        let message = finished.and_then(|finished| finished.message);
        write_last_message(&path, message.as_deref().unwrap_or_default())?;
    }
    match written {
        Ok(()) => Ok(status),
        Err(WriteError::ReaderGone) => Ok(READER_GONE),
        Err(WriteError::Stalled) => {
            let message = "Nobody read standard output; the end of the events was not written.";
            say_error(&ErrorInfo::new(ErrorCode::Io, message));
            Ok(status)
        }
        Err(WriteError::Other(error)) => {
            Err(Failure::other(format!("Cannot write to standard output: {error}")))
        }
    }
}

/// Prints what happens in a session that is only watched, until no process works in it any more.
pub(crate) async fn follow(runtime: Runtime) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let Runtime { commands, mut events, done } = runtime;
    let mut status = 0;
    loop {
        tokio::select! {
            asked = signals.next() => {
                status = match asked {
                    Asked::Interrupt => Outcome::Interrupted.exit_code(),
                    Asked::Terminate => Outcome::Terminated.exit_code(),
                };
                let _ = commands.send(Command::Terminate).await;
            }
            event = events.recv() => {
                let Some(event) = event else { break };
                if let AgentEvent::SessionReleased(_) = &event.event {
                    let _ = commands.send(Command::Close).await;
                }
                match output::print(&event) {
                    Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                        return Ok(READER_GONE);
                    }
                    printed => printed?,
                }
            }
        }
    }
    let outcome = done.await.unwrap_or(Outcome::Failed);
    Ok(if status == 0 { outcome.exit_code() } else { status })
}

/// How long a reader of standard output is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Haste {
    /// As long as it takes.
    None,
    /// The run is being ended: until then.
    Until(Instant),
    /// No longer: what still comes is dropped.
    GivenUp,
}

impl Haste {
    /// What is left of the wait; absent without a limit.
    fn left(self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Until(end) => Some(end.saturating_duration_since(Instant::now())),
            Self::GivenUp => Some(Duration::ZERO),
        }
    }

    async fn runs_out(self) {
        match self {
            Self::Until(end) => tokio::time::sleep_until(end).await,
            Self::None | Self::GivenUp => std::future::pending().await,
        }
    }
}

async fn next_command(
    input: &mut Option<CommandReader>,
) -> Option<Result<Command, loon_api::ErrorInfo>> {
    match input {
        Some(reader) => reader.next().await,
        None => std::future::pending().await,
    }
}

struct Driver {
    output: Output,
    /// An event for which the writer had no room.
    waiting: Option<Arc<Envelope>>,
    haste: Haste,
    commands: Option<mpsc::Sender<Command>>,
    turns_owed: u32,
    /// Words for the running turn that it has not taken in; without one they begin a turn.
    steers_owed: u32,
    /// Compactions that were asked for and have not ended; asking twice is asking once.
    compactions_owed: u32,
    turn_running: bool,
    /// No further command will come.
    input_ended: bool,
    /// A bound of the budget is reached, and something waits until it is raised.
    asked_to_raise: bool,
    /// Requests for a decision that are not answered, where a program is asked.
    asking: Option<Vec<ApprovalId>>,
}

impl Driver {
    /// Passes one event on. Gives the stream's end.
    async fn take(&mut self, event: Arc<Envelope>) -> Option<StreamFinished> {
        let finished = match &event.event {
            AgentEvent::StreamFinished(finished) => Some(finished.clone()),
            AgentEvent::TurnStarted(_) => {
                self.turn_running = true;
                let owed =
                    if self.turns_owed > 0 { &mut self.turns_owed } else { &mut self.steers_owed };
                *owed = owed.saturating_sub(1);
                None
            }
            AgentEvent::ItemCompleted(completed)
                if matches!(completed.item.body, ItemBody::UserMessage { steer: true, .. }) =>
            {
                self.steers_owed = self.steers_owed.saturating_sub(1);
                None
            }
            AgentEvent::QueueReturned(_) => {
                (self.turns_owed, self.steers_owed) = (0, 0);
                None
            }
            AgentEvent::PromptBlocked(blocked) => {
                self.steers_owed = self.steers_owed.saturating_sub(u32::from(blocked.steer));
                None
            }
            AgentEvent::CommandRefused(refused) => {
                let owed = if refused.steer { &mut self.steers_owed } else { &mut self.turns_owed };
                *owed = owed.saturating_sub(1);
                None
            }
            AgentEvent::ApprovalRequested(request) => {
                if let Some(asking) = &mut self.asking {
                    asking.push(request.approval.id.clone());
                }
                None
            }
            AgentEvent::ApprovalResolved(resolved) => {
                if let Some(asking) = &mut self.asking {
                    asking.retain(|asked| *asked != resolved.approval);
                }
                None
            }
            AgentEvent::TurnFinished(_) => {
                self.turn_running = false;
                None
            }
            AgentEvent::BudgetReached(_) => {
                self.asked_to_raise = true;
                None
            }
            AgentEvent::BudgetChanged(_) | AgentEvent::BudgetKept(_) => {
                self.asked_to_raise = false;
                None
            }
            AgentEvent::ContextCompacted(compacted) => {
                self.compactions_owed *= u32::from(compacted.compaction.automatic);
                None
            }
            AgentEvent::CompactionFailed(failed) => {
                self.compactions_owed *= u32::from(failed.automatic);
                None
            }
            _ => None,
        };
        self.waiting = self.output.write(event);
        if finished.is_none() {
            self.close_if_idle().await;
            self.answer_for_nobody().await;
        }
        finished
    }

    fn write_waiting(&mut self, place: Option<Place>) {
        if let (Some(event), Some(place)) = (self.waiting.take(), place) {
            place.send(event);
        }
    }

    fn hurry_up(&mut self) {
        if self.haste == Haste::None {
            self.haste = Haste::Until(Instant::now() + LAST_WORDS);
        }
    }

    /// Writes nothing more; what still comes is taken and dropped, so that the work can end.
    fn give_up(&mut self) {
        self.output.give_up();
        self.waiting = None;
        self.haste = Haste::GivenUp;
    }

    async fn close_if_idle(&mut self) {
        let owed = self.turns_owed + self.steers_owed + self.compactions_owed;
        let idle = !self.turn_running && owed == 0;
        if idle && self.input_ended {
            self.send(Command::Close).await;
            self.commands = None;
        }
    }

    /// Once the input has ended, nobody is left who could decide or raise a bound.
    async fn answer_for_nobody(&mut self) {
        if !self.input_ended {
            return;
        }
        let unanswered = self.asking.as_mut().map(std::mem::take).unwrap_or_default();
        for approval in unanswered {
            let reason = Some("The input has ended, and nobody is there to ask.".to_owned());
            self.send(Command::Deny { approval, reason }).await;
        }
        if self.asked_to_raise {
            self.asked_to_raise = false;
            self.send(Command::RefuseBudget).await;
        }
    }

    async fn forward(&mut self, command: Command) {
        let begins_turn = match &command {
            Command::Prompt { text } => !text.trim().is_empty(),
            Command::Custom { steer, .. } => !steer,
            _ => false,
        };
        self.turns_owed += u32::from(begins_turn);
        if let Command::Steer { text } = &command {
            self.steers_owed += u32::from(!text.trim().is_empty());
        }
        if let Command::Custom { steer: true, .. } = &command {
            self.steers_owed += 1;
        }
        if matches!(command, Command::Compact { .. }) {
            self.compactions_owed = 1;
        }
        self.send(command).await;
    }

    async fn end_of_input(&mut self) {
        self.input_ended = true;
        self.close_if_idle().await;
        self.answer_for_nobody().await;
    }

    async fn obey(&mut self, asked: Asked) {
        self.hurry_up();
        match asked {
            Asked::Interrupt => {
                self.turns_owed = 0;
                self.send(Command::Interrupt).await;
                self.send(Command::Close).await;
            }
            Asked::Terminate => self.send(Command::Terminate).await,
        }
    }

    async fn send(&mut self, command: Command) {
        if let Some(commands) = &self.commands {
            // A runtime that is gone has ended the stream; the events say how.
            let _ = commands.send(command).await;
        }
    }
}

fn write_last_message(path: &std::path::Path, message: &str) -> Result<(), Failure> {
    #[expect(clippy::disallowed_methods, reason = "the user named this file on the command line")]
    std::fs::write(path, message).map_err(|error| {
        Failure::other(format!("Cannot write the last message to {}: {error}", path.display()))
    })
}
