//! `loon cancel`.

use loon_kernel::{FileStore, cancel_by_id};

use crate::failure::Failure;
use crate::paths::Paths;

/// Takes the session over from whoever writes it and records the cancel. Exit status 1 if it was
/// cancelled before.
pub(super) fn run(id: &str, reason: Option<String>) -> Result<u8, Failure> {
    let store = FileStore::new(Paths::from_environment()?.data);
    let exec = super::find_session(&store, id)?;
    let cancelled = cancel_by_id(&store, &loon_kernel::SystemClock, exec, reason)
        .map_err(|error| Failure::from(error.info()))?;
    if cancelled {
        super::print(&format!("{exec} is cancelled.\n"))
    } else {
        super::print(&format!("{exec} was cancelled already.\n"))?;
        Ok(1)
    }
}
