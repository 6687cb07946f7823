//! The native tools, one a file, and the one write path for files.
//!
//! A tool declares what a call would touch ([`loon_kernel::NativeTool::subjects`]) and makes the call; whether
//! it may is the gate's business. This crate knows no session.

pub mod apply_patch;
pub mod bash;
mod blocking;
mod checklist;
mod context7;
pub mod context7_query_docs;
pub mod context7_resolve_library;
pub mod context7_search;
mod copy_path;
mod delete_path;
mod diff;
pub mod edit;
mod entry;
mod environment;
pub mod fetch;
pub mod file_compare;
pub mod file_info;
pub mod find_symbol;
#[cfg(test)]
mod fixture;
pub mod git_blame;
pub mod git_branches;
pub mod git_diff;
pub mod git_log;
pub mod git_show;
pub mod git_status;
pub mod glob;
pub mod grep;
mod json;
pub mod json_edit;
pub mod list_directory;
mod make_directory;
mod move_path;
mod nearby;
mod note;
mod notebook;
pub mod notebook_edit;
pub mod notebook_read;
mod open;
pub mod process_list;
pub mod process_poll;
pub mod process_start;
pub mod process_stop;
pub mod process_write;
pub mod processes;
mod project;
pub mod project_info;
pub mod read;
pub mod read_json;
pub mod read_many;
mod repository;
pub mod run_build;
pub mod run_lint;
pub mod run_tests;
mod runner;
mod snapshot;
mod status;
mod task;
pub mod text;
mod todo_read;
mod todo_write;
pub mod tree;
mod undo;
mod update_plan;
mod user_tool;
mod walk;
pub mod web;
mod whole;
pub mod workspace;
mod write;
pub mod write_path;

pub use environment::Environment;
pub use processes::Processes;
pub use user_tool::{UserTool, UserToolConfig, user_tools};
pub use web::{Context7Options, LiveWebOptions, WebOptions};
pub use workspace::Workspace;

use std::sync::Arc;

use loon_kernel::{Tool, native_tool};

/// The native tools of one execution, in the stable order in which models are told of them.
pub fn native_tools(environment: &Environment) -> Vec<Arc<dyn Tool>> {
    let Environment { workspace, spawner, processes, record, web } = environment;
    let mut tools = vec![
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
        native_tool(make_directory::MakeDirectory::new(workspace)),
        native_tool(move_path::MovePath::new(workspace)),
        native_tool(copy_path::CopyPath::new(workspace)),
        native_tool(delete_path::DeletePath::new(workspace)),
        native_tool(undo::Undo::new(workspace)),
        native_tool(process_start::ProcessStart::new(workspace, spawner, processes)),
        native_tool(process_poll::ProcessPoll::new(processes)),
        native_tool(process_write::ProcessWrite::new(processes)),
        native_tool(process_stop::ProcessStop::new(processes)),
        native_tool(process_list::ProcessList::new(processes)),
        native_tool(git_status::GitStatus::new(workspace, spawner)),
        native_tool(git_diff::GitDiff::new(workspace, spawner)),
        native_tool(git_log::GitLog::new(workspace, spawner)),
        native_tool(git_show::GitShow::new(workspace, spawner)),
        native_tool(git_blame::GitBlame::new(workspace, spawner)),
        native_tool(git_branches::GitBranches::new(workspace, spawner)),
        native_tool(run_tests::RunTests::new(workspace, spawner)),
        native_tool(run_build::RunBuild::new(workspace, spawner)),
        native_tool(run_lint::RunLint::new(workspace, spawner)),
        native_tool(todo_read::TodoRead::new(record)),
        native_tool(todo_write::TodoWrite),
        native_tool(update_plan::UpdatePlan),
        native_tool(task::Tasks::new(record)),
        native_tool(note::Note::new(record)),
        native_tool(fetch::Fetch::new(web.clone())),
    ];
    if web.borrow().context7.enabled {
        tools.extend([
            native_tool(context7_search::Search::new(web.clone())),
            native_tool(context7_resolve_library::ResolveLibrary::new(web.clone())),
            native_tool(context7_query_docs::QueryDocs::new(web.clone())),
        ]);
    }
    tools
}
