//! An answer under construction: parts in the order in which they opened, each growing by itself,
//! and the progress that has not been told yet.

use loon_api::{AnswerPart, Thinking};
use loon_kernel::port::Progress;
use serde_json::Value;

use crate::member::arguments_value;

/// Most bytes of text, reasoning and arguments of one answer. A longer one is refused.
pub(crate) const MAX_ANSWER_BYTES: usize = 128 << 20;

/// Where a part stands in its draft.
pub(crate) type Slot = usize;

/// A part under construction.
#[derive(Debug)]
enum PartDraft {
    Text(String),
    Thinking {
        text: String,
        opaque: Option<Value>,
    },
    Call {
        number: u32,
        name: String,
        arguments: String,
    },
    /// A part of a kind that we do not know. It takes pieces and keeps none.
    Unknown,
}

/// An answer under construction.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    parts: Vec<PartDraft>,
    calls: u32,
    bytes: usize,
    progress: Vec<Progress>,
}

impl Draft {
    pub(crate) fn open_text(&mut self) -> Slot {
        self.open(PartDraft::Text(String::new()))
    }

    pub(crate) fn open_thinking(&mut self) -> Slot {
        self.open(PartDraft::Thinking { text: String::new(), opaque: None })
    }

    pub(crate) fn open_unknown(&mut self) -> Slot {
        self.open(PartDraft::Unknown)
    }

    /// Opens a call and tells of its name, if the name has come already.
    pub(crate) fn open_call(&mut self, name: &str) -> Slot {
        let number = self.calls;
        self.calls += 1;
        let slot =
            self.open(PartDraft::Call { number, name: String::new(), arguments: String::new() });
        self.name(slot, name);
        slot
    }

    fn open(&mut self, part: PartDraft) -> Slot {
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// The last part, if it is text.
    pub(crate) fn last_text(&self) -> Option<Slot> {
        let last = self.parts.len().checked_sub(1)?;
        matches!(self.parts[last], PartDraft::Text(_)).then_some(last)
    }

    /// The last part, if it is reasoning with exactly this opaque value.
    pub(crate) fn last_thinking(&self, with: &Value) -> Option<Slot> {
        let last = self.parts.len().checked_sub(1)?;
        matches!(&self.parts[last], PartDraft::Thinking { opaque: Some(opaque), .. } if opaque == with)
            .then_some(last)
    }

    /// Adds to the part in `slot`, whatever it is.
    pub(crate) fn push(&mut self, slot: Slot, piece: &str) {
        let Some(part) = self.parts.get_mut(slot) else { return };
        if piece.is_empty() {
            return;
        }
        self.bytes += piece.len();
        match part {
            PartDraft::Text(text) => {
                text.push_str(piece);
                if let Some(Progress::Text(text)) = self.progress.last_mut() {
                    text.push_str(piece);
                } else {
                    self.progress.push(Progress::Text(piece.to_owned()));
                }
            }
            PartDraft::Thinking { text, .. } => {
                text.push_str(piece);
                if let Some(Progress::Thinking(text)) = self.progress.last_mut() {
                    text.push_str(piece);
                } else {
                    self.progress.push(Progress::Thinking(piece.to_owned()));
                }
            }
            PartDraft::Call { number, arguments, .. } => {
                arguments.push_str(piece);
                match self.progress.last_mut() {
                    Some(Progress::Arguments { index, fragment, .. }) if index == number => {
                        fragment.push_str(piece);
                    }
                    _ => self.progress.push(Progress::Arguments {
                        index: *number,
                        name: None,
                        fragment: piece.to_owned(),
                    }),
                }
            }
            PartDraft::Unknown => {}
        }
    }

    /// Names the call in `slot`, once; later names mean nothing.
    pub(crate) fn name(&mut self, slot: Slot, new: &str) {
        if let Some(PartDraft::Call { number, name, .. }) = self.parts.get_mut(slot)
            && name.is_empty()
            && !new.is_empty()
        {
            new.clone_into(name);
            self.bytes += new.len();
            self.progress.push(Progress::Arguments {
                index: *number,
                name: Some(new.to_owned()),
                fragment: String::new(),
            });
        }
    }

    /// Sets what the wire format wants back with the reasoning in `slot`.
    pub(crate) fn set_opaque(&mut self, slot: Slot, value: Value) {
        if let Some(PartDraft::Thinking { opaque, .. }) = self.parts.get_mut(slot) {
            *opaque = Some(value);
        }
    }

    /// True if the part in `slot` has no text and no arguments so far.
    pub(crate) fn is_blank(&self, slot: Slot) -> bool {
        match self.parts.get(slot) {
            Some(PartDraft::Text(text) | PartDraft::Thinking { text, .. }) => text.is_empty(),
            Some(PartDraft::Call { arguments, .. }) => arguments.is_empty(),
            Some(PartDraft::Unknown) | None => false,
        }
    }

    /// True if some of the answer has come.
    pub(crate) fn has_output(&self) -> bool {
        self.bytes > 0
    }

    /// True if the answer is longer than any answer may be.
    pub(crate) fn is_too_large(&self) -> bool {
        self.bytes > MAX_ANSWER_BYTES
    }

    /// True if no part has been opened.
    pub(crate) fn is_untouched(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// What has come since the last time, in order, pieces of one part joined.
    pub(crate) fn take_progress(&mut self) -> Vec<Progress> {
        std::mem::take(&mut self.progress)
    }

    /// The parts of the answer of `model` (`provider/model`). Empty ones are left out.
    pub(crate) fn take_parts(&mut self, model: &str) -> Vec<AnswerPart> {
        std::mem::take(&mut self.parts)
            .into_iter()
            .filter_map(|part| match part {
                PartDraft::Text(text) if text.is_empty() => None,
                PartDraft::Text(text) => Some(AnswerPart::Text(text)),
                PartDraft::Thinking { text, opaque: None } if text.is_empty() => None,
                PartDraft::Thinking { text, opaque } => {
                    Some(AnswerPart::Thinking(Thinking { text, model: model.to_owned(), opaque }))
                }
                PartDraft::Call { name, arguments, .. } => {
                    Some(AnswerPart::Call { name, arguments: arguments_value(&arguments) })
                }
                PartDraft::Unknown => None,
            })
            .collect()
    }
}
