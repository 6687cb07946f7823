//! `loon sessions fork`.

use loon_api::{Clock as _, ExecutionId};
use loon_core::sessions::{fork_session, turn_of};
use loon_kernel::{FileStore, SystemClock};
use serde_json::json;

use super::json_line;
use crate::failure::Failure;

/// Begins a session with the records of another one and says how to go on in it.
pub(super) fn run(
    store: &FileStore,
    exec: ExecutionId,
    at: Option<&str>,
    json: bool,
) -> Result<u8, Failure> {
    let turn = at.map(|words| {
        turn_of(words).ok_or_else(|| {
            Failure::usage(format!("{words} names no turn."))
                .hint("Say its number, or the id of an item in it, for example 3 or 3.0.c1.")
        })
    });
    let turn = turn.transpose()?;
    let fork = fork_session(store, SystemClock.now(), exec, turn)
        .map_err(|error| Failure::from(error.info()))?;
    if json {
        return super::super::print(&json_line(&json!({"exec": fork, "from": exec}))?);
    }
    let up_to = turn.map(|turn| format!(" up to the end of turn {turn}")).unwrap_or_default();
    super::super::print(&format!(
        "{fork} is a fork of {exec}{up_to}. `loon --resume {fork}` goes on in it.\nBoth work on the \
         same files. In the fork, undo takes back changes made before it while the files are as those \
         left them; what was deleted or moved away before it lies with the other session.\n"
    ))
}
