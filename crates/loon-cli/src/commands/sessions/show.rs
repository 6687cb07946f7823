//! `loon sessions show`.

use loon_api::ExecutionId;
use loon_kernel::FileStore;

use super::transcript;
use crate::failure::Failure;

/// Prints the transcript.
pub(super) fn run(store: &FileStore, exec: ExecutionId) -> Result<u8, Failure> {
    let conversation = transcript::read(store, exec)?;
    super::super::print(&transcript::markdown(exec, &conversation))
}
