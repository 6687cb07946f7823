//! The file of the index: opening it, making it, throwing it away.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::IndexError;

/// Moves on with every change of what the tables hold or mean.
const FORM: i64 = 3;

/// How long another process may write.
const PATIENCE: Duration = Duration::from_secs(10);

const TABLES: &str = "
    CREATE TABLE sessions(
        id INTEGER PRIMARY KEY,
        exec TEXT NOT NULL UNIQUE,
        len INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        archived INTEGER NOT NULL,
        place INTEGER NOT NULL,
        cwd TEXT NOT NULL,
        data TEXT NOT NULL
    );
    CREATE TABLE items(
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        item TEXT NOT NULL,
        turn INTEGER NOT NULL,
        kind TEXT NOT NULL,
        UNIQUE(session, item)
    );
    CREATE TABLE changes(
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        path TEXT NOT NULL,
        after TEXT
    );
    CREATE INDEX changes_of_path ON changes(path);
    CREATE TABLE hooks(
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        key TEXT NOT NULL,
        target TEXT NOT NULL,
        at TEXT NOT NULL,
        result TEXT,
        UNIQUE(session, key)
    );
    CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = \"unicode61 remove_diacritics 2\");
";

/// An open index.
pub(super) struct Database {
    pub(super) connection: Connection,
    /// The file it is, by device and number, unless it lives in memory.
    file: Option<(PathBuf, (u64, u64))>,
}

impl Database {
    /// Opens the index, making what is missing. Where no file can be written, it lives in memory.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, IndexError> {
        let Some(path) = path else { return Self::in_memory() };
        match Self::open_file(path) {
            Err(error) if error.is_damage() => Self::anew(Some(path)),
            Err(error) if cannot_write(&error) => Self::in_memory(),
            opened => opened,
        }
    }

    /// Throws the file away and makes a new one.
    pub(super) fn anew(path: Option<&Path>) -> Result<Self, IndexError> {
        let Some(path) = path else { return Self::in_memory() };
        for end in ["", "-wal", "-shm"] {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            // A file that stays is found out when it is opened.
            let _ = std::fs::remove_file(PathBuf::from(name));
        }
        match Self::open_file(path) {
            Err(error) if error.is_damage() || cannot_write(&error) => Self::in_memory(),
            opened => opened,
        }
    }

    /// False once somebody deleted or replaced the file.
    pub(super) fn is_current(&self) -> bool {
        let Some((path, file)) = &self.file else { return true };
        number(path).as_ref() == Some(file)
    }

    fn in_memory() -> Result<Self, IndexError> {
        let mut connection = Connection::open_in_memory()?;
        make_tables(&mut connection)?;
        Ok(Self { connection, file: None })
    }

    fn open_file(path: &Path) -> Result<Self, IndexError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        if let Some(folder) = path.parent() {
            // A folder that cannot be made is one that cannot be written.
            let _ = loon_kernel::make_private_folder(folder);
        }
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        // The index is made anew when it is damaged, so nothing waits for the disk.
        write_ahead(&connection)?;
        connection.pragma_update(None, "synchronous", "normal")?;
        make_tables(&mut connection)?;
        let file = number(path).map(|number| (path.to_path_buf(), number));
        Ok(Self { connection, file })
    }
}

/// Turns the write-ahead log on. Where another one is doing the same, `SQLite` says so at once, whatever
/// its patience.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            Err(rusqlite::Error::SqliteFailure(error, _))
                if error.code == ErrorCode::DatabaseBusy && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

fn number(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Makes the tables, in place of those of another form.
fn make_tables(connection: &mut Connection) -> Result<(), IndexError> {
    let form = |connection: &Connection| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, "user_version", |row| row.get(0))
    };
    if form(connection)? == FORM {
        return Ok(());
    }
    let change = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if form(&change)? != FORM {
        change.execute_batch(
            "DROP TABLE IF EXISTS texts; DROP TABLE IF EXISTS items;
             DROP TABLE IF EXISTS changes; DROP TABLE IF EXISTS hooks; DROP TABLE IF EXISTS sessions;",
        )?;
        change.execute_batch(TABLES)?;
        change.pragma_update(None, "user_version", FORM)?;
    }
    Ok(change.commit()?)
}

fn cannot_write(error: &IndexError) -> bool {
    matches!(
        error,
        IndexError::Database(rusqlite::Error::SqliteFailure(error, _))
            if matches!(error.code, ErrorCode::CannotOpen | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied | ErrorCode::SystemIoFailure | ErrorCode::DiskFull)
    )
}
