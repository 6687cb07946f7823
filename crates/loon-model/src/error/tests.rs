//! Errors as servers and gateways word them.

use loon_api::ModelErrorKind::{
    Auth, ContextOverflow, Invalid, NotFound, Overloaded, RateLimited, Refused,
};

use super::*;
use crate::testing::recording;

fn now() -> jiff::Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn response(status: u16, body: &str) -> ModelError {
    from_response(status, &HeaderMap::new(), body.as_bytes(), now())
}

#[test]
fn recorded_errors_are_classified() {
    for (name, kind, message) in [
        ("error-key", Auth, "Invalid API Key"),
        ("error-path", NotFound, "File Not Found"),
        (
            "error-json",
            Invalid,
            "[json.exception.parse_error.101] parse error at line 1, column 18: syntax error while parsing object key - unexpected end of input; expected string literal",
        ),
        (
            "error-schema",
            Invalid,
            "Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #/properties/a: unrecognized type nosuch",
        ),
        (
            "error-tools-500",
            Overloaded,
            "Failed to parse tools: Expected 'tools' to be an array, got {\"a\":1}; tools = {\n  \"a\": 1\n}",
        ),
        (
            "error-image-500",
            Overloaded,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        ),
        ("error-no-messages", Invalid, "'messages' is required"),
        (
            "error-overflow-chat",
            ContextOverflow,
            "request (24030 tokens) exceeds the available context size (8192 tokens), try increasing it",
        ),
        (
            "error-overflow-anthropic",
            ContextOverflow,
            "request (4030 tokens) exceeds the available context size (2048 tokens), try increasing it",
        ),
        (
            "error-overflow-responses",
            ContextOverflow,
            "request (4030 tokens) exceeds the available context size (2048 tokens), try increasing it",
        ),
        (
            "error-overflow-gateway",
            ContextOverflow,
            "litellm.ContextWindowExceededError: litellm.BadRequestError: this is a mock context window exceeded error\nmodel=mock-ctx. context_window_fallbacks=None. fallbacks=None.\n\nSet 'context_window_fallback' - https://docs.litellm.ai/docs/routing#fallbacks\n\nLiteLLM: model group 'mock-ctx' failed with the error above. No fallback was attempted.",
        ),
        (
            "error-rate-code-as-text",
            RateLimited,
            "litellm.RateLimitError: this is a mock rate limit error\n\nLiteLLM: model group 'mock-429' failed with the error above. No fallback was attempted.",
        ),
        (
            "error-rate-anthropic",
            RateLimited,
            "litellm.RateLimitError: this is a mock rate limit error\n\nLiteLLM: model group 'mock-429' failed with the error above. No fallback was attempted.",
        ),
        ("error-method", Invalid, "Method Not Allowed"),
    ] {
        let recording = recording(name);
        let error = from_response(recording.status, &recording.headers, &recording.body, now());
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "{name}");
        assert_eq!(error.status, Some(recording.status));
        assert!(!error.streamed);
    }
}

