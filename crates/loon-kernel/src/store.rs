//! The journal port: where records are kept, who may write them, and what is promised.
//!
//! A journal has one writer at a time. The writer holds a lease, which ends with its process, and a
//! fence number, which every append checks. Whoever takes a newer fence shuts out the older writer,
//! even one that is stopped and wakes up later.

use std::path::PathBuf;

use loon_api::{At, BoxFuture, Envelope, ErrorCode, ErrorInfo, ExecutionId, Seq};

mod file;
mod line;
mod memory;
mod shelf;
mod verify;

pub use file::{FileStore, Imported, make_private_folder};
pub use line::LEFT_OUT;
pub(crate) use line::hash as sha256;
pub use memory::MemoryStore;
pub use shelf::{Changes, Holder, Place, PlacedRecords, Stamp};

/// Records of one execution, oldest first.
pub type Records = Box<dyn Iterator<Item = Result<Envelope, StoreError>> + Send>;

/// Names records by their number.
pub type IsWhole = Box<dyn Fn(Seq) -> bool + Send>;

/// Makes what was appended durable; may run on any thread while appends go on.
pub type SyncJob = Box<dyn FnOnce() -> Result<(), StoreError> + Send>;

/// Where journals are kept.
pub trait JournalStore: Send + Sync {
    /// Begins a journal. It is there for others once its first batch is appended. Fails with
    /// [`StoreError::Exists`] if there is one.
    fn create(&self, exec: ExecutionId) -> Result<Box<dyn JournalWriter>, StoreError>;

    /// Takes the lease and a new fence, and mends a torn end. Fails with [`StoreError::Busy`] while
    /// another writer holds the lease.
    fn open(&self, exec: ExecutionId) -> Result<Opened, StoreError>;

    /// Takes a newer fence although another writer may hold the lease: from here on that writer
    /// gets [`StoreError::Fenced`].
    fn take_over(&self, exec: ExecutionId) -> Result<Opened, StoreError>;

    /// The same only to write its end: nobody is told that somebody else works in it now.
    fn take_over_to_end(&self, exec: ExecutionId) -> Result<Opened, StoreError> {
        self.take_over(exec)
    }

    /// Reads all records in a stream, with payloads put back in place. A torn end is passed over; a
    /// broken line with records after it is [`StoreError::Corrupt`].
    fn read(&self, exec: ExecutionId) -> Result<Records, StoreError>;

    /// The same without the texts of tool results and diffs that lie outside the lines, for which
    /// [`LEFT_OUT`] stands, except in records that `is_whole` names. What is not read costs neither
    /// time nor memory.
    fn read_lean(&self, exec: ExecutionId, is_whole: IsWhole) -> Result<Records, StoreError>;

    /// The same as [`JournalStore::read`] from a place on that an earlier reading gave.
    fn read_from(&self, exec: ExecutionId, place: Place) -> Result<PlacedRecords, StoreError>;

    /// What tells its present state from others; absent if there is no such journal.
    fn stamp(&self, exec: ExecutionId) -> Option<Stamp>;

    /// Who writes it at the moment.
    fn holder(&self, exec: ExecutionId) -> Option<Holder>;

    /// Who opened it last to work in it, gone or not.
    fn last_holder(&self, exec: ExecutionId) -> Option<Holder> {
        self.holder(exec)
    }

    /// Tells of its changes from now on.
    fn changes(&self, exec: ExecutionId) -> Result<Changes, StoreError>;

    /// Begins an execution with the first `upto` records of another one, a cancel not among them, and
    /// a record at `now` that says so. What was kept to take file changes back comes along.
    fn fork(&self, from: ExecutionId, upto: Seq, now: At) -> Result<ExecutionId, StoreError>;

    /// All executions, newest first.
    fn list(&self) -> Result<Vec<ExecutionId>, StoreError>;

    /// Checks every line, the chain, the fences and the payloads. Damage is an answer, not an error.
    fn verify(&self, exec: ExecutionId) -> Result<Verified, StoreError>;

    /// Mends the end of a journal that has no other writer. Damage before the end is
    /// [`StoreError::Corrupt`] and nothing is touched.
    fn repair(&self, exec: ExecutionId) -> Result<Repaired, StoreError>;

    /// Copies the intact records before the first damage into a new execution and leaves the old one
    /// as it is.
    fn salvage(&self, exec: ExecutionId) -> Result<ExecutionId, StoreError>;

    /// True while a writer holds the lease.
    fn is_live(&self, exec: ExecutionId) -> bool;

    /// Leaves word for whoever writes the journal: end it at the next step boundary.
    fn ask_to_stop(&self, exec: ExecutionId, reason: Option<&str>) -> Result<(), StoreError>;

    /// The word that was left, if any.
    fn asked_to_stop(&self, exec: ExecutionId) -> Result<Option<StopRequest>, StoreError>;
}

/// Word that an execution shall end at its next step boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRequest {
    /// Why, in the words of who asked.
    pub reason: Option<String>,
}

impl StopRequest {
    fn of(reason: &str) -> Self {
        Self { reason: (!reason.is_empty()).then(|| reason.to_owned()) }
    }
}

/// The one writer of a journal.
pub trait JournalWriter: Send {
    /// Appends records whose `seq` go on where the journal ends. They are written together, and on
    /// an error none of them is there.
    fn append(&mut self, batch: &[Envelope]) -> Result<(), StoreError>;

    /// A job that makes all that was appended until now durable.
    fn sync_job(&mut self) -> SyncJob;

    /// Takes the lease of a journal that was taken over, once its former writer let it go. True if
    /// this writer holds it.
    fn take_lease(&mut self) -> bool;

    /// Fails with [`StoreError::Fenced`] once another writer took over.
    fn check(&self) -> Result<(), StoreError>;

