//! What a completion reviewer is shown: records of the session, and the agent's claim marked as such.

use std::fmt::Write as _;

use loon_api::{Item, ItemBody, Receipt, SubagentStatus, ToolCallItem, TurnNumber};

use crate::conversation::{Conversation, without_middle};
use crate::shown_record::whole_text;

/// Earlier messages of the user that are shown, and most bytes of one.
const EARLIER: usize = 5;
const EARLIER_BYTES: usize = 500;

/// Calls that are listed, the newest ones.
const CALLS: usize = 120;

/// Results of programs that are shown, the newest ones.
const RESULTS: usize = 4;

/// Everything a verdict can rest on, in at most about `room` bytes.
pub(super) fn evidence(
    conversation: &Conversation,
    turn: TurnNumber,
    claim: &str,
    room: usize,
) -> String {
    let items: Vec<&Item> = conversation.items().iter().filter(|item| item.turn == turn).collect();
    let calls: Vec<&ToolCallItem> = items.iter().filter_map(|item| call_of(item)).collect();
    let sections = [
        ("request", room / 8, request(conversation, turn)),
        ("earlier-requests", room / 16, earlier(conversation, turn)),
        ("record", room / 8, whole_text(conversation.record()).unwrap_or_default()),
        ("receipt", room / 8, receipt(conversation.receipt().as_ref())),
        ("calls", room / 8, list_of(&calls)),
        ("diffs", room / 4, diffs(&calls)),
        ("results", room / 8, results(&calls)),
        ("agents", room / 32, agents(conversation)),
        ("claim", room / 16, claim.trim().to_owned()),
    ];
    let mut text = String::from("What was recorded of the work, and the agent's claim at the end:");
    for (name, room, body) in sections {
        let body = if body.is_empty() { "(nothing)" } else { &body };
        let _ = write!(text, "\n\n<{name}>\n{}\n</{name}>", without_middle(body, room));
    }
    text
}

fn call_of(item: &Item) -> Option<&ToolCallItem> {
    match &item.body {
        ItemBody::ToolCall(call) => Some(call),
        _ => None,
    }
}

/// The words of the user in this turn.
fn request(conversation: &Conversation, turn: TurnNumber) -> String {
    conversation.prompts_of(Some(turn), conversation.items().len()).join("\n\n")
}

fn earlier(conversation: &Conversation, turn: TurnNumber) -> String {
    let prompts = conversation.items().iter().filter_map(|item| match &item.body {
        ItemBody::UserMessage { text, .. } if item.turn < turn => Some(text),
        _ => None,
    });
    let mut newest: Vec<_> =
        prompts.rev().take(EARLIER).map(|text| without_middle(text, EARLIER_BYTES)).collect();
    newest.reverse();
    newest.join("\n---\n")
}

/// What is known of the turn without anybody's words.
fn receipt(receipt: Option<&Receipt>) -> String {
    let Some(receipt) = receipt else {
        return "No file was changed and no command was run in this turn.".to_owned();
    };
    let mut text = String::from("Files changed by tools, first state against last:");
    for change in &receipt.changes {
        let how = match (&change.from, &change.before, &change.after) {
            (Some(from), _, _) => format!("moved from {from}"),
            (None, None, _) => "new".to_owned(),
            (None, Some(_), None) => "deleted".to_owned(),
            (None, Some(_), Some(_)) => "changed".to_owned(),
        };
        let _ = write!(text, "\n- {} ({how})", change.path);
    }
    if receipt.changes.is_empty() {
        text.push_str(" none");
    }
    let _ = write!(text, "\nCommands before the last change: {}", receipt.runs_before);
    text.push_str("\nCommands after the last change, in order:");
    for run in &receipt.runs {
        let end = match run.exit_code {
            Some(code) => format!("exit {code}"),
            None => "did not end by itself".to_owned(),
        };
        let _ = write!(text, "\n- {end}: {}", run.line);
        if !run.counts.is_empty()
            && let Ok(counts) = serde_json::to_string(&run.counts)
        {
            let _ = write!(text, "  {counts}");
        }
    }
    if receipt.runs.is_empty() {
        text.push_str(" none");
    }
    for unknown in &receipt.unknown {
        let cause = serde_json::to_string(&unknown.cause).unwrap_or_default();
        let _ = write!(text, "\nEffect unknown ({}): {}", cause.trim_matches('"'), unknown.what);
    }
    text
}

fn list_of(calls: &[&ToolCallItem]) -> String {
    let left_out = calls.len().saturating_sub(CALLS);
    let mut lines = Vec::new();
    if left_out > 0 {
        lines.push(format!("[{left_out} earlier calls]"));
    }
    lines.extend(calls[left_out..].iter().map(|call| {
        let status = serde_json::to_string(&call.status).unwrap_or_default();
        let (title, summary) = (&call.title, &call.summary);
        format!("{} {title}: {} {summary}", call.tool, status.trim_matches('"'))
    }));
    lines.join("\n")
}

fn diffs(calls: &[&ToolCallItem]) -> String {
    let changes = calls.iter().flat_map(|call| &call.changes);
    let diffs: Vec<String> = changes
        .filter(|change| !change.diff.is_empty())
        .map(|change| format!("{}\n{}", change.path, change.diff.trim_end()))
        .collect();
    diffs.join("\n\n")
}

/// What the newest programs printed.
fn results(calls: &[&ToolCallItem]) -> String {
    let ran = calls.iter().filter(|call| !call.runs.is_empty() || call.exit_code.is_some());
    let mut newest: Vec<String> = ran
        .rev()
        .take(RESULTS)
        .map(|call| {
            let result = call.result.as_ref().map_or("", |result| result.text.as_str());
            format!("{} {}\n{}", call.tool, call.title, result.trim_end())
        })
        .collect();
    newest.reverse();
    newest.join("\n\n")
}

fn agents(conversation: &Conversation) -> String {
    let lines: Vec<String> = conversation
        .children()
        .iter()
        .map(|child| {
            let ended = child.finished.as_ref().map(|finished| finished.status);
            let how = ended.map_or("still at work", SubagentStatus::words);
            let started = &child.started;
            let task = started.task.lines().next().unwrap_or_default();
            format!("{} ({}): {how}; its task: {task}", started.id, started.agent)
        })
        .collect();
    lines.join("\n")
}
