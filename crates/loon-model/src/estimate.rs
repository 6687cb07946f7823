//! How many tokens a request will take, from its bytes alone. No tokenizer: reported usage replaces
//! the estimate as soon as there is some.
//!
//! Code and English run at about three and a half bytes a token; other scripts take about a token
//! for three bytes. The estimate leans to the high side: a window that is thought fuller than it is
//! costs less than one that overflows.

use loon_api::{AssistantPart, Message, ModelRequest, UserPart};
use serde_json::Value;

/// What a message costs beyond its text.
const PER_MESSAGE: u64 = 4;
/// What a call and its result cost beyond their texts.
const PER_CALL: u64 = 12;
/// What a tool costs beyond its texts.
const PER_TOOL: u64 = 12;
/// What a picture costs, about, whatever its size.
const PER_IMAGE: u64 = 1600;

/// Estimated tokens of a request by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The system text.
    pub system: u64,
    /// Descriptions and schemas of the tools.
    pub tools: u64,
    /// The conversation.
    pub messages: u64,
}

impl Estimate {
    /// All parts together.
    pub fn total(&self) -> u64 {
        self.system + self.tools + self.messages
    }
}

/// Estimates a request.
pub fn estimate(request: &ModelRequest) -> Estimate {
    Estimate {
        system: text_tokens(&request.system),
        tools: request
            .tools
            .iter()
            .map(|tool| {
                PER_TOOL
                    + text_tokens(&tool.name)
                    + text_tokens(&tool.description)
                    + json_tokens(&tool.parameters)
            })
            .sum(),
        messages: request.messages.iter().map(message_tokens).sum(),
    }
}

/// Estimates a message, the results of its calls included.
pub fn message_tokens(message: &Message) -> u64 {
    let parts: u64 = match message {
        Message::User(parts) => parts
            .iter()
            .map(|part| match part {
                UserPart::Text(text) => text_tokens(text),
                UserPart::Image { .. } => PER_IMAGE,
            })
            .sum(),
        Message::Assistant(answer) => answer
            .parts
            .iter()
            .map(|part| match part {
                AssistantPart::Text(text) => text_tokens(text),
                AssistantPart::Thinking(thinking) => text_tokens(&thinking.text),
                AssistantPart::Call(call) => {
                    PER_CALL
                        + text_tokens(&call.name)
                        + json_tokens(&call.arguments)
                        + text_tokens(&call.result.text)
                }
            })
            .sum(),
    };
    PER_MESSAGE + parts
}

/// Estimates a text.
pub fn text_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let other = text.len() as u64 - ascii;
    (ascii * 2).div_ceil(7) + other.div_ceil(3)
}

fn json_tokens(value: &Value) -> u64 {
    text_tokens(&value.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loon_api::{ToolClass, ToolSpec};

    use super::*;

    #[test]
    fn each_part_counts_for_itself() {
        let request = ModelRequest {
            system: "a".repeat(35),
            messages: vec![
                Message::User(vec![UserPart::Text("b".repeat(70))]),
                Message::User(vec![UserPart::Image {
                    media_type: "image/png".into(),
                    data: "x".repeat(100_000),
                }]),
            ],
            tools: Arc::new([ToolSpec {
                name: "read".into(),
                description: "c".repeat(7),
                parameters: serde_json::json!({}),
                class: ToolClass::Reads,
            }]),
            max_output_tokens: None,
            effort: None,
            output_schema: None,
            cache_key: String::new(),
        };
        let estimate = estimate(&request);
        assert_eq!(estimate, Estimate { system: 10, tools: 12 + 2 + 2 + 1, messages: 24 + 1604 });
        assert_eq!(estimate.total(), 10 + 17 + 1628);
    }

    #[test]
    fn other_scripts_take_more_tokens_a_character() {
        assert_eq!(text_tokens(""), 0);
        assert_eq!(text_tokens("你好世界"), 4);
        assert_eq!(text_tokens("hello world!!!"), 4);
    }
}
