//! The body of a chat completions request.

use std::borrow::Cow;

use loon_api::{AssistantMessage, AssistantPart, Effort, ModelRequest, ToolSpec, UserPart};
use serde::Serialize;
use serde_json::Value;

use crate::history::{self, Turn};
use crate::wire::Target;

/// Names under which servers send reasoning and want it back.
pub(crate) const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    schema: &'a Value,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: String,
}

/// Writes the body.
pub(crate) fn encode(
    request: &ModelRequest,
    target: &Target,
) -> Result<Vec<u8>, serde_json::Error> {
    let limit = request.max_output_tokens.or(target.max_output_tokens);
    serde_json::to_vec(&Body {
        model: &target.model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: limit.filter(|_| !target.is_openai),
        max_completion_tokens: limit.filter(|_| target.is_openai),
        reasoning_effort: request.effort.or(target.effort),
        response_format: request.output_schema.as_ref().map(|schema| ResponseFormat {
            r#type: "json_schema",
            json_schema: JsonSchema { name: "answer", schema },
        }),
        prompt_cache_key: Some(request.cache_key.as_str())
            .filter(|key| target.is_openai && !key.is_empty()),
        tools: request.tools.iter().map(tool).collect(),
        messages: messages(request, target)?,
    })
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool {
        r#type: "function",
        function: Function {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.parameters,
        },
    }
}

fn messages<'a>(
    request: &'a ModelRequest,
    target: &Target,
) -> Result<Vec<Message<'a>>, serde_json::Error> {
    let mut messages = Vec::with_capacity(request.messages.len() * 2 + 1);
    if !request.system.is_empty() {
        messages.push(Message::System { content: &request.system });
    }
    for turn in history::turns(&request.messages) {
        match turn {
            Turn::User(parts) => messages.push(Message::User { content: user_content(&parts) }),
            Turn::Assistant(answer) => {
                messages.push(assistant(answer, target)?);
                messages.extend(history::calls(answer).map(|call| Message::Tool {
                    tool_call_id: call.id.as_str(),
                    content: &call.result.text,
                }));
            }
        }
    }
    Ok(messages)
}

/// One string wherever possible: many servers read nothing else.
fn user_content<'a>(parts: &[&'a UserPart]) -> Content<'a> {
    match history::plain_text(parts) {
        Some(text) => Content::Text(text),
        None => Content::Parts(
            parts
                .iter()
                .map(|part| match part {
                    UserPart::Text(text) => Part::Text { text },
                    UserPart::Image { media_type, data } => Part::ImageUrl {
                        image_url: ImageUrl { url: format!("data:{media_type};base64,{data}") },
                    },
                })
                .collect(),
        ),
    }
}

fn assistant<'a>(
    answer: &'a AssistantMessage,
    target: &Target,
) -> Result<Message<'a>, serde_json::Error> {
    let mut tool_calls = Vec::new();
    for call in history::calls(answer) {
        tool_calls.push(ToolCall {
            id: call.id.as_str(),
            r#type: "function",
            function: CalledFunction {
                name: &call.name,
                arguments: serde_json::to_string(&*history::sendable_arguments(&call.arguments))?,
            },
        });
    }
    // Servers that want their reasoning back want it in the tool loop. With a finished answer some
    // refuse it.
    let reasoning = |field: &str| {
        if tool_calls.is_empty() { None } else { own_reasoning(answer, field, target) }
    };
    Ok(Message::Assistant {
        reasoning_content: reasoning(REASONING_FIELDS[0]),
        reasoning: reasoning(REASONING_FIELDS[1]),
        content: text(answer),
        tool_calls,
    })
}

fn text(answer: &AssistantMessage) -> Option<Cow<'_, str>> {
    join(
        answer.parts.iter().filter_map(|part| match part {
            AssistantPart::Text(text) if !text.trim().is_empty() => Some(text.as_str()),
            _ => None,
        }),
        "\n\n",
    )
}

/// The reasoning that came in `field` from the very model that the request is for.
fn own_reasoning<'a>(
    answer: &'a AssistantMessage,
    field: &str,
    target: &Target,
) -> Option<Cow<'a, str>> {
    join(
        answer.parts.iter().filter_map(|part| match part {
            AssistantPart::Thinking(thinking)
                if history::own_opaque(thinking, &target.name)?.get("field")?.as_str()?
                    == field =>
            {
                Some(thinking.text.as_str())
            }
            _ => None,
        }),
        "",
    )
}

fn join<'a>(texts: impl Iterator<Item = &'a str>, between: &str) -> Option<Cow<'a, str>> {
    let mut joined: Option<Cow<'a, str>> = None;
    for text in texts {
        match &mut joined {
            None => joined = Some(Cow::Borrowed(text)),
            Some(joined) => {
                let joined = joined.to_mut();
                joined.push_str(between);
                joined.push_str(text);
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests;
