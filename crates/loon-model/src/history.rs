//! The conversation in the form that every wire format starts from: user messages in a row are one,
//! and answers that would be sent empty are none.

use std::borrow::Cow;

use loon_api::{AnsweredCall, AssistantMessage, AssistantPart, Message, Thinking, UserPart};
use serde_json::{Value, json};

/// One turn of the conversation.
pub(crate) enum Turn<'a> {
    /// Everything the user said since the last answer; never empty.
    User(Vec<&'a UserPart>),
    /// An answer that has text or calls.
    Assistant(&'a AssistantMessage),
}

/// The conversation as turns.
pub(crate) fn turns(messages: &[Message]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(messages.len());
    for message in messages {
        match message {
            Message::User(parts) => {
                let parts = parts.iter().filter(|part| !is_blank(part));
                if let Some(Turn::User(earlier)) = turns.last_mut() {
                    earlier.extend(parts);
                } else {
                    let parts: Vec<_> = parts.collect();
                    if !parts.is_empty() {
                        turns.push(Turn::User(parts));
                    }
                }
            }
            Message::Assistant(answer) => {
                if answer.parts.iter().any(says_something) {
                    turns.push(Turn::Assistant(answer));
                }
            }
        }
    }
    turns
}

fn is_blank(part: &UserPart) -> bool {
    matches!(part, UserPart::Text(text) if text.trim().is_empty())
}

fn says_something(part: &AssistantPart) -> bool {
    match part {
        AssistantPart::Text(text) => !text.trim().is_empty(),
        AssistantPart::Thinking(_) => false,
        AssistantPart::Call(_) => true,
    }
}

/// The calls of an answer, in order.
pub(crate) fn calls(answer: &AssistantMessage) -> impl Iterator<Item = &AnsweredCall> {
    answer.parts.iter().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call),
        AssistantPart::Text(_) | AssistantPart::Thinking(_) => None,
    })
}

/// What the model `name` wants back with this reasoning; nothing if another model made it.
pub(crate) fn own_opaque<'a>(thinking: &'a Thinking, name: &str) -> Option<&'a Value> {
    thinking.opaque.as_ref().filter(|_| thinking.model == name)
}

/// Call arguments as the object that every server can read. Text that the model wrote in place of
/// an object is kept under a name of its own.
pub(crate) fn sendable_arguments(arguments: &Value) -> Cow<'_, Value> {
    if arguments.is_object() {
        Cow::Borrowed(arguments)
    } else {
        Cow::Owned(json!({"unparsed_arguments": arguments}))
    }
}

/// The texts of these user parts as one text; `None` if a picture is among them.
pub(crate) fn plain_text<'a>(parts: &[&'a UserPart]) -> Option<Cow<'a, str>> {
    let mut joined = Cow::Borrowed("");
    for part in parts {
        let UserPart::Text(text) = part else { return None };
        if joined.is_empty() {
            joined = Cow::Borrowed(text);
        } else {
            let joined = joined.to_mut();
            joined.push_str("\n\n");
            joined.push_str(text);
        }
    }
    Some(joined)
}
