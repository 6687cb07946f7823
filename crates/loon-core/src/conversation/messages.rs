//! The conversation as a model is sent it.

use loon_api::{
    AnsweredCall, AssistantMessage, AssistantPart, Item, ItemBody, ItemId, Message, ToolCallItem,
    ToolCallStatus, ToolResult, TurnNumber, UserPart,
};

use super::Conversation;
use crate::shown_record::ShownRecord;

/// What the model reads of a call that was cut off with its process.
pub(crate) const UNKNOWN_OUTCOME: &str = "The process ended while this call was running. Whether \
                                          it took effect is unknown; check before you repeat it.";

impl Conversation {
    /// The messages of the next request: the conversation, ended so that a model has something to
    /// answer.
    pub fn request_messages(&self) -> Vec<Message> {
        let mut messages = self.messages();
        let waits_for_answer = match messages.last() {
            Some(Message::User(_)) => true,
            Some(Message::Assistant(answer)) => {
                answer.parts.iter().any(|part| matches!(part, AssistantPart::Call(_)))
            }
            None => false,
        };
        if !waits_for_answer {
            push_user(&mut messages, "Go on.");
        }
        messages
    }

    /// The conversation as a model is sent it. A call without a recorded result gets one that says
    /// so: no request can hold an orphan. The working record as it stood when a turn began stands
    /// before the turn's first words, if it differs from what stood there last; it is the same text
    /// in all later requests, so that caches keep what follows it.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        let mut answer: Option<(TurnNumber, &str, Vec<AssistantPart>)> = None;
        let mut shown = ShownRecord::default();
        for item in &self.items {
            let step = step_of(item);
            if let Some((turn, open_step, _)) = &answer
                && (*turn != item.turn || step != Some(open_step))
            {
                flush(&mut messages, &mut answer);
            }
            match (&item.body, step) {
                (ItemBody::UserMessage { text, .. }, _) => {
                    let opens_turn = item.id == ItemId::user(item.turn, 0);
                    if let Some(record) = self.records_before.get(&item.id).filter(|_| opens_turn)
                        && let Some(record) = shown.news(record)
                    {
                        push_user(&mut messages, &record);
                    }
                    push_user(&mut messages, text);
                }
                (ItemBody::Notice { text, about_call }, _) => {
                    let call = messages.last_mut().and_then(last_call).filter(|_| *about_call);
                    match call {
                        Some(call) => call.result.text.extend(["\n\n[", text, "]"]),
                        None => push_user(&mut messages, text),
                    }
                }
                (ItemBody::ToolCall(call), None) => {
                    let result = result_of(call);
                    push_user(
                        &mut messages,
                        &format!("[The user ran {}.]\n{}", call.tool, result.text),
                    );
                }
                (body, Some(step)) => {
                    let (_, _, parts) = answer.get_or_insert_with(|| (item.turn, step, Vec::new()));
                    parts.extend(assistant_part(body));
                }
                (_, None) => {}
            }
        }
        flush(&mut messages, &mut answer);
        messages
    }
}

fn flush(messages: &mut Vec<Message>, answer: &mut Option<(TurnNumber, &str, Vec<AssistantPart>)>) {
    if let Some((_, _, parts)) = answer.take()
        && parts.iter().any(|part| !matches!(part, AssistantPart::Thinking(_)))
    {
        messages.push(Message::Assistant(AssistantMessage { parts }));
    }
}

fn last_call(message: &mut Message) -> Option<&mut AnsweredCall> {
    match message {
        Message::Assistant(AssistantMessage { parts }) => match parts.last_mut() {
            Some(AssistantPart::Call(call)) => Some(call),
            _ => None,
        },
        Message::User(_) => None,
    }
}

fn push_user(messages: &mut Vec<Message>, text: &str) {
    let part = UserPart::Text(text.to_owned());
    match messages.last_mut() {
        Some(Message::User(parts)) => parts.push(part),
        _ => messages.push(Message::User(vec![part])),
    }
}

fn assistant_part(body: &ItemBody) -> Option<AssistantPart> {
    match body {
        ItemBody::AssistantMessage { text, .. } => {
            (!text.is_empty()).then(|| AssistantPart::Text(text.clone()))
        }
        ItemBody::Thinking(thinking) => Some(AssistantPart::Thinking(thinking.clone())),
        ItemBody::ToolCall(call) => Some(AssistantPart::Call(AnsweredCall {
            id: call.call.clone(),
            name: call.tool.clone(),
            arguments: call.arguments.clone(),
            result: result_of(call),
        })),
        ItemBody::UserMessage { .. } | ItemBody::Notice { .. } => None,
    }
}

fn result_of(call: &ToolCallItem) -> ToolResult {
    match (&call.result, call.status) {
        (Some(result), _) => result.clone(),
        (None, ToolCallStatus::Unknown) => ToolResult::error(UNKNOWN_OUTCOME),
        (None, _) => ToolResult::error("This call was not made."),
    }
}

/// The `turn.step` part of an item's id, for items that belong to an answer.
fn step_of(item: &Item) -> Option<&str> {
    match &item.body {
        ItemBody::UserMessage { .. } | ItemBody::Notice { .. } => None,
        ItemBody::ToolCall(call) if call.by_user => None,
        _ => item.id.as_str().rsplit_once('.').map(|(step, _)| step),
    }
}
