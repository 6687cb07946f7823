//! The body of a Responses request. The server keeps nothing (`store: false`): the whole
//! conversation goes along each time, reasoning as the encrypted items that the server made.

use loon_api::{AssistantMessage, AssistantPart, Effort, ModelRequest, UserPart};
use serde::Serialize;
use serde_json::Value;

use crate::history::{self, Turn};
use crate::wire::Target;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextOptions<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    prompt_cache_key: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    input: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Reasoning {
    effort: Effort,
    summary: &'static str,
}

#[derive(Serialize)]
struct TextOptions<'a> {
    format: TextFormat<'a>,
}

#[derive(Serialize)]
struct TextFormat<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a Value,
    strict: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    /// A reasoning item as the server made it.
    Raw(&'a Value),
    Typed(TypedItem<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TypedItem<'a> {
    Message { role: &'static str, content: Vec<Content<'a>> },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: String },
    FunctionCallOutput { call_id: &'a str, output: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String },
    OutputText { text: &'a str },
}

/// Writes the body.
pub(crate) fn encode(
    request: &ModelRequest,
    target: &Target,
) -> Result<Vec<u8>, serde_json::Error> {
    let reasons = !(target.is_openai && is_without_reasoning(&target.model));
    serde_json::to_vec(&Body {
        model: &target.model,
        stream: true,
        store: false,
        include: if reasons { &["reasoning.encrypted_content"] } else { &[] },
        max_output_tokens: request.max_output_tokens.or(target.max_output_tokens),
        reasoning: request
            .effort
            .or(target.effort)
            .filter(|_| reasons)
            .map(|effort| Reasoning { effort, summary: "auto" }),
        text: request.output_schema.as_ref().map(|schema| TextOptions {
            format: TextFormat { r#type: "json_schema", name: "answer", schema, strict: false },
        }),
        prompt_cache_key: &request.cache_key,
        instructions: &request.system,
        tools: request
            .tools
            .iter()
            .map(|spec| Tool {
                r#type: "function",
                name: &spec.name,
                description: &spec.description,
                parameters: &spec.parameters,
                strict: false,
            })
            .collect(),
        input: input(request, target)?,
    })
}

/// Older models refuse every member that speaks of reasoning.
fn is_without_reasoning(model: &str) -> bool {
    ["gpt-3", "gpt-4", "chatgpt-"].iter().any(|family| model.starts_with(family))
}

fn input<'a>(
    request: &'a ModelRequest,
    target: &Target,
) -> Result<Vec<Item<'a>>, serde_json::Error> {
    let mut items = Vec::with_capacity(request.messages.len() * 3);
    for turn in history::turns(&request.messages) {
        match turn {
            Turn::User(parts) => items.push(Item::Typed(TypedItem::Message {
                role: "user",
                content: parts.into_iter().map(user_content).collect(),
            })),
            Turn::Assistant(answer) => {
                push_answer(&mut items, answer, target)?;
                items.extend(history::calls(answer).map(|call| {
                    Item::Typed(TypedItem::FunctionCallOutput {
                        call_id: call.id.as_str(),
                        output: &call.result.text,
                    })
                }));
            }
        }
    }
    Ok(items)
}

fn user_content(part: &UserPart) -> Content<'_> {
    match part {
        UserPart::Text(text) => Content::InputText { text },
        UserPart::Image { media_type, data } => {
            Content::InputImage { image_url: format!("data:{media_type};base64,{data}") }
        }
    }
}

/// The items of one answer. A reasoning item must be followed by what it led to, so reasoning at
/// the end of a cut answer stays behind.
fn push_answer<'a>(
    items: &mut Vec<Item<'a>>,
    answer: &'a AssistantMessage,
    target: &Target,
) -> Result<(), serde_json::Error> {
    let mut reasoning = Vec::new();
    for part in &answer.parts {
        let item = match part {
            AssistantPart::Thinking(thinking) => {
                reasoning.extend(
                    history::own_opaque(thinking, &target.name)
                        .filter(|item| is_sendable(item))
                        .map(Item::Raw),
                );
                continue;
            }
            AssistantPart::Text(text) if text.trim().is_empty() => continue,
            AssistantPart::Text(text) => TypedItem::Message {
                role: "assistant",
                content: vec![Content::OutputText { text }],
            },
            AssistantPart::Call(call) => TypedItem::FunctionCall {
                call_id: call.id.as_str(),
                name: &call.name,
                arguments: serde_json::to_string(&*history::sendable_arguments(&call.arguments))?,
            },
        };
        items.append(&mut reasoning);
        items.push(Item::Typed(item));
    }
    Ok(())
}

/// A server that keeps nothing can only use an item that holds the reasoning itself.
fn is_sendable(item: &Value) -> bool {
    let holds_text =
        item.get("encrypted_content").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let holds_parts =
        item.get("content").and_then(Value::as_array).is_some_and(|parts| !parts.is_empty());
    item.get("type").and_then(Value::as_str) == Some("reasoning") && (holds_text || holds_parts)
}

#[cfg(test)]
mod tests;
