//! What the three wire formats share: whom a request is for, how a stream is decoded, and how the
//! decoding fails.

use loon_api::{Answer, Effort, ModelRequest, StopReason, Usage};

use crate::draft::Draft;
use crate::provider::ProviderKind;
use crate::sse::{Flow, SseError};
use crate::{anthropic, openai_chat, openai_responses};

/// Whom a request is for.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// `provider/model`.
    pub(crate) name: String,
    /// The model as the server knows it.
    pub(crate) model: String,
    /// The server is `api.openai.com`, which takes members that compatible servers reject.
    pub(crate) is_openai: bool,
    /// Most tokens of one answer, for requests that do not say.
    pub(crate) max_output_tokens: Option<u64>,
    /// Reasoning effort, for requests that do not say.
    pub(crate) effort: Option<Effort>,
}

/// One of the wire formats over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Chat,
    Responses,
    Anthropic,
}

impl Format {
    /// The format that providers of this kind speak; none for scripts.
    pub(crate) fn of(kind: ProviderKind) -> Option<Self> {
        match kind {
            ProviderKind::OpenaiChat => Some(Self::Chat),
            ProviderKind::OpenaiResponses => Some(Self::Responses),
            ProviderKind::Anthropic => Some(Self::Anthropic),
            ProviderKind::Script => None,
        }
    }

    /// What follows the base URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Responses => "responses",
            Self::Anthropic => "messages",
        }
    }

    /// The body of a request: the same bytes for the same request, and a stable prefix from one
    /// request of a conversation to the next.
    pub(crate) fn encode(
        self,
        request: &ModelRequest,
        target: &Target,
    ) -> Result<Vec<u8>, serde_json::Error> {
        match self {
            Self::Chat => openai_chat::request::encode(request, target),
            Self::Responses => openai_responses::request::encode(request, target),
            Self::Anthropic => anthropic::request::encode(request, target),
        }
    }

    /// A decoder for one answer of the model `name` (`provider/model`).
    pub(crate) fn decoder(self, name: &str) -> Box<dyn Decoder> {
        match self {
            Self::Chat => Box::new(openai_chat::stream::ChatDecoder::new(name)),
            Self::Responses => Box::new(openai_responses::stream::ResponsesDecoder::new(name)),
            Self::Anthropic => Box::new(anthropic::stream::AnthropicDecoder::new(name)),
        }
    }
}

/// Decodes one answer.
pub(crate) trait Decoder: Send {
    /// Takes the data of one event.
    fn event(&mut self, data: &str) -> Result<Flow, Fault>;

    /// Takes a whole body that came as plain JSON in place of a stream.
    fn body(&mut self, body: &str) -> Result<(), Fault>;

    /// What has been decoded so far.
    fn draft(&mut self) -> &mut Draft;

    /// The usage reported so far.
    fn usage(&self) -> Usage;

    /// The answer, if its explicit end has come.
    fn finish(&mut self) -> Result<Answer, Fault>;
}

/// Why an answer could not be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// Not the JSON that the format has.
    #[error("the server sent something that is not its format: {0}")]
    Json(#[from] serde_json::Error),
    /// Not an event stream.
    #[error("{0}")]
    Sse(#[from] SseError),
    /// The server tells of an error; its JSON.
    #[error("{0}")]
    Server(String),
    /// No end mark came.
    #[error("the answer ended without its end mark ({0})")]
    Unfinished(&'static str),
    /// A web page, such as a proxy shows; what it is.
    #[error("the server answered with {0}")]
    Page(String),
    /// More than an answer may hold.
    #[error("the answer is larger than any answer may be")]
    TooLarge,
}

/// The stop reason that fits the parts: calls were asked for if and only if there are some.
pub(crate) fn settle(stop: StopReason, has_calls: bool) -> StopReason {
    match stop {
        StopReason::End | StopReason::ToolCalls if has_calls => StopReason::ToolCalls,
        StopReason::ToolCalls => StopReason::End,
        other => other,
    }
}

/// The usage, unless it says that nothing went in: a server that does not count says zero.
pub(crate) fn believable(usage: Usage) -> Usage {
    if usage.input_tokens == Some(0) && usage.output_tokens.unwrap_or(0) == 0 {
        return Usage::default();
    }
    usage
}
