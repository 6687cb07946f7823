//! The task of one session: it holds the runtime, obeys what the client asks of the session, and
//! tells it what happens.

mod entry;
mod events;
mod prompting;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, CloseSessionResponse, ContentBlock, Error, RequestId,
    SessionConfigOptionValue, SessionId, SessionNotification, SessionUpdate,
    SetSessionConfigOptionResponse, SetSessionModeResponse,
};
use loon_api::{Command, Envelope, ErrorCode, ErrorInfo};
use loon_core::{Models, Runtime};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::entry::{Entry, start};
pub(super) use self::entry::{How, Opening};
use self::prompting::Prompt;
use super::narrator::Narrator;
use super::options::{Options, mode_named};
use super::permission::Questions;
use super::stdio::Outbox;
use super::wire;

/// How long a client that takes nothing is waited for once the session is being ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What the client asks of a session.
pub(super) enum Ask {
    /// Do what the person wants.
    Prompt(RequestId, Vec<ContentBlock>),
    /// Stop that.
    Cancel,
    /// Change the mode.
    SetMode(RequestId, String),
    /// Change an option.
    SetOption(RequestId, String, SessionConfigOptionValue),
    /// End; the session stays in its journal.
    Close(RequestId),
    /// The answer to a request of ours.
    Answer(i64, Result<Value, Error>),
    /// The client is gone, or the process ends.
    End(Command),
}

impl Ask {
    /// The request that wants an answer.
    fn request(self) -> Option<RequestId> {
        match self {
            Self::Prompt(request, _)
            | Self::SetMode(request, _)
            | Self::SetOption(request, ..)
            | Self::Close(request) => Some(request),
            Self::Cancel | Self::Answer(..) | Self::End(_) => None,
        }
    }
}

/// A choice that was passed on. `models.listed`, which is asked for right after it, says that it was
/// dealt with.
struct Choice {
    request: RequestId,
    command: Command,
    reply: Reply,
}

#[derive(Clone, Copy)]
enum Reply {
    Mode,
    Option,
    /// A command of the person, which is a prompt for the client.
    Prompt,
}

struct Session {
    id: SessionId,
    outbox: Outbox,
    commands: mpsc::Sender<Command>,
    models: Arc<dyn Models>,
    narrator: Narrator,
    options: Options,
    questions: Questions,
    cwd: std::path::PathBuf,
    /// What is still to be done before the client may use the session.
    entry: Option<Entry>,
    /// Events that came while the past was told.
    held: VecDeque<Arc<Envelope>>,
    prompt: Option<Prompt>,
    /// The client knows a name for it.
    titled: bool,
    /// Prompts of a former process whose turns come before any other.
    owed_turns: usize,
    choices: VecDeque<Choice>,
    /// The newest warning since a choice was passed on.
    warning: Option<ErrorInfo>,
    closing: Vec<RequestId>,
    /// When a client that takes nothing is given up.
    patience: Option<Instant>,
    finished: bool,
}

