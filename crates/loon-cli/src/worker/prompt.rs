//! The flow that a worker runs: a headless turn of a new session, under the id that the caller chose.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loon_api::event::StreamFinished;
use loon_api::{
    AgentEvent, BoxFuture, Command, Envelope, ErrorCode, ErrorInfo, ExecutionId, Mode, Outcome,
};
use loon_core::{Dependencies, Runtime, SessionChoice};
use loon_kernel::{
    CancelMode, Cancelled, Dispatch, DispatchError, Dispatcher, FileStore, Redactor, Settled,
    SystemClock, cancel_by_id,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::PROMPT;
use crate::args::{ModeArg, SessionArgs};
use crate::commands::{check_model, ensure_model};
use crate::failure::Failure;
use crate::paths::Paths;
use crate::wiring::{Follower, RunOptions, Setup};

/// How long the sessions under way may take to end once the process is asked to.
const CLOSING: Duration = Duration::from_secs(5);

/// What the flow gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptInput {
    /// The prompt.
    pub(crate) prompt: String,
    /// Absolute folder on the worker's machine.
    pub(crate) cwd: PathBuf,
    /// `provider/model` in place of that of the worker's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Permission mode in place of that of the worker's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// Most model requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u32>,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<Value>,
}

/// Runs prompts in this process.
pub(crate) struct Prompts {
    paths: Paths,
    /// A variable that no tool's process may see.
    hidden: Option<String>,
    live: Mutex<HashMap<ExecutionId, Live>>,
    /// A session came to its end.
    ended: Notify,
}

/// A prompt that can be run.
pub(super) struct Prepared {
    deps: Dependencies,
    follower: Follower,
    prompt: String,
}

impl Prepared {
    /// Opens the connection to the model.
    pub(super) async fn warm(&self) {
        let model = self.deps.options.model.value.as_deref();
        if let Some(Ok(model)) = model.map(|name| self.deps.models.open(name)) {
            model.warm().await;
        }
    }
}

/// A session under way.
struct Live {
    commands: mpsc::Sender<Command>,
    /// Why it was cancelled, masked.
    reason: Option<String>,
    redactor: Redactor,
}

struct OnTable<'a>(&'a Prompts, ExecutionId);

impl Drop for OnTable<'_> {
    fn drop(&mut self) {
        self.0.live().remove(&self.1);
        self.0.ended.notify_waiters();
    }
}

impl Prompts {
    /// Prompts with the settings of this user.
    pub(crate) fn new(hidden: Option<String>) -> Result<Self, Failure> {
        Ok(Self {
            paths: Paths::from_environment()?,
            hidden,
            live: Mutex::default(),
            ended: Notify::new(),
        })
    }

    fn live(&self) -> MutexGuard<'_, HashMap<ExecutionId, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all sessions that the process ends, and gives them a moment to do so. What takes longer
    /// is cut off, and its journal says so.
    pub(crate) async fn terminate(&self) {
        let all: Vec<_> = self.live().values().map(|live| live.commands.clone()).collect();
        for commands in all {
            // One that has just ended needs no word.
            let _ = commands.send(Command::Terminate).await;
        }
        let _ = tokio::time::timeout(CLOSING, self.idle()).await;
    }

