//! What goes wrong when records are made.

use loon_api::{ErrorCode, ErrorInfo, ExecutionId};

use crate::store::StoreError;

/// Why a record could not be made or an execution not be opened.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The journal could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The execution was cancelled; nothing follows.
    #[error("session {exec} was cancelled{}", reason.as_deref().map(|r| format!(": {r}")).unwrap_or_default())]
    Cancelled {
        /// The execution.
        exec: ExecutionId,
        /// Why, in the words of who cancelled.
        reason: Option<String>,
    },
    /// Its deadline passed before it was opened again; it is over.
    #[error("session {exec} is over: {reason}")]
    Expired {
        /// The execution.
        exec: ExecutionId,
        /// The deadline in words.
        reason: String,
    },
    /// The flow came to its end; nothing follows.
    #[error("execution {exec} came to its end before")]
    Ended {
        /// The execution.
        exec: ExecutionId,
    },
    /// A task of the runtime ended before its work was done.
    #[error("session {exec}: work in the background was cut off: {what}")]
    Interrupted {
        /// The execution.
        exec: ExecutionId,
        /// What was cut off.
        what: String,
    },
}

impl KernelError {
    /// What kind of error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Cancelled { .. } => ErrorCode::Cancelled,
            Self::Expired { .. } => ErrorCode::DeadlineExceeded,
            Self::Ended { .. } => ErrorCode::Conflict,
            Self::Interrupted { .. } => ErrorCode::Internal,
        }
    }

    /// The error as events carry it.
    pub fn info(&self) -> ErrorInfo {
        match self {
            Self::Store(error) => error.info(),
            Self::Expired { .. } => ErrorInfo::new(self.code(), self.to_string())
                .hint("`--deadline TIME` gives a session that is not over yet more time"),
            Self::Cancelled { exec, .. } => ErrorInfo::new(self.code(), self.to_string())
                .hint(format!("`loon sessions fork {exec}` goes on in a new session")),
            Self::Ended { .. } | Self::Interrupted { .. } => {
                ErrorInfo::new(self.code(), self.to_string())
            }
        }
    }
}
