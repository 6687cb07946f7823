//! Guidance: what files of the project and of the user ask of a model, and how it reached it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a guidance file speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GuidanceScope {
    /// All of the user's work.
    User,
    /// The whole project.
    Project,
    /// A folder and everything below it.
    Folder {
        /// Relative to the session's folder.
        folder: String,
    },
    /// Paths that match a pattern.
    Paths {
        /// The patterns, as they were written.
        patterns: Vec<String>,
        /// The one that matched; absent if none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        matched: Option<String>,
    },
}

impl fmt::Display for GuidanceScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => formatter.write_str("all your work"),
            Self::Project => formatter.write_str("the whole project"),
            Self::Folder { folder } => write!(formatter, "{folder}/"),
            Self::Paths { matched: Some(pattern), .. } => write!(formatter, "paths like {pattern}"),
            Self::Paths { patterns, .. } if patterns.is_empty() => formatter.write_str("no path"),
            Self::Paths { patterns, .. } => write!(formatter, "paths like {}", patterns.join(", ")),
        }
    }
}

/// Guidance that reached the model with the result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Guidance {
    /// The file, relative to the session's folder.
    pub path: String,
    /// What it speaks of.
    pub scope: GuidanceScope,
    /// SHA-256 of the file as far as it was read, hexadecimal.
    pub sha256: String,
    /// Its text, cut at a bound that the text itself states. Absent if another call of the same
    /// answer brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// How a model hears of a guidance file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuidanceState {
    /// It is in every request.
    EachRequest,
    /// It came with a call, and the conversation still has it.
    Given,
    /// It comes with the next call that touches the path, and before anything is changed there.
    Due,
    /// It is about other paths.
    Elsewhere,
    /// It is not used; `reason` says why.
    Unused,
}

impl GuidanceState {
    /// In words that may follow the name of a file.
    pub fn words(self) -> &'static str {
        match self {
            Self::EachRequest => "in every request",
            Self::Given => "given",
            Self::Due => "comes with the next touch",
            Self::Elsewhere => "about other paths",
            Self::Unused => "not used",
        }
    }
}

/// One guidance file as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuidanceSource {
    /// The file, relative to the session's folder if it lies there.
    pub path: String,
    /// What it speaks of.
    pub scope: GuidanceScope,
    /// How the model hears of it.
    pub state: GuidanceState,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Only its beginning is given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Why it is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A custom command as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CustomCommand {
    /// What follows the slash; `folder:name` for one in a folder.
    pub name: String,
    /// What it is for, one line; empty if its file does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What to write behind the name, one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub argument_hint: String,
    /// The file, relative to the session's folder if it lies there.
    pub origin: String,
}

/// A skill as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillSummary {
    /// Its name.
    pub name: String,
    /// When it is of use, one line.
    pub description: String,
    /// `bundled`, or its file.
    pub origin: String,
    /// Where skills of the same name lie that this one outweighs, the strongest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
    /// It is active in the session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub active: bool,
}
