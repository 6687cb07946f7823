//! `loon cancel`.

use loon_kernel::{CancelMode, Cancelled, FileStore, SystemClock, cancel_by_id};

use crate::failure::Failure;
use crate::paths::Paths;

/// Takes the session over from whoever writes it and records the cancel, or has it end after its
/// step. Exit status 1 if it was cancelled before.
pub(super) fn run(id: &str, reason: Option<String>, after_step: bool) -> Result<u8, Failure> {
    let store = FileStore::new(Paths::from_environment()?.data);
    let exec = super::find_session(&store, id)?;
    let mode = if after_step { CancelMode::AfterStep } else { CancelMode::Now };
    let redactor = crate::wiring::redactor_here();
    let cancelled = cancel_by_id(&store, &SystemClock, &redactor, exec, mode, reason)
        .map_err(|error| Failure::from(error.info()))?;
    match cancelled {
        Cancelled::Now => super::print(&format!("{exec} is cancelled.\n")),
        Cancelled::AfterStep => {
            super::print(&format!("{exec} will be cancelled when its step has ended.\n"))
        }
        Cancelled::Before => {
            super::print(&format!("{exec} was cancelled already.\n"))?;
            Ok(1)
        }
    }
}