    /// Completes when no session is under way.
    async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registered before the look, so that an end in between is not missed.
            ended.as_mut().enable();
            if self.live().is_empty() {
                return;
            }
            ended.await;
        }
    }

    async fn run(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> Result<Settled, ErrorInfo> {
        if (dispatch.flow.as_str(), dispatch.version) != PROMPT {
            let (flow, version) = (dispatch.flow, dispatch.version);
            let message = format!("This worker has no flow {flow} of version {version}.");
            return Err(ErrorInfo::new(ErrorCode::NotFound, message));
        }
        let input: PromptInput = serde_json::from_value(dispatch.input).map_err(|error| {
            ErrorInfo::new(ErrorCode::Invalid, format!("The input does not fit: {error}"))
        })?;
        let deadline = dispatch.deadline_ms.map(Duration::from_millis);
        let prepared = self.prepare(input, deadline).await?;
        Ok(self.run_prepared(dispatch.execution_id, prepared, events).await)
    }

    /// Reads the settings of the folder and sees that the prompt can be run.
    pub(super) async fn prepare(
        &self,
        input: PromptInput,
        deadline: Option<Duration>,
    ) -> Result<Prepared, ErrorInfo> {
        if input.prompt.trim().is_empty() || !input.cwd.is_absolute() {
            let message = "The input needs a prompt that is not empty and an absolute cwd.";
            return Err(ErrorInfo::new(ErrorCode::Invalid, message));
        }
        let PromptInput { prompt, cwd, model, mode, max_turns, output_schema } = input;
        let args = SessionArgs {
            model,
            mode: mode.map(ModeArg::from),
            cwd: Some(cwd),
            ..SessionArgs::default()
        };
        let wrong = |failure: Failure| failure.error().clone();
        let (mut setup, _) = Setup::for_session(&args).map_err(wrong)?;
        setup.at.hidden.clone_from(&self.hidden);
        let (mut deps, follower) = setup.dependencies(RunOptions {
            session: &args,
            max_steps: max_turns,
            deadline,
            unattended: true,
            answer_schema: output_schema,
        });
        ensure_model(&mut deps).await;
        check_model(&deps).map_err(wrong)?;
        Ok(Prepared { deps, follower, prompt })
    }

    /// Runs what was prepared as the session `exec`.
    pub(super) async fn run_prepared(
        &self,
        exec: ExecutionId,
        prepared: Prepared,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> Settled {
        let Prepared { deps, follower, prompt } = prepared;
        let _following = follower.start(|_| {});
        let redactor = deps.redactor.clone();
        let Runtime { commands, events: mut arriving, done } =
            Runtime::start(deps, SessionChoice::NewAs(exec));
        self.live().insert(exec, Live { commands: commands.clone(), reason: None, redactor });
        let _on_table = OnTable(self, exec);
        // A session that could not begin has ended its events, which say why.
        let _ = commands.send(Command::Prompt { text: prompt }).await;
        let mut finished = None;
        while let Some(event) = arriving.recv().await {
            match &event.event {
                AgentEvent::TurnFinished(_) => drop(commands.send(Command::Close).await),
                AgentEvent::StreamFinished(event) => finished = Some(event.clone()),
                _ => {}
            }
            // Without a reader the work goes on: its journal is here.
            let _ = events.send(event).await;
        }
        let outcome = done.await.unwrap_or(Outcome::Failed);
        let reason = self.live().get(&exec).and_then(|live| live.reason.clone());
        settled(outcome, finished, reason)
    }

    async fn cancel_here(&self, exec: ExecutionId, reason: Option<String>) -> bool {
        let redactor = {
            let mut all = self.live();
            let Some(live) = all.get_mut(&exec) else { return false };
            live.reason = reason.clone().map(|reason| live.redactor.text(reason));
            live.redactor.clone()
        };
        let store = FileStore::new(self.paths.data.clone());
        let cancel =
            move || cancel_by_id(&store, &SystemClock, &redactor, exec, CancelMode::Now, reason);
        matches!(tokio::task::spawn_blocking(cancel).await, Ok(Ok(Cancelled::Now)))
    }
}

/// What came of a session, as a result of a dispatch.
fn settled(outcome: Outcome, finished: Option<StreamFinished>, reason: Option<String>) -> Settled {
    let error = finished.as_ref().and_then(|finished| finished.error.clone());
    match outcome {
        Outcome::Completed => Settled::Completed {
            output: json!({"message": finished.and_then(|finished| finished.message)}),
        },
        Outcome::Interrupted | Outcome::Terminated => {
            Settled::Cancelled { reason: reason.or_else(|| error.map(|error| error.message)) }
        }
        Outcome::Failed | Outcome::Usage | Outcome::Stopped | Outcome::DeadlineExceeded => {
            let error = error.unwrap_or_else(|| {
                ErrorInfo::new(ErrorCode::Internal, "The session ended without a reason.")
            });
            Settled::Failed { error }
        }
    }
}

impl Dispatcher for Prompts {
    fn dispatch(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> BoxFuture<'_, Result<Settled, DispatchError>> {
        Box::pin(async move {
            let run = self.run(dispatch, events).await;
            Ok(run.unwrap_or_else(|error| Settled::Failed { error }))
        })
    }

    fn cancel(&self, exec: ExecutionId, reason: Option<String>) -> BoxFuture<'_, bool> {
        Box::pin(self.cancel_here(exec, reason))
    }
}
