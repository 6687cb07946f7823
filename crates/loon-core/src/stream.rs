//! From the progress of one model request to passing events, and from its answer to items.

use loon_api::event::{DeltaKind, ItemDelta, ItemDropped, ItemStarted, MeterUpdated};
use loon_api::{
    Answer, AnswerPart, At, BoxFuture, CallId, Item, ItemBody, ItemId, Thinking, ToolCallItem,
    TurnNumber,
};
use loon_kernel::secrets::MaskStream;
use loon_kernel::{Follow, Progress, Recorder};
use serde_json::Value;

use crate::estimate::TextSize;

/// Least time between two readings of the meter, in milliseconds.
const METER_INTERVAL_MS: i64 = 250;

/// Follows one streamed answer.
pub(crate) struct AnswerStream {
    recorder: Recorder,
    turn: TurnNumber,
    step: u32,
    model: String,
    sent: At,
    metered: At,
    size: TextSize,
    open: Option<Segment>,
    started: Vec<ItemId>,
    texts: Vec<String>,
    thinkings: u32,
    calls: u32,
    /// Keeps secrets out of what is told of the open segment.
    mask: MaskStream,
}

#[derive(PartialEq, Eq)]
enum Segment {
    Text,
    Thinking,
    Call(u32),
}

impl AnswerStream {
    pub(crate) fn new(recorder: Recorder, turn: TurnNumber, step: u32, model: String) -> Self {
        let now = recorder.now();
        Self {
            mask: recorder.redactor().stream(),
            recorder,
            turn,
            step,
            model,
            sent: now,
            metered: now,
            size: TextSize::default(),
            open: None,
            started: Vec::new(),
            texts: Vec::new(),
            thinkings: 0,
            calls: 0,
        }
    }

    async fn tell(&mut self, progress: Progress) {
        match progress {
            Progress::Text(text) => {
                if self.open != Some(Segment::Text) {
                    self.close().await;
                    self.open = Some(Segment::Text);
                    self.texts.push(String::new());
                    let id = self.text_id();
                    self.start(id, assistant(String::new(), false)).await;
                }
                if let Some(last) = self.texts.last_mut() {
                    last.push_str(&text);
                }
                let id = self.text_id();
                self.delta(id, DeltaKind::Text, text).await;
            }
            Progress::Thinking(text) => {
                if self.open != Some(Segment::Thinking) {
                    self.close().await;
                    self.open = Some(Segment::Thinking);
                    self.thinkings += 1;
                    let thinking =
                        Thinking { text: String::new(), model: self.model.clone(), opaque: None };
                    self.start(self.thinking_id(), ItemBody::Thinking(thinking)).await;
                }
                self.delta(self.thinking_id(), DeltaKind::Thinking, text).await;
            }
            Progress::Arguments { index, name, fragment } => {
                let id = ItemId::call(self.turn, self.step, index);
                if self.open != Some(Segment::Call(index)) {
                    self.close().await;
                }
                if index >= self.calls {
                    self.calls = index + 1;
                    let call = waiting_call(
                        CallId::of(self.turn, self.step, index),
                        name.unwrap_or_default(),
                        Value::Null,
                        String::new(),
                    );
                    self.start(id.clone(), ItemBody::ToolCall(call)).await;
                }
                self.open = Some(Segment::Call(index));
                self.delta(id, DeltaKind::Arguments, fragment).await;
            }
            Progress::Output(_) => return,
        }
        let now = self.recorder.now();
        if now.unix_ms() - self.metered.unix_ms() >= METER_INTERVAL_MS {
            self.metered = now;
            self.meter(self.size.tokens(), now, true).await;
        }
    }

    /// The last reading: the provider's count if it gave one.
    pub(crate) async fn finish_meter(&self, output_tokens: Option<u64>, now: At) {
        let tokens = output_tokens.unwrap_or_else(|| self.size.tokens());
        self.meter(tokens, now, output_tokens.is_none()).await;
    }

    /// Takes back begun items that the answer did not bring.
    pub(crate) async fn drop_missing(&self, kept: &[Item]) {
        for id in &self.started {
            if !kept.iter().any(|item| item.id == *id) {
                self.recorder.pass(Some(self.turn), ItemDropped { item: id.clone() }).await;
            }
        }
    }

    /// What had arrived of the words, as items that say they are incomplete.
    pub(crate) fn incomplete(&self) -> Vec<Item> {
        let texts = self.texts.iter().enumerate().filter(|(_, text)| !text.trim().is_empty());
        texts
            .map(|(index, text)| Item {
                id: ItemId::text(self.turn, self.step, index as u32),
                turn: self.turn,
                body: assistant(text.clone(), true),
            })
            .collect()
    }