#[test]
fn too_long_is_known_in_its_many_wordings() {
    for (status, body) in [
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ),
        (400, r#"{"error":{"message":"Your input exceeds it.","code":"context_length_exceeded"}}"#),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
        ),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}"#,
        ),
        (
            400,
            r#"{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}"#,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing it","type":"server_error"}}"#,
        ),
        (400, r#"{"error":"input length exceeds the context length"}"#),
        (
            400,
            r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        ),
        (400, r#"{"message":"Input is too long for requested model."}"#),
        (
            422,
            r#"{"detail":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Please reduce the length of the messages or completion.","code":"context_length_exceeded"}}"#,
        ),
        (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
    ] {
        assert_eq!(response(status, body).kind, ContextOverflow, "{body}");
    }
    assert_eq!(
        response(429, r#"{"error":{"message":"Request too large: reduce the length of it","type":"tokens","code":"rate_limit_exceeded"}}"#).kind,
        RateLimited
    );
}

#[test]
fn a_busy_server_is_never_a_refusal() {
    for (status, body) in [
        (
            503,
            r#"{"error":{"message":"refused: content policy engine busy","type":"server_error","code":"server_is_overloaded"}}"#,
        ),
        (400, r#"{"error":{"message":"busy","code":"server_is_overloaded"}}"#),
        (403, r#"{"error":{"message":"moderation","code":"server_is_overloaded"}}"#),
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        (529, "<html><body>busy</body></html>"),
        (503, "<!doctype html><title>Service\n Unavailable</title>"),
        (500, ""),
        (502, r#"{"error":{"message":"content_policy","code":502}}"#),
        (408, ""),
        (503, r#"{"error":{"message":"x","type":"invalid_request_error"}}"#),
    ] {
        assert_eq!(response(status, body).kind, Overloaded, "{status} {body}");
    }
    assert_eq!(from_body(r#"{"error":{"code":"server_is_overloaded"}}"#).kind, Overloaded);
    assert_eq!(from_body(r#"{"error":{"code":502,"message":"upstream"}}"#).kind, Overloaded);
    assert_eq!(from_body(r#"{"error":{"code":"503","message":"upstream"}}"#).kind, Overloaded);
}

#[test]
fn rights_limits_refusals_and_faults_are_told_apart() {
    for (status, body, kind) in [
        (401, "", Auth),
        (403, "", Auth),
        (402, r#"{"error":{"message":"Insufficient credits","code":402}}"#, Auth),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Auth,
        ),
        (
            400,
            r#"{"error":{"message":"x","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            Auth,
        ),
        (429, "", RateLimited),
        (429, r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#, RateLimited),
        (400, r#"{"error":{"message":"x","code":"content_filter"}}"#, Refused),
        (
            400,
            r#"{"error":{"message":"The response was filtered due to Azure OpenAI's content management policy.","type":null}}"#,
            Refused,
        ),
        (403, r#"{"error":{"message":"Input flagged by moderation","code":403}}"#, Refused),
        (451, "", Refused),
        (400, "", Invalid),
        (404, r#"{"error":{"message":"model 'x' not found","type":"api_error"}}"#, NotFound),
        (404, "", NotFound),
        (
            400,
            r#"{"error":{"message":"x","type":"invalid_request_error","code":"model_not_found"}}"#,
            NotFound,
        ),
        (422, r#"{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}"#, Invalid),
        (500, r#"{"error":{"message":"x","type":"invalid_request_error"}}"#, Invalid),
        (501, r#"{"error":{"message":"x","type":"not_supported_error","code":501}}"#, Invalid),
        (501, "", Invalid),
    ] {
        assert_eq!(response(status, body).kind, kind, "{status} {body}");
    }
    assert_eq!(from_body(r#"{"error":{"message":"quota"}}"#).kind, Invalid);
    assert_eq!(from_body(r#"{"error":{"code":"unheard_of"}}"#).kind, Invalid);
    assert_eq!(from_body(r#"{"error":{"code":429}}"#).kind, RateLimited);
}

#[test]
fn the_servers_own_words_are_found() {
    for (status, body, message) in [
        (400, r#"{"error":"plain words"}"#, "plain words"),
        (422, r#"{"detail":[{"msg":"field required"}]}"#, "field required"),
        (400, r#"[{"error":{"message":"in a list"}}]"#, "in a list"),
        (400, r#"{"message":"outer","error":{"message":"inner"}}"#, "inner"),
        (400, "just text\n", "just text"),
        (400, "bell\u{7} and \u{1b}[31mred", "bell and [31mred"),
        (
            503,
            "<html><TITLE> Service\n Unavailable </TITLE></html>",
            "the server answered with HTTP status 503 and a web page: Service Unavailable",
        ),
        (500, "", "the server answered with HTTP status 500 and no explanation"),
        (
            404,
            "{}",
            "the server answered with HTTP status 404 and no explanation; `base_url` must end in the version segment, such as /v1",
        ),
    ] {
        assert_eq!(response(status, body).message, message, "{body}");
    }
    let long = response(400, &"é".repeat(5000)).message;
    assert!(long.len() < 2100 && long.ends_with("é ..."), "{}", long.len());
}

#[test]
fn the_wait_that_a_server_asks_for_is_kept() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", "7".parse().unwrap());
    let error = from_response(429, &headers, b"", now());
    assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(7)));
}
