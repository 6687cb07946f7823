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

/// Estimates a request: system text, tools and conversation.
pub(crate) fn request(request: &ModelRequest) -> u64 {
    let tools: u64 = request
        .tools
        .iter()
        .map(|tool| PER_TOOL + text(&tool.name) + text(&tool.description) + json(&tool.parameters))
        .sum();
    let messages: u64 = request.messages.iter().map(message).sum();
    text(&request.system) + tools + messages
}

/// Estimates a message, the results of its calls included.
fn message(message: &Message) -> u64 {
    let parts: u64 = match message {
        Message::User(parts) => parts
            .iter()
            .map(|part| match part {
                UserPart::Text(words) => text(words),
                UserPart::Image { .. } => PER_IMAGE,
            })
            .sum(),
        Message::Assistant(answer) => answer
            .parts
            .iter()
            .map(|part| match part {
                AssistantPart::Text(words) => text(words),
                AssistantPart::Thinking(thinking) => text(&thinking.text),
                AssistantPart::Call(call) => {
                    PER_CALL + text(&call.name) + json(&call.arguments) + text(&call.result.text)
                }
            })
            .sum(),
    };
    PER_MESSAGE + parts
}

fn text(text: &str) -> u64 {
    let mut size = TextSize::default();
    size.add(text);
    size.tokens()
}

fn json(value: &Value) -> u64 {
    text(&value.to_string())
}

/// The size of a text that grows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextSize {
    ascii: u64,
    other: u64,
}

impl TextSize {
    /// Counts another piece.
    pub(crate) fn add(&mut self, piece: &str) {
        let ascii = piece.bytes().filter(u8::is_ascii).count() as u64;
        self.ascii += ascii;
        self.other += piece.len() as u64 - ascii;
    }

    /// About how many tokens it has so far.
    pub(crate) fn tokens(self) -> u64 {
        (self.ascii * 2).div_ceil(7) + self.other.div_ceil(3)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loon_api::{ToolClass, ToolSpec};

    use super::*;

    #[test]
    fn each_part_counts_for_itself() {
        let mut asked = ModelRequest {
            system: "a".repeat(35),
            messages: Vec::new(),
            tools: Arc::new([]),
            max_output_tokens: None,
            effort: None,
            output_schema: None,
            cache_key: String::new(),
        };
        assert_eq!(request(&asked), 10);
        asked.tools = Arc::new([ToolSpec {
            name: "read".into(),
            description: "c".repeat(7),
            parameters: serde_json::json!({}),
            class: ToolClass::Reads,
        }]);
        assert_eq!(request(&asked), 10 + 12 + 2 + 2 + 1);
        let image = UserPart::Image { media_type: "image/png".into(), data: "x".repeat(100_000) };
        asked.messages =
            vec![Message::User(vec![UserPart::Text("b".repeat(70))]), Message::User(vec![image])];
        assert_eq!(request(&asked), 27 + 24 + 1604);
    }

    #[test]
    fn other_scripts_take_more_tokens_a_character() {
        assert_eq!(text(""), 0);
        assert_eq!(text("你好世界"), 4);
        assert_eq!(text("hello world!!!"), 4);
    }
}
