//! Decodes the answer of a Responses server.
//!
//! The explicit end is `response.completed` or `response.incomplete`. Items are told apart by
//! `output_index` where the server sends one, else by id. What a finished item holds fills in for
//! pieces that never came, and is kept whole for reasoning.

use std::borrow::Cow;

use loon_api::{Answer, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::draft::{Draft, Slot};
use crate::member::{Text, count, is_failure};
use crate::sse::Flow;
use crate::wire::{Decoder, Fault, believable, settle};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    output_index: Option<u64>,
    #[serde(borrow)]
    item_id: Option<Text<'a>>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    summary_index: Option<u64>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// An output item, as it opens or as it ended.
#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Vec<Part<'a>>>,
    #[serde(borrow)]
    summary: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
}

/// The response as a whole, at its end.
#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<Text<'a>>,
}

/// An item that has been opened.
struct OpenItem {
    slot: Slot,
    index: Option<u64>,
    id: String,
}

/// What opens when a piece comes for an item that was never announced.
#[derive(Clone, Copy)]
enum Kind {
    Message,
    Reasoning,
    Call,
}

/// Decodes one answer.
pub(crate) struct ResponsesDecoder {
    name: String,
    draft: Draft,
    items: Vec<OpenItem>,
    /// Part of the summary under way, to set parts apart.
    summary_index: u64,
    stop: Option<StopReason>,
    refused: bool,
    usage: Usage,
}

