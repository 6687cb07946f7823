//! What the native tools of one execution share.

use std::sync::Arc;

use loon_api::WorkingRecord;
use loon_exec::Spawner;
use tokio::sync::watch;

use crate::{LiveWebOptions, Processes, Workspace};

/// What the native tools of one execution share.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The folder they work in.
    pub workspace: Arc<Workspace>,
    /// Starts their processes.
    pub spawner: Spawner,
    /// Those of their processes that go on between calls.
    pub processes: Arc<Processes>,
    /// The working record as it stands before a call.
    pub record: watch::Receiver<Arc<WorkingRecord>>,
    /// What settings say of the network.
    pub web: LiveWebOptions,
}
