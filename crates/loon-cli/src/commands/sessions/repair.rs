//! `loon sessions repair`.

use std::fmt::Write as _;

use loon_api::ExecutionId;
use loon_kernel::{FileStore, JournalStore as _, Repaired, StoreError};

use serde_json::json;

use super::{failed, json_line};
use crate::failure::Failure;

/// Mends the end of a journal in place, or saves what is whole before other damage into a new
/// session. Never takes a record away.
pub(super) fn run(store: &FileStore, exec: ExecutionId, json: bool) -> Result<u8, Failure> {
    let text = match store.repair(exec) {
        Ok(repaired) if json => json_line(&json!({
            "exec": exec,
            "moved_bytes": repaired.moved_bytes,
            "moved_to": repaired.moved_to,
            "closed_line": repaired.closed_line,
            "missing_records": repaired.missing_records,
        }))?,
        Ok(repaired) => describe(&repaired),
        Err(StoreError::Corrupt { line, intact, mendable: false, .. }) if intact > 0 => {
            let saved = store.salvage(exec).map_err(|error| failed(store, &error))?;
            if json {
                let line =
                    json!({"exec": exec, "salvaged": saved, "line": line, "records": intact});
                return super::super::print(&json_line(&line)?);
            }
            format!(
                "Line {line} is damaged, so the journal was left as it is. Its {intact} intact \
                 records were copied to the new session {saved}.\n"
            )
        }
        Err(error) => return Err(failed(store, &error)),
    };
    super::super::print(&text)
}

fn describe(repaired: &Repaired) -> String {
    let mut text = String::new();
    if let (Some(bytes), Some(file)) = (repaired.moved_bytes, &repaired.moved_to) {
        let _ = writeln!(text, "Moved {bytes} torn bytes to {}.", file.display());
    }
    if repaired.closed_line {
        text.push_str("Closed the last line, which was whole but for its end.\n");
    }
    if repaired.missing_records > 0 {
        let missing = repaired.missing_records;
        let _ = writeln!(text, "{missing} records that had been made durable are missing.");
    }
    if text.is_empty() {
        text.push_str("There was nothing to mend.\n");
    }
    text
}
