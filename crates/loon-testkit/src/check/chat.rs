//! Chat completions as a plain conversation.

use serde_json::Value;

use super::{Call, Entry, ToolText, owned, push_result, texts_of};

pub(super) fn entries(body: &Value, faults: &mut Vec<String>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let content = &message["content"];
        match message["role"].as_str() {
            Some("system" | "developer") => {
                if !entries.is_empty() {
                    faults.push("a system message after the beginning".to_owned());
                }
                if texts_of(content, &["text"], faults).iter().all(String::is_empty) {
                    faults.push("an empty system message".to_owned());
                }
            }
            Some("user") => {
                entries.push(Entry::User(texts_of(content, &["text", "image_url"], faults)));
            }
            Some("assistant") => entries.push(assistant(message, faults)),
            Some("tool") => {
                let id = owned(&message["tool_call_id"]);
                let text = texts_of(content, &["text"], faults).concat();
                push_result(&mut entries, ToolText { id, text });
            }
            other => faults.push(format!("unknown role {other:?}")),
        }
    }
    entries
}

fn assistant(message: &Value, faults: &mut Vec<String>) -> Entry {
    let texts = texts_of(&message["content"], &["text"], faults);
    if message["tool_calls"].as_array().is_some_and(Vec::is_empty) {
        faults.push("an empty `tool_calls`".to_owned());
    }
    let mut calls = Vec::new();
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        if call["type"] != "function" {
            faults.push(format!("a call of type {}", call["type"]));
        }
        let arguments = call["function"]["arguments"].as_str();
        calls.push(Call {
            id: owned(&call["id"]),
            name: owned(&call["function"]["name"]),
            arguments: arguments.and_then(|text| serde_json::from_str(text).ok()),
        });
    }
    Entry::Assistant { texts, calls }
}
