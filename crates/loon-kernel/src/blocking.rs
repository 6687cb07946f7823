//! Work on a journal that waits for the disk, and must not hold up a thread of the runtime.

use loon_api::ExecutionId;

use crate::error::KernelError;

/// Does `work`, which `what` names, where waiting is fine.
pub(crate) async fn off_runtime<T, E>(
    exec: ExecutionId,
    what: &str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, KernelError>
where
    T: Send + 'static,
    E: Into<KernelError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Into::into),
        Err(error) => Err(KernelError::Interrupted { exec, what: format!("{what}: {error}") }),
    }
}
