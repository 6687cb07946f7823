//! What a hook says, read strictly.
//!
//! Its output is words for the model, or one JSON object that says more. An object may stand alone or
//! after lines of anything else. What looks like an object and cannot be read is no answer at all.

use loon_api::HookEvent;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::without_middle;

/// Most bytes of words that go to a model.
const MOST_WORDS: usize = 16 * 1024;

/// Members that make an object an answer.
const DECIDING: [&str; 2] = ["decision", "hookSpecificOutput"];

/// What nothing but an answer has in it.
const MARKS: [&str; 2] = ["\"hookSpecificOutput\"", "\"permissionDecision\""];

/// What a hook says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// Whether what it was asked about may go on.
    #[serde(flatten)]
    pub verdict: HookVerdict,
    /// Words for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// Whether what a hook was asked about may go on. No word allows what something else forbids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum HookVerdict {
    /// It has nothing against it.
    #[default]
    Go,
    /// A person should decide.
    Ask {
        /// Why.
        reason: String,
    },
    /// It should not go on; a turn that wants to end should.
    Block {
        /// Why.
        reason: String,
    },
}

impl HookAnswer {
    /// The answer of a hook that blocks, with what it wrote to standard error.
    pub(super) fn blocking(reason: &str) -> Self {
        let reason = match reason.trim() {
            "" => "It gave no reason.",
            reason => reason,
        };
        Self { verdict: HookVerdict::Block { reason: words(reason) }, context: None }
    }

    /// Reads the output of a hook that ended well.
    pub(super) fn read(event: HookEvent, output: &str) -> Result<Self, Unreadable> {
        let output = output.trim_start_matches('\u{FEFF}').trim();
        let Some((before, object)) = split(output)? else {
            let context = (!output.is_empty()).then(|| words(output));
            return Ok(Self { verdict: HookVerdict::Go, context });
        };
        // From the text: of two members with one name a value would keep the last alone.
        let said: Said = serde_json::from_str(object).map_err(|error| Unreadable::of(&error))?;
        said.answer(event, before)
    }
}

/// Why an output is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreadable(String);

impl Unreadable {
    fn of(error: &serde_json::Error) -> Self {
        let what = if error.is_data() { "is no answer" } else { "cannot be read" };
        Self(format!("its JSON {what}: {error}"))
    }
}

/// The JSON of an answer. A member that is not here may be a misspelt one that meant no.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Said {
    #[serde(default)]
    decision: Option<Decision>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    hook_specific_output: Option<Specific>,
    #[serde(default)]
    r#continue: Option<bool>,
    /// This one and those that follow are for other programs, and change nothing.
    #[serde(default, rename = "stopReason")]
    _stop_reason: IgnoredAny,
    #[serde(default, rename = "suppressOutput")]
    _suppress_output: IgnoredAny,
    #[serde(default, rename = "systemMessage")]
    _system_message: IgnoredAny,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Specific {
    #[serde(default)]
    permission_decision: Option<Permission>,
    #[serde(default)]
    permission_decision_reason: Option<String>,
    #[serde(default)]
    additional_context: Option<String>,
    /// The hook was told.
    #[serde(default, rename = "hookEventName")]
    _hook_event_name: IgnoredAny,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Block,
    /// Means nothing: a hook cannot allow.
    Approve,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Permission {
    Deny,
    Ask,
    /// Means nothing: a hook cannot allow.
    Allow,
}

impl Said {
    fn answer(self, event: HookEvent, before: &str) -> Result<HookAnswer, Unreadable> {
        if self.r#continue == Some(false) {
            let text =
                "`continue: false` means nothing here; say `decision: block`, or exit with 2";
            return Err(Unreadable(text.to_owned()));
        }
        let specific = self.hook_specific_output.unwrap_or_default();
        let reason = specific.permission_decision_reason.as_deref().or(self.reason.as_deref());
        let reason = reason.unwrap_or_default();
        let verdict = match (self.decision, specific.permission_decision) {
            (Some(Decision::Block), _) | (_, Some(Permission::Deny)) => {
                HookAnswer::blocking(reason).verdict
            }
            (_, Some(Permission::Ask)) if event == HookEvent::PreToolUse => {
                HookVerdict::Ask { reason: words(reason) }
            }
            (_, Some(Permission::Ask)) => {
                return Err(Unreadable(format!("nobody can be asked at {event}")));
            }
            (None | Some(Decision::Approve), None | Some(Permission::Allow)) => HookVerdict::Go,
        };
        let parts = [Some(before), specific.additional_context.as_deref()];
        let parts = parts.into_iter().flatten().map(str::trim).filter(|part| !part.is_empty());
        let context = parts.collect::<Vec<_>>().join("\n");
        Ok(HookAnswer { verdict, context: (!context.is_empty()).then(|| words(&context)) })
    }
}

/// The object that an output is or ends with, and what stands before it; nothing if it is words alone.
fn split(output: &str) -> Result<Option<(&str, &str)>, Unreadable> {
    if output.starts_with('{') {
        return Ok(Some(("", output)));
    }
    if matches!(serde_json::from_str(output), Ok(Value::Array(_) | Value::String(_) | Value::Null))
    {
        return Err(Unreadable("its JSON is no object".to_owned()));
    }
    let lines = output.match_indices('\n').map(|(at, _)| at + 1);
    for start in lines.filter(|&at| output[at..].starts_with('{')) {
        match serde_json::from_str::<Value>(&output[start..]) {
            Ok(object) if DECIDING.iter().any(|name| object.get(*name).is_some()) => {
                return Ok(Some((&output[..start], &output[start..])));
            }
            _ => {}
        }
    }
    let decides = |line: &str| line.contains('{') && line.contains("\"decision\"");
    if MARKS.iter().any(|mark| output.contains(mark)) || output.lines().any(decides) {
        let text = "the JSON in it cannot be read; it must begin a line, and end the output";
        return Err(Unreadable(text.to_owned()));
    }
    Ok(None)
}

/// Words of a hook, bounded.
fn words(text: &str) -> String {
    without_middle(plain(text).trim(), MOST_WORDS).into_owned()
}

/// Text without control characters, which neither a terminal nor a model should get.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
