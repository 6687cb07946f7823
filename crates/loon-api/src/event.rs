//! Events: everything that happens, in order, as one stream that every front end reads.
//!
//! A *record* has a place in the journal: it carries `seq`. The others are passing and carry none.

use serde::ser::SerializeMap;

#[macro_use]
mod define;
mod envelope;
mod execution;
mod listed;
mod parts;
mod session;
mod turn;
mod words;

pub use envelope::Envelope;
pub use execution::*;
pub use listed::*;
pub use parts::{
    CircuitState, Decision, DeltaKind, EffectKind, EffectStatus, NoticeLevel, SessionState,
};
pub use session::*;
pub use turn::*;

use self::define::EventType;

agent_event! {
    ExecutionStarted,
    ExecutionResumed,
    DeadlineSet,
    ExecutionCancelled,
    FlowStarted,
    DecisionRecorded,
    TimerSet,
    TimerFired,
    ExecutionSuspended,
    SignalReceived,
    ExecutionCompleted,
    ExecutionFailed,
    TurnStarted,
    TurnFinished,
    ItemStarted,
    ItemDelta,
    ItemDropped,
    ItemCompleted,
    EffectStarted,
    EffectRetried,
    EffectRerouted,
    EffectFinished,
    ApprovalRequested,
    ApprovalResolved,
    BudgetReached,
    BudgetChanged,
    BudgetKept,
    PromptQueued,
    PromptBlocked,
    QueueReturned,
    ModeChanged,
    ModelChanged,
    SessionRewound,
    SessionForked,
    UltraLoopChanged,
    ReviewStarted,
    ReviewFinished,
    RecordChanged,
    SubagentStarted,
    SubagentProgressed,
    SubagentShown,
    SubagentFinished,
    RewindPreviewed,
    SessionOpened,
    HistoryPage,
    SessionsListed,
    SessionsFound,
    SessionHeld,
    SessionReleased,
    ModelsListed,
    CommandsListed,
    CommandRefused,
    SkillsListed,
    GuidanceListed,
    McpListed,
    MeterUpdated,
    ResourcesUpdated,
    ContextEstimated,
    ContextCompacted,
    CompactionProgress,
    CompactionFailed,
    CircuitChanged,
    Notice,
    StreamFinished,
}
