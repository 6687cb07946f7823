//! Answers as chat completions.

use serde_json::{Value, json};

use super::{Writer, all_text, calls, data, deltas};
use crate::reply::{Answer, Stop, Tokens};

pub(super) struct ChatWriter {
    model: String,
    serial: usize,
    with_usage: bool,
    calls: usize,
}

impl ChatWriter {
    pub(super) fn new(model: &str, serial: usize, with_usage: bool) -> Self {
        Self { model: model.to_owned(), serial, with_usage, calls: 0 }
    }

    fn chunk(&self, choices: &Value, usage: &Value) -> String {
        data(&json!({
            "id": format!("chatcmpl-{}", self.serial),
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": self.model,
            "choices": choices,
            "usage": usage,
        }))
    }

    fn delta(&self, delta: &Value) -> String {
        self.chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null)
    }
}

impl Writer for ChatWriter {
    fn open(&mut self, _: Option<Tokens>) -> Vec<String> {
        vec![self.delta(&json!({"role": "assistant", "content": ""}))]
    }

    fn thinking(&mut self, piece: &str) -> Vec<String> {
        deltas(piece).iter().map(|text| self.delta(&json!({"reasoning_content": text}))).collect()
    }

    fn text(&mut self, piece: &str) -> Vec<String> {
        deltas(piece).iter().map(|text| self.delta(&json!({"content": text}))).collect()
    }

    fn call(&mut self, name: &str, arguments: &str) -> Vec<String> {
        let index = self.calls;
        self.calls += 1;
        let id = call_id(self.serial, index);
        let function = json!({"name": name, "arguments": ""});
        let head = json!({"index": index, "id": id, "type": "function", "function": function});
        let mut frames = vec![self.delta(&json!({"tool_calls": [head]}))];
        frames.extend(deltas(arguments).iter().map(|piece| {
            self.delta(&json!({
                "tool_calls": [{"index": index, "function": {"arguments": piece}}],
            }))
        }));
        frames
    }

    fn error(&mut self, kind: &str, message: &str) -> Vec<String> {
        vec![data(&json!({"error": {"type": kind, "message": message, "code": null}}))]
    }

    fn close(&mut self, stop: Stop, tokens: Option<Tokens>) -> Vec<String> {
        let reason = finish_reason(stop, self.calls > 0);
        let last = json!([{"index": 0, "delta": {}, "finish_reason": reason}]);
        let mut frames = vec![self.chunk(&last, &Value::Null)];
        if self.with_usage && tokens.is_some() {
            frames.push(self.chunk(&json!([]), &usage(tokens)));
        }
        frames.push("data: [DONE]\n\n".to_owned());
        frames
    }
}

pub(super) fn whole(answer: &Answer, model: &str, serial: usize) -> Value {
    let calls: Vec<Value> = calls(answer)
        .enumerate()
        .map(|(index, (name, arguments))| {
            let function = json!({"name": name, "arguments": arguments});
            json!({"id": call_id(serial, index), "type": "function", "function": function})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": all_text(answer)});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let reason = finish_reason(answer.stop, !calls.is_empty());
    json!({
        "id": format!("chatcmpl-{serial}"),
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage(answer.usage),
    })
}

fn call_id(serial: usize, index: usize) -> String {
    format!("call_{serial}_{index}")
}

fn finish_reason(stop: Stop, has_calls: bool) -> &'static str {
    match stop {
        Stop::Length => "length",
        Stop::Refused => "content_filter",
        Stop::End if has_calls => "tool_calls",
        Stop::End => "stop",
    }
}

fn usage(tokens: Option<Tokens>) -> Value {
    tokens.map_or(Value::Null, |tokens| {
        json!({
            "prompt_tokens": tokens.input,
            "completion_tokens": tokens.output,
            "total_tokens": tokens.input + tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cached},
        })
    })
}
