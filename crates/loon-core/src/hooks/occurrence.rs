//! What happened, as hooks read it.

use std::path::PathBuf;

use loon_api::{ErrorInfo, ExecutionId, HookEvent, ToolCallItem, ToolCallStatus, TurnStatus};
use loon_kernel::Redactor;
use serde_json::{Map, Value, json};

/// Something that hooks may be for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occurrence {
    /// What.
    pub(crate) event: HookEvent,
    /// The tool it is about.
    pub(crate) tool: Option<String>,
    /// The event's own members.
    pub(crate) own: Map<String, Value>,
}

/// The session it happened in.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its id.
    pub(crate) session: ExecutionId,
    /// Absolute folder it works in.
    pub(crate) cwd: PathBuf,
    /// Name of its profile, if it is a subagent.
    pub(crate) agent: Option<String>,
}

/// Who wants a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The user.
    Manual,
    /// Nobody: the window is full.
    Auto,
}

impl Trigger {
    fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

impl Occurrence {
    fn new(event: HookEvent, own: Value) -> Self {
        let own = match own {
            Value::Object(own) => own,
            _ => Map::new(),
        };
        Self { event, tool: None, own }
    }

    pub(crate) fn session_start(resumed: bool, model: Option<&str>) -> Self {
        let source = if resumed { "resume" } else { "startup" };
        Self::new(HookEvent::SessionStart, json!({ "source": source, "model": model }))
    }

    pub(crate) fn session_end(reason: &str) -> Self {
        Self::new(HookEvent::SessionEnd, json!({ "reason": reason }))
    }

    pub(crate) fn prompt(text: &str, steer: bool) -> Self {
        Self::new(HookEvent::UserPromptSubmit, json!({ "prompt": text, "steer": steer }))
    }

    pub(crate) fn before_call(call: &ToolCallItem) -> Self {
        Self::of_call(HookEvent::PreToolUse, call, json!({}))
    }

    /// Nothing for a call that did not come to an end of its own.
    pub(crate) fn after_call(call: &ToolCallItem) -> Option<Self> {
        match call.status {
            ToolCallStatus::Done if call.exit_code.is_none_or(|code| code == 0) => {
                Some(Self::of_end(HookEvent::PostToolUse, call))
            }
            ToolCallStatus::Done | ToolCallStatus::Failed => {
                Some(Self::of_end(HookEvent::PostToolUseFailure, call))
            }
            _ => None,
        }
    }

    pub(super) fn of_end(event: HookEvent, call: &ToolCallItem) -> Self {
        let response = call.result.as_ref().map(|result| result.text.as_str());
        let error = call.error.as_ref().map(|error| error.message.as_str());
        let own = match event {
            HookEvent::PostToolUseFailure => json!({
                "tool_response": response,
                "error": error.or(response),
                "exit_code": call.exit_code,
            }),
            _ => json!({ "tool_response": response }),
        };
        Self::of_call(event, call, own)
    }

    fn of_call(event: HookEvent, call: &ToolCallItem, more: Value) -> Self {
        let own = json!({
            "tool_name": call.tool,
            "tool_input": call.arguments,
            "tool_use_id": call.call,
        });
        let mut occurrence = Self::new(event, own);
        occurrence.own.extend(Self::new(event, more).own);
        occurrence.tool = Some(call.tool.clone());
        occurrence
    }

    /// `again` says that a hook kept the agent from stopping before.
    pub(crate) fn stop(again: bool, message: Option<&str>) -> Self {
        let own = json!({ "stop_hook_active": again, "last_assistant_message": message });
        Self::new(HookEvent::Stop, own)
    }

    pub(crate) fn stop_failure(status: TurnStatus, error: Option<&ErrorInfo>) -> Self {
        let own = json!({
            "status": status,
            "error": error.map(|error| &error.message),
            "error_code": error.map(|error| error.code),
        });
        Self::new(HookEvent::StopFailure, own)
    }

    pub(crate) fn pre_compact(trigger: Trigger, focus: Option<&str>) -> Self {
        let own = json!({ "trigger": trigger.name(), "custom_instructions": focus });
        Self::new(HookEvent::PreCompact, own)
    }

    /// `tokens` are those before and after.
    pub(crate) fn post_compact(
        trigger: Trigger,
        summary: Option<&str>,
        tokens: (u64, u64),
    ) -> Self {
        let own = json!({
            "trigger": trigger.name(),
            "compact_summary": summary,
            "tokens_before": tokens.0,
            "tokens_after": tokens.1,
        });
        Self::new(HookEvent::PostCompact, own)
    }

    /// What a hook reads: the members that all have, the event's own, and these once more as `data`.
    /// Secrets are masked.
    pub(crate) fn input(&self, place: &Place, redactor: &Redactor) -> Vec<u8> {
        let mut input = self.own.clone();
        input.insert("data".to_owned(), Value::Object(self.own.clone()));
        let common = json!({
            "hook_event_name": self.event,
            "session_id": place.session,
            "cwd": place.cwd.to_string_lossy(),
        });
        input.extend(Self::new(self.event, common).own);
        if let Some(agent) = &place.agent {
            input.insert("agent".to_owned(), agent.as_str().into());
        }
        redactor.value(Value::Object(input)).to_string().into_bytes()
    }
}
