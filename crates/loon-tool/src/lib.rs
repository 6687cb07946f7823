//! The native tools, one a file, and the one write path for files.
//!
//! A tool declares what a call would touch ([`NativeTool::subjects`]) and makes the call; whether
//! it may is the gate's business. This crate knows no session.

pub mod apply_patch;
pub mod bash;
mod blocking;
mod copy_path;
mod delete_path;
mod diff;
pub mod edit;
mod entry;
mod environment;
pub mod file_info;
#[cfg(test)]
mod fixture;
pub mod glob;
pub mod grep;
pub mod list_directory;
mod make_directory;
mod move_path;
mod nearby;
mod open;
pub mod read;
pub mod read_many;
mod snapshot;
pub mod text;
pub mod tree;
mod undo;
mod walk;
pub mod workspace;
mod write;
pub mod write_path;

pub use environment::Environment;
pub use workspace::Workspace;

use std::sync::Arc;

use loon_kernel::{Tool, native_tool};

/// The native tools of one execution, in the stable order in which models are told of them.
pub fn native_tools(environment: &Environment) -> Vec<Arc<dyn Tool>> {
    let Environment { workspace, spawner, .. } = environment;
    vec![
        native_tool(bash::Bash::new(workspace, spawner)),
        native_tool(read::Read::new(workspace)),
        native_tool(read_many::ReadMany::new(workspace)),
        native_tool(list_directory::ListDirectory::new(workspace)),
        native_tool(tree::Tree::new(workspace)),
        native_tool(glob::Glob::new(workspace)),
        native_tool(grep::Grep::new(workspace)),
        native_tool(file_info::FileInfo::new(workspace)),
        native_tool(edit::Edit::new(workspace)),
        native_tool(write::Write::new(workspace)),
        native_tool(apply_patch::ApplyPatch::new(workspace)),
        native_tool(make_directory::MakeDirectory::new(workspace)),
        native_tool(move_path::MovePath::new(workspace)),
        native_tool(copy_path::CopyPath::new(workspace)),
        native_tool(delete_path::DeletePath::new(workspace)),
        native_tool(undo::Undo::new(workspace)),
    ]
}