/// Runs the session to its end.
pub(super) async fn run(mut opening: Opening, mut asks: mpsc::Receiver<Ask>) {
    let started = match start(&opening).await {
        Ok(started) => started,
        Err(failure) => {
            let error = wire::failure(failure.error());
            opening.outbox.push(wire::response::<()>(opening.request, Err(error)));
            asks.close();
            let missing = not_open(&SessionId::new(opening.exec.to_string()));
            while let Ok(ask) = asks.try_recv() {
                if let Some(request) = ask.request() {
                    let error = wire::failure(&missing);
                    opening.outbox.push(wire::response::<()>(request, Err(error)));
                }
            }
            while !opening.outbox.is_empty() && opening.outbox.flush().await {}
            return;
        }
    };
    let Runtime { commands, mut events, done } = started.runtime;
    let mut session = Session::new(opening, commands, started.models);
    let mut asks_open = true;
    loop {
        if session.outbox.is_empty() && session.go_on() {
            continue;
        }
        if session.finished && session.outbox.is_empty() {
            asks.close();
            match asks.try_recv() {
                Ok(ask) => session.obey(ask),
                Err(_) => break,
            }
            continue;
        }
        let may_tell = session.outbox.is_empty();
        tokio::select! {
            biased;
            ask = asks.recv(), if asks_open => match ask {
                Some(ask) => session.obey(ask),
                None => {
                    asks_open = false;
                    session.end(Command::Close);
                }
            },
            reads = session.outbox.flush(), if !may_tell => {
                if !reads {
                    session.end(Command::Close);
                }
            }
            event = events.recv(), if may_tell && !session.finished => match event {
                Some(event) => session.take(event),
                None => session.finished = true,
            },
            () = sleep_until(session.narrator.next_due()), if may_tell => {
                let updates = session.narrator.tell_due(Instant::now());
                session.tell(updates);
            }
            () = sleep_until(session.patience), if !may_tell => session.outbox.give_up(),
        }
    }
    drop(session);
    let _ = done.await;
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Session {
    fn new(opening: Opening, commands: mpsc::Sender<Command>, models: Arc<dyn Models>) -> Self {
        let Opening { request, how, exec, args, client, outbox, questions, .. } = opening;
        let cwd = args.cwd.unwrap_or_default();
        let options = Options { mode: loon_api::Mode::Default, model: None, models: Vec::new() };
        Self {
            id: SessionId::new(exec.to_string()),
            outbox,
            commands,
            models,
            narrator: Narrator::new(client, cwd.clone()),
            options,
            questions,
            cwd,
            entry: Some(Entry::new(request, how)),
            held: VecDeque::new(),
            prompt: None,
            titled: false,
            owed_turns: 0,
            choices: VecDeque::new(),
            warning: None,
            closing: Vec::new(),
            patience: None,
            finished: false,
        }
    }

    fn obey(&mut self, ask: Ask) {
        match ask {
            Ask::Close(request) if self.finished => {
                self.outbox.push(wire::response(request, Ok(CloseSessionResponse::new())));
            }
            Ask::Prompt(request, _) | Ask::SetMode(request, _) | Ask::SetOption(request, ..)
                if self.finished =>
            {
                self.refuse(request, &not_open(&self.id));
            }
            Ask::Prompt(request, blocks) => self.begin_prompt(request, &blocks),
            Ask::Cancel => self.cancel(),
            Ask::SetMode(request, name) => {
                let command = mode_named(&name).map(|mode| Command::SetMode { mode });
                self.choose(request, command, Reply::Mode);
            }
            Ask::SetOption(request, option, value) => {
                self.options.models = self.models.names();
                let command = self.options.choose(&option, &value);
                self.choose(request, command, Reply::Option);
            }
            Ask::Close(request) => {
                self.closing.push(request);
                self.end(Command::Close);
            }
            Ask::Answer(id, result) => {
                if let Some(command) = self.questions.answer(id, result) {
                    if command == Command::Interrupt {
                        self.cancel();
                    } else {
                        self.send(command);
                    }
                }
            }
            Ask::End(command) => self.end(command),
        }
    }

    /// Ends the session's work. A client that takes nothing is not waited for long.
    fn end(&mut self, command: Command) {
        self.patience.get_or_insert_with(|| Instant::now() + LAST_WORDS);
        self.send(command);
    }

    /// Passes a choice on, and is answered when it was dealt with.
    fn choose(&mut self, request: RequestId, command: Result<Command, ErrorInfo>, reply: Reply) {
        let passed_on = command.and_then(|command| {
            self.warning = None;
            let both = self.send(command.clone()) && self.send(Command::ListModels);
            both.then_some(command).ok_or_else(busy)
        });
        match passed_on {
            Ok(command) => self.choices.push_back(Choice { request, command, reply }),
            Err(error) => self.refuse(request, &error),
        }
    }

    /// Answers the oldest choice.
    fn answer_choice(&mut self) {
        let Some(Choice { request, command, reply }) = self.choices.pop_front() else { return };
        if let Reply::Prompt = reply {
            return self.end_prompt_of(&request);
        }
        if !self.options.shows(&command) {
            let unknown = || ErrorInfo::new(ErrorCode::Conflict, "The choice was not taken.");
            let error = self.warning.take().unwrap_or_else(unknown);
            return self.refuse(request, &error);
        }
        let line = match reply {
            Reply::Mode => wire::response(request, Ok(SetSessionModeResponse::new())),
            Reply::Option | Reply::Prompt => {
                let options = self.options.config();
                wire::response(request, Ok(SetSessionConfigOptionResponse::new(options)))
            }
        };
        self.outbox.push(line);
    }

    /// True if the runtime takes the command. It always has room, unless the client stopped reading
    /// long ago and went on asking.
    fn send(&mut self, command: Command) -> bool {
        self.commands.try_send(command).is_ok()
    }

    fn tell(&mut self, updates: Vec<SessionUpdate>) {
        for update in updates {
            let notification = SessionNotification::new(self.id.clone(), update);
            let line = wire::notification(CLIENT_METHOD_NAMES.session_update, notification);
            self.outbox.push(line);
        }
    }

    fn refuse(&mut self, request: RequestId, error: &ErrorInfo) {
        self.outbox.push(wire::response::<()>(request, Err(wire::failure(error))));
    }

    /// Answers all that is still open: nothing more will come.
    fn finish(&mut self, error: Option<&ErrorInfo>) {
        self.finished = true;
        let over = || ErrorInfo::new(ErrorCode::Cancelled, "The session was closed.");
        let error = error.cloned().unwrap_or_else(over);
        if let Some(entry) = self.entry.take() {
            self.refuse(entry.request, &error);
        }
        self.fail_prompt(&error);
        for choice in std::mem::take(&mut self.choices) {
            self.refuse(choice.request, &error);
        }
        for request in std::mem::take(&mut self.closing) {
            self.outbox.push(wire::response(request, Ok(CloseSessionResponse::new())));
        }
    }
}

/// What to say of a session that no task serves.
pub(super) fn not_open(session: &SessionId) -> ErrorInfo {
    let message = format!("The session {session} is not open here.");
    ErrorInfo::new(ErrorCode::NotFound, message)
        .hint("Open it with session/load or session/resume.")
}

fn busy() -> ErrorInfo {
    let message = "The session takes no more requests until those before are answered.";
    ErrorInfo::new(ErrorCode::Busy, message)
}
