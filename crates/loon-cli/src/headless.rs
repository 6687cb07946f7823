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
use loon_api::{AgentEvent, Clock as _, Command, Cost, Envelope, ExecutionId, Usage, VERSION};
use loon_core::Runtime;
use loon_kernel::SystemClock;
use tokio::sync::mpsc;

pub(crate) use self::output::Format;
use self::output::{Output, WriteError};
use crate::failure::{Failure, say_error};
use crate::headless::input::CommandReader;
use crate::signals::{Asked, Signals};

/// Exit status when the reader of standard output went away.
const READER_GONE: u8 = 141;

/// Longest wait for standard output at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What a headless run is told to do.
pub(crate) struct Task {
    /// The prompt; none if commands come from standard input.
    pub(crate) prompt: Option<String>,
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
    let mut driver = Driver {
        output: Output::start(task.format),
        commands: Some(runtime.commands),
        ends_with_turn: !task.commands_from_stdin,
        turns_owed: 0,
        turn_running: false,
        input_ended: false,
    };
    let mut events = runtime.events;
    if let Some(text) = task.prompt {
        driver.turns_owed += 1;
        driver.send(Command::Prompt { text }).await;
    }
    let mut input = task.commands_from_stdin.then(CommandReader::start);
    let finished = loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => {
                    if let Some(finished) = driver.take(event).await? {
                        break Some(finished);
                    }
                }
                None => break None,
            },
            asked = signals.next() => driver.obey(asked).await,
            () = driver.output.broken() => {
                // Nobody reads any more: stop the work, keep the session.
                driver.output.give_up();
                driver.send(Command::Terminate).await;
            }
            line = next_command(&mut input) => match line {
                Some(Ok(command)) => driver.forward(command).await,
                Some(Err(problem)) => say_error(&problem),
                None => {
                    input = None;
                    driver.end_of_input().await;
                }
            },
        }
    };
    driver.commands = None;
    let written = driver.output.finish(LAST_WORDS).await;
    let Some(finished) = finished else {
        return Err(Failure::other("The event stream ended without its end event."));
    };
    if let Some(path) = task.last_message {
        write_last_message(&path, finished.message.as_deref().unwrap_or_default())?;
    }
    match written {
        Ok(()) => Ok(u8::try_from(finished.exit_code).unwrap_or(1)),
        Err(WriteError::ReaderGone) => Ok(READER_GONE),
        Err(WriteError::Other(error)) => {
            Err(Failure::other(format!("Cannot write to standard output: {error}")))
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
    commands: Option<mpsc::Sender<Command>>,
    ends_with_turn: bool,
    turns_owed: u32,
    turn_running: bool,
    input_ended: bool,
}

impl Driver {
    /// Passes one event on. Gives the stream's end.
    async fn take(&mut self, event: Arc<Envelope>) -> Result<Option<StreamFinished>, Failure> {
        let finished = match &event.event {
            AgentEvent::StreamFinished(finished) => Some(finished.clone()),
            AgentEvent::TurnStarted(_) => {
                self.turn_running = true;
                self.turns_owed = self.turns_owed.saturating_sub(1);
                None
            }
            AgentEvent::TurnFinished(_) => {
                self.turn_running = false;
                None
            }
            _ => None,
        };
        self.output.write(event).await;
        if finished.is_none() {
            self.close_if_idle().await;
        }
        Ok(finished)
    }

    async fn close_if_idle(&mut self) {
        let idle = !self.turn_running && self.turns_owed == 0;
        if idle && (self.ends_with_turn || self.input_ended) {
            self.send(Command::Close).await;
            self.commands = None;
        }
    }

    async fn forward(&mut self, command: Command) {
        let begins_turn = match &command {
            Command::Prompt { text } => !text.trim().is_empty(),
            Command::Steer { text } => !self.turn_running && !text.trim().is_empty(),
            _ => false,
        };
        self.turns_owed += u32::from(begins_turn);
        self.send(command).await;
    }

    async fn end_of_input(&mut self) {
        self.input_ended = true;
        self.close_if_idle().await;
    }

    async fn obey(&mut self, asked: Asked) {
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
