//! A session's transcript as Markdown.

use std::fmt::Write as _;

use loon_api::{ExecutionId, Item, ItemBody, Receipt, ToolCallItem};
use loon_core::Conversation;
use loon_kernel::JournalStore;

use crate::failure::Failure;
use crate::safe::plain;

/// Reads a session's journal into its conversation.
pub(super) fn read(store: &dyn JournalStore, exec: ExecutionId) -> Result<Conversation, Failure> {
    let mut conversation = Conversation::default();
    for record in store.read(exec).map_err(|error| Failure::from(error.info()))? {
        let record = record.map_err(|error| Failure::from(error.info()))?;
        conversation.apply(record.turn, &record.event);
    }
    Ok(conversation)
}

/// Writes the conversation as Markdown without control characters.
pub(super) fn markdown(exec: ExecutionId, conversation: &Conversation) -> String {
    let mut text = format!("# {}\n\nSession {exec}", conversation.title().unwrap_or("Untitled"));
    if let Some(model) = conversation.model() {
        let _ = write!(text, ", {model}");
    }
    if let Some(cost) = conversation.cost().words() {
        let _ = write!(text, ", {cost}");
    }
    text.push('\n');
    let mut items = conversation.items().iter().peekable();
    while let Some(item) = items.next() {
        write_item(&mut text, item);
        if items.peek().is_none_or(|next| next.turn != item.turn)
            && let Some(receipt) = conversation.receipt_of(item.turn).and_then(Receipt::details)
        {
            let _ = writeln!(text, "\n```text\n{receipt}\n```");
        }
    }
    if let Some(cancelled) = conversation.cancelled() {
        let _ = match &cancelled.reason {
            Some(reason) => writeln!(text, "\n*The session was cancelled: {reason}*"),
            None => writeln!(text, "\n*The session was cancelled.*"),
        };
    }
    plain(&text)
}

fn write_item(text: &mut String, item: &Item) {
    let _ = match &item.body {
        ItemBody::UserMessage { text: words, .. } => {
            let quoted: Vec<String> = words.lines().map(|line| format!("> {line}")).collect();
            writeln!(text, "\n{}", quoted.join("\n"))
        }
        ItemBody::AssistantMessage { text: words, incomplete } => {
            let mark = if *incomplete { "\n\n*(incomplete)*" } else { "" };
            writeln!(text, "\n{}{mark}", words.trim_end())
        }
        ItemBody::Thinking(_) => Ok(()),
        ItemBody::Notice { text: words, .. } => writeln!(text, "\n*{words}*"),
        ItemBody::Compaction(compaction) => {
            let (before, after) = (compaction.tokens_before, compaction.tokens_after);
            let handoff = compaction.handoff.as_deref().unwrap_or_default().trim_end();
            writeln!(text, "\n*compacted: about {before} to {after} tokens*\n\n{handoff}")
        }
        ItemBody::ToolCall(call) => {
            write_call(text, call);
            Ok(())
        }
    };
}

fn write_call(text: &mut String, call: &ToolCallItem) {
    let status = serde_json::to_value(call.status).ok();
    let status = status.as_ref().and_then(|status| status.as_str()).unwrap_or_default();
    let _ = writeln!(text, "\n**{}** `{}` ({status}) {}", call.tool, call.title, call.summary);
    if !call.guidance_given().is_empty() {
        let files: Vec<&str> =
            call.guidance_given().iter().map(|file| file.path.as_str()).collect();
        let _ = writeln!(text, "\n*with the instructions in {}*", files.join(", "));
    }
    for change in &call.changes {
        let _ = writeln!(text, "\n```diff\n{}\n```", change.diff.trim_end());
    }
    if call.changes.is_empty()
        && let Some(result) = &call.result
        && !result.text.is_empty()
    {
        let fence = "`".repeat(longest_backticks(&result.text).max(2) + 1);
        let _ = writeln!(text, "\n{fence}\n{}\n{fence}", result.text.trim_end());
    }
}

fn longest_backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
