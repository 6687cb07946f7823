//! The ports behind the gate. Their `run` takes an [`Admitted`] by value, and only the gate can
//! make one: that no effect skips the gate is a matter of types.
//!
//! They live here, beside the gate, and not with the rest of the vocabulary, because a private
//! constructor needs them in one crate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loon_api::{
    Answer, At, BoxFuture, EffectKey, FileChange, FileRead, ModelError, ModelInfo, ModelRequest,
    ProgramRun, RecordChange, Subject, ToolResult, ToolSpec,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Proof that the gate let one effect through. Consumed by the run it was made for.
#[derive(Debug)]
pub struct Admitted {
    key: EffectKey,
}

impl Admitted {
    /// Only the gate calls this.
    pub(crate) fn new(key: EffectKey) -> Self {
        Self { key }
    }

    /// The effect that was admitted.
    pub fn key(&self) -> &EffectKey {
        &self.key
    }
}

/// What a run may use besides its input.
#[derive(Clone, Debug)]
pub struct EffectContext {
    /// The effect that runs.
    pub key: EffectKey,
    /// What the gate let it touch. A path that resolves to another place meanwhile is none of it.
    pub subjects: Arc<[Subject]>,
    /// Folders and files that rules keep from the tool, absolute; whoever looks through a folder must
    /// leave them out.
    pub hidden: Arc<[PathBuf]>,
    /// Fires on interrupt, cancel, timeout and deadline. A run that sees it should clean up and
    /// return within half a second; after that it is dropped, which must clean up as well.
    pub cancel: CancellationToken,
    /// Where to tell of progress. Bounded: waiting on it slows the run down to its readers. A
    /// closed channel is no error.
    pub progress: mpsc::Sender<Progress>,
}

/// What a run tells while it is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More answer text. One message per network read, not per token.
    Text(String),
    /// More reasoning text.
    Thinking(String),
    /// More of the arguments of the `index`-th call of the answer (counted from 0).
    Arguments {
        /// Which call.
        index: u32,
        /// Name of the tool, with the first piece.
        name: Option<String>,
        /// Raw JSON text.
        fragment: String,
    },
    /// More output of a running program, already free of control characters.
    Output(String),
}

impl Progress {
    /// Bytes of what it tells.
    pub fn bytes(&self) -> u64 {
        let text = match self {
            Self::Text(text) | Self::Thinking(text) | Self::Output(text) => text,
            Self::Arguments { fragment, .. } => fragment,
        };
        text.len() as u64
    }
}

/// Follows the progress of one effect. The gate records the effect's end only after everything told
/// before it was taken, so that no piece of progress comes after the end.
pub trait Follow: Send + Sync {
    /// An attempt begins. What was told of a former one is void.
    fn begin(&mut self, _at: At) {}

    /// Takes one piece.
    fn take(&mut self, progress: Progress) -> BoxFuture<'_, ()>;

    /// Pieces that come from now on are of this model's answer.
    fn asks(&mut self, _model: &str) {}
    /// Nothing more of this run comes: what was held back can be told now.
    fn end(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A model that can be asked.
pub trait Model: Send + Sync {
    /// What is known of it.
    fn info(&self) -> &ModelInfo;

    /// Sends one request and reads the answer to its explicit end. Never retries: the gate does.
    /// Dropping the future closes the connection.
    fn run<'a>(
        &'a self,
        admitted: Admitted,
        request: &'a ModelRequest,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, Result<Answer, ModelError>>;

    /// Gets ready for a request that is likely to come, if that saves time: opens the connection. It
    /// asks nothing of the model, leaves no trace, and its failure is silent.
    fn warm(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A tool that can be called.
pub trait Tool: Send + Sync {
    /// What the model is told of it.
    fn spec(&self) -> &ToolSpec;

    /// What to show beside the name of a call, one line. Never fails: unreadable arguments give an
    /// empty title.
    fn title(&self, arguments: &Value) -> String;

    /// What the call would touch. The error is the text the model reads about wrong arguments.
    fn subjects(&self, arguments: &Value) -> Result<Vec<Subject>, String>;

    /// What a human who is asked should see beyond the arguments: a unified diff, as a rule.
    fn preview(&self, _arguments: &Value) -> Option<String> {
        None
    }

    /// How long the call may take. The gate enforces it; absent means the session's default.
    fn timeout(&self, _arguments: &Value) -> Option<Duration> {
        None
    }

    /// What it keeps running between calls, one line each.
    fn running(&self) -> Vec<String> {
        Vec::new()
    }

    /// Gets ready for a call, if settings say that it is worth it. Leaves no trace, and its failure is
    /// silent. Called inside a tokio runtime.
    fn warm(&self) {}

    /// Hears that the outcome of one of its calls is recorded: what was kept in case it would not come to
    /// that can go.
    fn recorded(&self, _key: &EffectKey) {}

    /// Makes the call. A failure of the tool itself is an output with `is_error`.
    fn run<'a>(
        &'a self,
        admitted: Admitted,
        arguments: &'a Value,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput>;
}

/// What a tool call gave back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the model reads.
    pub result: ToolResult,
    /// A short phrase for the transcript (`120 lines`, `exit 1`).
    pub summary: String,
    /// Files it changed, in order.
    pub changes: Vec<FileChange>,
    /// Files it showed to the model, in whole or in part.
    pub reads: Vec<FileRead>,
    /// What it changes in the working record. Journaled with the call, so that both hold or none.
    pub record: Vec<RecordChange>,
    /// Exit status of the program it ran, if one ended by itself.
    pub exit_code: Option<i32>,
    /// Commands it ran, in order, that ended or were ended.
    pub runs: Vec<ProgramRun>,
}

impl ToolOutput {
    /// A successful output with a phrase for the transcript.
    pub fn ok(text: impl Into<String>, summary: impl Into<String>) -> Self {
        Self { result: ToolResult::ok(text), summary: summary.into(), ..Self::default() }
    }

    /// A failed output.
    pub fn error(text: impl Into<String>) -> Self {
        Self { result: ToolResult::error(text), ..Self::default() }
    }
}
