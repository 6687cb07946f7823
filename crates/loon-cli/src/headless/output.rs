//! Writing events to standard output, as JSON lines or as text for a person.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use loon_api::{
    AgentEvent, ChecklistStep, Envelope, ItemBody, Receipt, RecordChange, ToolCallItem,
    ToolCallStatus,
};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;

use crate::failure::say_error;
use crate::safe::{plain, write_json};

/// Room for one event.
pub(super) type Place = mpsc::OwnedPermit<Arc<Envelope>>;

/// Events that may wait for the writer.
const CAPACITY: usize = 256;

/// How events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON object a line, nothing else.
    Json,
    /// The model's words on standard output, what it did on standard error.
    Text,
}

/// Why standard output could not be written.
#[derive(Debug)]
pub(super) enum WriteError {
    /// The other end is closed.
    ReaderGone,
    /// The other end is open and takes nothing.
    Stalled,
    /// Something else, a full disk for example.
    Other(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Other(error),
        }
    }
}

/// The writer's thread, seen from the driver.
pub(super) struct Output {
    events: Option<mpsc::Sender<Arc<Envelope>>>,
    writer: JoinHandle<Result<(), WriteError>>,
}

impl Output {
    /// Starts the thread.
    pub(super) fn start(format: Format) -> Self {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let writer = tokio::task::spawn_blocking(move || write_events(format, receiver));
        Self { events: Some(sender), writer }
    }

    /// Hands one event over; gives it back if there is no room now. Drops it if writing has failed, as
    /// [`Output::broken`] tells.
    pub(super) fn write(&mut self, event: Arc<Envelope>) -> Option<Arc<Envelope>> {
        match self.events.as_ref()?.try_send(event) {
            Err(TrySendError::Full(event)) => Some(event),
            Ok(()) | Err(TrySendError::Closed(_)) => None,
        }
    }

    /// Completes when there is room for an event; with nothing if none will be written.
    pub(super) fn place(&self) -> impl Future<Output = Option<Place>> + use<> {
        let events = self.events.clone();
        async move { events?.reserve_owned().await.ok() }
    }

