//! The context window as data: what fills it, and what a compaction left of a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ItemId;
use crate::money::{Cost, Usage};
use crate::time::At;

/// What fills the context window, in estimated tokens. The parts add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContextParts {
    /// The system text without the parts below.
    pub system: u64,
    /// Guidance files.
    pub guidance: u64,
    /// Descriptions of tools.
    pub tools: u64,
    /// The catalog of skills, and skills kept through a compaction.
    pub skills: u64,
    /// Goal, checklist, tasks and notes.
    pub record: u64,
    /// What a compaction left of the older conversation.
    pub handoff: u64,
    /// Words of the user, and of the runtime on the user's side.
    pub user: u64,
    /// Words of the model and the calls it made.
    pub assistant: u64,
    /// Reasoning.
    pub thinking: u64,
    /// Results of calls.
    pub results: u64,
    /// Pictures.
    pub images: u64,
}

impl ContextParts {
    /// The parts by name, in the order in which they are shown.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("system", self.system),
            ("guidance", self.guidance),
            ("tools", self.tools),
            ("skills", self.skills),
            ("record", self.record),
            ("handoff", self.handoff),
            ("user", self.user),
            ("assistant", self.assistant),
            ("thinking", self.thinking),
            ("results", self.results),
            ("images", self.images),
        ]
    }

    /// The same parts, each put through `change`.
    #[must_use]
    pub fn map(self, change: impl Fn(u64) -> u64) -> Self {
        Self {
            system: change(self.system),
            guidance: change(self.guidance),
            tools: change(self.tools),
            skills: change(self.skills),
            record: change(self.record),
            handoff: change(self.handoff),
            user: change(self.user),
            assistant: change(self.assistant),
            thinking: change(self.thinking),
            results: change(self.results),
            images: change(self.images),
        }
    }

    /// All parts together.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, tokens)| tokens).fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// What every request has, however short the conversation is.
    pub fn fixed(&self) -> u64 {
        self.system.saturating_add(self.guidance).saturating_add(self.tools)
    }
}

/// What a compaction left of the conversation before it. Later requests are made of this, of the
/// items from `kept_from` on, and of the working record; everything older stays in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compaction {
    /// The first item that is still sent as it is; absent if none before the compaction is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<ItemId>,
    /// What the model wrote of the part that is no longer sent; absent if only long texts were cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<String>,
    /// Texts of the active skills as they were then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// What went on beside the conversation: processes and agents, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<String>,
    /// Texts of the kept items that are longer than so many bytes are sent without their middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_texts: Option<u64>,
    /// The same for the user's newest messages, which otherwise are sent word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_prompts: Option<u64>,
    /// Estimated tokens of the next request before it.
    pub tokens_before: u64,
    /// Estimated tokens of the next request after it.
    pub tokens_after: u64,
    /// Model requests it took.
    pub requests: u32,
    /// Tokens of these requests.
    pub usage: Usage,
    /// Money of these requests.
    pub cost: Cost,
    /// `provider/model` that wrote the handoff.
    pub model: String,
    /// Nobody asked for it: the context was about to be full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
    /// What the user asked to give most room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// When.
    pub at: At,
}
