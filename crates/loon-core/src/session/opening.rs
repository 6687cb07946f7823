//! What happens when a session is opened: what a former process left open is ended, the front end is
//! told where it stands, and the past is read where it is needed.

use std::sync::Arc;

use loon_api::event::{
    ItemCompleted, Notice, NoticeLevel, SessionOpened, SessionState, TurnFinished,
};
use loon_api::{
    Cost, ErrorCode, ErrorInfo, ItemBody, ToolCallStatus, ToolResult, TurnStatus, Usage,
    WorkingRecord,
};

use super::{OPENING_ITEMS, Session};
use crate::conversation::{Conversation, UNKNOWN_OUTCOME, effect_of};
use crate::runtime::RuntimeError;

const NEVER_BEGUN: &str = "The process ended before this call began; it was not made.";

impl Session {
    /// Reads the conversation whole, if only its newest part was read to open the session. Never
    /// while a turn adds to it.
    pub(crate) async fn read_all(&mut self) -> Result<(), RuntimeError> {
        if self.conversation.is_whole() || self.turn.is_some() {
            return Ok(());
        }
        let store = Arc::clone(&self.deps.store);
        let exec = self.recorder.exec();
        let reading = tokio::task::spawn_blocking(move || -> Result<Conversation, RuntimeError> {
            let mut whole = Conversation::default();
            for record in store.read(exec)? {
                let record = record?;
                whole.apply(record.turn, &record.event);
            }
            Ok(whole)
        });
        self.conversation = reading.await.map_err(|error| {
            let message = format!("Reading the session was cut off: {error}");
            RuntimeError::Setup(ErrorInfo::new(ErrorCode::Internal, message))
        })??;
        Ok(())
    }

    /// Ends what a former process left open: its calls with what is known of them, its turn as
    /// interrupted.
    pub(super) async fn close_open_turn(&mut self) -> Result<(), RuntimeError> {
        let open = self.conversation.open_turn();
        let state = self.execution.state();
        for mut item in self.conversation.unfinished_calls() {
            let turn = item.turn;
            let begun = effect_of(&item.id)
                .and_then(|key| state.effects.get(&key))
                .is_some_and(|effect| effect.started.is_some());
            if let ItemBody::ToolCall(call) = &mut item.body {
                (call.status, call.result) = if begun {
                    (ToolCallStatus::Unknown, Some(ToolResult::error(UNKNOWN_OUTCOME)))
                } else {
                    (ToolCallStatus::Cancelled, Some(ToolResult::error(NEVER_BEGUN)))
                };
            }
            self.record(Some(turn), ItemCompleted { item }).await?;
        }
        if let Some(turn) = open {
            let message = "The process ended while this turn was running.";
            let finished = TurnFinished {
                status: TurnStatus::Interrupted,
                error: Some(ErrorInfo::new(ErrorCode::OutcomeUnknown, message)),
                steps: 0,
                usage: Usage::default(),
                cost: Cost::default(),
                models: Vec::new(),
                receipt: self.conversation.receipt(),
                review: None,
            };
            self.record(Some(turn), finished).await?;
        }
        Ok(())
    }

    pub(super) async fn tell_opened(&self) {
        let (items, more) = self.conversation.page(None, OPENING_ITEMS);
        let session = SessionState {
            cwd: self.deps.options.cwd.display().to_string(),
            model: self.model.clone(),
            mode: self.authority.mode(),
            branch: self.branch.clone(),
            title: self.conversation.title().map(str::to_owned),
            resumed: self.resumed,
            items,
            more,
            queued: self.prompts.iter().cloned().collect(),
            usage: self.conversation.usage(),
            cost: self.conversation.cost(),
            record: WorkingRecord::clone(self.conversation.record()),
            ultra: self.ultra,
            watched: None,
        };
        self.recorder.pass(None, SessionOpened { session }).await;
        for remark in &self.deps.options.remarks {
            let message = remark.clone();
            let notice = Notice { level: NoticeLevel::Warning, message, hints: Vec::new() };
            self.recorder.pass(None, notice).await;
        }
    }
}