    /// Completes when writing has failed, also while there is nothing to write. Never completes
    /// again after [`Output::give_up`].
    pub(super) fn broken(&self) -> impl Future<Output = ()> + use<> {
        let events = self.events.clone();
        async move {
            match events {
                Some(events) => events.closed().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Drops all later events.
    pub(super) fn give_up(&mut self) {
        self.events = None;
    }

    /// Waits for the last event to be written, but not longer than `limit`.
    pub(super) async fn finish(self, limit: Option<Duration>) -> Result<(), WriteError> {
        drop(self.events);
        let written = match limit {
            None => self.writer.await,
            Some(limit) => match tokio::time::timeout(limit, self.writer).await {
                Ok(written) => written,
                Err(_) => return Err(WriteError::Stalled),
            },
        };
        written.unwrap_or_else(|panic| Err(WriteError::Other(io::Error::other(panic))))
    }
}

/// Prints one event as a line, at once.
pub(super) fn print(event: &Envelope) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write_event(Format::Json, event, &mut out)?;
    out.flush()
}

fn write_events(
    format: Format,
    mut events: mpsc::Receiver<Arc<Envelope>>,
) -> Result<(), WriteError> {
    let mut out = io::BufWriter::with_capacity(64 * 1024, io::stdout().lock());
    while let Some(event) = events.blocking_recv() {
        write_event(format, &event, &mut out)?;
        while let Ok(event) = events.try_recv() {
            write_event(format, &event, &mut out)?;
        }
        out.flush()?;
    }
    Ok(())
}

fn write_event(format: Format, event: &Envelope, out: &mut impl Write) -> io::Result<()> {
    match format {
        Format::Json => {
            write_json(out, event)?;
            out.write_all(b"\n")
        }
        Format::Text => write_text(event, out),
    }
}

/// The model's words go to `out`; calls, notices and errors to standard error, where a closed one
/// is passed over.
fn write_text(event: &Envelope, out: &mut impl Write) -> io::Result<()> {
    match &event.event {
        AgentEvent::ItemCompleted(completed) => match &completed.item.body {
            ItemBody::AssistantMessage { text, .. } => writeln!(out, "{}", plain(text.trim_end()))?,
            ItemBody::ToolCall(call) if call.status.is_final() => {
                say(&call_line(call));
                for step in new_checklist(call) {
                    say(&format!("    {step}"));
                }
            }
            ItemBody::Notice { text, .. } => say(&format!("· {text}")),
            _ => {}
        },
        AgentEvent::EffectRetried(retried) => {
            let seconds = retried.delay_ms as f64 / 1000.0;
            say(&format!("· {} Trying again in {seconds} s.", retried.error.message));
        }
        AgentEvent::EffectRerouted(rerouted) => say(&format!("· {}", rerouted.words())),
        AgentEvent::CircuitChanged(changed) => {
            if let Some(words) = changed.words() {
                say(&format!("· {words}"));
            }
        }
        AgentEvent::CompactionProgress(progress) => {
            say(&format!(
                "· compacting the context, request {} of {}",
                progress.request, progress.of
            ));
        }
        AgentEvent::ContextCompacted(compacted) => {
            let left = &compacted.compaction;
            say(&format!(
                "· compacted the context: about {} to {} tokens",
                left.tokens_before, left.tokens_after
            ));
        }
        AgentEvent::CompactionFailed(failed) => {
            say(&format!("· not compacted. {}", failed.error.message));
        }
        AgentEvent::Notice(notice) => say(&format!("· {}", notice.message)),
        AgentEvent::BudgetReached(event) => say(&format!("· {}; it waits", event.reached)),
        AgentEvent::BudgetChanged(_) => say("· the bounds of the budget changed"),
        AgentEvent::UltraLoopChanged(changed) => {
            say(if changed.on { "· Ultra Loop is on" } else { "· Ultra Loop is off" });
        }
        AgentEvent::ReviewStarted(started) => {
            say(&format!("· review {} of {} by {}", started.number, started.of, started.model));
        }
        AgentEvent::ReviewFinished(finished) => say(&format!("· {}", finished.review.words())),
        AgentEvent::TurnFinished(turn) => {
            if let Some(review) = turn.review {
                say(&format!("· {}", review.words()));
            }
            if let Some(line) = turn.receipt.as_ref().and_then(Receipt::line) {
                say(&format!("· {line}"));
            }
        }
        AgentEvent::SubagentStarted(child) => say(&format!("· {}", child.words())),
        AgentEvent::SubagentFinished(child) => {
            say(&format!("· {}", child.words()));
        }
        AgentEvent::StreamFinished(finished) => {
            if let Some(error) = &finished.error {
                out.flush()?;
                say_error(error);
            }
        }
        _ => {}
    }
    Ok(())
}

/// The checklist as the call leaves it, if it changed it.
fn new_checklist(call: &ToolCallItem) -> &[ChecklistStep] {
    let steps = call.record.iter().rev().find_map(|change| match change {
        RecordChange::Checklist { steps } => Some(steps.as_slice()),
        _ => None,
    });
    steps.unwrap_or_default()
}

fn call_line(call: &ToolCallItem) -> String {
    let glyph = match call.status {
        ToolCallStatus::Done => "●",
        ToolCallStatus::Failed => "✗",
        ToolCallStatus::Denied => "⊘",
        _ => "·",
    };
    let mut line = format!("{glyph} {} {}", call.tool, call.title);
    if !call.summary.is_empty() {
        line.push_str("  ");
        line.push_str(&call.summary);
    }
    match (call.status, &call.error) {
        (ToolCallStatus::Failed | ToolCallStatus::Denied, Some(error)) => {
            line.push_str("  ");
            line.push_str(&error.message);
        }
        (ToolCallStatus::Cancelled, _) => line.push_str("  cancelled"),
        (ToolCallStatus::Unknown, _) => line.push_str("  outcome unknown"),
        _ => {}
    }
    line
}

fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain(line));
}
