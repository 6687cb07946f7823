//! One request and its answer: bytes in, progress out, an answer or a typed error at the end.

use loon_api::{Answer, ModelError, ModelErrorKind, ModelRequest};
use loon_kernel::port::{EffectContext, Progress};

use crate::error;
use crate::http::{self, Server};
use crate::sse::{self, Flow, SseError};
use crate::wire::{Decoder, Fault, Format, Target};

/// Most bytes of an answer that comes as one JSON body.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Sends a request and reads the answer to its explicit end. Stops at once when cancelled.
pub(crate) async fn ask(
    server: &Server,
    format: Format,
    target: &Target,
    request: &ModelRequest,
    cx: &EffectContext,
) -> Result<Answer, ModelError> {
    let body = format.encode(request, target).map_err(|error| {
        ModelError::new(ModelErrorKind::Invalid, format!("the request is no JSON: {error}"))
    })?;
    let mut intake = Intake::new(format.decoder(&target.name));
    let result = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(ModelError::new(
            ModelErrorKind::Network,
            "stopped before the answer was complete",
        )),
        result = read(server, format, body, &mut intake, cx) => result,
    };
    result.map_err(|error| intake.complete(error))
}

async fn read(
    server: &Server,
    format: Format,
    body: Vec<u8>,
    intake: &mut Intake,
    cx: &EffectContext,
) -> Result<Answer, ModelError> {
    let mut response = server.post(format.path(), body).await?;
    while let Some(bytes) = server.next(&mut response).await? {
        let flow = intake.feed(bytes.as_ref());
        tell(intake, cx).await;
        if flow? == Flow::Done {
            http::drain(response).await;
            break;
        }
    }
    let answer = intake.close();
    tell(intake, cx).await;
    Ok(answer?)
}

/// Tells of what came in one read, pieces of one part in one message.
async fn tell(intake: &mut Intake, cx: &EffectContext) {
    for progress in intake.take_progress() {
        // A reader that went away is no error: the answer itself still counts.
        let _ = cx.progress.send(progress).await;
    }
}

/// Takes the bytes of a body, in whatever pieces they come, to an answer. No I/O.
pub(crate) struct Intake {
    body: Body,
    decoder: Box<dyn Decoder>,
}

/// What the body turned out to be.
enum Body {
    /// Nothing but white space has come so far, which means nothing in any form.
    Unknown,
    Events {
        events: sse::Decoder,
        is_done: bool,
    },
    /// JSON in place of a stream, or a page.
    Whole(Vec<u8>),
}

impl Intake {
    pub(crate) fn new(decoder: Box<dyn Decoder>) -> Self {
        Self { body: Body::Unknown, decoder }
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Flow, Fault> {
        match &mut self.body {
            Body::Unknown => {
                let Some(start) = bytes.iter().position(|byte| !byte.is_ascii_whitespace()) else {
                    return Ok(Flow::More);
                };
                self.body = match bytes[start] {
                    b'{' | b'[' | b'<' => Body::Whole(Vec::new()),
                    _ => Body::Events { events: sse::Decoder::new(), is_done: false },
                };
                self.feed(&bytes[start..])
            }
            Body::Events { is_done: true, .. } => Ok(Flow::Done),
            Body::Events { events, is_done } => {
                let flow = events.feed(bytes, |event| take_event(&mut *self.decoder, event))?;
                *is_done = flow == Flow::Done;
                Ok(flow)
            }
            Body::Whole(body) => {
                if body.len() + bytes.len() > MAX_BODY_BYTES {
                    return Err(Fault::TooLarge);
                }
                body.extend_from_slice(bytes);
                Ok(Flow::More)
            }
        }
    }

    /// Takes the end of the body, or what followed an end mark as such.
    pub(crate) fn close(&mut self) -> Result<Answer, Fault> {
        match &mut self.body {
            Body::Unknown | Body::Events { is_done: true, .. } => {}
            Body::Events { events, .. } => {
                events.finish(|event| take_event(&mut *self.decoder, event))?;
            }
            Body::Whole(body) => {
                if body.starts_with(b"<") {
                    return Err(Fault::Page(error::page(&String::from_utf8_lossy(body))));
                }
                let body = std::str::from_utf8(body).map_err(|_| SseError::NotUtf8)?;
                if body.starts_with('[') {
                    return Err(Fault::Server(body.to_owned()));
                }
                self.decoder.body(body)?;
            }
        }
        self.decoder.finish()
    }

    /// Progress since the last time.
    pub(crate) fn take_progress(&mut self) -> Vec<Progress> {
        self.decoder.draft().take_progress()
    }

    /// The error with what is known of the answer so far.
    pub(crate) fn complete(&mut self, mut error: ModelError) -> ModelError {
        error.streamed = self.decoder.draft().has_output();
        error.usage = self.decoder.usage();
        error
    }
}

fn take_event(decoder: &mut dyn Decoder, event: sse::Event<'_>) -> Result<Flow, Fault> {
    if event.is_error && !event.data.trim().is_empty() {
        return Err(Fault::Server(event.data.to_owned()));
    }
    let flow = decoder.event(event.data)?;
    if decoder.draft().is_too_large() {
        return Err(Fault::TooLarge);
    }
    Ok(flow)
}

impl From<Fault> for ModelError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Server(body) => error::from_body(&body),
            fault => Self::new(ModelErrorKind::Protocol, fault.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
