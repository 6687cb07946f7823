//! Going back: taking file changes back, and taking the conversation back to an earlier message.

use std::sync::Arc;

use loon_api::event::{ItemCompleted, RewindPreviewed, SessionRewound};
use loon_api::{
    CallId, EffectKey, ErrorCode, ErrorInfo, Item, ItemBody, ItemId, ToolCallItem, ToolCallStatus,
};
use loon_kernel::{Tool, ToolEffect};
use serde_json::{Value, json};

use crate::runtime::RuntimeError;
use crate::session::Session;
use crate::stream::OutputStream;

/// The tool that takes file changes back.
const UNDO: &str = "undo";

/// Calls that the user asks for count from the far end of a turn's steps, where the model's never
/// come.
const USER_STEP: u32 = 46_655;

impl Session {
    /// Takes back the file changes of the newest call, or the newest undo.
    pub(crate) async fn undo(&mut self, redo: bool) -> Result<(), RuntimeError> {
        if self.busy("take changes back").await {
            return Ok(());
        }
        self.read_all().await?;
        self.call_for_user(UNDO, json!({ "redo": redo })).await?;
        Ok(())
    }

    /// Takes a message and all after it out of the conversation, and its file changes back if asked
    /// to. Files that cannot be taken back stay, and the undo's own result says so.
    pub(crate) async fn rewind(&mut self, to: ItemId, files: bool) -> Result<(), RuntimeError> {
        if self.busy("rewind").await {
            return Ok(());
        }
        self.read_all().await?;
        let Some(text) = self.user_message(&to).await else { return Ok(()) };
        if files && let Some(since) = self.conversation.first_call_after(&to) {
            let status = self.call_for_user(UNDO, json!({ "since": since })).await?;
            if status != ToolCallStatus::Done {
                let message = "The files could not be taken back, so the conversation stays too.";
                self.warn(ErrorInfo::new(ErrorCode::Conflict, message)).await;
                return Ok(());
            }
        }
        let mut record = self.conversation.record_before(&to).cloned().unwrap_or_default();
        // The goal is the user's own, not a part of what is taken back.
        record.goal.clone_from(&self.conversation.record().goal);
        self.record(None, SessionRewound { to, text, record }).await
    }

    /// Says what taking back files would do.
    pub(crate) async fn preview_rewind(&mut self, to: ItemId) -> Result<(), RuntimeError> {
        self.read_all().await?;
        if self.user_message(&to).await.is_none() {
            return Ok(());
        }
        let since = self.conversation.first_call_after(&to);
        let tool = self.tool(UNDO);
        let detail = match (since, tool) {
            (Some(since), Some(tool)) => {
                let preview = move || tool.preview(&json!({ "since": since }));
                tokio::task::spawn_blocking(preview).await.ok().flatten()
            }
            _ => None,
        };
        self.recorder.pass(None, RewindPreviewed { to, detail }).await;
        Ok(())
    }

    async fn busy(&self, what: &str) -> bool {
        if self.is_busy() {
            let what_runs = if self.turn.is_some() { "A turn" } else { "A compaction" };
            let message = format!("{what_runs} is running; interrupt it before you {what}.");
            self.warn(ErrorInfo::new(ErrorCode::Conflict, message)).await;
        }
        self.is_busy()
    }

    async fn user_message(&self, id: &ItemId) -> Option<String> {
        match self.conversation.item(id).map(|item| &item.body) {
            Some(ItemBody::UserMessage { text, .. }) => Some(text.clone()),
            _ => {
                let message =
                    format!("{id} is no message of the user that the conversation still has.");
                self.warn(ErrorInfo::new(ErrorCode::NotFound, message)).await;
                None
            }
        }
    }

    fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name).cloned()
    }

    /// Makes a call that the user asked for, through the same gate as any other. Commands wait for
    /// its end.
    async fn call_for_user(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Result<ToolCallStatus, RuntimeError> {
        let turn = self.conversation.last_turn();
        let index = self.conversation.user_calls();
        let call = ToolCallItem {
            by_user: true,
            ..ToolCallItem::waiting(CallId::of(turn, USER_STEP, index), tool, arguments)
        };
        let item =
            Item { id: ItemId::user_call(turn, index), turn, body: ItemBody::ToolCall(call) };
        // Recorded first, so that a crash finds the call to which the intent belongs.
        self.record(Some(turn), ItemCompleted { item: item.clone() }).await?;
        let recorder = self.recorder.clone();
        let mut output = OutputStream::new(recorder, turn, item.id.clone());
        let effect = ToolEffect {
            turn,
            key: EffectKey::user_call(turn, index),
            item,
            unmasked: None,
            by_user: true,
            cwd: self.deps.options.cwd.display().to_string(),
            follow: &mut output,
            cancel: self.execution.cancel_token().child_token(),
        };
        let item = self.gate.tool(effect).await?;
        let status = match &item.body {
            ItemBody::ToolCall(call) => call.status,
            _ => ToolCallStatus::Unknown,
        };
        self.fold(Some(turn), &ItemCompleted { item }.into());
        Ok(status)
    }
}
