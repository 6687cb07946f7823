//! Answers in the Responses format.

use serde_json::{Value, json};

use super::{Writer, all_text, calls, deltas, event};
use crate::reply::{Answer, Stop, Tokens};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Reasoning,
    Message,
}

pub(super) struct ResponsesWriter {
    model: String,
    serial: usize,
    sequence: usize,
    open: Option<(Part, String)>,
    output: Vec<Value>,
    calls: usize,
}

impl ResponsesWriter {
    pub(super) fn new(model: &str, serial: usize) -> Self {
        let model = model.to_owned();
        Self { model, serial, sequence: 0, open: None, output: Vec::new(), calls: 0 }
    }

    /// One event, with `sequence_number` and the index of the present output item.
    fn frame(&mut self, kind: &str, fields: &Value) -> String {
        let mut value = json!({"type": kind, "sequence_number": self.sequence});
        self.sequence += 1;
        for (name, field) in fields.as_object().into_iter().flatten() {
            value[name] = field.clone();
        }
        event(&value)
    }

    /// One event about a part of the present output item.
    fn about_item(&mut self, kind: &str, fields: &Value) -> String {
        let index = self.output.len();
        let id = match &self.open {
            Some((Part::Reasoning, _)) => format!("rs_{}_{index}", self.serial),
            Some((Part::Message, _)) => format!("msg_{}_{index}", self.serial),
            None => format!("fc_{}_{index}", self.serial),
        };
        let mut value = json!({"item_id": id, "output_index": index});
        for (name, field) in fields.as_object().into_iter().flatten() {
            value[name] = field.clone();
        }
        self.frame(kind, &value)
    }

    fn response(&self, status: &str, usage: Option<Tokens>) -> Value {
        json!({
            "id": format!("resp_{}", self.serial),
            "object": "response",
            "created_at": 1_700_000_000,
            "model": self.model,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "output": self.output,
            "usage": usage_value(usage),
        })
    }

    fn begin(&mut self, part: Part) -> Vec<String> {
        if self.open.as_ref().is_some_and(|(open, _)| *open == part) {
            return Vec::new();
        }
        let mut frames = self.end();
        self.open = Some((part, String::new()));
        let index = self.output.len();
        let item = match part {
            Part::Reasoning => reasoning_item(self.serial, index, None),
            Part::Message => message_item(self.serial, index, None),
        };
        let added = json!({"output_index": index, "item": item});
        frames.push(self.frame("response.output_item.added", &added));
        frames.push(match part {
            Part::Reasoning => {
                let part = json!({"type": "summary_text", "text": ""});
                let fields = json!({"summary_index": 0, "part": part});
                self.about_item("response.reasoning_summary_part.added", &fields)
            }
            Part::Message => {
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                let fields = json!({"content_index": 0, "part": part});
                self.about_item("response.content_part.added", &fields)
            }
        });
        frames
    }

    fn end(&mut self) -> Vec<String> {
        let Some((part, text)) = self.open.clone() else { return Vec::new() };
        let index = self.output.len();
        let (item, mut frames) = match part {
            Part::Reasoning => {
                let fields = json!({"summary_index": 0, "text": text});
                let item = reasoning_item(self.serial, index, Some(&text));
                (item, vec![self.about_item("response.reasoning_summary_text.done", &fields)])
            }
            Part::Message => {
                let fields = json!({"content_index": 0, "text": text});
                let item = message_item(self.serial, index, Some(&text));
                (item, vec![self.about_item("response.output_text.done", &fields)])
            }
        };
        self.open = None;
        let done = json!({"output_index": index, "item": item});
        frames.push(self.frame("response.output_item.done", &done));
        self.output.push(item);
        frames
    }

    fn piece(&mut self, part: Part, kind: &str, index_name: &str, piece: &str) -> Vec<String> {
        let mut frames = self.begin(part);
        for text in deltas(piece) {
            let mut fields = json!({"delta": text});
            fields[index_name] = json!(0);
            frames.push(self.about_item(kind, &fields));
        }
        if let Some((_, text)) = &mut self.open {
            text.push_str(piece);
        }
        frames
    }
}

impl Writer for ResponsesWriter {
    fn open(&mut self, _: Option<Tokens>) -> Vec<String> {
        let response = json!({"response": self.response("in_progress", None)});
        vec![
            self.frame("response.created", &response),
            self.frame("response.in_progress", &response),
        ]
    }

