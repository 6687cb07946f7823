//! The Responses format as a plain conversation.

use std::collections::HashSet;

use serde_json::Value;

use super::{Call, Entry, ToolText, owned, push_result, texts_of};

pub(super) fn entries(body: &Value, faults: &mut Vec<String>) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut reasoning_ids = HashSet::new();
    let items = body["input"].as_array().map_or(&[][..], Vec::as_slice);
    for (at, item) in items.iter().enumerate() {
        match item["type"].as_str().unwrap_or("message") {
            "message" => message(item, &mut entries, faults),
            "function_call" => {
                let arguments = item["arguments"].as_str();
                let call = Call {
                    id: owned(&item["call_id"]),
                    name: owned(&item["name"]),
                    arguments: arguments.and_then(|text| serde_json::from_str(text).ok()),
                };
                if let Some(Entry::Assistant { calls, .. }) = entries.last_mut() {
                    calls.push(call);
                } else {
                    entries.push(Entry::Assistant { texts: Vec::new(), calls: vec![call] });
                }
            }
            "function_call_output" => {
                let text = texts_of(&item["output"], &["input_text"], faults).concat();
                push_result(&mut entries, ToolText { id: owned(&item["call_id"]), text });
            }
            "reasoning" => {
                let id = owned(&item["id"]);
                if !id.is_empty() && !reasoning_ids.insert(id.clone()) {
                    faults.push(format!("reasoning item {id} comes twice"));
                }
                if item["summary"].as_array().is_none() {
                    faults.push(format!("reasoning item {id} has no summary list"));
                }
                let next = items.get(at + 1);
                let followed = next.is_some_and(|next| {
                    next["role"] == "assistant"
                        || matches!(next["type"].as_str(), Some("function_call" | "reasoning"))
                });
                if !followed {
                    faults.push(format!("reasoning item {id} without the item it belongs to"));
                }
            }
            other => faults.push(format!("unknown item type {other:?}")),
        }
    }
    entries
}

fn message(item: &Value, entries: &mut Vec<Entry>, faults: &mut Vec<String>) {
    let content = &item["content"];
    match item["role"].as_str() {
        Some("system" | "developer") => {
            texts_of(content, &["input_text"], faults);
        }
        Some("user") => {
            let texts = texts_of(content, &["input_text", "input_image"], faults);
            entries.push(Entry::User(texts));
        }
        Some("assistant") => {
            let texts = texts_of(content, &["output_text", "refusal"], faults);
            if let Some(Entry::Assistant { texts: former, calls }) = entries.last_mut()
                && calls.is_empty()
            {
                former.extend(texts);
            } else {
                entries.push(Entry::Assistant { texts, calls: Vec::new() });
            }
        }
        other => faults.push(format!("unknown role {other:?}")),
    }
}
