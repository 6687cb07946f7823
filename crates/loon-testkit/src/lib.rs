//! What tests of Loom stand on: a scripted model server on the loopback interface, temporary
//! repositories and homes, a driver for the built `loon`, and a terminal to run it in.
//!
//! Everything here blocks and fails by panicking with what was seen. Waiting is driven by arrival;
//! [`PATIENCE`] only ends a test that would otherwise hang.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test harness reports by panicking"
)]

mod binary;
mod check;
mod driver;
mod home;
mod http;
mod latch;
mod reply;
mod repo;
mod request;
mod screen;
mod server;
mod wire;

use std::time::Duration;

pub use binary::loon_binary;
pub use driver::{Finished, Input, Loon, Running};
pub use home::Home;
pub use latch::Latch;
pub use reply::{
    Reply, call, calls, document, hang_up, plain_json, raw, silence, status, text, thinking,
};
pub use repo::Repo;
pub use request::{Request, ToolAnswer};
pub use screen::{Screen, key};
pub use server::ModelServer;
pub use wire::Wire;

/// How long any wait may take before the test is called failed.
pub const PATIENCE: Duration = Duration::from_mins(1);
