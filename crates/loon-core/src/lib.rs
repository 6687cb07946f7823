//! The session: turn loop, prompt, guidance, steering, and the [`Runtime`] that both front ends
//! talk to.
//!
//! Models, tools and settings are handed in; this crate imports none of them, reads neither
//! environment nor home, and never prints.

pub mod approval;
pub mod authority;
mod budget;
mod catalog;
mod compaction;
pub mod conversation;
mod custom;
pub mod deps;
mod estimate;
mod exposure;
mod frontmatter;
mod guidance;
pub mod hooks;
pub mod index;
mod limits;
mod load_skill;
mod looks;
mod ongoing;
mod profile;
mod prompt;
mod receipt;
mod remote;
mod repeat;
pub mod replay;
mod rewind;
mod runtime;
mod session;
pub mod sessions;
mod shown_record;
mod skills;
mod stream;
mod structured;
mod subagent;
mod text_file;
mod tool_search;
mod turn;
mod ultra;

pub use authority::PermissionAuthority;
pub use catalog::{CatalogEntry, tool_catalog};
pub use conversation::Conversation;
pub use custom::opening_command;
pub use deps::{Dependencies, Given, Models, RuleKeeper, SessionOptions, Update, Updates};
pub use guidance::{guidance_sources, hidden_from_reading};
pub use hooks::{HookPoster, Hooks, LiveHooks, Posted};
pub use index::SessionIndex;
pub use limits::{ContextLimits, Limits};
pub use runtime::{Runtime, RuntimeError, SessionChoice};
pub use subagent::Worktrees;
pub use ultra::UltraLoop;
