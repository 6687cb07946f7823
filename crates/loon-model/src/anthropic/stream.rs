//! Decodes the answer of a Messages server.
//!
//! The explicit end is `message_stop`. Blocks are told apart by their index: a block may open, and
//! text of it may come, before an earlier one has its signature.

use std::borrow::Cow;

use loon_api::{Answer, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::draft::{Draft, Slot};
use crate::member::{Text, arguments_text, count, is_failure};
use crate::sse::Flow;
use crate::wire::{Decoder, Fault, believable, settle};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A change of a block, or of the message.
#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// The message at its start, or the whole of it.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
}

/// A block that has been opened.
struct OpenBlock {
    index: Option<u64>,
    slot: Slot,
    /// Arguments that came with the opening; they count if no pieces follow.
    input: String,
    signature: Option<String>,
}

/// Token counts as the server splits them.
#[derive(Clone, Copy, Default)]
struct Counts {
    fresh: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
}

/// Decodes one answer.
pub(crate) struct AnthropicDecoder {
    name: String,
    draft: Draft,
    blocks: Vec<OpenBlock>,
    stop: Option<StopReason>,
    ended: bool,
    counts: Counts,
}

impl AnthropicDecoder {
    /// A decoder for an answer of the model `name` (`provider/model`).
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            draft: Draft::default(),
            blocks: Vec::new(),
            stop: None,
            ended: false,
            counts: Counts::default(),
        }
    }

    fn open(&mut self, block: &Block<'_>, index: Option<u64>) -> Result<(), Fault> {
        let slot = match &*block.kind {
            "text" => self.draft.open_text(),
            "thinking" => self.draft.open_thinking(),
            "redacted_thinking" => {
                let slot = self.draft.open_thinking();
                let data = block.data.as_ref().map_or("", |data| &*data.0);
                self.draft.set_opaque(slot, json!({"redacted": data}));
                slot
            }
            "tool_use" => self.draft.open_call(block.name.as_ref().map_or("", |name| &*name.0)),
            _ => self.draft.open_unknown(),
        };
        for text in block.text.iter().chain(&block.thinking) {
            self.draft.push(slot, &text.0);
        }
        let input = match block.input {
            Some(raw) if raw.get() != "{}" => arguments_text(raw)?.into_owned(),
            _ => String::new(),
        };
        let signature = block.signature.as_ref().map(|text| text.0.clone().into_owned());
        self.blocks.push(OpenBlock { index, slot, input, signature });
        Ok(())
    }

    fn delta(&mut self, delta: &Delta<'_>, index: Option<u64>) {
        let is_it = |block: &&mut OpenBlock| index.is_none() || block.index == index;
        let Some(block) = self.blocks.iter_mut().rev().find(is_it) else { return };
        for text in delta.text.iter().chain(&delta.thinking).chain(&delta.partial_json) {
            self.draft.push(block.slot, &text.0);
        }
        if let Some(Text(text)) = &delta.signature {
            block.signature.get_or_insert_default().push_str(text);
        }
    }

    fn stop(&mut self, reason: Option<&Text<'_>>) {
        match reason.map_or("", |reason| &*reason.0) {
            "" => {}
            "tool_use" => self.stop = Some(StopReason::ToolCalls),
            "max_tokens" | "model_context_window_exceeded" => self.stop = Some(StopReason::Length),
            "refusal" | "content_filter" => self.stop = Some(StopReason::Refused),
            _ => self.stop = Some(StopReason::End),
        }
    }

    /// The last count that was given wins, each for itself.
    fn count(&mut self, report: Option<&RawValue>) {
        let Some(report) = report else { return };
        let report: Value = serde_json::from_str(report.get()).unwrap_or_default();
        let counts = &mut self.counts;
        for (place, name) in [
            (&mut counts.fresh, "/input_tokens"),
            (&mut counts.cached, "/cache_read_input_tokens"),
            (&mut counts.written, "/cache_creation_input_tokens"),
            (&mut counts.output, "/output_tokens"),
        ] {
            *place = count(&report, &[name]).or(*place);
        }
    }
}

impl Decoder for AnthropicDecoder {
    fn event(&mut self, data: &str) -> Result<Flow, Fault> {
        let data = data.trim();
        if matches!(data, "" | "null") {
            return Ok(Flow::More);
        }
        if data == "[DONE]" {
            return Ok(Flow::Done);
        }
        let event: Event<'_> = serde_json::from_str(data)?;
        match &*event.kind {
            "content_block_delta" => {
                if let Some(delta) = &event.delta {
                    self.delta(delta, event.index);
                }
            }
            "content_block_start" => {
                if let Some(block) = &event.content_block {
                    self.open(block, event.index)?;
                }
            }
            "message_start" => {
                if let Some(message) = event.message {
                    let message: Message<'_> = serde_json::from_str(message.get())?;
                    self.count(message.usage);
                }
            }
            "message_delta" => {
                self.stop(event.delta.as_ref().and_then(|delta| delta.stop_reason.as_ref()));
                self.count(event.usage);
            }
            "message_stop" => {
                self.ended = true;
                return Ok(Flow::Done);
            }
            "error" => return Err(Fault::Server(data.to_owned())),
            _ if is_failure(event.error) => return Err(Fault::Server(data.to_owned())),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn body(&mut self, body: &str) -> Result<(), Fault> {
        let message: Message<'_> = serde_json::from_str(body)?;
        if is_failure(message.error) || message.kind == "error" {
            return Err(Fault::Server(body.to_owned()));
        }
        self.ended = message.content.is_some();
        for block in message.content.iter().flatten() {
            self.open(block, None)?;
        }
        self.stop(message.stop_reason.as_ref());
        self.count(message.usage);
        Ok(())
    }

    fn draft(&mut self) -> &mut Draft {
        &mut self.draft
    }

    fn usage(&self) -> Usage {
        let Counts { fresh, cached, written, output } = self.counts;
        believable(Usage {
            input_tokens: fresh.map(|fresh| {
                fresh.saturating_add(cached.unwrap_or(0)).saturating_add(written.unwrap_or(0))
            }),
            cached_tokens: cached,
            cache_write_tokens: written,
            output_tokens: output,
            reasoning_tokens: None,
            estimated_tokens: None,
        })
    }

    fn finish(&mut self) -> Result<Answer, Fault> {
        if !self.ended {
            return Err(Fault::Unfinished("no message_stop came"));
        }
        for block in std::mem::take(&mut self.blocks) {
            if self.draft.is_blank(block.slot) {
                self.draft.push(block.slot, &block.input);
            }
            if let Some(signature) = block.signature {
                self.draft.set_opaque(block.slot, json!({"signature": signature}));
            }
        }
        Ok(Answer {
            stop: settle(self.stop.unwrap_or(StopReason::End), self.draft.has_calls()),
            parts: self.draft.take_parts(&self.name),
            usage: self.usage(),
        })
    }
}

#[cfg(test)]
mod tests;
