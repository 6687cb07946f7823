//! The lease of an execution that was taken over: free once its former process is gone.

use std::sync::Arc;
use std::time::Duration;

use crate::recorder::Recorder;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(150);
/// Looks before the lease is left to the next append. A former process that was told ends far sooner.
const LOOKS: u32 = 40;

/// Takes the lease as soon as the former process lets it go, also while nothing is written.
pub(super) fn await_free(recorder: &Recorder) {
    let (recorder, clock) = (recorder.downgrade(), Arc::clone(recorder.clock()));
    tokio::spawn(async move {
        for _ in 0..LOOKS {
            let Some(recorder) = recorder.upgrade() else { return };
            if recorder.take_lease() {
                return;
            }
            drop(recorder);
            clock.sleep(PAUSE).await;
        }
    });
}
