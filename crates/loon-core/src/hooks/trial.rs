//! Trying hooks with a sample of what they read, outside of any session.

use std::sync::Arc;

use loon_api::{
    CallId, ErrorCode, ErrorInfo, ExecutionKind, HookDefinition, HookEvent, ToolCallItem,
    ToolCallStatus, ToolResult, TurnStatus,
};
use loon_kernel::{Execution, MemoryStore, StartOptions};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::answer::HookAnswer;
use super::occurrence::{Occurrence, Trigger};
use crate::conversation::Conversation;
use crate::deps::Dependencies;
use crate::session::Session;
use crate::subagent::Lineage;

/// What to try hooks with.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The event.
    pub event: HookEvent,
    /// Name of the tool, for events about one.
    pub tool: String,
    /// The tool's arguments; for other events members in place of those of the sample.
    pub input: Map<String, Value>,
}

/// A hook that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// Which.
    pub hook: HookDefinition,
    /// What it said, or how it failed.
    pub answer: Result<HookAnswer, ErrorInfo>,
}

/// Runs the hooks that would fire, all of them, through a gate of their own whose journal is kept
/// nowhere. Gives what they read, and what each said.
pub async fn try_hooks(
    deps: &Dependencies,
    trial: Trial,
) -> Result<(String, Vec<Tried>), ErrorInfo> {
    let mut deps = deps.clone();
    deps.store = Arc::new(MemoryStore::default());
    let start = StartOptions {
        exec: None,
        kind: ExecutionKind::Session,
        cwd: deps.options.cwd.display().to_string(),
        parent: None,
        deadline: None,
    };
    // Nobody reads: a closed line is no error.
    let (events, _) = mpsc::channel(1);
    let (_, commands) = mpsc::channel(1);
    let (store, clock) = (Arc::clone(&deps.store), Arc::clone(&deps.clock));
    let execution = Execution::start(store, clock, deps.redactor.clone(), start, events)
        .await
        .map_err(|error| error.info())?;
    let past = Conversation::default();
    let session = Session::new(deps, Lineage::Root, execution, past, commands)?;
    let moment = session.moment_between_turns("trial");
    Ok(session.hooks.try_each(&session.gate, &moment, &trial.occurrence()).await)
}

impl Trial {
    fn occurrence(self) -> Occurrence {
        let Self { event, tool, input } = self;
        let call = |status, result| ToolCallItem {
            status,
            result: Some(result),
            ..ToolCallItem::waiting(CallId::of(1, 0, 0), tool.clone(), Value::Object(input.clone()))
        };
        let mut occurrence = match event {
            HookEvent::PreToolUse => {
                return Occurrence::before_call(&call(
                    ToolCallStatus::Waiting,
                    ToolResult::default(),
                ));
            }
            HookEvent::PostToolUse => {
                let done = call(ToolCallStatus::Done, ToolResult::ok("sample result"));
                return Occurrence::of_end(event, &done);
            }
            HookEvent::PostToolUseFailure => {
                let failed = call(ToolCallStatus::Failed, ToolResult::error("sample error"));
                return Occurrence::of_end(event, &failed);
            }
            HookEvent::SessionStart => Occurrence::session_start(false, None),
            HookEvent::SessionEnd => Occurrence::session_end("close"),
            HookEvent::UserPromptSubmit => Occurrence::prompt("a sample prompt", false),
            HookEvent::Stop => Occurrence::stop(false, Some("a sample answer")),
            HookEvent::StopFailure => {
                let error = ErrorInfo::new(ErrorCode::Network, "a sample error");
                Occurrence::stop_failure(TurnStatus::Failed, Some(&error))
            }
            HookEvent::PreCompact => Occurrence::pre_compact(Trigger::Manual, None),
            HookEvent::PostCompact => {
                Occurrence::post_compact(Trigger::Manual, Some("a sample summary"), (9000, 1000))
            }
        };
        occurrence.own.extend(input);
        occurrence
    }
}
