//! Decodes the answer of a chat completions server.
//!
//! The explicit end is a chunk with a finish reason, followed by `[DONE]` or the end of the body.
//! Usage comes in a later chunk without choices, or in every chunk: the last one counts.

use std::borrow::Cow;

use loon_api::{Answer, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::request::REASONING_FIELDS;
use crate::draft::{Draft, Slot};
use crate::member::{Text, arguments_text, count, is_failure};
use crate::sse::Flow;
use crate::wire::{Decoder, Fault, believable, settle};

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Some servers say `error` here and put the rest beside it.
    #[serde(borrow)]
    object: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// In place of `delta`, if the answer comes in one piece.
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Fragment<'a>>>,
}

/// A piece of a call.
#[derive(Deserialize)]
struct Fragment<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// A call that has been opened.
struct OpenCall {
    slot: Slot,
    index: Option<u64>,
    id: String,
}

/// Decodes one answer.
pub(crate) struct ChatDecoder {
    name: String,
    draft: Draft,
    calls: Vec<OpenCall>,
    /// What marks reasoning of each of [`REASONING_FIELDS`].
    reasoning: [Value; 2],
    stop: Option<StopReason>,
    refused: bool,
    /// The last usage report, raw.
    usage: String,
}

impl ChatDecoder {
    /// A decoder for an answer of the model `name` (`provider/model`).
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            draft: Draft::default(),
            calls: Vec::new(),
            reasoning: REASONING_FIELDS.map(|field| json!({"field": field})),
            stop: None,
            refused: false,
            usage: String::new(),
        }
    }

    fn chunk(&mut self, data: &str) -> Result<(), Fault> {
        let chunk: Chunk<'_> = serde_json::from_str(data)?;
        if is_failure(chunk.error) || chunk.object.is_some_and(|object| object.0 == "error") {
            return Err(Fault::Server(data.to_owned()));
        }
        if let Some(usage) = chunk.usage {
            self.usage.clear();
            self.usage.push_str(usage.get());
        }
        // We ask for one choice; a second one would be another answer.
        for choice in chunk.choices.into_iter().flatten() {
            if choice.index.unwrap_or(0) == 0 {
                self.choice(choice)?;
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice<'_>) -> Result<(), Fault> {
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(delta)?;
        }
        match choice.finish_reason.as_ref().map_or("", |reason| &*reason.0) {
            "" => {}
            "length" | "max_tokens" | "model_length" => self.stop = Some(StopReason::Length),
            "content_filter" | "refusal" => self.stop = Some(StopReason::Refused),
            "tool_calls" | "function_call" => self.stop = Some(StopReason::ToolCalls),
            _ => self.stop = Some(StopReason::End),
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>) -> Result<(), Fault> {
        let given = |text: Option<Text<'_>>| text.is_some_and(|text| !text.0.is_empty());
        // Some servers send the same reasoning under both names.
        let reasoning = match (delta.reasoning_content, delta.reasoning) {
            (Some(text), _) if !text.0.is_empty() => Some((0, text)),
            (_, text) => text.map(|text| (1, text)),
        };
        if let Some((field, Text(text))) = reasoning
            && !text.is_empty()
        {
            let mark = &self.reasoning[field];
            let slot = self.draft.last_thinking(mark).unwrap_or_else(|| {
                let slot = self.draft.open_thinking();
                self.draft.set_opaque(slot, mark.clone());
                slot
            });
            self.draft.push(slot, &text);
        }
        if let Some(Text(text)) = delta.content {
            self.text(&text);
        }
        if let Some(Text(text)) = &delta.refusal {
            self.text(text);
        }
        self.refused |= given(delta.refusal);
        for fragment in delta.tool_calls.into_iter().flatten() {
            self.fragment(&fragment)?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            let slot = self.draft.last_text().unwrap_or_else(|| self.draft.open_text());
            self.draft.push(slot, text);
        }
    }

    fn fragment(&mut self, fragment: &Fragment<'_>) -> Result<(), Fault> {
        let id = fragment.id.as_ref().map_or("", |id| &*id.0);
        let function = fragment.function.as_ref();
        let name = function.and_then(|function| function.name.as_ref()).map_or("", |name| &*name.0);
        let arguments = match function.and_then(|function| function.arguments) {
            Some(raw) => arguments_text(raw)?,
            None => Cow::Borrowed(""),
        };
        let slot = if let Some(slot) = self.find_call(fragment.index, id, name) {
            self.draft.name(slot, name);
            slot
        } else {
            let slot = self.draft.open_call(name);
            self.calls.push(OpenCall { slot, index: fragment.index, id: id.to_owned() });
            slot
        };
        self.draft.push(slot, &arguments);
        Ok(())
    }

    /// The open call that a fragment continues. Some servers send no index; some send index 0 for
    /// every call, each with an id of its own.
    fn find_call(&self, index: Option<u64>, id: &str, name: &str) -> Option<Slot> {
        if let Some(index) = index {
            let call = self.calls.iter().rfind(|call| call.index == Some(index))?;
            let is_other = !id.is_empty() && !call.id.is_empty() && id != call.id;
            return (!is_other || name.is_empty()).then_some(call.slot);
        }
        if !id.is_empty() {
            return self.calls.iter().find(|call| call.id == id).map(|call| call.slot);
        }
        self.calls.last().filter(|_| name.is_empty()).map(|call| call.slot)
    }
}

impl Decoder for ChatDecoder {
    fn event(&mut self, data: &str) -> Result<Flow, Fault> {
        match data.trim() {
            "" | "null" => Ok(Flow::More),
            "[DONE]" => Ok(Flow::Done),
            data => self.chunk(data).map(|()| Flow::More),
        }
    }

    fn body(&mut self, body: &str) -> Result<(), Fault> {
        self.chunk(body)
    }

    fn draft(&mut self) -> &mut Draft {
        &mut self.draft
    }

    fn usage(&self) -> Usage {
        usage(&self.usage)
    }

    fn finish(&mut self) -> Result<Answer, Fault> {
        let stop = self.stop.ok_or(Fault::Unfinished("no finish reason came"))?;
        let stop = if self.refused { StopReason::Refused } else { stop };
        Ok(Answer {
            stop: settle(stop, self.draft.has_calls()),
            parts: self.draft.take_parts(&self.name),
            usage: self.usage(),
        })
    }
}

/// Reads a usage report.
fn usage(raw: &str) -> Usage {
    let report: Value = serde_json::from_str(raw).unwrap_or_default();
    believable(Usage {
        input_tokens: count(&report, &["/prompt_tokens"]),
        cached_tokens: count(
            &report,
            &["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"],
        ),
        cache_write_tokens: count(
            &report,
            &["/prompt_tokens_details/cache_write_tokens", "/cache_creation_input_tokens"],
        ),
        output_tokens: count(&report, &["/completion_tokens"]),
        reasoning_tokens: count(&report, &["/completion_tokens_details/reasoning_tokens"]),
        estimated_tokens: None,
    })
}

#[cfg(test)]
mod tests;
