//! What went wrong, from all that servers and gateways say: HTTP status, error objects of many
//! shapes, plain words, web pages.
//!
//! Order matters. Words that name a cause (too long, refused, no right) win over the status, since
//! gateways wrap one error into another; a busy server is never taken for a refusal.

use loon_api::{ModelError, ModelErrorKind};
use reqwest::header::HeaderMap;
use serde_json::Value;

mod retry_after;

pub(crate) use retry_after::retry_after;

/// Most bytes of a server's words that are kept.
const MAX_MESSAGE_BYTES: usize = 2000;

/// Words that mean: longer than the window.
const OVERFLOW_WORDS: &[&str] = &[
    "context length",
    "context window",
    "context size",
    "context limit",
    "contextwindow",
    "maximum context",
    "context_length",
    "exceed_context",
    "maximum model length",
    "maximum prompt length",
    "max_model_len",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "inputs are too long",
    "too many input tokens",
    "input token count",
    "input tokens exceed",
    "prompt token count",
    "prompt tokens exceed",
    "exceeds the maximum number of tokens",
    "maximum number of input tokens",
    "maximum input length",
    "reduce the length of",
    "request_too_large",
    "string_above_max_length",
];

/// Words that mean: not content that the provider serves.
const REFUSAL_WORDS: &[&str] = &[
    "content_filter",
    "content_policy",
    "content policy",
    "contentpolicy",
    "content management policy",
    "responsibleai",
    "moderation",
    "safety_violation",
    "data_inspection_failed",
    "input flagged",
];

/// Error types and codes that mean: no right, no money.
const AUTH_TYPES: &[&str] = &[
    "authentication_error",
    "permission_error",
    "permission_denied",
    "unauthenticated",
    "unauthorized",
    "invalid_api_key",
    "invalid_authentication",
    "account_deactivated",
    "insufficient_quota",
    "insufficient_balance",
    "billing_error",
    "billing_not_active",
];

/// Error types and codes that mean: busy.
const BUSY_TYPES: &[&str] = &[
    "overloaded_error",
    "overloaded",
    "server_is_overloaded",
    "engine_overloaded",
    "engine_overloaded_error",
    "slow_down",
];

/// Error types and codes that mean: broken for now, unless the status blames the request.
const FAULT_TYPES: &[&str] = &[
    "service_unavailable",
    "service_unavailable_error",
    "unavailable",
    "unavailable_error",
    "server_error",
    "internal",
    "internal_error",
    "internal_server_error",
    "internalservererror",
    "serviceunavailableerror",
    "api_error",
    "timeout_error",
    "timeout",
    "bad_gateway",
    "upstream_error",
];

/// Error types and codes that mean: too many requests.
const RATE_TYPES: &[&str] = &[
    "rate_limit_error",
    "rate_limit_exceeded",
    "rate_limited",
    "ratelimiterror",
    "throttling_error",
    "throttling",
    "too_many_requests",
    "resource_exhausted",
    "tokens",
    "requests",
];

/// Error types and codes that mean: no such model here.
const UNKNOWN_TYPES: &[&str] = &["not_found_error", "model_not_found"];

/// Error types and codes that mean: the request is at fault, whatever the status says.
const INVALID_TYPES: &[&str] = &[
    "invalid_request_error",
    "invalid_request",
    "invalid_argument",
    "badrequesterror",
    "not_supported_error",
    "invalid_prompt",
];

/// What a server says of an error.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    message: String,
    /// Types and codes that are words, lower case.
    labels: Vec<String>,
    /// A code that is a number.
    number: Option<u16>,
}

/// The error that an HTTP answer with a status of failure stands for.
pub(crate) fn from_response(
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    now: jiff::Timestamp,
) -> ModelError {
    let body = String::from_utf8_lossy(body);
    let mut error = classify(Some(status), &Report::read(&body), &body);
    error.retry_after = retry_after(headers, now);
    error.status = Some(status);
    error
}

/// The error that JSON inside an answer of success stands for.
pub(crate) fn from_body(body: &str) -> ModelError {
    classify(None, &Report::read(body), body)
}

fn classify(status: Option<u16>, report: &Report, body: &str) -> ModelError {
    let kind = kind(status, report);
    let message =
        if report.message.is_empty() { without_words(status, body) } else { clip(&report.message) };
    ModelError::new(kind, message)
}

