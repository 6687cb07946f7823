//! `loon sessions verify`.

use std::fmt::Write as _;

use loon_api::ExecutionId;
use loon_kernel::{FileStore, JournalStore as _, Verified};

use crate::failure::Failure;

/// Checks one session. Exit status 1 if its journal is damaged.
pub(super) fn one(store: &FileStore, exec: ExecutionId) -> Result<u8, Failure> {
    let verified = store.verify(exec).map_err(|error| Failure::from(error.info()))?;
    super::super::print(&line(exec, &verified))?;
    Ok(u8::from(!verified.holds()))
}

/// Checks every session. Exit status 1 if any journal is damaged.
pub(super) fn all(store: &FileStore) -> Result<u8, Failure> {
    let mut text = String::new();
    let mut damaged = 0;
    let executions = store.list().map_err(|error| Failure::from(error.info()))?;
    for exec in &executions {
        match store.verify(*exec) {
            Ok(verified) if verified.is_sound() => {}
            Ok(verified) => {
                damaged += u32::from(!verified.holds());
                text.push_str(&line(*exec, &verified));
            }
            Err(error) => {
                damaged += 1;
                let _ = writeln!(text, "{exec}  {error}");
            }
        }
    }
    let _ = writeln!(text, "{} sessions checked, {damaged} damaged", executions.len());
    super::super::print(&text)?;
    Ok(u8::from(damaged > 0))
}

fn line(exec: ExecutionId, verified: &Verified) -> String {
    match &verified.damage {
        None => format!("{exec}  sound: {} records, {} bytes\n", verified.records, verified.bytes),
        Some(damage) if verified.unfinished => format!(
            "{exec}  sound: {} records, {} bytes; a write was cut off after them ({}), which the next \
             opening moves aside\n",
            verified.records, verified.bytes, damage.reason,
        ),
        Some(damage) => {
            let advice = if damage.mendable {
                "`loon sessions repair` mends it"
            } else {
                "`loon sessions repair` can save the records before it into a new session"
            };
            format!(
                "{exec}  damaged at line {}: {}; {} records before it are intact; {advice}\n",
                damage.line, damage.reason, verified.records,
            )
        }
    }
}
