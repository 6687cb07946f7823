//! Journal, fold, fences, executions and the one gate every effect passes.
//!
//! This crate knows records and effects. It must never know a wire format, what a tool means, the
//! files of a project or a front end.

mod blocking;
pub mod clock;
pub mod error;
pub mod execution;
pub mod flow;
pub mod fold;
pub mod gate;
pub mod isolated;
pub mod native_tool;
pub mod placement;
pub mod port;
pub mod recorder;
pub mod remote;
pub mod route;
pub mod schedule;
pub mod secrets;
pub mod store;
pub mod supervision;
pub mod tree;

pub use clock::{ManualClock, SystemClock};
pub use error::KernelError;
pub use execution::{
    CancelMode, Cancelled, Execution, Opening, ResumeOptions, StartOptions, cancel_by_id, end_of,
};
pub use flow::{
    Flow, FlowContext, FlowError, FlowRunner, Flows, RunError, Signal, SignalError, Start,
};
pub use fold::{EffectRecord, ExecutionState, Resources};
pub use gate::{
    ApprovalAnswer, Approver, Authority, AuthorityRequest, CallHooks, EffectFailure, Gate,
    GateOptions, HookedCall, HooksSay, ModelEffect, ModelOutcome, Pricing, RetryPolicy, StepEffect,
    StepOutput, Terms, ToolEffect, Verdict,
};
pub use isolated::{IsolatedError, IsolatedTool};
pub use native_tool::{NativeTool, native_tool};
pub use placement::{
    CancelRequest, ChildDispatcher, Dispatch, DispatchError, Dispatcher, FromWorker,
    LocalDispatcher, Settled, SupervisingDispatcher, ToWorker,
};
pub use port::{Admitted, EffectContext, Follow, Model, Progress, Tool, ToolOutput};
pub use recorder::Recorder;
pub use remote::{NoRemoteTools, RemoteTools, ToolList};
pub use route::{Member, Route};
pub use schedule::{Cron, CronError, Schedule, occurrence_id};
pub use secrets::Redactor;
pub use store::{
    Changes, Damage, FileStore, Holder, Imported, JournalStore, JournalWriter, LEFT_OUT,
    MemoryStore, Opened, Place, PlacedRecords, Repaired, Stamp, StopRequest, StoreError, Verified,
    make_private_folder,
};
pub use supervision::{
    CallEnd, CircuitOpen, CircuitPolicy, Circuits, SupervisionPolicy, supervised,
};
pub use tree::{Budget, QuotaAnswer, QuotaDesk, Tree};
