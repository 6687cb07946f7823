//! The native tools, one a file, and the one write path for files.
//!
//! A tool declares what a call would touch ([`NativeTool::subjects`]) and makes the call; whether
//! it may is the gate's business. This crate knows no session.

pub mod apply_patch;
pub mod bash;
mod blocking;
mod diff;
pub mod edit;
mod environment;
pub mod file_compare;
pub mod file_info;
pub mod find_symbol;
#[cfg(test)]
mod fixture;
pub mod glob;
pub mod grep;
mod json;
pub mod json_edit;
pub mod list_directory;
mod nearby;
mod notebook;
pub mod notebook_edit;
pub mod notebook_read;
mod open;
pub mod project_info;
pub mod read;
pub mod read_json;
pub mod read_many;
mod snapshot;
pub mod text;
pub mod tree;
mod walk;
mod whole;
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
        native_tool(project_info::ProjectInfo::new(workspace, spawner)),
        native_tool(find_symbol::FindSymbol::new(workspace)),
        native_tool(file_compare::FileCompare::new(workspace)),
        native_tool(read_json::ReadJson::new(workspace)),
        native_tool(json_edit::JsonEdit::new(workspace)),
        native_tool(notebook_read::NotebookRead::new(workspace)),
        native_tool(notebook_edit::NotebookEdit::new(workspace)),
    ]
}
