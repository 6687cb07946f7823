//! Events: everything that happens, in order, as one stream that every front end reads.
//!
//! A *record* is an event with a place in the journal: it carries `seq`. The others (deltas, meter,
//! pages) are passing and carry none. `type` is dotted lower case.

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::error::ErrorInfo;
use crate::id::{ApprovalId, EffectKey, ExecutionId, ItemId, Seq, TurnNumber};
use crate::item::Item;
use crate::money::{Cost, Usage};
use crate::permission::{Approval, Mode, PermissionRule};
use crate::record::{RecordChange, WorkingRecord};
use crate::session::{ExecutionKind, Outcome, SessionSummary, TurnStatus};
use crate::subagent::{SubagentStatus, WorktreeState};
use crate::time::At;

/// An event with its place in the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// Version of the vocabulary.
    pub v: u32,
    /// Place in the journal; absent for passing events.
    pub seq: Option<Seq>,
    /// When it happened.
    pub at: At,
    /// The execution it belongs to.
    pub exec: ExecutionId,
    /// The turn it belongs to, if any.
    pub turn: Option<TurnNumber>,
    /// What happened.
    pub event: AgentEvent,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(default)]
    v: u32,
    seq: Option<Seq>,
    at: At,
    exec: ExecutionId,
    turn: Option<TurnNumber>,
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("v", &self.v)?;
        if let Some(seq) = self.seq {
            map.serialize_entry("seq", &seq)?;
        }
        map.serialize_entry("at", &self.at)?;
        map.serialize_entry("exec", &self.exec)?;
        if let Some(turn) = self.turn {
            map.serialize_entry("turn", &turn)?;
        }
        map.serialize_entry("type", self.event.kind())?;
        self.event.serialize_fields(&mut map)?;
        map.end()
    }
}

impl Envelope {
    /// Reads one line of a stream or journal. Members that are not known are passed over; an event
    /// type that is not known comes back as [`AgentEvent::Unknown`].
    pub fn parse(line: &str) -> Result<Self, serde_json::Error> {
        let head: Head<'_> = serde_json::from_str(line)?;
        let event = AgentEvent::parse(&head.kind, line)?;
        Ok(Self { v: head.v, seq: head.seq, at: head.at, exec: head.exec, turn: head.turn, event })
    }
}

macro_rules! events {
    ($( $(#[$meta:meta])* $name:ident = $kind:literal { $( $(#[$fmeta:meta])* $field:ident : $ty:ty, )* } )*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
            pub struct $name { $( $(#[$fmeta])* pub $field: $ty, )* }

            impl From<$name> for AgentEvent {
                fn from(event: $name) -> Self {
                    Self::$name(event)
                }
            }
        )*

        /// What happened.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AgentEvent {
            $( $(#[$meta])* $name($name), )*
            /// An event of a type this version does not know. Kept in the journal, passed over.
            Unknown {
                /// Its `type`.
                kind: String,
            },
        }

        impl AgentEvent {
            /// The `type` of every event this version knows.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The event's `type`.
            pub fn kind(&self) -> &str {
                match self {
                    $( Self::$name(_) => $kind, )*
                    Self::Unknown { kind } => kind,
                }
            }

            fn parse(kind: &str, line: &str) -> Result<Self, serde_json::Error> {
                match kind {
                    $( $kind => serde_json::from_str::<$name>(line).map(Self::$name), )*
                    other => Ok(Self::Unknown { kind: other.to_owned() }),
                }
            }

            fn serialize_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $( Self::$name(event) => {
                        let $name { $($field),* } = event;
                        $( if let Some(value) = Field::present($field) {
                            map.serialize_entry(stringify!($field), value)?;
                        } )*
                    } )*
                    Self::Unknown { .. } => {}
                }
                Ok(())
            }

            /// JSON Schemas of all events, as `(type, schema)`.
            pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$( ($kind, generator.subschema_for::<$name>()) ),*]
            }
        }
    };
}

/// Fields that are left out of the line when they say nothing.
trait Field {
    fn present(&self) -> Option<&Self>;
}

macro_rules! always_present {
    ($($ty:ty),* $(,)?) => { $( impl Field for $ty {
        fn present(&self) -> Option<&Self> { Some(self) }
    } )* };
}

always_present! {
    String, u32, u64, f64, bool, Mode, ExecutionKind, TurnStatus, Outcome, Item, ItemId, EffectKey,
    ExecutionId, ApprovalId, Approval, Usage, Cost, EffectKind, EffectStatus, DeltaKind, Decision,
    NoticeLevel, ErrorInfo, SessionState, RecordChange, SubagentStatus,
}

impl Field for WorkingRecord {
    fn present(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }
}

impl<T> Field for Option<T> {
    fn present(&self) -> Option<&Self> {
        self.is_some().then_some(self)
    }
}

impl<T> Field for Vec<T> {
    fn present(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }
}

/// What an effect touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// A request to a model.
    Model,
    /// A tool call.
    Tool,
}

/// How an effect ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectStatus {
    /// It ran and gave an answer (a tool's own failure is an answer too).
    Completed,
    /// It ran and gave none.
    Failed,
    /// It was not begun: quota, authority or a person said no.
    Denied,
    /// It was stopped on the way.
    Aborted,
    /// Its timeout or the execution's deadline passed.
    TimedOut,
    /// A former process began it and its end was never recorded.
    Unknown,
}

/// What a delta adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// The text of an assistant message.
    Text,
    /// The text of a thinking item.
    Thinking,
    /// The arguments of a tool call, as raw JSON text.
    Arguments,
    /// The live output of a running tool.
    Output,
}

/// How an approval was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call may run.
    Approved,
    /// It must not.
    Denied,
    /// Nobody is there to ask, so it must not.
    NobodyToAsk,
    /// The turn ended first.
    Withdrawn,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is not as it should be.
    Warning,
}

/// Where a session stands when a front end opens it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionState {
    /// Folder it works in.
    pub cwd: String,
    /// `provider/model`; absent if none is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Permission mode.
    pub mode: Mode,
    /// Checked-out branch, if the folder is a Git worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// First words of its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It was there before.
    pub resumed: bool,
    /// The newest items, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    /// There are older items; ask with the `history` command.
    #[serde(default)]
    pub more: bool,
    /// Prompts that wait for the end of the running turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<String>,
    /// Tokens used so far.
    #[serde(default)]
    pub usage: Usage,
    /// Money spent so far.
    #[serde(default)]
    pub cost: Cost,
    /// Checklist, tasks, notes and goal.
    #[serde(default, skip_serializing_if = "WorkingRecord::is_empty")]
    pub record: WorkingRecord,
}

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
        /// Name of the model or tool.
        target: String,
        /// The tool call's item.
        #[serde(default)]
        item: Option<ItemId>,
        /// Milliseconds it may take, from this record on.
        #[serde(default)]
        timeout_ms: Option<u64>,
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
        /// It works beside the session, which does not wait for it.
        background: bool,
        /// The Git worktree it works in, if it has one of its own.
        #[serde(default)]
        worktree: Option<String>,
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
        /// The Git worktree it leaves behind.
        #[serde(default)]
        worktree: Option<WorktreeState>,
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
    /// Passing: the answer to `list_models`.
    ModelsListed = "models.listed" {
        /// `provider/model` names.
        #[serde(default)]
        models: Vec<String>,
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
