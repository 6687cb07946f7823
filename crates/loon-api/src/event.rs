//! Events: everything that happens, in order, as one stream that every front end reads.
//!
//! A *record* has a place in the journal: it carries `seq`. The others are passing and carry none.

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[macro_use]
mod define;
mod envelope;
mod parts;
mod words;

pub use envelope::Envelope;
pub use parts::{
    CircuitState, Decision, DeltaKind, EffectKind, EffectStatus, NoticeLevel, SessionState,
};

use self::define::Field;
use crate::budget::{Bounds, ReachedBound};
use crate::context::{Compaction, ContextParts};
use crate::error::ErrorInfo;
use crate::guidance::{CustomCommand, GuidanceSource, SkillSummary};
use crate::id::{ApprovalId, EffectKey, ExecutionId, ItemId};
use crate::item::Item;
use crate::mcp::McpServer;
use crate::model::Effort;
use crate::money::{Cost, Usage};
use crate::permission::{Approval, Mode, PermissionRule};
use crate::receipt::Receipt;
use crate::record::{RecordChange, WorkingRecord};
use crate::review::{Review, TurnReview};
use crate::session::{
    ExecutionKind, Outcome, SessionHit, SessionHolder, SessionSummary, TurnStatus,
};
use crate::subagent::{SubagentStatus, SubagentSummary, WorktreeState};
use crate::time::At;

