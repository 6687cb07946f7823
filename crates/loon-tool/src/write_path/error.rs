//! Why a file cannot be changed: what happened, to which file, and what to do.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::splice::SpliceError;

/// Why a file was not changed. Whatever the reason, every file is as it was before the call, except
/// after [`WriteError::NotRestored`].
#[derive(Debug, Error)]
pub enum WriteError {
    /// The model never saw the file.
    #[error("{path} was not read in this session. Read it first, then repeat the call.")]
    Unread {
        /// The file, as shown.
        path: String,
    },
    /// The file is not what the model saw, or not what the change was planned on.
    #[error("{path} changed on disk since it was read. Read it again.{detail}")]
    Changed {
        /// The file, as shown.
        path: String,
        /// What differs, to go behind a full stop; empty if it is not known.
        detail: String,
    },
    /// Nothing is there.
    #[error("{path} does not exist.")]
    Missing {
        /// The file, as shown.
        path: String,
    },
    /// Something is there already.
    #[error("{path} exists already and is not overwritten.")]
    Exists {
        /// The file, as shown.
        path: String,
    },
    /// A folder, device or pipe.
    #[error("{path} is {what}, not a file.")]
    NotAFile {
        /// The place, as shown.
        path: String,
        /// What it is, with its article.
        what: &'static str,
    },
    /// A link to nothing.
    #[error("{path} is a link to {target}, which does not exist. Use the target's own path.")]
    DanglingLink {
        /// The link, as shown.
        path: String,
        /// Where it points.
        target: PathBuf,
    },
    /// The file or its file system is marked read-only.
    #[error("{path} is read-only; its mode is for the user to change.")]
    ReadOnly {
        /// The file, as shown.
        path: String,
    },
    /// The operating system says no.
    #[error("No right to {doing} {path}.")]
    NotPermitted {
        /// What was tried.
        doing: &'static str,
        /// The file, as shown.
        path: String,
    },
    /// A part of the path is a file.
    #[error("{path} cannot be made: a part of its path is a file, not a folder.")]
    NotAFolder {
        /// The file, as shown.
        path: String,
    },
    /// No room.
    #[error("No space left on the disk for {path}.")]
    DiskFull {
        /// The file, as shown.
        path: String,
    },
    /// More than is edited in memory.
    #[error("{path} has {size} bytes; files above {limit} bytes are not edited as text.")]
    TooLarge {
        /// The file, as shown.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Two changes of one call touch the same file.
    #[error("{path} is changed twice in one call. Put both changes into one.")]
    Twice {
        /// The file, as shown.
        path: String,
    },
    /// The new text does not fit the file.
    #[error("{path}: {source}.")]
    Text {
        /// The file, as shown.
        path: String,
        /// What does not fit.
        source: SpliceError,
    },
    /// The path leads elsewhere than when it was decided on.
    #[error(
        "{path} leads to another place than when the call was decided on: something on its way \
         became a link or was moved meanwhile. Look at it and repeat the call."
    )]
    Elsewhere {
        /// The place, as shown.
        path: String,
    },
    /// Copied to another file system, but not removed here.
    #[error(
        "{path} was copied to another file system, but could not be removed whole: {source}. The \
         copy is at {copy}."
    )]
    HalfMoved {
        /// The place, as shown.
        path: String,
        /// Where the whole copy is.
        copy: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// More than is copied.
    #[error(
        "{path} holds more than {entries} entries or {limit} and would have to be copied; that is \
         not done."
    )]
    TooMuch {
        /// The place, as shown.
        path: String,
        /// Most entries.
        entries: u64,
        /// Most bytes, with their unit.
        limit: String,
    },
    /// Stopped before everything was in place.
    #[error("The call was stopped.")]
    Cancelled,
    /// The change failed half-way and a file could not be put back.
    #[error(
        "{cause} While undoing the other changes of the call, {path} could not be restored: \
         {source}. Its former content is kept at {kept}."
    )]
    NotRestored {
        /// What failed first.
        cause: Box<WriteError>,
        /// The file that is not as before, as shown.
        path: String,
        /// Where its former bytes are.
        kept: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Anything else the operating system says.
    #[error("Could not {doing} {path}: {source}.")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file, as shown.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
}

impl WriteError {
    /// The error that this answer of the operating system stands for.
    pub(super) fn from_io(source: io::Error, doing: &'static str, path: String) -> Self {
        if source.raw_os_error() == Some(nix::libc::ELOOP) {
            return Self::Elsewhere { path };
        }
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            io::ErrorKind::PermissionDenied => Self::NotPermitted { doing, path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::NotADirectory => Self::NotAFolder { path },
            io::ErrorKind::IsADirectory => Self::NotAFile { path, what: "a folder" },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io { doing, path, source },
        }
    }
}
