//! Work that blocks (files, folders), beside the runtime's own threads.

use loon_kernel::ToolOutput;

/// Runs it on a thread of its own.
pub(crate) async fn blocking(work: impl FnOnce() -> ToolOutput + Send + 'static) -> ToolOutput {
    match tokio::task::spawn_blocking(work).await {
        Ok(output) => output,
        Err(error) => ToolOutput::error(format!("The tool broke off: {error}.")),
    }
}