events! {
    /// Record: the execution begins. Always the first.
    ExecutionStarted = "execution.started" {
        /// What sort of work.
        kind: ExecutionKind,
        /// Absolute folder it works in.
        cwd: String,
        /// The execution that started this one.
        #[serde(default)]
        parent: Option<ExecutionId>,
        /// Milliseconds it may be at work, from this record on.
        #[serde(default)]
        deadline_ms: Option<u64>,
        /// Version of Loom that wrote it.
        loon: String,
    }
    /// Record: a process opened the execution again.
    ExecutionResumed = "execution.resumed" {
        /// Effects that a former process began and never ended.
        #[serde(default)]
        unknown: Vec<EffectKey>,
        /// Bytes of a torn last line that were moved to a side file.
        #[serde(default)]
        repaired_bytes: Option<u64>,
    }
    /// Record: a new deadline replaces the former one.
    DeadlineSet = "deadline.set" {
        /// Milliseconds the execution may be at work, from this record on.
        deadline_ms: u64,
    }
    /// Record, terminal: nothing is written after it.
    ExecutionCancelled = "execution.cancelled" {
        /// Why, in the words of who cancelled.
        #[serde(default)]
        reason: Option<String>,
    }
    /// Record: the work of the execution is a flow. Follows its first record at once.
    FlowStarted = "flow.started" {
        /// Name of the flow.
        flow: String,
        /// Version of its code; only this version can go on with it.
        version: u32,
        /// What it was started with.
        input: Value,
    }
    /// Record: a flow decided something from outside its recorded past (a random number, the time);
    /// a replay gets this value again.
    DecisionRecorded = "decision.recorded" {
        /// Its durable name.
        key: EffectKey,
        /// What was decided.
        value: Value,
    }
    /// Record: a flow sleeps. The timer goes on while no process runs the execution.
    TimerSet = "timer.set" {
        /// Its durable name.
        key: EffectKey,
        /// When the sleep is over.
        due: At,
    }
    /// Record: a timer of a sleep or of a suspension was over, and the flow went on.
    TimerFired = "timer.fired" {
        /// The sleep's or the suspension's name.
        key: EffectKey,
    }
    /// Record: a flow waits for a signal from outside; the process may end meanwhile.
    ExecutionSuspended = "execution.suspended" {
        /// Its durable name.
        key: EffectKey,
        /// Name of the signal.
        on: String,
        /// Which of the signals of that name.
        correlation: String,
        /// When the wait ends without one; absent is never.
        #[serde(default)]
        due: Option<At>,
    }
    /// Record: a signal arrived. The oldest wait for it gets it, or else the next one.
    SignalReceived = "signal.received" {
        /// Name of the signal.
        on: String,
        /// Which of the signals of that name.
        correlation: String,
        /// What it brings, as the flow's schema wants it.
        payload: Value,
    }
    /// Record, terminal: a flow came to its end.
    ExecutionCompleted = "execution.completed" {
        /// What it gave.
        output: Value,
    }
    /// Record, terminal: a flow failed.
    ExecutionFailed = "execution.failed" {
        /// Why.
        error: ErrorInfo,
    }
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
    /// Record: a bound of the budget is reached, and an effect of the session or of a child waits
    /// until it is raised or somebody refuses. One question for the whole tree: it ends with
    /// `budget.changed` or `budget.kept`.
    BudgetReached = "budget.reached" {
        /// Which, and what was used.
        reached: ReachedBound,
    }
    /// Record: the bounds from now on. Who waited at a former bound goes on if the new ones let it.
    BudgetChanged = "budget.changed" {
        /// All bounds in force.
        #[serde(default)]
        bounds: Bounds,
        /// Those that were set for this session. They hold beside the settings, whichever is higher,
        /// also after a resume.
        #[serde(default)]
        raised: Bounds,
    }
    /// Record: the bound that was reached stays. Denied: who waited for it was refused. Withdrawn:
    /// nobody waits any more.
    BudgetKept = "budget.kept" {
        /// How it came.
        decision: Decision,
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
    /// Record: the permission mode changed.
    ModeChanged = "mode.changed" {
        /// The new mode.
        mode: Mode,
    }
    /// Record: the model changed.
    ModelChanged = "model.changed" {
        /// `provider/model`.
        model: String,
    }
    /// Record: a user message and all after it left the conversation.
    SessionRewound = "session.rewound" {
        /// The user message.
        to: ItemId,
        /// Its exact text, for the draft.
        text: String,
        /// The working record as it stood before that message.
        #[serde(default)]
        record: WorkingRecord,
    }
    /// Record: this session begins with records of another one, those before this one. What they used
    /// counts there, not here.
    SessionForked = "session.forked" {
        /// The other session.
        from: ExecutionId,
        /// Number of records that both have.
        records: u64,
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
    /// Record: the user changed the working record.
    RecordChanged = "record.changed" {
        /// How.
        change: RecordChange,
    }
    /// Record: a child of the session begins to work on a task.
    SubagentStarted = "subagent.started" {
        /// Its short name in this session.
        id: String,
        /// Name of its profile.
        agent: String,
        /// Its own execution.
        child: ExecutionId,
        /// What it was told.
        task: String,
        /// `provider/model`.
        model: String,
        /// How hard its model should think, where its profile says so.
        #[serde(default)]
        effort: Option<Effort>,
        /// It works beside the session, which does not wait for it.
        background: bool,
        /// The Git worktree it works in, if it has one of its own.
        #[serde(default)]
        worktree: Option<String>,
    }
    /// Passing: how far a child has come, with each of its effects; the answer to `list_subagents`.
    SubagentProgressed = "subagent.progressed" {
        /// It.
        agent: SubagentSummary,
    }
    /// Passing: more of the transcript of the child that is watched.
    SubagentShown = "subagent.shown" {
        /// Its short name in this session.
        id: String,
        /// Items as they now stand, oldest first.
        #[serde(default)]
        items: Vec<Item>,
    }
    /// Record: a child of the session ended.
    SubagentFinished = "subagent.finished" {
        /// Its short name in this session.
        id: String,
        /// Name of its profile.
        agent: String,
        /// Its own execution.
        child: ExecutionId,
        /// How it ended.
        status: SubagentStatus,
        /// Why, unless it completed.
        #[serde(default)]
        error: Option<ErrorInfo>,
        /// Its last words, cut at a bound that the text itself states.
        #[serde(default)]
        report: Option<String>,
        /// Model requests it made.
        steps: u32,
        /// Tokens it used.
        usage: Usage,
        /// Money it cost.
        cost: Cost,
        /// Wall time of its effects in milliseconds.
        #[serde(default)]
        ms: Option<u64>,
        /// Effects it had, without those that were denied.
        #[serde(default)]
        effects: Option<u64>,
        /// The Git worktree it leaves behind.
        #[serde(default)]
        worktree: Option<WorktreeState>,
        /// What all its turns did together.
        #[serde(default)]
        receipt: Option<Receipt>,
    }
    /// Passing: the answer to `preview_rewind`.
    RewindPreviewed = "rewind.previewed" {
        /// The user message.
        to: ItemId,
        /// What would happen to which file, and the diffs; empty if no file would change.
        #[serde(default)]
        detail: Option<String>,
    }
    /// Passing: a front end's first event, and the answer to `open_session`.
    SessionOpened = "session.opened" {
        /// Where the session stands.
        session: SessionState,
    }
    /// Passing: the answer to `history`.
    HistoryPage = "history.page" {
        /// Oldest first.
        #[serde(default)]
        items: Vec<Item>,
        /// There are still older ones.
        more: bool,
    }
    /// Passing: the answer to `list_sessions`.
    SessionsListed = "sessions.listed" {
        /// Newest first.
        #[serde(default)]
        sessions: Vec<SessionSummary>,
    }
    /// Passing: the answer to `search_sessions`.
    SessionsFound = "sessions.found" {
        /// What was looked for.
        query: String,
        /// Best first.
        #[serde(default)]
        hits: Vec<SessionHit>,
    }
    /// Passing: a session cannot be opened to work in it, for another process does. For the session
    /// that is watched: another process works in it from now on.
    SessionHeld = "session.held" {
        /// The session.
        session: ExecutionId,
        /// Who has it.
        holder: SessionHolder,
        /// Who had it until then, if it was taken over.
        #[serde(default)]
        from: Option<SessionHolder>,
    }
    /// Passing: no process works in the watched session any more.
    SessionReleased = "session.released" {
        /// The session.
        session: ExecutionId,
        /// Why nobody can go on in it, if it has come to its end.
        #[serde(default)]
        over: Option<ErrorInfo>,
    }
    /// Passing: the answer to `list_models`.
    ModelsListed = "models.listed" {
        /// `provider/model` names.
        #[serde(default)]
        models: Vec<String>,
    }
    /// Passing: the answer to `list_commands`.
    CommandsListed = "commands.listed" {
        /// By name.
        #[serde(default)]
        commands: Vec<CustomCommand>,
        /// Files that should be commands and are none, each with the reason.
        #[serde(default)]
        unusable: Vec<String>,
    }
    /// Passing: a custom command was not sent.
    CommandRefused = "command.refused" {
        /// The name that was asked for.
        name: String,
        /// It was meant for the running turn.
        #[serde(default)]
        steer: bool,
        /// Why.
        error: ErrorInfo,
    }
    /// Passing: the answer to `list_skills`.
    SkillsListed = "skills.listed" {
        /// The bundled ones first, then the others by name.
        #[serde(default)]
        skills: Vec<SkillSummary>,
        /// Files that should be skills and are none, each with the reason.
        #[serde(default)]
        unusable: Vec<String>,
    }
    /// Passing: the answer to `list_guidance`.
    GuidanceListed = "guidance.listed" {
        /// The path that was asked for, relative to the session's folder if it lies there.
        #[serde(default)]
        path: Option<String>,
        /// The files, those that speak of more before those that speak of less.
        #[serde(default)]
        sources: Vec<GuidanceSource>,
    }
    /// Passing: the answer to `list_mcp`.
    McpListed = "mcp.listed" {
        /// The servers of the settings.
        #[serde(default)]
        servers: Vec<McpServer>,
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
    /// Passing: what the session and its children used so far; after the end of each effect, and when
    /// the bounds change.
    ResourcesUpdated = "resources.updated" {
        /// Input and output tokens.
        tokens: u64,
        /// The same in detail.
        usage: Usage,
        /// Money.
        cost: Cost,
        /// Wall time of all effects in milliseconds.
        ms: u64,
        /// Effects that ended other than by a denial.
        count: u64,
        /// Requests sent to models, repeated ones included.
        requests: u64,
        /// A bound is reached.
        exceeded: bool,
        /// The bounds in force.
        #[serde(default)]
        bounds: Bounds,
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
    /// Passing: a target that failed too often in a row is left alone for a while, tried again, or
    /// trusted again.
    CircuitChanged = "circuit.changed" {
        /// Which target, such as `provider:lab`.
        target: String,
        /// How it is treated from now on.
        state: CircuitState,
        /// When it is tried again, while it is left alone.
        #[serde(default)]
        until: Option<At>,
    }
    /// Passing: something a person should know.
    Notice = "notice" {
        /// How much it matters.
        level: NoticeLevel,
        /// What it is.
        message: String,
        /// What to do about it.
        #[serde(default)]
        hints: Vec<String>,
    }
    /// Passing, terminal: the stream ends. The only event with an `outcome`.
    StreamFinished = "stream.finished" {
        /// How.
        outcome: Outcome,
        /// Exit status of the process.
        exit_code: u32,
        /// Why, unless it completed.
        #[serde(default)]
        error: Option<ErrorInfo>,
        /// The model's last words.
        #[serde(default)]
        message: Option<String>,
        /// Tokens of this stream.
        usage: Usage,
        /// Money of this stream.
        cost: Cost,
    }
}
