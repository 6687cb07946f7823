//! The state of executions that nobody here owns.

use std::sync::Arc;

use loon_api::ExecutionId;

use crate::blocking::off_runtime;
use crate::error::KernelError;
use crate::fold::ExecutionState;
use crate::store::JournalStore;

/// What its journal says now.
pub(crate) fn read_state(
    store: &dyn JournalStore,
    exec: ExecutionId,
) -> Result<ExecutionState, KernelError> {
    let mut state = ExecutionState::default();
    for envelope in store.read_lean(exec, Box::new(|_| false))? {
        state.apply(&envelope?);
    }
    Ok(state)
}

/// [`read_state`], off the threads of the runtime.
pub(crate) async fn state_of(
    store: &Arc<dyn JournalStore>,
    exec: ExecutionId,
) -> Result<ExecutionState, KernelError> {
    let store = Arc::clone(store);
    off_runtime(exec, "reading its state", move || read_state(store.as_ref(), exec)).await
}

/// Why nobody can go on in an execution, if it has come to its end.
pub fn end_of(store: &dyn JournalStore, exec: ExecutionId) -> Option<KernelError> {
    refuse_over(exec, &read_state(store, exec).ok()?).err()
}

/// An execution that has come to its end does not go on.
pub(super) fn refuse_over(exec: ExecutionId, state: &ExecutionState) -> Result<(), KernelError> {
    match &state.cancelled {
        Some(reason) => Err(KernelError::Cancelled { exec, reason: reason.clone() }),
        None if state.is_over() => Err(KernelError::Ended { exec }),
        None => Ok(()),
    }
}
