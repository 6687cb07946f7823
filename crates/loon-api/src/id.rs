//! Identifiers. Each is its own type, so that one cannot stand where another belongs.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::hook::HookEvent;

/// Position of a record in its journal: 1 for the first, no gaps.
pub type Seq = u64;

/// Number of a turn in its execution: 1 for the first.
pub type TurnNumber = u32;

/// One run of work: a session, a subagent, a governed run or an agent-artifact run. `UUIDv7`, so
/// ids sort by creation time.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ExecutionId(Uuid);

impl ExecutionId {
    /// A new id for the present moment.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Unix milliseconds at which the id was made, if it is a `UUIDv7`.
    pub fn created_ms(self) -> Option<u64> {
        let (seconds, nanos) = self.0.get_timestamp()?.to_unix();
        Some(seconds * 1000 + u64::from(nanos) / 1_000_000)
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ExecutionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

macro_rules! text_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps an id read from a record or a command.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A visible thing in the transcript. Items are upserts: a later item with the same id
    /// replaces the earlier one. Made of turn, step, kind and index; front ends treat it as opaque.
    ItemId
}

text_id! {
    /// A tool call, under our own id: nine letters and digits, which every provider accepts.
    /// Providers' own ids are mapped at the wire.
    CallId
}

text_id! {
    /// The durable name of one effect within its execution (`t1/s0/model`, `t1/s0/c2`).
    EffectKey
}

text_id! {
    /// One request for a human decision.
    ApprovalId
}

impl CallId {
    /// The id of the `index`-th call of step `step` of turn `turn`. Injective while turn and step
    /// stay under 46,656 and index under 1,296, far above every limit of a session.
    pub fn of(turn: TurnNumber, step: u32, index: u32) -> Self {
        let mut text = String::with_capacity(9);
        text.push('c');
        push_base36(&mut text, turn, 3);
        push_base36(&mut text, step, 3);
        push_base36(&mut text, index, 2);
        Self(text)
    }
}

impl ItemId {
    /// The turn it belongs to, if it is an id of ours.
    pub fn turn(&self) -> Option<TurnNumber> {
        self.0.split_once('.')?.0.parse().ok()
    }

    /// The `index`-th text of the answer of step `step` of turn `turn`.
    pub fn text(turn: TurnNumber, step: u32, index: u32) -> Self {
        Self(format!("{turn}.{step}.m{index}"))
    }

    /// The `index`-th piece of reasoning of that answer.
    pub fn thinking(turn: TurnNumber, step: u32, index: u32) -> Self {
        Self(format!("{turn}.{step}.k{index}"))
    }

    /// The `index`-th tool call of that answer.
    pub fn call(turn: TurnNumber, step: u32, index: u32) -> Self {
        Self(format!("{turn}.{step}.c{index}"))
    }

    /// The `index`-th call that the user asked for after turn `turn`.
    pub fn user_call(turn: TurnNumber, index: u32) -> Self {
        Self(format!("{turn}.a{index}"))
    }

    /// The `index`-th notice of the runtime in turn `turn`.
    pub fn notice(turn: TurnNumber, index: u32) -> Self {
        Self(format!("{turn}.n{index}"))
    }

    /// The `index`-th compaction in turn `turn` or after it.
    pub fn compaction(turn: TurnNumber, index: u32) -> Self {
        Self(format!("{turn}.z{index}"))
    }

    /// The `index`-th message of the user in turn `turn`; 0 is the prompt, later ones steer.
    pub fn user(turn: TurnNumber, index: u32) -> Self {
        Self(format!("{turn}.u{index}"))
    }
}

impl EffectKey {
    /// The model request of step `step` of turn `turn`.
    pub fn model(turn: TurnNumber, step: u32) -> Self {
        Self(format!("t{turn}/s{step}/model"))
    }

    /// The `index`-th tool call of step `step` of turn `turn`.
    pub fn call(turn: TurnNumber, step: u32, index: u32) -> Self {
        Self(format!("t{turn}/s{step}/c{index}"))
    }

    /// The `index`-th call that the user asked for after turn `turn`.
    pub fn user_call(turn: TurnNumber, index: u32) -> Self {
        Self(format!("t{turn}/a{index}"))
    }

    /// The `attempt`-th request, from 0, for the summary of a text with this digest. Named by its
    /// content, so that a summary that was paid for is never asked for twice.
    pub fn summary(digest: &str, attempt: u32) -> Self {
        Self(format!("summary/{digest}/{attempt}"))
    }

    /// The `index`-th hook for an event of what `of` names: a call, a message, the session.
    pub fn hook(of: &str, event: HookEvent, index: usize) -> Self {
        Self(format!("{of}/hook/{event}/{index}"))
    }

    /// True for a hook.
    pub fn is_hook(&self) -> bool {
        self.0.contains("/hook/")
    }

    /// True for the request of a summary.
    pub fn is_summary(&self) -> bool {
        self.0.starts_with("summary/")
    }

    /// The `attempt`-th request, from 0, to review what the model claimed after step `step` of turn
    /// `turn`.
    pub fn review(turn: TurnNumber, step: u32, attempt: u32) -> Self {
        Self(format!("t{turn}/s{step}/review/{attempt}"))
    }

    /// True for a request whose answer is no part of the conversation: a summary or a review.
    pub fn is_aside(&self) -> bool {
        self.is_summary() || self.0.contains("/review/")
    }
}

fn push_base36(out: &mut String, value: u32, width: u32) {
    for place in (0..width).rev() {
        let digit = value / 36u32.pow(place) % 36;
        out.push(char::from_digit(digit, 36).unwrap_or('0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_have_nine_letters_or_digits_and_differ() {
        let first = CallId::of(1, 0, 0);
        assert_eq!(first.as_str(), "c00100000");
        assert_eq!(CallId::of(46_655, 35, 36).as_str(), "czzz00z10");
        assert_ne!(CallId::of(1, 0, 1), first);
    }

    #[test]
    fn execution_ids_sort_by_time_and_read_back() {
        let id = ExecutionId::generate();
        assert_eq!(id.to_string().parse::<ExecutionId>().unwrap(), id);
        assert!(id.created_ms().unwrap() > 1_700_000_000_000);
    }
}
