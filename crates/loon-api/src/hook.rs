//! Lifecycle hooks as data: when one fires, for which tools, and what it is.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A moment in the life of a session at which hooks fire.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum HookEvent {
    /// A process opened the session.
    SessionStart,
    /// The process leaves the session in good order.
    SessionEnd,
    /// Words of the user are about to reach the model.
    UserPromptSubmit,
    /// A tool call that permissions let through is about to be made.
    PreToolUse,
    /// A tool call ended well, and so did the program it ran, if it ran one.
    PostToolUse,
    /// A tool call ran and failed, or its program ended with another status than 0.
    PostToolUseFailure,
    /// The model says that it is done.
    Stop,
    /// A turn ended because something failed or a limit was reached.
    StopFailure,
    /// The conversation is about to be compacted.
    PreCompact,
    /// The conversation was compacted.
    PostCompact,
}

impl HookEvent {
    /// All of them, in the order of a session.
    pub const ALL: [Self; 10] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::Stop,
        Self::StopFailure,
        Self::PreCompact,
        Self::PostCompact,
    ];

    /// Its name in settings and in what a hook reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::Stop => "Stop",
            Self::StopFailure => "StopFailure",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
        }
    }

    /// True if it is about one call of a tool, so that a matcher has a name to look at.
    pub fn is_about_tool(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure)
    }

    /// True if a hook without an answer holds up what it was asked about.
    pub fn fails_closed(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::PreToolUse)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No event has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no hook event {0:?}; there are {names}", names = HookEvent::ALL.map(HookEvent::name).join(", "))]
pub struct UnknownHookEvent(String);

impl FromStr for HookEvent {
    type Err = UnknownHookEvent;

    fn from_str(text: &str) -> Result<Self, UnknownHookEvent> {
        let found = Self::ALL.into_iter().find(|event| event.name() == text);
        found.ok_or_else(|| UnknownHookEvent(text.to_owned()))
    }
}

/// Which tools a hook is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HookMatcher {
    /// Every tool.
    #[default]
    Any,
    /// The tools with these exact names.
    Tools(Vec<String>),
}

/// A text that matches nothing anybody can have meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the matcher {0:?} names no tool; it is `*`, the exact name of a tool, or such names with `|` between them"
)]
pub struct WrongMatcher(String);

impl HookMatcher {
    /// True if a hook with this matcher is about a call of `tool`.
    pub fn matches(&self, tool: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Tools(names) => names.iter().any(|name| name == tool),
        }
    }
}

impl FromStr for HookMatcher {
    type Err = WrongMatcher;

    fn from_str(text: &str) -> Result<Self, WrongMatcher> {
        if text.trim() == "*" {
            return Ok(Self::Any);
        }
        let names: Vec<String> = text.split('|').map(|name| name.trim().to_owned()).collect();
        // A pattern would match no tool, and a guard with it would guard nothing.
        let is_name = |name: &String| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.:/".contains(c))
        };
        if names.iter().all(is_name) {
            return Ok(Self::Tools(names));
        }
        Err(WrongMatcher(text.to_owned()))
    }
}

impl fmt::Display for HookMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Tools(names) => f.write_str(&names.join("|")),
        }
    }
}

/// What a hook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAction {
    /// A shell line, run by `bash -c` in the session's folder.
    Command(String),
    /// Where its input is sent.
    Url(String),
}

impl fmt::Display for HookAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(line) => f.write_str(line),
            Self::Url(url) => f.write_str(url),
        }
    }
}

/// One hook of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookDefinition {
    /// When it fires.
    pub event: HookEvent,
    /// For which tools.
    pub matcher: HookMatcher,
    /// What it is.
    pub action: HookAction,
    /// How long it may take.
    pub timeout: Duration,
    /// Where it is defined, for people.
    pub origin: String,
}

impl HookDefinition {
    /// What its effects are called in the journal.
    pub fn target(&self) -> String {
        format!("{}: {}", self.event, self.action)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn h186_the_ten_events_have_their_names() {
        for event in HookEvent::ALL {
            assert_eq!(event.name().parse(), Ok(event));
            assert_eq!(serde_json::to_value(event).unwrap(), event.name());
        }
        assert!("preToolUse".parse::<HookEvent>().is_err());
    }

    #[test]
    fn h192_a_matcher_is_a_name_a_star_or_names() {
        let matches = |text: &str, tool| text.parse::<HookMatcher>().unwrap().matches(tool);
        assert!(matches("bash", "bash") && !matches("bash", "bash_output"));
        assert!(!matches("bash", "Bash"));
        assert!(matches("*", "anything"));
        assert!(matches("write | edit|apply_patch", "edit") && !matches("write|edit", "read"));
        for wrong in ["", " ", "|", "bash|", ".*|", "mcp__.*", "wri te"] {
            assert!(wrong.parse::<HookMatcher>().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn names_match_exactly_themselves(
            names in prop::collection::vec("[a-z_]{1,8}", 1..5), other in "[a-z_]{1,8}",
        ) {
            let matcher: HookMatcher = names.join("|").parse().unwrap();
            prop_assert_eq!(matcher.to_string().parse::<HookMatcher>().unwrap(), matcher.clone());
            prop_assert!(names.iter().all(|name| matcher.matches(name)));
            prop_assert_eq!(matcher.matches(&other), names.contains(&other));
        }

        #[test]
        fn no_text_makes_a_matcher_panic(text in ".*") {
            let _ = text.parse::<HookMatcher>();
        }
    }
}
