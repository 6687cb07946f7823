//! Journal, fold, fences, executions and the one gate every effect passes.
//!
//! This crate knows records and effects. It must never know a wire format, what a tool means, the
//! files of a project or a front end.

pub mod port;

pub use port::{Admitted, EffectContext, Model, Progress, Tool, ToolOutput};
