//! How reading, checking and changing settings fails.

use std::io;
use std::path::PathBuf;

use loon_api::{ErrorCode, ErrorInfo};

use crate::origin::Origin;

/// Settings that cannot be used. Start-up refuses them; a reload keeps what it has.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file or an override is not TOML, or a value is not what its setting takes.
    #[error("{origin}: {problem}")]
    Invalid {
        /// Where.
        origin: Origin,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        fix: String,
    },
    /// A key that no setting has, or that cannot be changed.
    #[error("{problem}")]
    Key {
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        fix: String,
    },
    /// Someone else changed the file since it was read.
    #[error("{} changed while it was being edited; nothing was written", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, ...
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ConfigError {
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { doing, path: path.into(), source }
    }

    /// The error as events and the command line carry it.
    pub fn info(&self) -> ErrorInfo {
        let (code, hint) = match self {
            Self::Invalid { fix, .. } | Self::Key { fix, .. } => (ErrorCode::Invalid, fix.clone()),
            Self::Changed { .. } => {
                (ErrorCode::Conflict, "look at the file and try again".to_owned())
            }
            Self::Io { source, .. } => (
                ErrorCode::Io,
                match source.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "make the file and its folder readable and writable for you (`ls -ld` shows \
                         owner and mode), or change the file where it comes from"
                    }
                    io::ErrorKind::ReadOnlyFilesystem => {
                        "the disk is mounted read-only; change the file where it comes from"
                    }
                    io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                        "a file stands where the settings folder belongs; move it away"
                    }
                    io::ErrorKind::IsADirectory => {
                        "a folder stands where the settings file belongs; move it away"
                    }
                    io::ErrorKind::InvalidData => "the file must be UTF-8 text",
                    _ => "check the path and the disk",
                }
                .to_owned(),
            ),
        };
        ErrorInfo::new(code, self.to_string()).hint(hint)
    }
}
