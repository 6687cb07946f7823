//! Masking a whole event: every string in it that is not the event's own vocabulary.

use std::sync::Arc;

use loon_api::event::ItemCompleted;
use loon_api::{AgentEvent, At, Envelope, ExecutionId, Item, VERSION};
use serde_json::Value;

use super::patterns::{Kind, Patterns};
use super::{Redactor, mask};

/// In what a provider wants back byte for byte, a longer string without blanks is something encoded
/// (a signature, encrypted reasoning), and stays.
const ENCODED: usize = 200;

/// A string of an event that must be another one.
struct Edit {
    /// Where it is, as a JSON pointer.
    place: String,
    text: String,
}

impl Redactor {
    /// An item that is told of without a record.
    pub(crate) fn item(&self, item: Item) -> Item {
        let event = ItemCompleted { item: item.clone() }.into();
        let (exec, at) = (ExecutionId::generate(), At::from_unix_ms(0));
        let masked = Envelope { v: VERSION, seq: None, at, exec, turn: None, event };
        match self.envelope(masked).event {
            AgentEvent::ItemCompleted(masked) => masked.item,
            _ => item,
        }
    }

    /// A value that leaves Loom, with masks in place of secrets in its texts and names.
    pub fn value(&self, mut value: Value) -> Value {
        let patterns = self.patterns();
        mask_members(&patterns, &mut value);
        mask_texts(&patterns, &mut value);
        value
    }

    /// The event with masks in place of its secrets.
    pub fn envelope(&self, mut envelope: Envelope) -> Envelope {
        match &mut envelope.event {
            AgentEvent::ItemDelta(delta) => {
                delta.text = self.text(std::mem::take(&mut delta.text));
                return envelope;
            }
            AgentEvent::MeterUpdated(_) | AgentEvent::ContextEstimated(_) => return envelope,
            _ => {}
        }
        let patterns = self.patterns();
        // What cannot be written cannot be recorded either.
        let Ok(line) = serde_json::to_vec(&envelope) else { return envelope };
        if !may_hold(&patterns, &line) {
            return envelope;
        }
        let Ok(value) = serde_json::from_slice::<Value>(&line) else { return envelope };
        let mut edits = Vec::new();
        let mut whole = value.clone();
        mask_members(&patterns, &mut whole);
        find(&patterns, &whole, &mut String::new(), &mut edits);
        if edits.is_empty() && whole == value {
            return envelope;
        }
        for edit in &edits {
            apply(&mut whole, edit);
        }
        let event =
            read(&whole, &envelope).unwrap_or_else(|| one_by_one(&patterns, value, &envelope));
        Envelope { event, ..envelope }
    }
}

/// The event that the value is, if it is still one of the same type.
fn read(value: &Value, original: &Envelope) -> Option<AgentEvent> {
    let event = Envelope::parse(&value.to_string()).ok()?.event;
    (event.kind() == original.event.kind()).then_some(event)
}

/// A known value may be a word of the vocabulary (`completed`): such a word stays where the event
/// could not be read without it, everything else is masked. Of the names, those are that somebody
/// chose freely.
fn one_by_one(patterns: &Arc<Patterns>, mut value: Value, original: &Envelope) -> AgentEvent {
    let mut edits = Vec::new();
    find(patterns, &value, &mut String::new(), &mut edits);
    for edit in edits {
        let Some(slot) = value.pointer_mut(&edit.place) else { continue };
        let former = std::mem::replace(slot, Value::String(edit.text));
        if read(&value, original).is_none()
            && let Some(slot) = value.pointer_mut(&edit.place)
        {
            *slot = former;
        }
    }
    mask_names_of_arguments(patterns, &mut value);
    read(&value, original).unwrap_or_else(|| original.event.clone())
}

/// Masks names of members of the arguments of calls, wherever these are.
fn mask_names_of_arguments(patterns: &Arc<Patterns>, value: &mut Value) {
    match value {
        Value::Array(items) => {
            for item in items {
                mask_names_of_arguments(patterns, item);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if name == "arguments" {
                    mask_members(patterns, member);
                } else {
                    mask_names_of_arguments(patterns, member);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn apply(value: &mut Value, edit: &Edit) {
    if let Some(slot) = value.pointer_mut(&edit.place) {
        *slot = Value::String(edit.text.clone());
    }
}

/// Whether a place lies in what a provider gave an item to be given back. A member of that name that
/// somebody else chose, in the arguments of a call, is like any other.
fn is_opaque(place: &str) -> bool {
    let Some((item, rest)) = place.split_once("/opaque") else { return false };
    let is_whole = rest.is_empty() || rest.starts_with('/');
    let in_list = item.rsplit_once('/').is_some_and(|(list, _)| list.ends_with("/items"));
    is_whole && (item == "/item" || in_list)
}

/// Finds the strings that hold secrets. The envelope's own members hold none.
fn find(patterns: &Arc<Patterns>, value: &Value, place: &mut String, edits: &mut Vec<Edit>) {
    let len = place.len();
    match value {
        Value::String(text) => {
            let encoded = is_opaque(place) && text.len() > ENCODED && !text.contains(' ');
            if !encoded && let Some(masked) = mask::masked(patterns, text) {
                edits.push(Edit { place: place.clone(), text: masked });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                place.push('/');
                place.push_str(&index.to_string());
                find(patterns, item, place, edits);
                place.truncate(len);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if len == 0 && ["type", "exec", "at"].contains(&name.as_str()) {
                    continue;
                }
                place.push('/');
                place.push_str(&name.replace('~', "~0").replace('/', "~1"));
                find(patterns, member, place, edits);
                place.truncate(len);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn mask_texts(patterns: &Arc<Patterns>, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(masked) = mask::masked(patterns, text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_texts(patterns, item)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| mask_texts(patterns, member));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks names of members, which the arguments of a call choose freely.
fn mask_members(patterns: &Arc<Patterns>, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| mask_members(patterns, item)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| mask_members(patterns, member));
            if members.keys().any(|name| mask::masked(patterns, name).is_some()) {
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(name, member)| (mask::masked(patterns, &name).unwrap_or(name), member))
                    .collect();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// False only if no string of the line can hold a secret. The line is JSON, so what it escapes is
/// looked for in that form.
fn may_hold(patterns: &Patterns, line: &[u8]) -> bool {
    line.windows(2).enumerate().any(|(at, pair)| {
        patterns.begin(pair[0], pair[1])
            && patterns.beginning(pair[0], pair[1]).any(|pattern| {
                let start = pattern.start.as_bytes();
                let rest = &line[at..];
                match pattern.kind {
                    Kind::Assignment => {
                        let after = rest.get(start.len());
                        rest.len() >= start.len()
                            && rest[..start.len()].eq_ignore_ascii_case(start)
                            && after.is_some_and(|byte| b"\"'`\\ =:".contains(byte))
                    }
                    _ => rest.starts_with(start),
                }
            })
    })
}
