//! `loon sessions verify`.

use std::fmt::Write as _;

use loon_api::ExecutionId;
use loon_kernel::{FileStore, JournalStore as _, Verified};

use serde_json::json;

use super::json_line;
use crate::failure::Failure;

/// Checks one session. Exit status 1 if its journal is damaged.
pub(super) fn one(store: &FileStore, exec: ExecutionId, json: bool) -> Result<u8, Failure> {
    let verified = store.verify(exec).map_err(|error| Failure::from(error.info()))?;
    let text = if json { object(exec, &verified)? } else { line(exec, &verified) };
    super::super::print(&text)?;
    Ok(u8::from(!verified.holds()))
}

/// Checks every session. Exit status 1 if any journal is damaged.
pub(super) fn all(store: &FileStore, json: bool) -> Result<u8, Failure> {
    let mut text = String::new();
    let mut damaged = 0;
    let executions = store.list().map_err(|error| Failure::from(error.info()))?;
    for exec in &executions {
        match store.verify(*exec) {
            Ok(verified) if json => {
                damaged += u32::from(!verified.holds());
                text.push_str(&object(*exec, &verified)?);
            }
            Ok(verified) if verified.is_sound() => {}
            Ok(verified) => {
                damaged += u32::from(!verified.holds());
                text.push_str(&line(*exec, &verified));
            }
            Err(error) => {
                damaged += 1;
                if json {
                    let message = error.to_string();
                    text.push_str(&json_line(&json!({"exec": exec, "error": message}))?);
                } else {
                    let _ = writeln!(text, "{exec}  {error}");
                }
            }
        }
    }
    if json {
        super::super::print(&text)?;
        return Ok(u8::from(damaged > 0));
    }
    let _ = writeln!(text, "{} sessions checked, {damaged} damaged", executions.len());
    super::super::print(&text)?;
    Ok(u8::from(damaged > 0))
}

fn object(exec: ExecutionId, verified: &Verified) -> Result<String, Failure> {
    let damage = verified.damage.as_ref().map(
        |damage| json!({"line": damage.line, "reason": damage.reason, "mendable": damage.mendable}),
    );
    json_line(&json!({
        "exec": exec,
        "holds": verified.holds(),
        "records": verified.records,
        "bytes": verified.bytes,
        "ended": verified.ended,
        "unfinished": verified.unfinished,
        "damage": damage,
    }))
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
