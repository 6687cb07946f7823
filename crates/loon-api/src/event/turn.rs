//! Events of turns: what is said, what is done, and what is decided about it.

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::AgentEvent;
use super::define::{EventType, Field};
use super::parts::{Decision, DeltaKind, EffectKind, EffectStatus};
use crate::context::{Compaction, ContextParts};
use crate::error::ErrorInfo;
use crate::id::{ApprovalId, EffectKey, ItemId};
use crate::item::Item;
use crate::money::{Cost, Usage};
use crate::permission::{Approval, Mode, PermissionRule};
use crate::receipt::Receipt;
use crate::review::{Review, TurnReview};
use crate::session::TurnStatus;

event_types! {
    /// Record: a turn begins.
    TurnStarted = "turn.started" {
        /// `provider/model`.
        model: String,
        /// Permission mode.
        mode: Mode,
        /// Checked-out branch, if the folder is a Git worktree.
        #[serde(default)]
        branch: Option<String>,
    }
    /// Record: a turn ended.
    TurnFinished = "turn.finished" {
        /// How.
        status: TurnStatus,
        /// Why, unless it completed.
        #[serde(default)]
        error: Option<ErrorInfo>,
        /// Model requests it made.
        steps: u32,
        /// Tokens of the turn.
        usage: Usage,
        /// Money of the turn.
        cost: Cost,
        /// The `provider/model` names that answered, in the order of their first answer, where a
        /// combo was asked.
        #[serde(default)]
        models: Vec<String>,
        /// What it verifiably did; absent if that is nothing.
        #[serde(default)]
        receipt: Option<Receipt>,
        /// What reviews of its claims came to, if Ultra Loop was on.
        #[serde(default)]
        review: Option<TurnReview>,
    }
    /// Passing: an item begins to arrive.
    ItemStarted = "item.started" {
        /// The item so far.
        item: Item,
    }
    /// Passing: more of an item.
    ItemDelta = "item.delta" {
        /// Which.
        item: ItemId,
        /// What of it.
        of: DeltaKind,
        /// The addition.
        text: String,
    }
    /// Passing: an item that had begun will not come; what had arrived of it is void.
    ItemDropped = "item.dropped" {
        /// Which.
        item: ItemId,
    }
    /// Record: an item as it now stands.
    ItemCompleted = "item.completed" {
        /// The whole item.
        item: Item,
    }
    /// Record: an effect begins.
    EffectStarted = "effect.started" {
        /// Its durable name.
        key: EffectKey,
        /// What it touches.
        kind: EffectKind,
        /// Name of the model or tool, or what the step of a flow or the hook is.
        target: String,
        /// The tool call's item.
        #[serde(default)]
        item: Option<ItemId>,
        /// Milliseconds it may take, from this record on.
        #[serde(default)]
        timeout_ms: Option<u64>,
        /// SHA-256 of the messages of a model request, hexadecimal.
        #[serde(default)]
        request: Option<String>,
    }
    /// Record: an attempt failed and another follows.
    EffectRetried = "effect.retried" {
        /// Which effect.
        key: EffectKey,
        /// Number of the attempt that failed, from 1.
        attempt: u32,
        /// How it failed.
        error: ErrorInfo,
        /// Milliseconds until the next.
        delay_ms: u64,
        /// What the failed attempt used.
        usage: Usage,
    }
    /// Record: a model of a combo gave no answer, and another one is asked in its place.
    EffectRerouted = "effect.rerouted" {
        /// Which effect.
        key: EffectKey,
        /// `provider/model` that gave no answer.
        from: String,
        /// `provider/model` that is asked now.
        to: String,
        /// Why. With `CIRCUIT_OPEN` nothing was sent to `from`.
        error: ErrorInfo,
        /// What all attempts at `from` used. The effect's end counts it too.
        usage: Usage,
        /// What that cost. The effect's end counts it too.
        cost: Cost,
    }
    /// Record: an effect ended.
    EffectFinished = "effect.finished" {
        /// Which effect.
        key: EffectKey,
        /// How.
        status: EffectStatus,
        /// Why, unless it completed.
        #[serde(default)]
        error: Option<ErrorInfo>,
        /// Wall time in milliseconds.
        ms: u64,
        /// What it used; for a tool always nothing.
        usage: Usage,
        /// What it cost.
        cost: Cost,
        /// What it gave, where items do not say it.
        #[serde(default)]
        output: Option<Value>,
    }
    /// Record: a human is asked. Passing where a child of the session asks: the record is in its own
    /// journal, and the answer goes to this stream's runtime all the same.
    ApprovalRequested = "approval.requested" {
        /// What about.
        approval: Approval,
    }
    /// Record, or passing like the request: the decision.
    ApprovalResolved = "approval.resolved" {
        /// Which request.
        approval: ApprovalId,
        /// What was decided.
        decision: Decision,
        /// Words of the person who denied.
        #[serde(default)]
        reason: Option<String>,
        /// The rule that was kept with it.
        #[serde(default)]
        rule: Option<PermissionRule>,
    }
    /// Record: words of the user that wait for the next step or the next turn.
    PromptQueued = "prompt.queued" {
        /// The words, under the id they will have in the transcript when they are a steering
        /// message.
        text: String,
        /// For the running turn rather than the next.
        steer: bool,
    }
    /// Record: a hook kept words of the user from the model. They are in no request.
    PromptBlocked = "prompt.blocked" {
        /// The words.
        text: String,
        /// They were for the running turn, which goes on.
        steer: bool,
        /// Which hook, and why.
        reason: String,
    }
    /// Record: waiting prompts were taken back by the user.
    QueueReturned = "queue.returned" {
        /// Their texts, oldest first.
        #[serde(default)]
        texts: Vec<String>,
    }
    /// Record: Ultra Loop was switched for the session.
    UltraLoopChanged = "ultra.changed" {
        /// Whether it is on now.
        on: bool,
    }
    /// Record: the model claims completion, and a reviewer is asked.
    ReviewStarted = "review.started" {
        /// Which review of the turn, from 1.
        number: u32,
        /// How many there may be.
        of: u32,
        /// `provider/model` that is asked.
        model: String,
    }
    /// Record: what a review came to. Its findings follow as a notice.
    ReviewFinished = "review.finished" {
        /// Which review of the turn.
        number: u32,
        /// What it came to.
        review: Review,
    }
    /// Passing: speed of the running request.
    MeterUpdated = "meter.updated" {
        /// Output tokens so far: thinking, text and arguments together.
        tokens: u64,
        /// Milliseconds since the request was sent.
        ms: u64,
        /// `tokens` counts characters; the provider has not reported.
        estimated: bool,
    }
    /// Passing: how full the context window is.
    ContextEstimated = "context.estimated" {
        /// Estimated tokens of the next request.
        tokens: u64,
        /// The window, if known.
        #[serde(default)]
        capacity: Option<u64>,
        /// The user's own limit, if there is one.
        #[serde(default)]
        limit: Option<u64>,
        /// From where on it is compacted without being asked; absent if nothing is known to go by.
        #[serde(default)]
        threshold: Option<u64>,
        /// What `tokens` are made of.
        #[serde(default)]
        parts: Option<ContextParts>,
    }
    /// Record: the older part of the conversation was replaced by a summary. The item stands in the
    /// transcript after everything the compaction saw; what is above it stays there.
    ContextCompacted = "context.compacted" {
        /// Id of the item.
        item: ItemId,
        /// What is left.
        compaction: Compaction,
    }
    /// Passing: a compaction is under way, and sends a request.
    CompactionProgress = "compaction.progress" {
        /// Which request, from 1.
        request: u32,
        /// How many are known to be needed.
        of: u32,
        /// Nobody asked for it.
        automatic: bool,
    }
    /// Passing: a compaction came to nothing. The conversation is as it was.
    CompactionFailed = "compaction.failed" {
        /// Why.
        error: ErrorInfo,
        /// Nobody had asked for it.
        automatic: bool,
    }
}
