//! Calls of tools as clients show them: kind, status, places and content.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    Diff, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus as Status,
    ToolCallUpdateFields, ToolKind,
};
use loon_api::{FileChange, Item, ToolCallItem, ToolCallStatus};
use serde_json::Value;

use super::diff::{Hunk, Part, parts};
use super::text::{bounded, fenced, title};
use crate::safe::plain;

/// Longest arguments that are sent along, in bytes of JSON. What a call writes shows in its diff.
const MAX_INPUT: usize = 16 * 1024;

/// The call as it is told for the first time.
pub(super) fn whole(item: &Item, call: &ToolCallItem, cwd: &Path) -> ToolCall {
    ToolCall::new(item.id.as_str().to_owned(), call_title(call))
        .name((!call.tool.is_empty()).then(|| call.tool.clone()))
        .kind(kind(&call.tool))
        .status(status(call.status))
        .content(content(call, cwd))
        .locations(locations(call, cwd))
        .raw_input(raw_input(&call.arguments))
}

/// What is told of a call that was told before.
pub(super) fn fields(call: &ToolCallItem, cwd: &Path) -> ToolCallUpdateFields {
    let fields = ToolCallUpdateFields::new()
        .title(call_title(call))
        .name((!call.tool.is_empty()).then(|| call.tool.clone()))
        .kind(kind(&call.tool))
        .status(status(call.status))
        .locations(locations(call, cwd));
    match call.status {
        // The live output stays until the result takes its place.
        ToolCallStatus::Running | ToolCallStatus::Asking => fields,
        ToolCallStatus::Waiting => fields.raw_input(raw_input(&call.arguments)),
        _ => fields.content(content(call, cwd)),
    }
}

/// The name of the tool and what it is about.
pub(super) fn call_title(call: &ToolCallItem) -> String {
    let about = plain(&call.title);
    match (call.tool.is_empty(), about.is_empty()) {
        (true, _) => "tool".to_owned(),
        (false, true) => title(&plain(&call.tool)),
        (false, false) => title(&format!("{} {about}", plain(&call.tool))),
    }
}

/// What the tools of Loom do, by name; those of the user and of servers are `other`.
pub(super) fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" | "read_many" | "list_directory" | "tree" | "file_info" | "file_compare"
        | "read_json" | "notebook_read" | "project_info" | "git_status" | "git_diff"
        | "git_log" | "git_show" | "git_blame" | "git_branches" | "process_list"
        | "process_poll" | "load_skill" => ToolKind::Read,
        "glob" | "grep" | "find_symbol" | "tool_search" => ToolKind::Search,
        "edit" | "write" | "apply_patch" | "json_edit" | "notebook_edit" | "make_directory"
        | "copy_path" | "undo" => ToolKind::Edit,
        "delete_path" => ToolKind::Delete,
        "move_path" => ToolKind::Move,
        "bash" | "run_tests" | "run_build" | "run_lint" | "process_start" | "process_write"
        | "process_stop" => ToolKind::Execute,
        "todo_read" | "todo_write" | "update_plan" | "task" | "note" => ToolKind::Think,
        "fetch" | "context7_search" | "context7_resolve_library" | "context7_query_docs" => {
            ToolKind::Fetch
        }
        _ => ToolKind::Other,
    }
}

fn status(status: ToolCallStatus) -> Status {
    match status {
        ToolCallStatus::Waiting | ToolCallStatus::Asking => Status::Pending,
        ToolCallStatus::Running => Status::InProgress,
        ToolCallStatus::Done => Status::Completed,
        ToolCallStatus::Failed
        | ToolCallStatus::Denied
        | ToolCallStatus::Cancelled
        | ToolCallStatus::Unknown => Status::Failed,
    }
}

/// Arguments that are not too long to be sent along.
pub(super) fn raw_input(arguments: &Value) -> Option<Value> {
    let is_told = !arguments.is_null() && arguments.to_string().len() <= MAX_INPUT;
    is_told.then(|| arguments.clone())
}

/// The files a call touches, as far as they are known by now.
fn locations(call: &ToolCallItem, cwd: &Path) -> Vec<ToolCallLocation> {
    if !call.changes.is_empty() {
        let changed = call.changes.iter().map(|change| {
            let line = parts(&change.diff).into_iter().find_map(|part| match part {
                Part::Hunk(hunk) => Some(hunk.line),
                Part::Words(_) => None,
            });
            ToolCallLocation::new(cwd.join(change.real_path())).line(line)
        });
        return changed.collect();
    }
    if !call.reads.is_empty() {
        let line = first_line(&call.arguments).filter(|_| call.reads.len() == 1);
        let read = call.reads.iter();
        return read.map(|file| ToolCallLocation::new(file.path.clone()).line(line)).collect();
    }
    named_paths(&call.arguments, cwd)
}

