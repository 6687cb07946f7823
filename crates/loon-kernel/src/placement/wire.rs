//! What goes between a worker and who sends it work: JSON, one message a line. A child process and a
//! remote worker speak the same; a remote one gets its messages as requests.

use std::sync::Arc;

use loon_api::{Envelope, ExecutionId};
use serde::{Deserialize, Serialize};

use super::{Dispatch, Settled};

/// Most bytes of one message.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// A cancel of one execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// Which.
    pub execution_id: ExecutionId,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A message to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// Run this.
    Run(Dispatch),
    /// Cancel this.
    Cancel(CancelRequest),
}

/// A message from a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum FromWorker {
    /// Something happened in the execution.
    Event(Arc<Envelope>),
    /// It came to rest: the last message of a dispatch.
    Settled(Settled),
    /// The answer to a cancel.
    Cancelled(bool),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Answer {
    Settled(Settled),
    Cancelled(bool),
}

impl FromWorker {
    /// Reads one line. The error says what is wrong with it.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        match serde_json::from_str(text) {
            Ok(Answer::Settled(settled)) => Ok(Self::Settled(settled)),
            Ok(Answer::Cancelled(cancelled)) => Ok(Self::Cancelled(cancelled)),
            Err(_) => Envelope::parse(text)
                .map(|event| Self::Event(Arc::new(event)))
                .map_err(|error| format!("a message that is none: {error}")),
        }
    }

    /// The message as one line, without its end.
    pub fn line(&self) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Event(event) => serde_json::to_vec(event.as_ref()),
            Self::Settled(settled) => serde_json::to_vec(&Answer::Settled(settled.clone())),
            Self::Cancelled(cancelled) => serde_json::to_vec(&Answer::Cancelled(*cancelled)),
        }
    }
}
