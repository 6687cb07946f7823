//! The body of a Messages request.
//!
//! Cache marks stand at the end of the tools, of the system text and of the last two user turns:
//! the second to last is where the request before this one ended.

use std::borrow::Cow;

use loon_api::{
    AssistantMessage, AssistantPart, Effort, Message, ModelRequest, Thinking, UserPart,
};
use serde::Serialize;
use serde_json::Value;

use crate::history::{self, Turn};
use crate::wire::Target;

/// Room for the answer where neither the request nor the model says how much.
const DEFAULT_MAX_TOKENS: u64 = 8192;
/// The least that the server takes as a thinking budget.
const LEAST_BUDGET: u64 = 1024;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Budget>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct Budget {
    r#type: &'static str,
    budget_tokens: u64,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheMark>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheMark {
    Ephemeral,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheMark>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl<'a> From<Content<'a>> for Block<'a> {
    fn from(content: Content<'a>) -> Self {
        Self { content, cache_control: None }
    }
}

/// Writes the body.
pub(crate) fn encode(
    request: &ModelRequest,
    target: &Target,
) -> Result<Vec<u8>, serde_json::Error> {
    let (max_tokens, thinking) = limits(request, target);
    let mut tools: Vec<Tool<'_>> = request
        .tools
        .iter()
        .map(|spec| Tool {
            name: &spec.name,
            description: &spec.description,
            input_schema: &spec.parameters,
            cache_control: None,
        })
        .collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(CacheMark::Ephemeral);
    }
    let system = Some(request.system.as_str()).filter(|text| !text.trim().is_empty()).map(|text| {
        Block { content: Content::Text { text }, cache_control: Some(CacheMark::Ephemeral) }
    });
    serde_json::to_vec(&Body {
        model: &target.model,
        stream: true,
        max_tokens,
        thinking,
        tools,
        system: system.into_iter().collect(),
        messages: messages(request, target),
    })
}

/// Room for the whole answer, and for the reasoning in it. The budget comes on top of a default
/// room, and is at most half of a stated one.
fn limits(request: &ModelRequest, target: &Target) -> (u64, Option<Budget>) {
    let stated = request.max_output_tokens.or(target.max_output_tokens);
    let effort = request.effort.or(target.effort).filter(|_| may_think(request, target));
    let Some(effort) = effort else {
        return (stated.unwrap_or(DEFAULT_MAX_TOKENS), None);
    };
    let wanted = match effort {
        Effort::Low => 2048,
        Effort::Medium => 8192,
        Effort::High => 24_576,
    };
    let (max_tokens, budget) = match stated {
        Some(max_tokens) => (max_tokens, wanted.min(max_tokens / 2)),
        None => (DEFAULT_MAX_TOKENS + wanted, wanted),
    };
    let budget = Some(budget).filter(|budget| *budget >= LEAST_BUDGET);
    (max_tokens, budget.map(|budget_tokens| Budget { r#type: "enabled", budget_tokens }))
}

/// In the middle of a tool loop the server wants the reasoning that led to the last calls. Where
/// another model made them there is none, and thinking has to wait for the next prompt.
fn may_think(request: &ModelRequest, target: &Target) -> bool {
    match request.messages.last() {
        Some(Message::Assistant(answer)) if history::calls(answer).next().is_some() => {
            matches!(answer.parts.first(), Some(AssistantPart::Thinking(thinking))
                if own_thinking(thinking, target).is_some())
        }
        _ => true,
    }
}

fn messages<'a>(request: &'a ModelRequest, target: &Target) -> Vec<WireMessage<'a>> {
    let mut messages: Vec<WireMessage<'a>> = Vec::with_capacity(request.messages.len() * 2);
    let mut push = |role: &'static str, content: Vec<Block<'a>>| match messages.last_mut() {
        Some(last) if last.role == role => last.content.extend(content),
        _ => messages.push(WireMessage { role, content }),
    };
    for turn in history::turns(&request.messages) {
        match turn {
            Turn::User(parts) => push("user", parts.into_iter().map(user_block).collect()),
            Turn::Assistant(answer) => {
                push("assistant", answer_blocks(answer, target));
                let results: Vec<_> = history::calls(answer)
                    .map(|call| {
                        Block::from(Content::ToolResult {
                            tool_use_id: call.id.as_str(),
                            content: &call.result.text,
                            is_error: call.result.is_error,
                        })
                    })
                    .collect();
                if !results.is_empty() {
                    push("user", results);
                }
            }
        }
    }
    let user_turns = messages.iter_mut().rev().filter(|message| message.role == "user");
    for message in user_turns.take(2) {
        if let Some(last) = message.content.last_mut() {
            last.cache_control = Some(CacheMark::Ephemeral);
        }
    }
    messages
}

fn user_block(part: &UserPart) -> Block<'_> {
    Block::from(match part {
        UserPart::Text(text) => Content::Text { text },
        UserPart::Image { media_type, data } => {
            Content::Image { source: Source { r#type: "base64", media_type, data } }
        }
    })
}

fn answer_blocks<'a>(answer: &'a AssistantMessage, target: &Target) -> Vec<Block<'a>> {
    let content = answer.parts.iter().filter_map(|part| match part {
        AssistantPart::Text(text) if text.trim().is_empty() => None,
        AssistantPart::Text(text) => Some(Content::Text { text }),
        AssistantPart::Thinking(thinking) => own_thinking(thinking, target),
        AssistantPart::Call(call) => Some(Content::ToolUse {
            id: call.id.as_str(),
            name: &call.name,
            input: history::sendable_arguments(&call.arguments),
        }),
    });
    content.map(Block::from).collect()
}

/// A thinking block as the server made it; nothing without the signature that vouches for it.
fn own_thinking<'a>(thinking: &'a Thinking, target: &Target) -> Option<Content<'a>> {
    let opaque = history::own_opaque(thinking, &target.name)?;
    let member = |name: &str| opaque.get(name).and_then(Value::as_str);
    if let Some(data) = member("redacted") {
        return Some(Content::RedactedThinking { data });
    }
    Some(Content::Thinking { thinking: &thinking.text, signature: member("signature")? })
}

#[cfg(test)]
mod tests;
