//! Permission by parse: shell lines, paths and URLs become subjects, rules become decisions with
//! reasons. Pure: runs and reads nothing.
//!
//! [`Policy::decide`] takes what a call would touch and says, part by part, what happens and why.
//! The order is deny, ask, allow, mode default, over the rules of all sources together. A call is
//! allowed only if every part of it is.
//!
//! Where no rule speaks:
//!
//! | mode | allowed | otherwise |
//! |---|---|---|
//! | default | reading inside the workspace; shell lines of programs that only look (`ls`, `cat`, `rg`, `git status`, ..), every word known, no file written, no file outside the workspace named | asked |
//! | auto | that, and writing inside the write roots, but not what Git runs by itself | asked |
//! | bypass | everything, except what is not understood while a deny or ask rule could be hidden in it | asked |
//! | plan | reading, the session's own books | denied, whatever the rules say; network as in default |
//!
//! In every mode a write to a settings file is asked, and no rule changes that.
//!
//! An allow rule for a command does not match through a wrapper such as `timeout` unless it names
//! what the wrapper runs, nor over assignments that could name a program, nor over substitutions;
//! deny and ask rules match through all of these. Of `git`, options before the sub-command are
//! passed over by strict rules and not covered by allow rules.
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

pub use explain::{ExplainedPart, Explanation, explain, rule_words};
pub use policy::{About, Judgement, Part, Policy, Reason, Remedy, Request};

/// Gives a path with the links of its existing part resolved.
pub type Resolve<'a> = dyn Fn(&std::path::Path) -> std::path::PathBuf + 'a;
