//! The script language: what the server answers, as one value built from small words.

use serde_json::Value;

use crate::latch::Latch;

/// One scripted answer to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// An answer in the wire format of the request.
    Answer(Answer),
    /// The same as one JSON document, although a stream was asked for.
    Whole(Answer),
    /// An error document in the wire format of the request.
    Error(String),
    /// These chunks as an event stream, byte for byte.
    Chunks(Vec<Vec<u8>>),
    /// One document.
    Document { content_type: String, bytes: Vec<u8> },
    /// No byte at all: the connection is closed.
    Nothing,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) steps: Vec<Step>,
    pub(crate) stop: Stop,
    pub(crate) usage: Option<Tokens>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Thinking(String),
    Text(String),
    Call {
        name: String,
        arguments: String,
    },
    /// An error event; the stream ends after it.
    Error {
        kind: String,
        message: String,
    },
    /// From here on every byte is written alone.
    Drip,
    Hold(Latch),
    /// The connection breaks in the middle of the body.
    Cut,
    /// The body ends well, without the end mark of the format.
    EndEarly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    End,
    Length,
    Refused,
}

/// Token counts as the server reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// All input tokens, cached ones included.
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

impl Default for Answer {
    fn default() -> Self {
        let usage = Some(Tokens { input: 100, cached: 0, output: 10 });
        Self { steps: Vec::new(), stop: Stop::End, usage }
    }
}

/// An answer of text.
pub fn text(text: impl Into<String>) -> Reply {
    Reply::answer().text(text)
}

/// An answer that opens its stream and says nothing, until more words follow.
pub fn silence() -> Reply {
    Reply::answer()
}

/// An answer that begins with reasoning.
pub fn thinking(text: impl Into<String>) -> Reply {
    Reply::answer().thinking(text)
}

/// An answer with one tool call.
#[expect(clippy::needless_pass_by_value, reason = "scripts pass json!(..)")]
pub fn call(name: &str, arguments: Value) -> Reply {
    Reply::answer().call(name, &arguments)
}

/// An answer with several tool calls.
pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Reply {
    calls.into_iter().fold(Reply::answer(), |reply, (name, arguments)| reply.call(name, &arguments))
}

/// An error status with an error document of the wire format.
pub fn status(status: u16) -> Reply {
    Reply { status, headers: Vec::new(), body: Body::Error(format!("scripted status {status}")) }
}

/// An event stream of exactly these bytes, one network write each. Afterwards the body ends well.
pub fn raw<B: Into<Vec<u8>>>(chunks: impl IntoIterator<Item = B>) -> Reply {
    Reply::with(Body::Chunks(chunks.into_iter().map(Into::into).collect()))
}

/// One document of exactly these bytes.
pub fn document(content_type: &str, bytes: impl Into<Vec<u8>>) -> Reply {
    let content_type = content_type.to_owned();
    Reply::with(Body::Document { content_type, bytes: bytes.into() })
}

/// The answer of text as one JSON document, although a stream was asked for.
pub fn plain_json(words: impl Into<String>) -> Reply {
    match text(words).body {
        Body::Answer(answer) => Reply::with(Body::Whole(answer)),
        other => Reply::with(other),
    }
}

/// The connection is closed without an answer.
pub fn hang_up() -> Reply {
    Reply::with(Body::Nothing)
}

impl Reply {
    fn with(body: Body) -> Self {
        Self { status: 200, headers: Vec::new(), body }
    }

    fn answer() -> Self {
        Self::with(Body::Answer(Answer::default()))
    }

    fn edit(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        match &mut self.body {
            Body::Answer(answer) | Body::Whole(answer) => change(answer),
            other => panic!("this word needs an answer in front of it, not {other:?}"),
        }
        self
    }

    fn step(self, step: Step) -> Self {
        self.edit(|answer| answer.steps.push(step))
    }

    /// Then text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.step(Step::Text(text.into()))
    }

    /// Then reasoning.
    #[must_use]
    pub fn thinking(self, text: impl Into<String>) -> Self {
        self.step(Step::Thinking(text.into()))
    }

    /// Then a tool call.
    #[must_use]
    pub fn call(self, name: &str, arguments: &Value) -> Self {
        self.call_raw(name, &arguments.to_string())
    }

    /// Then a tool call whose arguments are this text, valid JSON or not.
    #[must_use]
    pub fn call_raw(self, name: &str, arguments: &str) -> Self {
        self.step(Step::Call { name: name.to_owned(), arguments: arguments.to_owned() })
    }

    /// Waits here until the latch is released, the client leaves or the server ends.
    #[must_use]
    pub fn hold(self, latch: &Latch) -> Self {
        self.step(Step::Hold(latch.clone()))
    }

    /// Says nothing more, and keeps the connection open until the client leaves.
    #[must_use]
    pub fn stall(self) -> Self {
        self.step(Step::Hold(Latch::new()))
    }

    /// Writes every later byte alone.
    #[must_use]
    pub fn drip(self) -> Self {
        self.step(Step::Drip)
    }

    /// Breaks the connection here.
    #[must_use]
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Ends the body here, without the format's end mark.
    #[must_use]
    pub fn end_early(self) -> Self {
        self.step(Step::EndEarly)
    }

    /// An error event inside the stream, then its end.
    #[must_use]
    pub fn error_event(self, kind: &str, message: &str) -> Self {
        self.step(Step::Error { kind: kind.to_owned(), message: message.to_owned() })
    }

    /// Ends by the output limit.
    #[must_use]
    pub fn length_stop(self) -> Self {
        self.edit(|answer| answer.stop = Stop::Length)
    }

    /// Ends by the provider's policy.
    #[must_use]
    pub fn refused(self) -> Self {
        self.edit(|answer| answer.stop = Stop::Refused)
    }

    /// Reports these tokens; `cached` are part of `input`.
    #[must_use]
    pub fn usage(self, input: u64, cached: u64, output: u64) -> Self {
        self.edit(|answer| answer.usage = Some(Tokens { input, cached, output }))
    }

    /// Reports no tokens.
    #[must_use]
    pub fn without_usage(self) -> Self {
        self.edit(|answer| answer.usage = None)
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Asks the client to wait.
    #[must_use]
    pub fn retry_after(self, value: &str) -> Self {
        self.header("retry-after", value)
    }

    /// The words of an error document.
    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        match &mut self.body {
            Body::Error(words) => message.clone_into(words),
            other => panic!("`message` needs `status` in front of it, not {other:?}"),
        }
        self
    }
}
