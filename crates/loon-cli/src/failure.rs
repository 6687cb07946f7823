//! How the command reports that it cannot go on: kind, message and hints on standard error, and an
//! exit status.

use std::io::Write as _;
use std::process::ExitCode;

use loon_api::{ErrorCode, ErrorInfo, Outcome};
use loon_config::ConfigError;

use crate::safe::plain;

/// An error at the outermost floor.
#[derive(Debug)]
pub(crate) struct Failure {
    error: ErrorInfo,
    exit: u8,
}

impl Failure {
    /// Something about the command line or the settings is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { error: ErrorInfo::new(ErrorCode::Invalid, message), exit: 2 }
    }

    /// There is no work to do.
    pub(crate) fn nothing_to_run(message: impl Into<String>) -> Self {
        Self {
            error: ErrorInfo::new(ErrorCode::Invalid, message),
            exit: Outcome::Stopped.exit_code(),
        }
    }

    /// Something failed on the way.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self { error: ErrorInfo::new(ErrorCode::Io, message), exit: 1 }
    }

    /// Adds one thing to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.error = self.error.hint(hint);
        self
    }

    /// The reader of what was written is gone.
    pub(crate) fn reader_gone() -> Self {
        Self { error: ErrorInfo::new(ErrorCode::Io, "the reader is gone"), exit: 141 }
    }

    /// True if nothing but that went wrong.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.exit == 141
    }

    /// What went wrong.
    pub(crate) fn error(&self) -> &ErrorInfo {
        &self.error
    }

    /// How a stream that ends with it ended.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.exit {
            2 => Outcome::Usage,
            3 => Outcome::Stopped,
            _ => Outcome::Failed,
        }
    }

    /// Says it and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        say_error(&self.error);
        ExitCode::from(self.exit)
    }
}

/// Settings that cannot be read are a matter of settings, whatever is in the way.
impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { error: error.info(), exit: 2 }
    }
}

impl From<ErrorInfo> for Failure {
    fn from(error: ErrorInfo) -> Self {
        let exit = match error.code {
            ErrorCode::Invalid | ErrorCode::NotFound => 2,
            _ => 1,
        };
        Self { error, exit }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::other(format!("{error:#}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::reader_gone();
        }
        Self::other(error.to_string())
    }
}

/// Writes an error for a person to standard error. A closed standard error is no error.
pub(crate) fn say_error(error: &ErrorInfo) {
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "loon: {}", plain(&error.message));
    for hint in &error.hints {
        let _ = writeln!(stderr, "  {}", plain(hint));
    }
}