    async fn meter(&self, tokens: u64, now: At, estimated: bool) {
        let ms = now.since(self.sent).as_millis() as u64;
        self.recorder.pass(Some(self.turn), MeterUpdated { tokens, ms, estimated }).await;
    }

    async fn start(&mut self, id: ItemId, body: ItemBody) {
        self.started.push(id.clone());
        let item = Item { id, turn: self.turn, body };
        self.recorder.pass(Some(self.turn), ItemStarted { item }).await;
    }

    async fn delta(&mut self, item: ItemId, of: DeltaKind, text: String) {
        self.size.add(&text);
        let text = self.mask.push(text);
        if !text.is_empty() {
            self.recorder.pass(Some(self.turn), ItemDelta { item, of, text }).await;
        }
    }

    /// Tells what was held back of the open segment.
    async fn close(&mut self) {
        let (item, of) = match self.open {
            None => return,
            Some(Segment::Text) => (self.text_id(), DeltaKind::Text),
            Some(Segment::Thinking) => (self.thinking_id(), DeltaKind::Thinking),
            Some(Segment::Call(index)) => {
                (ItemId::call(self.turn, self.step, index), DeltaKind::Arguments)
            }
        };
        let text = self.mask.finish();
        if !text.is_empty() {
            self.recorder.pass(Some(self.turn), ItemDelta { item, of, text }).await;
        }
    }

    fn text_id(&self) -> ItemId {
        ItemId::text(self.turn, self.step, (self.texts.len() as u32).saturating_sub(1))
    }

    fn thinking_id(&self) -> ItemId {
        ItemId::thinking(self.turn, self.step, self.thinkings.saturating_sub(1))
    }
}

impl Follow for AnswerStream {
    /// The meter begins anew with each attempt. There is nothing else to take back: only a request of
    /// which nothing was told is repeated.
    fn begin(&mut self, at: At) {
        self.sent = at;
        self.metered = at;
        self.size = TextSize::default();
    }

    fn take(&mut self, progress: Progress) -> BoxFuture<'_, ()> {
        Box::pin(self.tell(progress))
    }

    fn asks(&mut self, model: &str) {
        model.clone_into(&mut self.model);
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }
}

/// Passes the live output of one tool call on.
pub(crate) struct OutputStream {
    recorder: Recorder,
    turn: TurnNumber,
    item: ItemId,
    mask: MaskStream,
}

impl OutputStream {
    pub(crate) fn new(recorder: Recorder, turn: TurnNumber, item: ItemId) -> Self {
        let mask = recorder.redactor().stream();
        Self { recorder, turn, item, mask }
    }

    async fn tell(&self, text: String) {
        if !text.is_empty() {
            let delta = ItemDelta { item: self.item.clone(), of: DeltaKind::Output, text };
            self.recorder.pass(Some(self.turn), delta).await;
        }
    }
}

impl Follow for OutputStream {
    fn take(&mut self, progress: Progress) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Progress::Output(text) = progress {
                let text = self.mask.push(text);
                self.tell(text).await;
            }
        })
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let text = self.mask.finish();
            self.tell(text).await;
        })
    }
}

fn assistant(text: String, incomplete: bool) -> ItemBody {
    ItemBody::AssistantMessage { text, incomplete }
}

fn waiting_call(call: CallId, tool: String, arguments: Value, title: String) -> ToolCallItem {
    ToolCallItem { title, ..ToolCallItem::waiting(call, tool, arguments) }
}

/// The items of a whole answer. `title` names a call for the transcript.
pub(crate) fn items_of(
    answer: &Answer,
    turn: TurnNumber,
    step: u32,
    title: &dyn Fn(&str, &Value) -> String,
) -> Vec<Item> {
    let (mut texts, mut thinkings, mut calls) = (0, 0, 0);
    let mut items = Vec::with_capacity(answer.parts.len());
    for part in &answer.parts {
        let (id, body) = match part {
            AnswerPart::Text(text) => {
                let id = ItemId::text(turn, step, texts);
                texts += 1;
                if text.trim().is_empty() {
                    continue;
                }
                (id, assistant(text.clone(), false))
            }
            AnswerPart::Thinking(thinking) => {
                thinkings += 1;
                (ItemId::thinking(turn, step, thinkings - 1), ItemBody::Thinking(thinking.clone()))
            }
            AnswerPart::Call { name, arguments } => {
                calls += 1;
                let call = waiting_call(
                    CallId::of(turn, step, calls - 1),
                    name.clone(),
                    arguments.clone(),
                    title(name, arguments),
                );
                (ItemId::call(turn, step, calls - 1), ItemBody::ToolCall(call))
            }
        };
        items.push(Item { id, turn, body });
    }
    items
}
