//! The native tools, one a file, and the one write path for files.
//!
//! A tool declares what a call would touch ([`NativeTool::subjects`]) and makes the call; whether
//! it may is the gate's business. This crate knows no session.

mod diff;
mod native;
mod snapshot;
pub mod workspace;
pub mod write_path;

pub use native::NativeTool;
pub use workspace::Workspace;

use std::sync::Arc;

use loon_kernel::Tool;

/// All native tools over one workspace, in the stable order in which models are told of them.
pub fn native_tools(_workspace: &Arc<Workspace>) -> Vec<Arc<dyn Tool>> {
    Vec::new()
}
