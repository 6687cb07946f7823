//! Server-sent events, decoded from bytes. The standard is the library's part; this is the guard in
//! front of it, which hands it one whole line at a time.
//!
//! By itself the library copies what is left of its input after each line, looks at an unfinished
//! line anew with each read, waits for the rest of a character that has none, keeps any amount and
//! panics at a byte order mark. So lines are found here, over whatever reads they come in (they end
//! in CR, LF or CRLF), and checked. The cost is linear whatever the size of lines and reads, and
//! memory is a few times [`MAX_EVENT_BYTES`] at most.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::{Context, Poll};

use eventsource_stream::{EventStream, EventStreamError};
use futures_util::{FutureExt, Stream, StreamExt};
use memchr::memchr2;

/// Most bytes of the lines of one event. A stream with a larger one is refused.
pub const MAX_EVENT_BYTES: usize = 32 << 20;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Its data lines, joined with LF. May be empty.
    pub(crate) data: &'a str,
    /// The stream names it an error (`event: error`, or a field called `error`).
    pub(crate) is_error: bool,
}

/// Whether a reader wants more of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The end mark has not come yet.
    More,
    /// The end mark came: nothing that follows matters.
    Done,
}

/// Why bytes are no event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// One event is larger than [`MAX_EVENT_BYTES`].
    #[error("an event of the stream is larger than {} MiB", MAX_EVENT_BYTES >> 20)]
    TooLarge,
    /// The bytes are not UTF-8.
    #[error("the answer is not valid UTF-8")]
    NotUtf8,
    /// A line is no field.
    #[error("the answer is not made of the lines that an event stream has")]
    Malformed,
    /// The bytes end inside an event.
    #[error("the stream ended inside an event")]
    CutShort,
}

impl From<EventStreamError<Infallible>> for SseError {
    fn from(error: EventStreamError<Infallible>) -> Self {
        match error {
            EventStreamError::Utf8(_) => Self::NotUtf8,
            EventStreamError::Parser(_) => Self::Malformed,
            EventStreamError::Transport(never) => match never {},
        }
    }
}

/// A decoder for one stream.
pub(crate) struct Decoder {
    /// The head of a line whose end has not come yet.
    line: Vec<u8>,
    /// Bytes of the whole lines of the event under way.
    event_bytes: usize,
    /// The last byte was a CR, so an LF that comes first belongs to it.
    after_cr: bool,
    at_start: bool,
    /// Whole lines, each with an LF, on their way into `events`.
    lines: Sender<Vec<u8>>,
    events: Box<EventStream<Lines>>,
}

/// The lines that are there. It never ends: a body that does is judged before the library hears.
struct Lines(Receiver<Vec<u8>>);

impl Stream for Lines {
    type Item = Result<Vec<u8>, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.try_recv().map_or(Poll::Pending, |line| Poll::Ready(Some(Ok(line))))
    }
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub(crate) fn new() -> Self {
        let (lines, source) = mpsc::channel();
        let mut decoder = Self {
            line: Vec::new(),
            event_bytes: 0,
            after_cr: false,
            at_start: true,
            lines,
            events: Box::new(EventStream::new(Lines(source))),
        };
        // The library panics at a byte order mark in the first piece that it sees. One mark is taken
        // off here; this is for a second one.
        decoder.forward(b"\n".to_vec());
        decoder
    }

    /// Takes the next bytes and hands over each event that they complete, until `on_event` is done
    /// or fails.
    pub(crate) fn feed<E: From<SseError>>(
        &mut self,
        mut bytes: &[u8],
        mut on_event: impl FnMut(Event<'_>) -> Result<Flow, E>,
    ) -> Result<Flow, E> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (tail, rest) = bytes.split_at(end);
            bytes = match rest {
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
            if let Some(event) = self.end_line(tail)? {
                let is_error = event.event == "error";
                if on_event(Event { data: &event.data, is_error })? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
        }
        self.line.extend_from_slice(bytes);
        self.check_size()?;
        Ok(Flow::More)
    }

    /// Takes the end of the bytes. An unfinished event is an error, save for a last `[DONE]`, after
    /// which some servers leave out the line end.
    pub(crate) fn finish<E: From<SseError>>(
        &mut self,
        mut on_event: impl FnMut(Event<'_>) -> Result<Flow, E>,
    ) -> Result<(), E> {
        if self.line.starts_with(b":") {
            self.line.clear();
        }
        let mut is_cut = !self.line.is_empty();
        if std::str::from_utf8(&self.line).is_err() {
            return Err(SseError::CutShort.into());
        }
        // What comes out when the event is ended in the server's place was not finished.
        self.feed(b"\n\n", |event| {
            is_cut = event.data != "[DONE]";
            if is_cut { Ok(Flow::Done) } else { on_event(event) }
        })?;
        if is_cut { Err(SseError::CutShort.into()) } else { Ok(()) }
    }

    /// Ends the line under way with its last bytes. Gives the event that it ends, if any.
    fn end_line(&mut self, tail: &[u8]) -> Result<Option<eventsource_stream::Event>, SseError> {
        let mut line = std::mem::take(&mut self.line);
        line.reserve(tail.len() + 1);
        line.extend_from_slice(tail);
        if std::mem::take(&mut self.at_start) && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        // Comments mean nothing, and an id nothing here: no stream is taken up again. The library
        // would copy the last id with every event.
        if line.starts_with(b":") || line.starts_with(b"id:") {
            return Ok(None);
        }
        if line == b"error" || line.starts_with(b"error:") {
            line.splice(..b"error".len(), *b"event: error\ndata");
        }
        self.event_bytes = if line.is_empty() { 0 } else { self.event_bytes + line.len() };
        self.check_size()?;
        if std::str::from_utf8(&line).is_err() {
            return Err(SseError::NotUtf8);
        }
        line.push(b'\n');
        self.forward(line);
        Ok(self.events.next().now_or_never().flatten().transpose()?)
    }

    fn forward(&mut self, line: Vec<u8>) {
        // The other end is in `events`, so it is there.
        let _ = self.lines.send(line);
    }

    fn check_size(&self) -> Result<(), SseError> {
        if self.line.len() + self.event_bytes > MAX_EVENT_BYTES {
            return Err(SseError::TooLarge);
        }
        Ok(())
    }
}

/// The data of every event of a whole stream; an entry point for fuzzing.
#[doc(hidden)]
pub fn decode_all(bytes: &[u8]) -> Result<Vec<String>, SseError> {
    let mut events = Vec::new();
    let mut decoder = Decoder::new();
    let mut keep = |event: Event<'_>| {
        events.push(event.data.to_owned());
        Ok::<_, SseError>(Flow::More)
    };
    decoder.feed(bytes, &mut keep)?;
    decoder.finish(&mut keep)?;
    Ok(events)
}

#[cfg(test)]
mod tests;
