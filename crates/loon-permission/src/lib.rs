//! Permission by parse: shell lines, paths and URLs become subjects, rules become decisions with
//! reasons. Pure: runs and reads nothing.
//!
//! [`Policy::decide`] takes what a call would touch and says, part by part, what happens and why.
//! The order is deny, ask, allow, mode default, over the rules of all sources together. A call is
//! allowed only if every part of it is.
//!
//! A rule for a command is no sandbox: it says which program may start with which first words, not
//! what that program then does. Path rules speak of the paths a call names, not of every file a
//! program may touch.

mod always;
mod explain;
mod git;
mod host;
mod known;
mod line;
mod path;
mod policy;
mod rules;
pub mod shell;
mod wrapper;

pub use explain::{ExplainedPart, Explanation, explain};
pub use policy::{About, Judgement, Part, Policy, Reason, Remedy, Request};

/// Gives a path with the links of its existing part resolved.
pub type Resolve<'a> = dyn Fn(&std::path::Path) -> std::path::PathBuf + 'a;
