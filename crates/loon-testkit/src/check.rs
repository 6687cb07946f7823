//! What a strict provider refuses. Each format is read into the same plain conversation, so that
//! the rules about it are stated once.

mod chat;
mod messages;
mod responses;

use std::collections::HashSet;

use serde_json::Value;

use crate::wire::Wire;

/// A conversation without its format.
enum Entry {
    User(Vec<String>),
    Assistant { texts: Vec<String>, calls: Vec<Call> },
    Results(Vec<ToolText>),
}

struct Call {
    id: String,
    name: String,
    /// Absent if the format's member is no JSON object.
    arguments: Option<Value>,
}

struct ToolText {
    id: String,
    text: String,
}

/// What is wrong with a body; empty if a strict server would take it.
pub(crate) fn faults(wire: Wire, bytes: &[u8], headers: &[(String, String)]) -> Vec<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return vec![format!("the body is not UTF-8: {error}")],
    };
    let body: Value = match serde_json::from_str(text) {
        Ok(body) => body,
        Err(error) => return vec![format!("the body is not JSON: {error}")],
    };
    let mut faults = Vec::new();
    if body["model"].as_str().is_none_or(str::is_empty) {
        faults.push("`model` is missing".to_owned());
    }
    no_nul(&body, &mut faults);
    tools(wire, &body, &mut faults);
    let entries = match wire {
        Wire::Chat => chat::entries(&body, &mut faults),
        Wire::Responses => responses::entries(&body, &mut faults),
        Wire::Messages => messages::entries(&body, headers, &mut faults),
    };
    conversation(&entries, &mut faults);
    faults
}

fn conversation(entries: &[Entry], faults: &mut Vec<String>) {
    match entries.first() {
        None => faults.push("the conversation is empty".to_owned()),
        Some(Entry::User(_)) => {}
        Some(_) => faults.push("the conversation does not begin with the user".to_owned()),
    }
    if matches!(entries.last(), Some(Entry::Assistant { .. })) {
        faults.push("the conversation ends with the model's own words".to_owned());
    }
    let mut seen = HashSet::new();
    for (at, entry) in entries.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| &entries[at]);
        match entry {
            Entry::User(texts) => {
                no_blank(at, texts, faults);
                if matches!(before, Some(Entry::User(_))) {
                    faults.push(format!("entry {at}: two user messages in a row"));
                }
            }
            Entry::Assistant { texts, calls } => {
                no_blank(at, texts, faults);
                if texts.is_empty() && calls.is_empty() {
                    faults.push(format!("entry {at}: an empty assistant message"));
                }
                if matches!(before, Some(Entry::Assistant { .. })) {
                    faults.push(format!("entry {at}: two assistant messages in a row"));
                }
                for call in calls {
                    check_call(at, call, &mut seen, faults);
                }
                let answered = match entries.get(at + 1) {
                    Some(Entry::Results(results)) => results.as_slice(),
                    _ => &[],
                };
                same_ids(at, calls, answered, faults);
            }
            Entry::Results(results) => {
                let orphan =
                    !matches!(before, Some(Entry::Assistant { calls, .. }) if !calls.is_empty());
                if orphan {
                    faults.push(format!("entry {at}: tool results without calls before them"));
                }
                for result in results {
                    check_result(at, result, faults);
                }
            }
        }
    }
}

fn check_call(at: usize, call: &Call, seen: &mut HashSet<String>, faults: &mut Vec<String>) {
    let Call { id, name, arguments } = call;
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
        faults.push(format!("entry {at}: bad call id {id:?}"));
    }
    if !seen.insert(id.clone()) {
        faults.push(format!("entry {at}: call id {id:?} is used twice"));
    }
    if !is_tool_name(name) {
        faults.push(format!("entry {at}: bad tool name {name:?}"));
    }
    if !arguments.as_ref().is_some_and(Value::is_object) {
        faults.push(format!("entry {at}: the arguments of {name} are no JSON object"));
    }
}

fn check_result(at: usize, result: &ToolText, faults: &mut Vec<String>) {
    let ToolText { id, text } = result;
    if text.is_empty() {
        faults.push(format!("entry {at}: the result of {id} is empty"));
    }
    if let Some(bad) = text.chars().find(|c| c.is_control() && !matches!(c, '\t' | '\n')) {
        faults.push(format!("entry {at}: the result of {id} holds {bad:?}"));
    }
}

fn same_ids(at: usize, calls: &[Call], results: &[ToolText], faults: &mut Vec<String>) {
    for call in calls {
        let count = results.iter().filter(|result| result.id == call.id).count();
        if count != 1 {
            faults.push(format!("entry {at}: call {:?} has {count} results", call.id));
        }
    }
    for result in results {
        if !calls.iter().any(|call| call.id == result.id) {
            faults.push(format!("entry {at}: result {:?} belongs to no call", result.id));
        }
    }
}

fn no_blank(at: usize, texts: &[String], faults: &mut Vec<String>) {
    if texts.iter().any(|text| text.trim().is_empty()) {
        faults.push(format!("entry {at}: a blank text"));
    }
}

fn no_nul(value: &Value, faults: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains('\0') => faults.push("a text holds U+0000".to_owned()),
        Value::Array(values) => values.iter().for_each(|value| no_nul(value, faults)),
        Value::Object(map) => map.values().for_each(|value| no_nul(value, faults)),
        _ => {}
    }
}

fn tools(wire: Wire, body: &Value, faults: &mut Vec<String>) {
    let mut names = HashSet::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        let (tool, schema) = match wire {
            Wire::Chat => (&tool["function"], "parameters"),
            Wire::Responses => (tool, "parameters"),
            Wire::Messages => (tool, "input_schema"),
        };
        let name = tool["name"].as_str().unwrap_or_default();
        if !is_tool_name(name) {
            faults.push(format!("bad tool name {name:?}"));
        }
        if !names.insert(name) {
            faults.push(format!("tool {name} is offered twice"));
        }
        if tool["description"].as_str().is_none_or(str::is_empty) {
            faults.push(format!("tool {name} has no description"));
        }
        if tool[schema]["type"] != "object" {
            faults.push(format!("tool {name} has no object schema in `{schema}`"));
        }
    }
}

fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Joins results that stand next to each other: some formats carry each in a message of its own.
fn push_result(entries: &mut Vec<Entry>, result: ToolText) {
    if let Some(Entry::Results(results)) = entries.last_mut() {
        results.push(result);
    } else {
        entries.push(Entry::Results(vec![result]));
    }
}

/// The texts of a string or of parts of one of these types; other parts are named as faults.
fn texts_of(content: &Value, allowed: &[&str], faults: &mut Vec<String>) -> Vec<String> {
    match content {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            let mut texts = Vec::new();
            for part in parts {
                let kind = part["type"].as_str().unwrap_or_default();
                if !allowed.contains(&kind) {
                    faults.push(format!("a part of type {kind:?} does not belong here"));
                } else if let Some(text) = part["text"].as_str() {
                    texts.push(text.to_owned());
                }
            }
            if parts.is_empty() {
                faults.push("an empty list of parts".to_owned());
            }
            texts
        }
        other => {
            faults.push(format!("content is neither text nor parts: {other}"));
            Vec::new()
        }
    }
}

fn owned(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
