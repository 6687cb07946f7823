//! A recorded request, and views of it that are the same for all wire formats.

use serde_json::Value;

use crate::wire::Wire;

/// A model request as the server got it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Format, by the path it was sent to.
    pub wire: Wire,
    /// Path with query.
    pub path: String,
    /// Headers, names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
    /// The body as it came.
    pub bytes: Vec<u8>,
    /// Which connection carried it, from 0.
    pub connection: usize,
    /// Its place among all model requests, from 0.
    pub order: usize,
}

/// The result of a tool call as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// Id of the call.
    pub id: String,
    /// Text of the result.
    pub text: String,
}

impl Request {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The conversation: `messages` or `input`.
    pub fn messages(&self) -> &[Value] {
        let name = if self.wire == Wire::Responses { "input" } else { "messages" };
        self.body[name].as_array().map_or(&[], Vec::as_slice)
    }

    /// How many answers of the model the conversation holds.
    pub fn answers(&self) -> usize {
        match self.wire {
            Wire::Chat | Wire::Messages => {
                self.messages().iter().filter(|message| message["role"] == "assistant").count()
            }
            Wire::Responses => {
                let from_model = |item: &Value| {
                    item["role"] == "assistant"
                        || matches!(item["type"].as_str(), Some("function_call" | "reasoning"))
                };
                let items = self.messages();
                (0..items.len())
                    .filter(|&at| {
                        from_model(&items[at]) && (at == 0 || !from_model(&items[at - 1]))
                    })
                    .count()
            }
        }
    }

    /// All texts of the user, in order.
    pub fn user_texts(&self) -> Vec<String> {
        self.messages()
            .iter()
            .filter(|message| message["role"] == "user")
            .flat_map(|message| texts(&message["content"]))
            .collect()
    }

    /// All texts of the model, in order.
    pub fn assistant_texts(&self) -> Vec<String> {
        self.messages()
            .iter()
            .filter(|message| message["role"] == "assistant")
            .flat_map(|message| texts(&message["content"]))
            .collect()
    }

    /// The system text.
    pub fn system(&self) -> String {
        match self.wire {
            Wire::Messages => texts(&self.body["system"]).join("\n"),
            Wire::Responses => self.body["instructions"].as_str().unwrap_or_default().to_owned(),
            Wire::Chat => self
                .messages()
                .iter()
                .filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")))
                .flat_map(|message| texts(&message["content"]))
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    /// All tool results, in order.
    pub fn tool_answers(&self) -> Vec<ToolAnswer> {
        let mut found = Vec::new();
        let mut add = |id: &Value, content: &Value| {
            let id = id.as_str().unwrap_or_default().to_owned();
            found.push(ToolAnswer { id, text: texts(content).concat() });
        };
        for message in self.messages() {
            if message["role"] == "tool" {
                add(&message["tool_call_id"], &message["content"]);
            }
            if message["type"] == "function_call_output" {
                add(&message["call_id"], &message["output"]);
            }
            for block in message["content"].as_array().into_iter().flatten() {
                if block["type"] == "tool_result" {
                    add(&block["tool_use_id"], &block["content"]);
                }
            }
        }
        found
    }

    /// Text of the last tool result.
    pub fn last_answer(&self) -> String {
        self.tool_answers().pop().map(|answer| answer.text).expect("a tool result in the request")
    }

    /// Names of the tools on offer.
    pub fn tool_names(&self) -> Vec<String> {
        self.body["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()))
            .map(str::to_owned)
            .collect()
    }
}

/// The texts of a content member, be it a string or a list of parts.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => parts
            .iter()
            .filter(|part| part["type"] != "tool_result")
            .filter_map(|part| part["text"].as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}
