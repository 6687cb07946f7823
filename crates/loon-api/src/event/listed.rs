//! Events that answer a question of a front end.

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

use super::AgentEvent;
use super::define::{EventType, Field};
use crate::error::ErrorInfo;
use crate::guidance::{CustomCommand, GuidanceSource, SkillSummary};
use crate::id::ItemId;
use crate::item::Item;
use crate::mcp::McpServer;
use crate::session::{SessionHit, SessionSummary};

event_types! {
    /// Passing: more of the transcript of the child that is watched.
    SubagentShown = "subagent.shown" {
        /// Its short name in this session.
        id: String,
        /// Items as they now stand, oldest first.
        #[serde(default)]
        items: Vec<Item>,
    }
    /// Passing: the answer to `preview_rewind`.
    RewindPreviewed = "rewind.previewed" {
        /// The user message.
        to: ItemId,
        /// What would happen to which file, and the diffs; empty if no file would change.
        #[serde(default)]
        detail: Option<String>,
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
    /// Passing: the answer to `search_sessions`.
    SessionsFound = "sessions.found" {
        /// What was looked for.
        query: String,
        /// Best first.
        #[serde(default)]
        hits: Vec<SessionHit>,
    }
    /// Passing: the answer to `list_models`.
    ModelsListed = "models.listed" {
        /// `provider/model` names.
        #[serde(default)]
        models: Vec<String>,
    }
    /// Passing: the answer to `list_commands`.
    CommandsListed = "commands.listed" {
        /// By name.
        #[serde(default)]
        commands: Vec<CustomCommand>,
        /// Files that should be commands and are none, each with the reason.
        #[serde(default)]
        unusable: Vec<String>,
    }
    /// Passing: a custom command was not sent.
    CommandRefused = "command.refused" {
        /// The name that was asked for.
        name: String,
        /// It was meant for the running turn.
        #[serde(default)]
        steer: bool,
        /// Why.
        error: ErrorInfo,
    }
    /// Passing: the answer to `list_skills`.
    SkillsListed = "skills.listed" {
        /// The bundled ones first, then the others by name.
        #[serde(default)]
        skills: Vec<SkillSummary>,
        /// Files that should be skills and are none, each with the reason.
        #[serde(default)]
        unusable: Vec<String>,
    }
    /// Passing: the answer to `list_guidance`.
    GuidanceListed = "guidance.listed" {
        /// The path that was asked for, relative to the session's folder if it lies there.
        #[serde(default)]
        path: Option<String>,
        /// The files, those that speak of more before those that speak of less.
        #[serde(default)]
        sources: Vec<GuidanceSource>,
    }
    /// Passing: the answer to `list_mcp`.
    McpListed = "mcp.listed" {
        /// The servers of the settings.
        #[serde(default)]
        servers: Vec<McpServer>,
    }
}
