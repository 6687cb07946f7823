//! Lifecycle hooks in the settings.

use loon_api::HookEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::without_login;

/// Programs and addresses that hear of what a session does, by event. Hooks of all files hold together:
/// no file takes those of another away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "PascalCase")]
pub struct Hooks {
    /// A process opened a session. Words of a hook reach the model with the next prompt.
    #[schemars(title = "Session start", extend("x-live" = true, "x-strict" = true))]
    pub session_start: Vec<Hook>,
    /// A process leaves a session in good order. All hooks together have 15 seconds.
    #[schemars(title = "Session end", extend("x-live" = true, "x-strict" = true))]
    pub session_end: Vec<Hook>,
    /// Words of the user are about to reach the model. A hook can keep them from it, or add words.
    #[schemars(title = "Prompt", extend("x-live" = true, "x-strict" = true))]
    pub user_prompt_submit: Vec<Hook>,
    /// A call that permissions let through is about to be made. A hook can deny it, or have a person
    /// asked; it can allow nothing.
    #[schemars(title = "Before a tool call", extend("x-live" = true, "x-strict" = true))]
    pub pre_tool_use: Vec<Hook>,
    /// A call ended well. Words of a hook reach the model with the call's result.
    #[schemars(title = "After a tool call", extend("x-live" = true, "x-strict" = true))]
    pub post_tool_use: Vec<Hook>,
    /// A call ran and failed. Words of a hook reach the model with the call's result.
    #[schemars(title = "After a failed tool call", extend("x-live" = true, "x-strict" = true))]
    pub post_tool_use_failure: Vec<Hook>,
    /// The model says that it is done. A hook can make it go on.
    #[schemars(title = "Stop", extend("x-live" = true, "x-strict" = true))]
    pub stop: Vec<Hook>,
    /// A turn ended because something failed or a limit was reached.
    #[schemars(title = "Failed stop", extend("x-live" = true, "x-strict" = true))]
    pub stop_failure: Vec<Hook>,
    /// The conversation is about to be compacted. A hook can keep it from that, or say what matters.
    #[schemars(title = "Before a compaction", extend("x-live" = true, "x-strict" = true))]
    pub pre_compact: Vec<Hook>,
    /// The conversation was compacted.
    #[schemars(title = "After a compaction", extend("x-live" = true, "x-strict" = true))]
    pub post_compact: Vec<Hook>,
}

impl Hooks {
    /// The list of an event.
    pub(crate) fn list_mut(&mut self, event: HookEvent) -> &mut Vec<Hook> {
        match event {
            HookEvent::SessionStart => &mut self.session_start,
            HookEvent::SessionEnd => &mut self.session_end,
            HookEvent::UserPromptSubmit => &mut self.user_prompt_submit,
            HookEvent::PreToolUse => &mut self.pre_tool_use,
            HookEvent::PostToolUse => &mut self.post_tool_use,
            HookEvent::PostToolUseFailure => &mut self.post_tool_use_failure,
            HookEvent::Stop => &mut self.stop,
            HookEvent::StopFailure => &mut self.stop_failure,
            HookEvent::PreCompact => &mut self.pre_compact,
            HookEvent::PostCompact => &mut self.post_compact,
        }
    }
}

/// One hook: a command or an address. It reads JSON and may answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// For events about a tool call: the exact name of a tool, such names with `|` between them, or
    /// `*` for every tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(title = "Tools")]
    pub matcher: Option<String>,
    /// A shell line. It runs in the session's folder and reads the JSON on standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(title = "Command")]
    pub command: Option<String>,
    /// Where the JSON is sent with POST. Redirects are not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(title = "URL")]
    pub url: Option<String>,
    /// Seconds it may take.
    #[serde(default = "timeout")]
    #[schemars(title = "Timeout", range(min = 1, max = 3600))]
    pub timeout_secs: u64,
}

impl Hook {
    /// The hook with the login of its URL masked.
    pub(crate) fn without_login(&self) -> Self {
        let url = self.url.as_deref().map(without_login);
        Self { url, ..self.clone() }
    }
}

fn timeout() -> u64 {
    30
}
