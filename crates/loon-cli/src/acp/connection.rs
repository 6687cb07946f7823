//! The connection: what comes in is answered here, or handed to the session it is about.

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::MethodDispatchError;
use agent_client_protocol_schema::v1::{
    ClientNotification, ClientRequest, Error, ErrorCode, ListSessionsRequest, McpServer, RequestId,
    SessionId, SystemPrompt,
};
use loon_api::{Command, ErrorCode as Code, ErrorInfo, ExecutionId, Outcome};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::handshake::{self, Client};
use super::permission::{Questions, session_of};
use super::session::{self, Ask, How, Opening};
use super::stdio::{self, Input, Outbox, Writer};
use super::wire::{self, Message};
use super::{left_out, list};
use crate::args::AcpArgs;
use crate::failure::Failure;
use crate::signals::{Asked, Signals};

/// Requests that may wait for a session.
const CAPACITY: usize = 64;

/// Lists of sessions that are made at the same time.
const LISTS: usize = 4;

/// How long all sessions together may take to end.
const CLOSING: Duration = Duration::from_secs(5);

/// Serves one client until it goes or a signal asks for the end. Gives the exit status.
pub(crate) async fn serve(args: AcpArgs) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let mut lines = stdio::read();
    let writer = Writer::start();
    let mut connection = Connection::new(args, writer.outbox());
    let (status, command) = loop {
        tokio::select! {
            biased;
            asked = signals.next() => break match asked {
                Asked::Interrupt => (Outcome::Interrupted.exit_code(), Command::Terminate),
                Asked::Terminate => (Outcome::Terminated.exit_code(), Command::Terminate),
            },
            // Nobody reads any more, or nobody writes: the editor is gone.
            () = writer.closed() => break (0, Command::Close),
            _ = connection.outbox.flush(), if !connection.outbox.is_empty() => {}
            line = lines.recv(), if connection.outbox.is_empty() => match line {
                Some(line) => connection.take(line, &writer).await,
                None => break (0, Command::Close),
            },
        }
    };
    connection.end(&command).await;
    writer.finish().await;
    Ok(status)
}

/// The task of a session.
struct Handle {
    number: i64,
    asks: mpsc::Sender<Ask>,
    task: JoinHandle<()>,
}

struct Connection {
    args: AcpArgs,
    /// Known once it said its first words.
    client: Option<Client>,
    outbox: Outbox,
    sessions: HashMap<ExecutionId, Handle>,
    /// Sessions opened so far.
    opened: i64,
    lists: Arc<Semaphore>,
}

/// Where a session shall work, and with what.
struct Place {
    cwd: PathBuf,
    folders: Vec<PathBuf>,
    servers: Vec<McpServer>,
    system: Option<SystemPrompt>,
}

impl Connection {
    fn new(args: AcpArgs, outbox: Outbox) -> Self {
        let lists = Arc::new(Semaphore::new(LISTS));
        Self { args, client: None, outbox, sessions: HashMap::new(), opened: 0, lists }
    }

