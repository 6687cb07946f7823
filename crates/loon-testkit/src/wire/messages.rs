//! Answers in the Messages format.

use serde_json::{Value, json};

use super::{Writer, all_text, calls, deltas, event};
use crate::reply::{Answer, Stop, Tokens};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Thinking,
    Text,
}

pub(super) struct MessagesWriter {
    model: String,
    serial: usize,
    index: usize,
    open: Option<Block>,
    calls: usize,
}

impl MessagesWriter {
    pub(super) fn new(model: &str, serial: usize) -> Self {
        Self { model: model.to_owned(), serial, index: 0, open: None, calls: 0 }
    }

    fn end_block(&mut self) -> Vec<String> {
        let mut frames = Vec::new();
        let Some(block) = self.open.take() else { return frames };
        if block == Block::Thinking {
            let signature = format!("c2lnbmF0dXJl{}x{}", self.serial, self.index);
            frames.push(self.delta(&json!({"type": "signature_delta", "signature": signature})));
        }
        frames.push(event(&json!({"type": "content_block_stop", "index": self.index})));
        self.index += 1;
        frames
    }

    fn begin_block(&mut self, block: Block, content: &Value) -> Vec<String> {
        if self.open == Some(block) {
            return Vec::new();
        }
        let mut frames = self.end_block();
        self.open = Some(block);
        frames.push(self.start(content));
        frames
    }

    fn start(&self, content: &Value) -> String {
        let index = self.index;
        event(&json!({"type": "content_block_start", "index": index, "content_block": content}))
    }

    fn delta(&self, delta: &Value) -> String {
        event(&json!({"type": "content_block_delta", "index": self.index, "delta": delta}))
    }
}

impl Writer for MessagesWriter {
    fn open(&mut self, usage: Option<Tokens>) -> Vec<String> {
        let mut message = json!({
            "id": format!("msg_{}", self.serial),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": input_usage(usage),
        });
        message["usage"]["output_tokens"] = json!(1);
        vec![
            event(&json!({"type": "message_start", "message": message})),
            event(&json!({"type": "ping"})),
        ]
    }

    fn thinking(&mut self, piece: &str) -> Vec<String> {
        let content = json!({"type": "thinking", "thinking": "", "signature": ""});
        let mut frames = self.begin_block(Block::Thinking, &content);
        for text in deltas(piece) {
            frames.push(self.delta(&json!({"type": "thinking_delta", "thinking": text})));
        }
        frames
    }

    fn text(&mut self, piece: &str) -> Vec<String> {
        let mut frames = self.begin_block(Block::Text, &json!({"type": "text", "text": ""}));
        for text in deltas(piece) {
            frames.push(self.delta(&json!({"type": "text_delta", "text": text})));
        }
        frames
    }

    fn call(&mut self, name: &str, arguments: &str) -> Vec<String> {
        let mut frames = self.end_block();
        let id = format!("toolu_{}_{}", self.serial, self.calls);
        self.calls += 1;
        frames.push(self.start(&json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
        for piece in deltas(arguments) {
            frames.push(self.delta(&json!({"type": "input_json_delta", "partial_json": piece})));
        }
        frames.push(event(&json!({"type": "content_block_stop", "index": self.index})));
        self.index += 1;
        frames
    }

    fn error(&mut self, kind: &str, message: &str) -> Vec<String> {
        vec![event(&json!({"type": "error", "error": {"type": kind, "message": message}}))]
    }

    fn close(&mut self, stop: Stop, tokens: Option<Tokens>) -> Vec<String> {
        let mut frames = self.end_block();
        let reason = stop_reason(stop, self.calls > 0);
        let output = tokens.map_or(0, |tokens| tokens.output);
        frames.push(event(&json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": output},
        })));
        frames.push(event(&json!({"type": "message_stop"})));
        frames
    }
}

pub(super) fn whole(answer: &Answer, model: &str, serial: usize) -> Value {
    let mut content = Vec::new();
    let text = all_text(answer);
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    for (index, (name, arguments)) in calls(answer).enumerate() {
        let id = format!("toolu_{serial}_{index}");
        let input: Value = serde_json::from_str(arguments).unwrap_or_default();
        content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }
    let mut usage = input_usage(answer.usage);
    usage["output_tokens"] = json!(answer.usage.map_or(0, |tokens| tokens.output));
    json!({
        "id": format!("msg_{serial}"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason(answer.stop, calls(answer).next().is_some()),
        "stop_sequence": null,
        "usage": usage,
    })
}

fn stop_reason(stop: Stop, has_calls: bool) -> &'static str {
    match stop {
        Stop::Length => "max_tokens",
        Stop::Refused => "refusal",
        Stop::End if has_calls => "tool_use",
        Stop::End => "end_turn",
    }
}

/// In this format `input_tokens` leaves the cached ones out.
fn input_usage(tokens: Option<Tokens>) -> Value {
    tokens.map_or_else(
        || json!({}),
        |tokens| {
            json!({
                "input_tokens": tokens.input - tokens.cached,
                "cache_read_input_tokens": tokens.cached,
                "cache_creation_input_tokens": 0,
            })
        },
    )
}