fn kind(status: Option<u16>, report: &Report) -> ModelErrorKind {
    // A gateway passes the status of the server behind it on as a code.
    let number = report.number.filter(|number| (400..600).contains(number)).or(status);
    let is_labelled = |known: &[&str]| report.labels.iter().any(|label| known.contains(&&**label));
    let says = |words: &[&str]| {
        let message = report.message.to_lowercase();
        words.iter().any(|word| {
            message.contains(word) || report.labels.iter().any(|label| label.contains(word))
        })
    };
    let is_rate = number == Some(429) || is_labelled(RATE_TYPES);
    if !is_rate && (says(OVERFLOW_WORDS) || number == Some(413)) {
        ModelErrorKind::ContextOverflow
    } else if is_labelled(AUTH_TYPES) || matches!(number, Some(401 | 402)) {
        ModelErrorKind::Auth
    } else if is_rate {
        ModelErrorKind::RateLimited
    } else if is_labelled(BUSY_TYPES)
        || is_labelled(FAULT_TYPES) && !matches!(number, Some(400..=499))
    {
        ModelErrorKind::Overloaded
    } else if number == Some(451) || says(REFUSAL_WORDS) && !matches!(number, Some(500..)) {
        ModelErrorKind::Refused
    } else if number == Some(404) || is_labelled(UNKNOWN_TYPES) {
        ModelErrorKind::NotFound
    } else if is_labelled(INVALID_TYPES) && !matches!(number, Some(502..)) {
        ModelErrorKind::Invalid
    } else {
        match number {
            Some(403) => ModelErrorKind::Auth,
            Some(408 | 425 | 500 | 502..) => ModelErrorKind::Overloaded,
            _ => ModelErrorKind::Invalid,
        }
    }
}

impl Report {
    fn read(body: &str) -> Self {
        let mut report = Self::default();
        match serde_json::from_str::<Value>(body) {
            Ok(value) => report.take(&value),
            Err(_) if !is_page(body) => body.trim().clone_into(&mut report.message),
            Err(_) => {}
        }
        report
    }

    /// Takes what an error object says; objects inside it say it first.
    fn take(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.take_text(text),
            Value::Array(items) => {
                if let Some(first) = items.first() {
                    self.take(first);
                }
            }
            Value::Object(object) => {
                for inner in ["response", "error", "errors", "detail"] {
                    if let Some(inner) = object.get(inner) {
                        self.take(inner);
                    }
                }
                for name in ["message", "msg"] {
                    if let Some(Value::String(text)) = object.get(name) {
                        self.take_text(text);
                    }
                }
                for name in ["type", "code", "status"] {
                    match object.get(name) {
                        Some(Value::String(label)) => match label.parse() {
                            Ok(number) => self.number = self.number.or(Some(number)),
                            Err(_) => self.labels.push(label.to_lowercase()),
                        },
                        Some(Value::Number(number)) => {
                            let number = number.as_u64().and_then(|n| u16::try_from(n).ok());
                            self.number = self.number.or(number);
                        }
                        _ => {}
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn take_text(&mut self, text: &str) {
        if self.message.is_empty() {
            text.trim().clone_into(&mut self.message);
        }
    }
}

fn is_page(body: &str) -> bool {
    body.trim_start().starts_with('<')
}

/// A sentence for a server that found no words of its own.
fn without_words(status: Option<u16>, body: &str) -> String {
    let status = match status {
        Some(status) => format!("HTTP status {status}"),
        None => "an error".to_owned(),
    };
    let what = if is_page(body) { page(body) } else { "no explanation".to_owned() };
    let hint = match status.as_str() {
        "HTTP status 404" => "; `base_url` must end in the version segment, such as /v1",
        "HTTP status 405" => "; `base_url` or `kind` may be wrong for this server",
        _ => "",
    };
    format!("the server answered with {status} and {what}{hint}")
}

/// A web page by its title.
pub(crate) fn page(body: &str) -> String {
    match title(body) {
        Some(title) => format!("a web page: {title}"),
        None => "a web page".to_owned(),
    }
}

fn title(body: &str) -> Option<String> {
    let lower = body.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let title = body[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then(|| clip(&title))
}

/// The text without control characters, cut at a bound.
fn clip(text: &str) -> String {
    let mut clipped = String::with_capacity(text.len().min(MAX_MESSAGE_BYTES));
    for c in text.chars() {
        if clipped.len() >= MAX_MESSAGE_BYTES {
            clipped.push_str(" ...");
            break;
        }
        if c == '\n' || !c.is_control() {
            clipped.push(c);
        }
    }
    clipped
}

#[cfg(test)]
mod tests;
