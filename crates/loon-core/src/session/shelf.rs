//! Going on to another session: one that is there, or a branch of this one.

use std::sync::Arc;

use loon_api::event::SessionHeld;
use loon_api::{ErrorCode, ErrorInfo, ExecutionId, SessionAccess, TurnNumber};

use super::{Leave, Session};
use crate::looks::Answer;
use crate::runtime::{RuntimeError, SessionChoice, end_of_choice, held_by};
use crate::sessions::fork_session;

impl Session {
    /// Tells what a look into the index gave.
    pub(super) async fn tell(&self, answer: Answer) {
        match answer {
            Ok(Some(event)) => self.recorder.pass(None, event).await,
            Ok(None) => {}
            Err(error) => self.warn(error).await,
        }
    }

    /// Goes on to another session, unless another process works in it and this one shall too.
    pub(super) async fn open_other(&mut self, exec: Option<ExecutionId>, access: SessionAccess) {
        let choice = SessionChoice::of(exec, access);
        if let Some(end) = end_of_choice(&self.deps, choice).await {
            self.warn(end).await;
            return;
        }
        if let SessionChoice::Resume(other) = choice
            && other != self.recorder.exec()
            && let Some(holder) = held_by(self.deps.store.as_ref(), other)
        {
            self.recorder.pass(None, SessionHeld { session: other, holder, from: None }).await;
            return;
        }
        self.leave_with(Leave::Open(choice));
    }

    /// Begins a branch of this session and goes on in it.
    pub(super) async fn fork(&mut self, at: Option<TurnNumber>) -> Result<(), RuntimeError> {
        if self.turn.is_some() {
            let message = "A turn is running; interrupt it before you fork.";
            self.warn(ErrorInfo::new(ErrorCode::Conflict, message)).await;
            return Ok(());
        }
        let (store, now) = (Arc::clone(&self.deps.store), self.deps.clock.now());
        let exec = self.recorder.exec();
        let forking = move || fork_session(store.as_ref(), now, exec, at);
        match tokio::task::spawn_blocking(forking).await {
            Ok(Ok(fork)) => self.leave_with(Leave::Open(SessionChoice::Resume(fork))),
            Ok(Err(error)) => self.warn(error.info()).await,
            Err(error) => {
                let message = format!("Forking was cut off: {error}");
                self.warn(ErrorInfo::new(ErrorCode::Internal, message)).await;
            }
        }
        Ok(())
    }
}
