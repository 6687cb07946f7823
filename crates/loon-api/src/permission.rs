//! Permissions as data: modes, rules, what a call would touch, and a request for a decision.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ApprovalId, ItemId};

/// What happens to a call that no rule decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reading is allowed, everything else asks.
    #[default]
    Default,
    /// Writing inside the write roots is allowed too; shell and network ask.
    Auto,
    /// Everything is allowed; deny and ask rules still hold.
    Bypass,
    /// Nothing may change: tools that write or execute are not offered and refused.
    Plan,
}

/// How a call would touch a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathAccess {
    /// Look at it.
    Read,
    /// Make, change, move or remove it.
    Write,
}

/// One thing a call would touch, as the tool declares it. Only the gate decides on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// A file or folder.
    Path {
        /// Read or write.
        access: PathAccess,
        /// Absolute, with `..` and links of its existing part resolved.
        path: PathBuf,
    },
    /// A file, or a folder with everything below it.
    Tree {
        /// Read or write.
        access: PathAccess,
        /// As of `Path`.
        path: PathBuf,
    },
    /// A shell line, run by `bash -c`.
    Command {
        /// The line as it will run.
        line: String,
        /// Absolute folder it runs in.
        cwd: PathBuf,
    },
    /// A URL, already in the form that goes to the client.
    Url {
        /// The serialized URL.
        url: String,
    },
}

/// What a rule says about the calls it matches. Ordered by strength: deny wins.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// May run.
    Allow,
    /// A human decides.
    Ask,
    /// Must not run.
    Deny,
}

/// One permission rule: a tool and at most one matcher. Without a matcher it speaks of every call
/// of the tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRule {
    /// Exact name of a tool, or `*` for every tool.
    pub tool: String,
    /// Matches calls whose paths all (allow) or some (ask, deny) lie at or below this folder. `~`
    /// and paths relative to the workspace root are resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Matches simple commands whose words begin with these words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_prefix: Option<String>,
    /// Matches URLs with exactly this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Where a rule was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct RuleOrigin {
    /// The file, or a word such as `built in`, `session` or `command line`.
    pub source: String,
    /// Line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// All rules in force, each with where it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// In no particular order: strength decides, not position.
    pub rules: Vec<(RuleEffect, PermissionRule, RuleOrigin)>,
    /// Absolute folders inside which mode `auto` may write. The workspace root is the first.
    pub write_roots: Vec<PathBuf>,
}

/// A request for a human decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Names this request.
    pub id: ApprovalId,
    /// The tool call it is about.
    pub item: ItemId,
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// What exactly would happen: the command line, or the diff.
    pub detail: String,
    /// Why it is asked, one sentence per reason, with the rule and its file.
    pub reasons: Vec<String>,
    /// Folder the call runs in, as shown.
    pub cwd: String,
    /// The rule an "always" would write, if one can be written that is neither wider nor narrower
    /// than the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<PermissionRule>,
}