    /// Completes once another writer took over. Keeps no lease, and wakes nobody until then. Asked for
    /// within the async runtime.
    fn taken_over(&self) -> BoxFuture<'static, ()>;

    /// Makes all that was appended durable before it returns.
    fn sync(&mut self) -> Result<(), StoreError> {
        self.sync_job()()
    }
}

/// A journal opened for writing.
pub struct Opened {
    /// Writes it.
    pub writer: Box<dyn JournalWriter>,
    /// Bytes of a torn last line that were moved to a side file.
    pub repaired_bytes: Option<u64>,
}

/// What `verify` found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Intact records, counted from the first.
    pub records: u64,
    /// Bytes that hold them.
    pub bytes: u64,
    /// The last of them ends the execution.
    pub ended: bool,
    /// The first damage.
    pub damage: Option<Damage>,
    /// The damage is nothing but a write that was cut off after the last record: what a crash leaves,
    /// and what nobody was told of.
    pub unfinished: bool,
}

impl Verified {
    /// True if nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage.is_none()
    }

    /// True if every record is there as it was written; a write that was cut off may follow them.
    pub fn holds(&self) -> bool {
        self.is_sound() || self.unfinished
    }

    /// The damage as an error, unless every record is there as it was written.
    pub fn sound(self, exec: ExecutionId) -> Result<(), StoreError> {
        match self.damage {
            Some(Damage { line, reason, mendable }) if !self.unfinished => {
                Err(StoreError::Corrupt { exec, line, reason, intact: self.records, mendable })
            }
            _ => Ok(()),
        }
    }
}

/// A place where a journal is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the first bad line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
    /// It is at the very end, so that `repair` can mend it.
    pub mendable: bool,
}

/// What `repair` did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Bytes of a torn last line that were moved to a side file.
    pub moved_bytes: Option<u64>,
    /// The side file they were moved to.
    pub moved_to: Option<PathBuf>,
    /// The last record was whole and only lacked its line end, which was added.
    pub closed_line: bool,
    /// Records that had been made durable and are not there any more.
    pub missing_records: u64,
}

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such journal.
    #[error("there is no session {exec}")]
    NotFound {
        /// The execution asked for.
        exec: ExecutionId,
    },
    /// There is one already.
    #[error("session {exec} exists already")]
    Exists {
        /// The execution.
        exec: ExecutionId,
    },
    /// Another writer holds the lease.
    #[error("session {exec} is in use{}", owner(*pid))]
    Busy {
        /// The execution.
        exec: ExecutionId,
        /// Process id of the writer, if it left one.
        pid: Option<u32>,
    },
    /// A newer writer took over.
    #[error("session {exec} was taken over by another process")]
    Fenced {
        /// The execution.
        exec: ExecutionId,
    },
    /// The journal is not as it was written.
    #[error("journal of session {exec}, line {line}: {reason}")]
    Corrupt {
        /// The execution.
        exec: ExecutionId,
        /// Number of the first bad line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
        /// Intact records before it.
        intact: u64,
        /// `repair` can mend it.
        mendable: bool,
    },
    /// A record says that only a newer version can read the journal.
    #[error(
        "session {exec} needs format {needed} (line {line}); this version reads format {}",
        loon_api::VERSION
    )]
    NewerFormat {
        /// The execution.
        exec: ExecutionId,
        /// The record's line, from 1.
        line: u64,
        /// The format it needs.
        needed: u32,
    },
    /// What is to be imported is not as it was exported.
    #[error("line {line} of the archive: {reason}; nothing was taken from this session")]
    Archive {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A batch does not go on where the journal ends.
    #[error("session {exec}: record {found} where {expected} must follow")]
    Sequence {
        /// The execution.
        exec: ExecutionId,
        /// The number that must follow.
        expected: u64,
        /// The number that came, 0 for none.
        found: u64,
    },
    /// The file system said no.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A record cannot be written as JSON.
    #[error("session {exec}: a record cannot be written as JSON: {source}")]
    Encode {
        /// The execution.
        exec: ExecutionId,
        /// What the encoder said.
        source: serde_json::Error,
    },
}

fn owner(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
}

impl StoreError {
    /// What kind of error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::Exists { .. } => ErrorCode::Conflict,
            Self::Busy { .. } => ErrorCode::Busy,
            Self::Fenced { .. } => ErrorCode::Fenced,
            Self::Corrupt { .. } | Self::Archive { .. } => ErrorCode::Corrupt,
            Self::NewerFormat { .. } => ErrorCode::Invalid,
            Self::Io { .. } => ErrorCode::Io,
            Self::Sequence { .. } | Self::Encode { .. } => ErrorCode::Internal,
        }
    }

    /// The error as events carry it.
    pub fn info(&self) -> ErrorInfo {
        let info = ErrorInfo::new(self.code(), self.to_string());
        match self {
            Self::NotFound { .. } => info.hint("`loon sessions list` shows the sessions there are"),
            Self::Busy { .. } => {
                info.hint("end the other process, fork the session, watch it, or take it over")
            }
            Self::Corrupt { exec, mendable: true, .. } => {
                info.hint(format!("`loon sessions repair {exec}` mends the end of the journal"))
            }
            Self::Corrupt { exec, intact, .. } if *intact > 0 => info.hint(format!(
                "`loon sessions repair {exec}` can copy the {intact} intact records into a new session"
            )),
            Self::NewerFormat { .. } => info.hint("update loon"),
            Self::Exists { .. }
            | Self::Fenced { .. }
            | Self::Corrupt { .. }
            | Self::Archive { .. }
            | Self::Sequence { .. }
            | Self::Io { .. }
            | Self::Encode { .. } => info,
        }
    }
}

#[cfg(test)]
mod tests;
