//! What becomes of a session whose deadline passed.

use loon_api::TurnStatus;

use crate::runtime::RuntimeError;
use crate::session::{Leave, Session};

impl Session {
    /// A turn that the deadline ended is the last: the execution is cancelled, with or without a
    /// screen. The deadline stands still while a person is waited for, so only work can use it up, and
    /// a bound that the next prompt could step over would be none.
    pub(super) async fn end_if_expired(&mut self) -> Result<(), RuntimeError> {
        let ended_by_it = |end: &super::TurnEnd| end.status == TurnStatus::DeadlineExceeded;
        if self.summary.last.as_ref().is_some_and(ended_by_it) && self.execution.is_expired() {
            self.close_children().await?;
            self.execution.stop_if_expired().await?;
            self.leave = Some(Leave::Close);
        }
        Ok(())
    }
}
