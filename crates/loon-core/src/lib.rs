//! The session: turn loop, prompt, guidance, steering, and the [`Runtime`] that both front ends
//! talk to.
//!
//! Models, tools and settings are handed in; this crate imports none of them, reads neither
//! environment nor home, and never prints.

pub mod approval;
pub mod authority;
pub mod conversation;
pub mod deps;
mod estimate;
mod guidance;
mod limits;
mod prompt;
mod rewind;
mod runtime;
mod session;
pub mod sessions;
mod stream;
mod structured;
mod turn;

pub use authority::PermissionAuthority;
pub use conversation::Conversation;
pub use deps::{Dependencies, Given, Models, RuleKeeper, SessionOptions, Update, Updates};
pub use limits::Limits;
pub use runtime::{Runtime, RuntimeError, SessionChoice};
