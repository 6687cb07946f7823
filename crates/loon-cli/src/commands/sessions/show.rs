//! `loon sessions show`.

use loon_api::ExecutionId;
use loon_kernel::FileStore;

use super::{json_line, transcript};
use crate::failure::Failure;

/// Prints the transcript.
pub(super) fn run(store: &FileStore, exec: ExecutionId, json: bool) -> Result<u8, Failure> {
    let conversation = transcript::read(store, exec)?;
    super::warn_if_damaged(store, exec);
    if !json {
        return super::super::print(&transcript::markdown(exec, &conversation));
    }
    let lines: Result<String, Failure> = conversation.items().iter().map(json_line).collect();
    super::super::print(&lines?)
}