impl ResponsesDecoder {
    /// A decoder for an answer of the model `name` (`provider/model`).
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            draft: Draft::default(),
            items: Vec::new(),
            summary_index: 0,
            stop: None,
            refused: false,
            usage: Usage::default(),
        }
    }

    fn piece(&mut self, event: &Event<'_>, kind: Kind) -> Result<(), Fault> {
        let Some(delta) = event.delta else { return Ok(()) };
        let Text(delta) = serde_json::from_str(delta.get())?;
        let id = event.item_id.as_ref().map_or("", |id| &*id.0);
        let slot = self.find(event.output_index, id).unwrap_or_else(|| {
            let slot = match kind {
                Kind::Message => self.draft.open_text(),
                Kind::Reasoning => self.draft.open_thinking(),
                Kind::Call => self.draft.open_call(""),
            };
            self.items.push(OpenItem { slot, index: event.output_index, id: id.to_owned() });
            slot
        });
        if let Some(index) = event.summary_index {
            if index != self.summary_index && !self.draft.is_blank(slot) {
                self.draft.push(slot, "\n\n");
            }
            self.summary_index = index;
        }
        self.draft.push(slot, &delta);
        Ok(())
    }

    fn find(&self, index: Option<u64>, id: &str) -> Option<Slot> {
        let is_it = |item: &&OpenItem| match (index, item.index) {
            (Some(index), Some(its)) => index == its,
            _ => item.id == id,
        };
        self.items.iter().rev().find(is_it).map(|item| item.slot)
    }

    /// Opens an item that was announced, or that ended without having been announced.
    fn open(&mut self, item: &Item<'_>, index: Option<u64>) -> Slot {
        let slot = match &*item.kind {
            "message" => self.draft.open_text(),
            "reasoning" => self.draft.open_thinking(),
            "function_call" => self.draft.open_call(item.name.as_ref().map_or("", |name| &*name.0)),
            _ => self.draft.open_unknown(),
        };
        let id = item.id.as_ref().map_or_else(String::new, |id| id.0.clone().into_owned());
        self.items.push(OpenItem { slot, index, id });
        slot
    }

    fn added(&mut self, raw: &RawValue, index: Option<u64>) -> Result<(), Fault> {
        let item: Item<'_> = serde_json::from_str(raw.get())?;
        self.open(&item, index);
        Ok(())
    }

    /// Takes an item that ended: opens it if it is new, and fills in what never came in pieces.
    fn ended(&mut self, raw: &RawValue, index: Option<u64>) -> Result<(), Fault> {
        let item: Item<'_> = serde_json::from_str(raw.get())?;
        let id = item.id.as_ref().map_or("", |id| &*id.0);
        let slot = self.find(index, id).unwrap_or_else(|| self.open(&item, index));
        self.refused |= item
            .content
            .iter()
            .flatten()
            .any(|part| part.refusal.as_ref().is_some_and(|text| !text.0.is_empty()));
        let blank = self.draft.is_blank(slot);
        match &*item.kind {
            "message" if blank => {
                for part in item.content.iter().flatten() {
                    for text in part.text.iter().chain(&part.refusal) {
                        self.draft.push(slot, &text.0);
                    }
                }
            }
            "reasoning" => {
                if blank {
                    let parts = item.summary.iter().chain(&item.content).flatten();
                    let texts: Vec<&str> =
                        parts.filter_map(|part| part.text.as_ref()).map(|text| &*text.0).collect();
                    self.draft.push(slot, &texts.join("\n\n"));
                }
                self.draft.set_opaque(slot, serde_json::from_str(raw.get())?);
            }
            "function_call" => {
                self.draft.name(slot, item.name.as_ref().map_or("", |name| &*name.0));
                if blank && let Some(Text(arguments)) = &item.arguments {
                    self.draft.push(slot, arguments);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the response as a whole. `end` is what the event that brought it says of its end.
    fn response(&mut self, raw: &RawValue, end: Option<&str>) -> Result<(), Fault> {
        let response: Response<'_> = serde_json::from_str(raw.get())?;
        if let Some(usage) = response.usage {
            self.usage = usage_of(usage.get());
        }
        let said = response.status.as_ref().map(|status| &*status.0);
        let status = match (end, said) {
            (Some("completed"), Some("incomplete")) => "incomplete",
            (Some(end), _) => end,
            (None, Some(said)) => said,
            (None, None) if response.output.is_some() => "completed",
            (None, None) => "",
        };
        if is_failure(response.error) || status == "failed" {
            return Err(Fault::Server(raw.get().to_owned()));
        }
        if self.draft.is_untouched() {
            for (index, item) in (0..).zip(response.output.into_iter().flatten()) {
                self.ended(item, Some(index))?;
            }
        }
        self.stop = match status {
            "completed" => Some(StopReason::End),
            "incomplete" => {
                let reason = response.incomplete_details.and_then(|details| details.reason);
                Some(match reason.as_ref().map_or("", |reason| &*reason.0) {
                    "content_filter" => StopReason::Refused,
                    _ => StopReason::Length,
                })
            }
            _ => None,
        };
        Ok(())
    }
}

impl Decoder for ResponsesDecoder {
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
            "response.output_text.delta" => self.piece(&event, Kind::Message)?,
            "response.refusal.delta" => {
                self.refused = true;
                self.piece(&event, Kind::Message)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.piece(&event, Kind::Reasoning)?;
            }
            "response.function_call_arguments.delta" => self.piece(&event, Kind::Call)?,
            "response.output_item.added" => {
                if let Some(item) = event.item {
                    self.added(item, event.output_index)?;
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.ended(item, event.output_index)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let end = event.kind.strip_prefix("response.");
                match event.response {
                    Some(response) => self.response(response, end)?,
                    None => return Err(Fault::Server(data.to_owned())),
                }
                return Ok(Flow::Done);
            }
            "error" => return Err(Fault::Server(data.to_owned())),
            _ if is_failure(event.error) => return Err(Fault::Server(data.to_owned())),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn body(&mut self, body: &str) -> Result<(), Fault> {
        self.response(serde_json::from_str(body)?, None)
    }

    fn draft(&mut self) -> &mut Draft {
        &mut self.draft
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn finish(&mut self) -> Result<Answer, Fault> {
        let stop = self.stop.ok_or(Fault::Unfinished("no response.completed came"))?;
        let stop = if self.refused { StopReason::Refused } else { stop };
        Ok(Answer {
            stop: settle(stop, self.draft.has_calls()),
            parts: self.draft.take_parts(&self.name),
            usage: self.usage,
        })
    }
}

/// Reads a usage report.
fn usage_of(raw: &str) -> Usage {
    let report: Value = serde_json::from_str(raw).unwrap_or_default();
    believable(Usage {
        input_tokens: count(&report, &["/input_tokens"]),
        cached_tokens: count(&report, &["/input_tokens_details/cached_tokens"]),
        cache_write_tokens: count(&report, &["/input_tokens_details/cache_write_tokens"]),
        output_tokens: count(&report, &["/output_tokens"]),
        reasoning_tokens: count(&report, &["/output_tokens_details/reasoning_tokens"]),
        estimated_tokens: None,
    })
}

#[cfg(test)]
mod tests;