    async fn take(&mut self, line: Input, writer: &Writer) {
        let Some(line) = line else {
            let error = wire::error(ErrorCode::InvalidRequest, stdio::too_long());
            return self.refuse(RequestId::Null, error);
        };
        match wire::read(&line) {
            Ok(Message::Request { id, method, params }) => {
                let request = self.understand(&method, &params);
                let done = match request {
                    Ok(request) => self.answer(id.clone(), request, writer).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = done {
                    self.refuse(id, error);
                }
            }
            Ok(Message::Notification { method, params }) => {
                // Nobody waits for an answer, so what is not understood is passed over.
                let notification = ClientNotification::from_method_and_params(&method, &params);
                if let Ok(ClientNotification::CancelNotification(cancel)) = notification {
                    let _ = self.ask(&cancel.session_id, Ask::Cancel).await;
                }
            }
            Ok(Message::Response { id: RequestId::Number(id), result }) => {
                let number = session_of(id);
                let handle = self.sessions.values().find(|handle| handle.number == number);
                if let Some(handle) = handle {
                    let _ = handle.asks.send(Ask::Answer(id, result)).await;
                }
            }
            Ok(Message::Response { .. }) => {}
            Err(malformed) => {
                self.refuse(malformed.id, wire::error(malformed.code, malformed.message));
            }
        }
    }

    /// The request that a method and its parameters are.
    fn understand(&self, method: &str, params: &Value) -> Result<ClientRequest, Error> {
        let request =
            ClientRequest::from_method_and_params(method, params).map_err(|error| match error {
                MethodDispatchError::InvalidPayload { source, .. } => {
                    let message = format!("The parameters of {method} are wrong: {source}.");
                    wire::error(ErrorCode::InvalidParams, message)
                }
                _ => unknown(method),
            })?;
        let is_first = matches!(request, ClientRequest::InitializeRequest(_));
        if self.client.is_none() && !is_first {
            let message = format!("{method} came before initialize.");
            return Err(wire::error(ErrorCode::InvalidRequest, message));
        }
        Ok(request)
    }

    /// Answers a request, or has its session answer it.
    async fn answer(
        &mut self,
        id: RequestId,
        request: ClientRequest,
        writer: &Writer,
    ) -> Result<(), Error> {
        match request {
            ClientRequest::InitializeRequest(request) => {
                self.client = Some(Client::of(&request));
                self.outbox.push(wire::response(id, Ok(handshake::answer())));
                Ok(())
            }
            ClientRequest::AuthenticateRequest(_) => {
                let message = "Nobody has to authenticate to Loom; keys of models are in its \
                               settings and in the environment.";
                Err(wire::error(ErrorCode::InvalidParams, message))
            }
            ClientRequest::NewSessionRequest(request) => {
                let place = Place {
                    cwd: request.cwd,
                    folders: request.additional_directories,
                    servers: request.mcp_servers,
                    system: request.system_prompt,
                };
                self.open(id, How::New, ExecutionId::generate(), &place, writer)
            }
            ClientRequest::LoadSessionRequest(request) => {
                let exec = exec_of(&request.session_id)?;
                let place = Place {
                    cwd: request.cwd,
                    folders: request.additional_directories,
                    servers: request.mcp_servers,
                    system: request.system_prompt,
                };
                self.open(id, How::Load, exec, &place, writer)
            }
            ClientRequest::ResumeSessionRequest(request) => {
                let exec = exec_of(&request.session_id)?;
                let place = Place {
                    cwd: request.cwd,
                    folders: request.additional_directories,
                    servers: request.mcp_servers,
                    system: request.system_prompt,
                };
                self.open(id, How::Resume, exec, &place, writer)
            }
            ClientRequest::ListSessionsRequest(request) => self.list(id, request, writer),
            ClientRequest::CloseSessionRequest(request) => {
                self.ask(&request.session_id, Ask::Close(id)).await
            }
            ClientRequest::SetSessionModeRequest(request) => {
                let mode = request.mode_id.0.to_string();
                self.ask(&request.session_id, Ask::SetMode(id, mode)).await
            }
            ClientRequest::SetSessionConfigOptionRequest(request) => {
                let option = request.config_id.0.to_string();
                self.ask(&request.session_id, Ask::SetOption(id, option, request.value)).await
            }
            ClientRequest::PromptRequest(request) => {
                self.ask(&request.session_id, Ask::Prompt(id, request.prompt)).await
            }
            other => Err(unknown(other.method())),
        }
    }

    /// Starts the task of a session. One that this process has open already is closed first.
    fn open(
        &mut self,
        request: RequestId,
        how: How,
        exec: ExecutionId,
        place: &Place,
        writer: &Writer,
    ) -> Result<(), Error> {
        if !place.cwd.is_absolute() {
            let message = format!("{} is no absolute path.", place.cwd.display());
            return Err(wire::error(ErrorCode::InvalidParams, message));
        }
        self.sessions.retain(|_, handle| !handle.asks.is_closed());
        let former = self.sessions.remove(&exec);
        let number = self.opened;
        self.opened += 1;
        let opening = Opening {
            request,
            how,
            exec,
            args: self.args.session(place.cwd.clone()),
            remarks: left_out::remarks(&place.servers, &place.folders, place.system.as_ref()),
            client: self.client.unwrap_or_default(),
            outbox: writer.outbox(),
            questions: Questions::of(number),
        };
        let (asks, receiver) = mpsc::channel(CAPACITY);
        let task = tokio::spawn(async move {
            if let Some(Handle { asks, task, .. }) = former {
                let _ = asks.send(Ask::End(Command::Close)).await;
                drop(asks);
                let _ = task.await;
            }
            session::run(opening, receiver).await;
        });
        self.sessions.insert(exec, Handle { number, asks, task });
        Ok(())
    }

    /// Lists sessions beside everything else, since journals are read for it.
    fn list(
        &self,
        id: RequestId,
        request: ListSessionsRequest,
        writer: &Writer,
    ) -> Result<(), Error> {
        let Ok(permit) = Arc::clone(&self.lists).try_acquire_owned() else {
            let message = "Sessions are being listed; wait for the answers to former requests.";
            return Err(wire::failure(&ErrorInfo::new(Code::Busy, message)));
        };
        let mut outbox = writer.outbox();
        tokio::spawn(async move {
            let listed = tokio::task::spawn_blocking(move || list::answer(&request)).await;
            let listed = listed.unwrap_or_else(|error| {
                let message = format!("Listing sessions was cut off: {error}");
                Err(ErrorInfo::new(Code::Internal, message))
            });
            let result = listed.map_err(|error| wire::failure(&error));
            outbox.push(wire::response(id, result));
            outbox.flush().await;
            drop(permit);
        });
        Ok(())
    }

    /// Hands something to an open session.
    async fn ask(&self, session: &SessionId, ask: Ask) -> Result<(), Error> {
        let not_open = || wire::failure(&session::not_open(session));
        let handle = exec_of(session).ok().and_then(|exec| self.sessions.get(&exec));
        handle.ok_or_else(not_open)?.asks.send(ask).await.map_err(|_| not_open())
    }

    fn refuse(&mut self, id: RequestId, error: Error) {
        self.outbox.push(wire::response::<()>(id, Err(error)));
    }

    /// Ends all sessions. Each stays in its journal and can be gone on with.
    async fn end(mut self, command: &Command) {
        let handles: Vec<Handle> = self.sessions.drain().map(|(_, handle)| handle).collect();
        let tasks: Vec<_> = handles.iter().map(|handle| handle.task.abort_handle()).collect();
        let ending = async {
            for handle in &handles {
                let _ = handle.asks.send(Ask::End(command.clone())).await;
            }
            for handle in handles {
                let _ = handle.task.await;
            }
        };
        let _ = tokio::time::timeout(CLOSING, ending).await;
        tasks.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

fn unknown(method: &str) -> Error {
    wire::error(ErrorCode::MethodNotFound, format!("Loom does not know the method {method}."))
}

fn exec_of(session: &SessionId) -> Result<ExecutionId, Error> {
    ExecutionId::from_str(&session.0).map_err(|_| {
        let error = ErrorInfo::new(Code::NotFound, format!("There is no session {session}."));
        wire::failure(&error.hint("session/list names the sessions."))
    })
}