/// The files that arguments name.
pub(super) fn named_paths(arguments: &Value, cwd: &Path) -> Vec<ToolCallLocation> {
    let named = ["path", "from", "to"].into_iter().filter_map(|name| arguments[name].as_str());
    let line = first_line(arguments);
    named.map(|path| ToolCallLocation::new(cwd.join(path)).line(line)).collect()
}

fn first_line(arguments: &Value) -> Option<u32> {
    arguments["offset"].as_u64().and_then(|line| u32::try_from(line).ok())
}

/// What a call gave: diffs of what it changed, else its words.
fn content(call: &ToolCallItem, cwd: &Path) -> Vec<ToolCallContent> {
    let mut content: Vec<ToolCallContent> =
        call.changes.iter().flat_map(|change| change_content(change, cwd)).collect();
    if let Some(result) = &call.result
        && (content.is_empty() || result.is_error)
        && !result.text.trim().is_empty()
    {
        content.push(output(&result.text));
    }
    content
}

fn change_content(change: &FileChange, cwd: &Path) -> Vec<ToolCallContent> {
    let path = cwd.join(change.real_path());
    let hunks = parts(&change.diff).into_iter();
    hunks
        .map(|part| match part {
            Part::Hunk(hunk) => diff(path.clone(), hunk).into(),
            Part::Words(words) => words.into(),
        })
        .collect()
}

fn diff(path: PathBuf, hunk: Hunk) -> Diff {
    let old = hunk.old_path.is_some().then_some(hunk.old);
    Diff::new(path, hunk.new).old_text(old)
}

/// What would happen, as a person is shown it who decides: diffs, or the words as they are.
pub(super) fn detail(text: &str, cwd: &Path) -> Vec<ToolCallContent> {
    let parts = parts(text).into_iter();
    parts
        .map(|part| match part {
            Part::Hunk(hunk) => diff(cwd.join(hunk.path()), hunk).into(),
            Part::Words(words) => output(&words),
        })
        .collect()
}

/// Output of a call between marks that keep it as it is.
pub(super) fn output(text: &str) -> ToolCallContent {
    fenced(&bounded(&plain(text))).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use loon_api::{CallId, ItemBody, ItemId, ToolResult};
    use serde_json::json;

    fn edited() -> ToolCallItem {
        let arguments = json!({"path": "src/a.rs", "old": "x", "new": "y"});
        ToolCallItem {
            title: "src/a.rs".to_owned(),
            status: ToolCallStatus::Done,
            result: Some(ToolResult::ok("changed")),
            changes: vec![FileChange {
                path: "src/a.rs".to_owned(),
                diff: "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -7 +7 @@\n-x\n+y\n".to_owned(),
                ..FileChange::default()
            }],
            ..ToolCallItem::waiting(CallId::of(1, 0, 0), "edit", arguments)
        }
    }

    #[test]
    fn an_edit_has_place_and_diff() {
        let call = edited();
        let item =
            Item { id: ItemId::call(1, 0, 0), turn: 1, body: ItemBody::ToolCall(call.clone()) };
        let told = serde_json::to_value(whole(&item, &call, Path::new("/work"))).unwrap();
        assert_eq!(
            told,
            json!({
                "toolCallId": "1.0.c0", "title": "edit src/a.rs", "name": "edit", "kind": "edit",
                "status": "completed",
                "content": [
                    {"type": "diff", "path": "/work/src/a.rs", "oldText": "x\n", "newText": "y\n"},
                ],
                "locations": [{"path": "/work/src/a.rs", "line": 7}],
                "rawInput": {"path": "src/a.rs", "old": "x", "new": "y"},
            })
        );
    }

    #[test]
    fn a_running_call_keeps_the_output_that_is_shown() {
        let running = ToolCallItem { status: ToolCallStatus::Running, ..edited() };
        let told = serde_json::to_value(fields(&running, Path::new("/work"))).unwrap();
        assert_eq!((&told["status"], told.get("content")), (&json!("in_progress"), None));
    }

    #[test]
    fn a_failed_call_says_why_beside_what_it_changed() {
        let failed = ToolCallItem {
            status: ToolCallStatus::Failed,
            result: Some(ToolResult::error("stopped\u{1b}[0m half way")),
            ..edited()
        };
        let told = serde_json::to_value(fields(&failed, Path::new("/work"))).unwrap();
        assert_eq!(told["status"], "failed");
        assert_eq!(told["content"][1]["content"]["text"], "```\nstopped\u{fffd}[0m half way\n```");
    }

    #[test]
    fn long_arguments_are_left_out() {
        assert_eq!(raw_input(&Value::Null), None);
        assert_eq!(raw_input(&json!({"content": "x".repeat(MAX_INPUT)})), None);
        assert_eq!(raw_input(&json!({"a": 1})), Some(json!({"a": 1})));
    }
}
