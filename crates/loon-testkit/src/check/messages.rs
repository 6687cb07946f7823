//! The Messages format as a plain conversation.

use serde_json::Value;

use super::{Call, Entry, ToolText, owned, push_result, texts_of};

/// Marks for the prompt cache that one request may carry.
const MOST_CACHE_MARKS: usize = 4;

pub(super) fn entries(
    body: &Value,
    headers: &[(String, String)],
    faults: &mut Vec<String>,
) -> Vec<Entry> {
    if !headers.iter().any(|(name, _)| name == "anthropic-version") {
        faults.push("no anthropic-version header".to_owned());
    }
    if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        faults.push("`max_tokens` is missing".to_owned());
    }
    let marks = body.to_string().matches("\"cache_control\":").count();
    if marks > MOST_CACHE_MARKS {
        faults.push(format!("{marks} cache marks"));
    }
    let mut entries = Vec::new();
    let mut before = None;
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str();
        if role == before {
            faults.push(format!("two messages of {role:?} in a row"));
        }
        before = role;
        match role {
            Some("user") => user(&message["content"], &mut entries, faults),
            Some("assistant") => assistant(&message["content"], &mut entries, faults),
            other => faults.push(format!("unknown role {other:?}")),
        }
    }
    entries
}

fn user(content: &Value, entries: &mut Vec<Entry>, faults: &mut Vec<String>) {
    let mut texts = Vec::new();
    if let Value::Array(blocks) = content {
        for block in blocks {
            match block["type"].as_str() {
                Some("tool_result") => {
                    if !texts.is_empty() {
                        faults.push("a tool result after text in one message".to_owned());
                    }
                    let text = texts_of(&block["content"], &["text", "image"], faults).concat();
                    push_result(entries, ToolText { id: owned(&block["tool_use_id"]), text });
                }
                Some("text") => texts.push(owned(&block["text"])),
                Some("image") => {}
                other => faults.push(format!("a block of type {other:?} from the user")),
            }
        }
        if blocks.is_empty() {
            faults.push("a user message without content".to_owned());
        }
    } else {
        texts.push(owned(content));
    }
    if !texts.is_empty() {
        entries.push(Entry::User(texts));
    }
}

fn assistant(content: &Value, entries: &mut Vec<Entry>, faults: &mut Vec<String>) {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    if let Value::Array(blocks) = content {
        for block in blocks {
            match block["type"].as_str() {
                Some("text") => texts.push(owned(&block["text"])),
                Some("tool_use") => calls.push(Call {
                    id: owned(&block["id"]),
                    name: owned(&block["name"]),
                    arguments: Some(block["input"].clone()),
                }),
                Some("thinking") => {
                    if block["signature"].as_str().is_none_or(str::is_empty) {
                        faults.push("a thinking block without signature".to_owned());
                    }
                }
                Some("redacted_thinking") => {}
                other => faults.push(format!("a block of type {other:?} from the model")),
            }
        }
    } else {
        texts.push(owned(content));
    }
    entries.push(Entry::Assistant { texts, calls });
}