    fn thinking(&mut self, piece: &str) -> Vec<String> {
        let kind = "response.reasoning_summary_text.delta";
        self.piece(Part::Reasoning, kind, "summary_index", piece)
    }

    fn text(&mut self, piece: &str) -> Vec<String> {
        self.piece(Part::Message, "response.output_text.delta", "content_index", piece)
    }

    fn call(&mut self, name: &str, arguments: &str) -> Vec<String> {
        let mut frames = self.end();
        let index = self.output.len();
        let call = call_item(self.serial, index, self.calls, name, arguments);
        self.calls += 1;
        let mut begun = call.clone();
        begun["arguments"] = json!("");
        begun["status"] = json!("in_progress");
        let added = json!({"output_index": index, "item": begun});
        frames.push(self.frame("response.output_item.added", &added));
        for piece in deltas(arguments) {
            let fields = json!({"delta": piece});
            frames.push(self.about_item("response.function_call_arguments.delta", &fields));
        }
        let fields = json!({"arguments": arguments});
        frames.push(self.about_item("response.function_call_arguments.done", &fields));
        let done = json!({"output_index": index, "item": call});
        frames.push(self.frame("response.output_item.done", &done));
        self.output.push(call);
        frames
    }

    fn error(&mut self, kind: &str, message: &str) -> Vec<String> {
        let mut response = self.response("failed", None);
        response["error"] = json!({"code": kind, "message": message});
        vec![self.frame("response.failed", &json!({"response": response}))]
    }

    fn close(&mut self, stop: Stop, usage: Option<Tokens>) -> Vec<String> {
        let mut frames = self.end();
        let status = status(stop);
        let mut response = self.response(status, usage);
        response["incomplete_details"] = incomplete(stop);
        frames.push(self.frame(&format!("response.{status}"), &json!({"response": response})));
        frames
    }
}

pub(super) fn whole(answer: &Answer, model: &str, serial: usize) -> Value {
    let mut writer = ResponsesWriter::new(model, serial);
    let text = all_text(answer);
    if !text.is_empty() {
        writer.text(&text);
    }
    for (name, arguments) in calls(answer) {
        writer.call(name, arguments);
    }
    writer.end();
    let mut response = writer.response(status(answer.stop), answer.usage);
    response["incomplete_details"] = incomplete(answer.stop);
    response
}

fn reasoning_item(serial: usize, index: usize, text: Option<&str>) -> Value {
    let summary = text.map(|text| json!([{"type": "summary_text", "text": text}]));
    let mut item = json!({
        "id": format!("rs_{serial}_{index}"),
        "type": "reasoning",
        "summary": summary.unwrap_or_else(|| json!([])),
    });
    if text.is_some() {
        item["encrypted_content"] = json!(format!("ZW5jcnlwdGVk{serial}x{index}"));
    }
    item
}

fn message_item(serial: usize, index: usize, text: Option<&str>) -> Value {
    let part = text.map(|text| json!([{"type": "output_text", "text": text, "annotations": []}]));
    json!({
        "id": format!("msg_{serial}_{index}"),
        "type": "message",
        "role": "assistant",
        "status": if text.is_some() { "completed" } else { "in_progress" },
        "content": part.unwrap_or_else(|| json!([])),
    })
}

fn call_item(serial: usize, index: usize, nth: usize, name: &str, arguments: &str) -> Value {
    json!({
        "id": format!("fc_{serial}_{index}"),
        "type": "function_call",
        "call_id": format!("call_{serial}_{nth}"),
        "name": name,
        "arguments": arguments,
        "status": "completed",
    })
}

fn status(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "completed",
        Stop::Length | Stop::Refused => "incomplete",
    }
}

fn incomplete(stop: Stop) -> Value {
    match stop {
        Stop::End => Value::Null,
        Stop::Length => json!({"reason": "max_output_tokens"}),
        Stop::Refused => json!({"reason": "content_filter"}),
    }
}

fn usage_value(tokens: Option<Tokens>) -> Value {
    tokens.map_or(Value::Null, |tokens| {
        json!({
            "input_tokens": tokens.input,
            "input_tokens_details": {"cached_tokens": tokens.cached},
            "output_tokens": tokens.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens.input + tokens.output,
        })
    })
}
