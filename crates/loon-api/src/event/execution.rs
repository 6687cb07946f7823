//! Events of executions, of their flows and of what they use up.

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::AgentEvent;
use super::define::{EventType, Field};
use super::parts::{CircuitState, Decision, NoticeLevel};
use crate::budget::{Bounds, ReachedBound};
use crate::error::ErrorInfo;
use crate::id::{EffectKey, ExecutionId};
use crate::money::{Cost, Usage};
use crate::session::{ExecutionKind, Outcome};
use crate::time::At;

event_types! {
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
