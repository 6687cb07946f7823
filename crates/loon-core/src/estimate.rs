//! How many tokens a request will take, from its bytes alone. No tokenizer: reported usage replaces
//! the estimate as soon as there is some.
//!
//! Code and English run at about three and a half bytes a token; other scripts take about a token
//! for three bytes. The estimate leans to the high side: a window that is thought fuller than it is
//! costs less than one that overflows.

use loon_api::ToolSpec;
use serde_json::Value;

/// What a message costs beyond its text.
pub(crate) const PER_MESSAGE: u64 = 4;
/// What a call and its result cost beyond their texts.
pub(crate) const PER_CALL: u64 = 12;
/// What a tool costs beyond its texts.
const PER_TOOL: u64 = 12;
/// What a picture costs, about, whatever its size.
pub(crate) const PER_IMAGE: u64 = 1600;
/// So many bytes are at most a token, whatever they say.
pub(crate) const SAFE_BYTES: u64 = 3;

/// Estimates the descriptions of tools.
pub(crate) fn tools(tools: &[ToolSpec]) -> u64 {
    let size = |tool: &ToolSpec| {
        PER_TOOL + text(&tool.name) + text(&tool.description) + json(&tool.parameters)
    };
    tools.iter().map(size).sum()
}

/// Estimates a text.
pub(crate) fn text(text: &str) -> u64 {
    let mut size = TextSize::default();
    size.add(text);
    size.tokens()
}

/// Estimates a JSON value as it is sent.
pub(crate) fn json(value: &Value) -> u64 {
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
    use loon_api::ToolClass;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tool_counts_with_all_its_texts() {
        let read = ToolSpec {
            name: "read".into(),
            description: "c".repeat(7),
            parameters: serde_json::json!({}),
            class: ToolClass::Reads,
        };
        assert_eq!(tools(std::slice::from_ref(&read)), 12 + 2 + 2 + 1);
        assert_eq!(tools(&[read.clone(), read]), 34);
    }

    proptest! {
        #[test]
        fn no_text_has_more_tokens_than_its_bytes_allow(words in "\\PC{0,300}") {
            prop_assert!(text(&words) <= (words.len() as u64).div_ceil(SAFE_BYTES) + 1);
        }
    }

    #[test]
    fn other_scripts_take_more_tokens_a_character() {
        assert_eq!(text(""), 0);
        assert_eq!(text("你好世界"), 4);
        assert_eq!(text("hello world!!!"), 4);
    }
}
