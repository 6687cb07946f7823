//! Answers in the three wire formats, as server-sent events.

use serde_json::{Value, json};

/// A wire format, known by the path of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Chat,
    Responses,
    Messages,
}

impl Wire {
    /// The format that is asked for at a path.
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or(path);
        [
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
            ("/messages", Self::Messages),
        ]
        .into_iter()
        .find(|(end, _)| path.ends_with(end))
        .map(|(_, wire)| wire)
    }

    /// How many tool calls the conversation has answered.
    pub(super) fn rounds(self, request: &Value) -> usize {
        let list = |name: &str| request[name].as_array().map(Vec::as_slice).unwrap_or_default();
        match self {
            Self::Chat => {
                list("messages").iter().filter(|message| message["role"] == "tool").count()
            }
            Self::Responses => {
                list("input").iter().filter(|item| item["type"] == "function_call_output").count()
            }
            Self::Messages => list("messages")
                .iter()
                .filter_map(|message| message["content"].as_array())
                .flatten()
                .filter(|part| part["type"] == "tool_result")
                .count(),
        }
    }

    /// The shell tool on offer, with arguments that run `true`.
    pub(super) fn shell_call(self, request: &Value) -> Option<(String, String)> {
        const NAMES: [&str; 5] = ["bash", "shell", "exec", "command", "terminal"];
        let tools = request["tools"].as_array()?.iter().map(|tool| match self {
            Self::Chat => (&tool["function"]["name"], &tool["function"]["parameters"]),
            Self::Responses => (&tool["name"], &tool["parameters"]),
            Self::Messages => (&tool["name"], &tool["input_schema"]),
        });
        let tools: Vec<(&str, &Value)> =
            tools.filter_map(|(name, schema)| Some((name.as_str()?, schema))).collect();
        let (name, schema) =
            NAMES.iter().find_map(|wanted| tools.iter().find(|(name, _)| name.contains(wanted)))?;
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let arguments: serde_json::Map<String, Value> = required
            .iter()
            .filter_map(Value::as_str)
            .map(|name| {
                let value = match schema["properties"][name]["type"].as_str() {
                    Some("array") => json!(["true"]),
                    Some("integer" | "number") => json!(1000),
                    Some("boolean") => json!(false),
                    _ => json!("true"),
                };
                (name.to_owned(), value)
            })
            .collect();
        Some(((*name).to_owned(), Value::Object(arguments).to_string()))
    }

    /// The events before a text, one piece of it, and those after it.
    pub(super) fn text(self) -> (String, fn(&str) -> String, String) {
        match self {
            Self::Chat => (
                data(&chunk(&json!({"role": "assistant", "content": ""}), &Value::Null)),
                |piece| data(&chunk(&json!({"content": piece}), &Value::Null)),
                chat_end("stop"),
            ),
            Self::Responses => (
                event("response.created", json!({"response": response(&json!([]))}))
                    + &event(
                        "response.output_item.added",
                        json!({"output_index": 0, "item": message("", "in_progress")}),
                    )
                    + &event(
                        "response.content_part.added",
                        json!({"output_index": 0, "content_index": 0, "item_id": "m1", "part": {"type": "output_text", "text": "", "annotations": []}}),
                    ),
                |piece| {
                    event(
                        "response.output_text.delta",
                        json!({"output_index": 0, "content_index": 0, "item_id": "m1", "delta": piece}),
                    )
                },
                event(
                    "response.output_item.done",
                    json!({"output_index": 0, "item": message("Done.", "completed")}),
                ) + &event(
                    "response.completed",
                    json!({"response": response(&json!([message("Done.", "completed")]))}),
                ),
            ),
            Self::Messages => (
                message_start()
                    + &event(
                        "content_block_start",
                        json!({"index": 0, "content_block": {"type": "text", "text": ""}}),
                    ),
                |piece| {
                    event(
                        "content_block_delta",
                        json!({"index": 0, "delta": {"type": "text_delta", "text": piece}}),
                    )
                },
                message_end("end_turn"),
            ),
        }
    }

    /// All events of an answer that calls one tool.
    pub(super) fn call(self, round: usize, name: &str, arguments: &str) -> String {
        let id = format!("call_{round}");
        match self {
            Self::Chat => {
                let call = json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
                data(&chunk(&json!({"role": "assistant", "tool_calls": [call]}), &Value::Null))
                    + &chat_end("tool_calls")
            }
            Self::Responses => {
                let item = json!({"type": "function_call", "id": format!("fc_{round}"), "call_id": id, "name": name, "arguments": arguments, "status": "completed"});
                event("response.created", json!({"response": response(&json!([]))}))
                    + &event("response.output_item.added", json!({"output_index": 0, "item": item}))
                    + &event(
                        "response.function_call_arguments.done",
                        json!({"output_index": 0, "item_id": format!("fc_{round}"), "arguments": arguments}),
                    )
                    + &event("response.output_item.done", json!({"output_index": 0, "item": item}))
                    + &event("response.completed", json!({"response": response(&json!([item]))}))
            }
            Self::Messages => {
                message_start()
                    + &event(
                        "content_block_start",
                        json!({"index": 0, "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}),
                    )
                    + &event(
                        "content_block_delta",
                        json!({"index": 0, "delta": {"type": "input_json_delta", "partial_json": arguments}}),
                    )
                    + &message_end("tool_use")
            }
        }
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn event(kind: &str, mut value: Value) -> String {
    value["type"] = kind.into();
    format!("event: {kind}\ndata: {value}\n\n")
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn chat_end(reason: &str) -> String {
    let usage = json!({"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "model", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}});
    data(&chunk(&json!({}), &json!(reason))) + &data(&usage) + "data: [DONE]\n\n"
}

fn message(text: &str, status: &str) -> Value {
    json!({"type": "message", "id": "m1", "role": "assistant", "status": status,
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn response(output: &Value) -> Value {
    json!({"id": "r1", "object": "response", "created_at": 0, "model": "model", "status": "completed", "output": output,
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}})
}

fn message_start() -> String {
    event(
        "message_start",
        json!({"message": {"id": "m1", "type": "message", "role": "assistant", "model": "model",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 100, "output_tokens": 1}}}),
    )
}

fn message_end(reason: &str) -> String {
    event("content_block_stop", json!({"index": 0}))
        + &event(
            "message_delta",
            json!({"delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 10}}),
        )
        + &event("message_stop", json!({}))
}
