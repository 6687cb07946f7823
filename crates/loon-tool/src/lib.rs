//! The native tools, one a file, and the one write path for files.
//!
//! A tool declares what a call would touch ([`NativeTool::subjects`]) and makes the call; whether
//! it may is the gate's business. This crate knows no session.

pub mod apply_patch;
pub mod bash;
mod diff;
pub mod edit;
pub mod file_info;
#[cfg(test)]
mod fixture;
pub mod glob;
pub mod grep;
pub mod list_directory;
mod native;
mod nearby;
mod open;
pub mod read;
pub mod read_many;
mod snapshot;
pub mod text;
pub mod tree;
mod walk;
pub mod workspace;
mod write;
pub mod write_path;

pub use native::NativeTool;
pub use workspace::Workspace;

use std::sync::Arc;

use loon_exec::Spawner;
use loon_kernel::Tool;
use native::Native;

/// All native tools over one workspace, in the stable order in which models are told of them.
/// Commands are started by `spawner`.
pub fn native_tools(workspace: &Arc<Workspace>, spawner: &Spawner) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Native::new(bash::Bash::new(workspace, spawner))),
        Arc::new(Native::new(read::Read::new(workspace))),
        Arc::new(Native::new(read_many::ReadMany::new(workspace))),
        Arc::new(Native::new(list_directory::ListDirectory::new(workspace))),
        Arc::new(Native::new(tree::Tree::new(workspace))),
        Arc::new(Native::new(glob::Glob::new(workspace))),
        Arc::new(Native::new(grep::Grep::new(workspace))),
        Arc::new(Native::new(file_info::FileInfo::new(workspace))),
        Arc::new(Native::new(edit::Edit::new(workspace))),
        Arc::new(Native::new(write::Write::new(workspace))),
        Arc::new(Native::new(apply_patch::ApplyPatch::new(workspace))),
    ]
}
