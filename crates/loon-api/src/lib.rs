//! The vocabulary of Loom: ids, commands in, events out, items, messages, usage, money and
//! error codes. Everything here is data that several floors share; nothing here does I/O.
//!
//! What is serialized here is a public contract. The JSON Schema of the event stream is generated
//! from these types (`cargo xtask schema`) and old streams stay readable (`golden` test).

pub mod budget;
pub mod command;
pub mod context;
pub mod error;
pub mod event;
pub mod guidance;
pub mod hook;
pub mod id;
pub mod item;
pub mod mcp;
pub mod message;
pub mod model;
pub mod money;
pub mod network;
pub mod permission;
pub mod receipt;
pub mod record;
pub mod review;
pub mod session;
pub mod subagent;
pub mod text;
pub mod time;
pub mod tool;

pub use budget::{Bounds, ReachedBound};
pub use command::Command;
pub use context::{Compaction, ContextParts};
pub use error::{ErrorCode, ErrorInfo};
pub use event::{AgentEvent, Envelope};
pub use guidance::{
    CustomCommand, Guidance, GuidanceScope, GuidanceSource, GuidanceState, SkillSummary,
};
pub use hook::{HookAction, HookDefinition, HookEvent, HookMatcher};
pub use id::{ApprovalId, CallId, EffectKey, ExecutionId, ItemId, Seq, TurnNumber};
pub use item::{EntryKind, FileChange, FileRead, Item, ItemBody, ToolCallItem, ToolCallStatus};
pub use mcp::{McpProblem, McpServer, McpState};
pub use message::{AnsweredCall, AssistantMessage, AssistantPart, Message, UserPart};
pub use model::{
    Answer, AnswerPart, Effort, ModelError, ModelErrorKind, ModelFeature, ModelInfo, ModelRequest,
    StopReason, Thinking,
};
pub use money::{Cost, Money, Usage};
pub use permission::{
    Approval, Mode, PathAccess, PermissionRule, RuleEffect, RuleOrigin, RuleSet, Subject,
};
pub use receipt::{CheckCounts, CheckKind, ProgramRun, Receipt};
pub use record::{ChecklistStep, RecordChange, Task, WorkStatus, WorkingRecord};
pub use review::{Review, ReviewVerdict, TurnReview};
pub use session::{
    ExecutionKind, Outcome, SessionAccess, SessionHit, SessionHolder, SessionSummary, ToolSet,
    TurnStatus,
};
pub use subagent::{SubagentState, SubagentStatus, SubagentSummary, WorktreeState};
pub use time::{At, BoxFuture, Clock};
pub use tool::{ToolClass, ToolResult, ToolSpec};

/// Version of the event vocabulary, the `v` of every event.
pub const VERSION: u32 = 1;
