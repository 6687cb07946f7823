//! Noticing that another process took the execution over, also while nothing is written.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::Execution;
use crate::store::StoreError;

/// A process that ends closes its files before it gives up their locks, so that they are looked at once
/// more after this time.
const AFTERMATH: Duration = Duration::from_millis(150);

/// Looks out until it is dropped.
pub struct Attention(JoinHandle<()>);

impl Drop for Attention {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Execution {
    /// Fires the cancel token as soon as another process takes the execution over. Without it, that is
    /// noticed with the next record only.
    pub fn pay_attention(&self) -> Result<Attention, StoreError> {
        let mut changes = self.store.changes(self.exec())?;
        let (recorder, clock) = (self.recorder.downgrade(), Arc::clone(self.recorder.clock()));
        Ok(Attention(tokio::spawn(async move {
            while changes.seen.changed().await.is_ok() {
                for pause in [Duration::ZERO, AFTERMATH] {
                    clock.sleep(pause).await;
                    // A writer without the lease takes it here, once the former one let it go.
                    let Some(recorder) = recorder.upgrade() else { return };
                    if recorder.check_fence().is_err() {
                        return;
                    }
                }
            }
        })))
    }
}
