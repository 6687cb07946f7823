//! The call that changes files: who it is, what it may touch, and whether it still goes on.

use std::path::Path;
use std::sync::Arc;

use loon_api::{EffectKey, PathAccess, Subject};
use loon_kernel::EffectContext;
use tokio_util::sync::CancellationToken;

use super::error::WriteError;
use crate::Workspace;

/// What the write path needs to know of the call that changes files.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) key: EffectKey,
    subjects: Arc<[Subject]>,
    cancel: CancellationToken,
}

impl Call {
    /// The call that runs in this context.
    pub fn of(cx: &EffectContext) -> Self {
        Self { key: cx.key.clone(), subjects: Arc::clone(&cx.subjects), cancel: cx.cancel.clone() }
    }

    /// Whether it was decided that the call may write here. A path that led here only after the
    /// decision was not decided on.
    pub(super) fn may_write(&self, workspace: &Workspace, path: &Path) -> Result<(), WriteError> {
        let decided = self.subjects.iter().any(|subject| {
            matches!(subject,
                Subject::Path { access: PathAccess::Write, path: decided }
                | Subject::Tree { access: PathAccess::Write, path: decided }
                if path.starts_with(decided))
        });
        if decided { Ok(()) } else { Err(WriteError::Elsewhere { path: workspace.display(path) }) }
    }

    /// An error once the call is stopped.
    pub(super) fn go_on(&self) -> Result<(), WriteError> {
        if self.cancel.is_cancelled() { Err(WriteError::Cancelled) } else { Ok(()) }
    }
}
