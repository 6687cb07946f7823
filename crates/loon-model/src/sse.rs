//! Server-sent events, decoded from bytes by their standard: lines end in CR, LF or CRLF, a byte
//! order mark may come first, several `data` lines make one event, comments and other fields mean
//! nothing. Bytes of one character, and the two bytes of a line end, may come in different reads.
//!
//! Bytes are only joined and searched here, each once; an event becomes text when it is whole. So
//! the cost is linear whatever the size of lines and reads, and memory is bounded by
//! [`MAX_EVENT_BYTES`].

use memchr::memchr2;

/// Most bytes of one event. A stream with a larger one is refused.
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
    /// The bytes end inside an event.
    #[error("the stream ended inside an event")]
    CutShort,
}

/// A decoder for one stream.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// The head of a line whose end has not come yet.
    line: Vec<u8>,
    /// Data lines of the event under way, each with an LF.
    data: Vec<u8>,
    is_error: bool,
    /// The last byte was a CR, so an LF that comes first belongs to it.
    after_cr: bool,
    at_start: bool,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub(crate) fn new() -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            is_error: false,
            after_cr: false,
            at_start: true,
        }
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
            let (head, rest) = bytes.split_at(end);
            bytes = match rest {
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
            let ends_event = if self.line.is_empty() {
                self.take_line(head)?
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                let ends_event = self.take_line(&line)?;
                line.clear();
                self.line = line;
                ends_event
            };
            if ends_event && self.dispatch(&mut on_event)? == Flow::Done {
                return Ok(Flow::Done);
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
        let line = std::mem::take(&mut self.line);
        let is_field = !line.is_empty() && !line.starts_with(b":");
        if is_field {
            self.take_line(&line)?;
        }
        if self.data == b"[DONE]\n" {
            self.dispatch(&mut on_event)?;
        } else if is_field || !self.data.is_empty() {
            return Err(SseError::CutShort.into());
        }
        Ok(())
    }

    /// Takes one whole line without its end. True if it ends an event that has data.
    fn take_line(&mut self, mut line: &[u8]) -> Result<bool, SseError> {
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            let has_data = !self.data.is_empty();
            self.is_error &= has_data;
            return Ok(has_data);
        }
        let colon = line.iter().take(8).position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.add_data(value)?,
            b"event" => self.is_error = value == b"error",
            b"error" => {
                self.is_error = true;
                self.add_data(value)?;
            }
            _ => {}
        }
        Ok(false)
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), SseError> {
        self.data.extend_from_slice(value);
        self.data.push(b'\n');
        self.check_size()
    }

    fn check_size(&self) -> Result<(), SseError> {
        if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
            return Err(SseError::TooLarge);
        }
        Ok(())
    }

    fn dispatch<E: From<SseError>>(
        &mut self,
        on_event: &mut impl FnMut(Event<'_>) -> Result<Flow, E>,
    ) -> Result<Flow, E> {
        let data = self.data.strip_suffix(b"\n").unwrap_or(&self.data);
        let data = std::str::from_utf8(data).map_err(|_| SseError::NotUtf8)?;
        let flow = on_event(Event { data, is_error: self.is_error });
        self.data.clear();
        self.is_error = false;
        flow
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
