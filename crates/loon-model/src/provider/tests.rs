//! Providers over real connections on this machine.

use std::time::Duration;

use loon_api::{AnswerPart, ModelErrorKind, StopReason};
use loon_kernel::port::Progress;
use tokio::net::TcpListener;

use super::*;
use crate::testing::server::{EVENTS, Fake, Then, chunk, reply};
use crate::testing::{context, request, stream, user};

fn hello() -> String {
    let events = stream(&[
        r#"{"choices":[{"delta":{"content":"Hello"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    format!("{EVENTS}{}0\r\n\r\n", chunk(&events))
}

async fn ask(config: ProviderConfig) -> Result<Answer, ModelError> {
    let provider = Provider::new(config).unwrap();
    let (cx, _told) = context();
    let model = provider.provided("coder", ModelOptions::default());
    model.ask(&request(vec![user("Hi")]), &cx).await
}

#[tokio::test]
async fn all_requests_of_a_provider_share_a_connection() {
    let fake =
        Fake::start(vec![(hello(), Then::Keep), (hello(), Then::Keep), (hello(), Then::Keep)])
            .await;
    let provider = Provider::new(fake.config(ProviderKind::OpenaiChat)).unwrap();
    for name in ["a", "b", "c"] {
        let (cx, mut told) = context();
        let model = provider.provided(name, ModelOptions::default());
        let answer = model.ask(&request(vec![user("Hi")]), &cx).await.unwrap();
        assert_eq!(answer.parts, [AnswerPart::Text("Hello".into())]);
        assert_eq!(answer.stop, StopReason::End);
        assert_eq!(told.try_recv().unwrap(), Progress::Text("Hello".into()));
        assert_eq!(model.info().name, format!("lab/{name}"));
    }
    let asked = fake.asked();
    assert_eq!(asked.iter().map(|asked| asked.connection).collect::<Vec<_>>(), [1, 1, 1]);
    assert!(asked[2].body.contains(r#""model":"c""#));
}

#[tokio::test]
async fn k069_a_connection_opened_ahead_is_the_one_that_the_request_uses() {
    let answers = vec![(reply("404 Not Found", "", ""), Then::Keep), (hello(), Then::Keep)];
    let fake = Fake::start(answers).await;
    let provider = Provider::new(fake.config(ProviderKind::OpenaiChat)).unwrap();
    let model = provider.provided("coder", ModelOptions::default());
    model.warm().await;
    // It is open now, whichever model of the provider asks.
    provider.model("other", ModelOptions::default()).warm().await;
    let (cx, _told) = context();
    model.ask(&request(vec![user("Hi")]), &cx).await.unwrap();
    let asked: Vec<(usize, String)> = fake
        .asked()
        .iter()
        .map(|asked| (asked.connection, asked.head.lines().next().unwrap().to_owned()))
        .collect();
    let head = "HEAD /v1/ HTTP/1.1".to_owned();
    assert_eq!(asked, [(1, head), (1, "POST /v1/chat/completions HTTP/1.1".to_owned())]);
}

#[tokio::test]
async fn k066_a_server_that_cannot_be_reached_ahead_is_asked_all_the_same() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = ProviderConfig::new("lab", ProviderKind::OpenaiChat);
    config.base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
    drop(listener);
    let provider = Provider::new(config).unwrap();
    let model = provider.provided("coder", ModelOptions::default());
    model.warm().await;
    let (cx, _told) = context();
    let error = model.ask(&request(vec![user("Hi")]), &cx).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Network);
}

#[tokio::test]
async fn each_kind_has_its_path_and_its_way_to_show_the_key() {
    for (kind, line, key) in [
        (
            ProviderKind::OpenaiChat,
            "POST /v1/chat/completions HTTP/1.1",
            "authorization: Bearer k-1234",
        ),
        (
            ProviderKind::OpenaiResponses,
            "POST /v1/responses HTTP/1.1",
            "authorization: Bearer k-1234",
        ),
        (ProviderKind::Anthropic, "POST /v1/messages HTTP/1.1", "x-api-key: k-1234"),
    ] {
        let fake = Fake::start(vec![(reply("500 X", "", ""), Then::Close)]).await;
        let mut config = fake.config(kind);
        config.api_key = Some(" k-1234\n".into());
        config.headers =
            vec![("X-Team".into(), "red".into()), ("user-agent".into(), "mine".into())];
        ask(config).await.unwrap_err();
        let head = fake.asked()[0].head.clone();
        let has = |field: &str| head.lines().any(|line| line.eq_ignore_ascii_case(field));
        assert_eq!(head.lines().next(), Some(line));
        assert!(has(key) && has("x-team: red") && has("user-agent: mine"), "{head}");
        assert!(has("content-type: application/json"), "{head}");
        assert_eq!(has("anthropic-version: 2023-06-01"), kind == ProviderKind::Anthropic);
    }
}

#[tokio::test]
async fn what_settings_say_of_a_model_is_asked_in_the_words_of_each_kind() {
    for (kind, words) in [
        (ProviderKind::OpenaiChat, [r#""max_tokens":3000"#, r#""reasoning_effort":"low""#]),
        (
            ProviderKind::OpenaiResponses,
            [r#""max_output_tokens":3000"#, r#""reasoning":{"effort":"low""#],
        ),
        (ProviderKind::Anthropic, [r#""max_tokens":3000"#, r#""budget_tokens":1500"#]),
    ] {
        let fake = Fake::start(vec![(reply("500 X", "", ""), Then::Close)]).await;
        let options = ModelOptions {
            context_tokens: None,
            max_output_tokens: Some(3000),
            effort: Some(Effort::Low),
        };
        let model = Provider::new(fake.config(kind)).unwrap().provided("coder", options);
        let (cx, _told) = context();
        model.ask(&request(vec![user("Hi")]), &cx).await.unwrap_err();
        let body = fake.asked()[0].body.clone();
        assert!(words.iter().all(|words| body.contains(words)), "{body}");
    }
}

#[tokio::test]
async fn a_failure_carries_status_words_and_wait() {
    let body = r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
    let fake = Fake::start(vec![(reply("429 X", "retry-after: 7\r\n", body), Then::Close)]).await;
    let error = ask(fake.config(ProviderKind::OpenaiChat)).await.unwrap_err();
    let mut expected = ModelError::new(ModelErrorKind::RateLimited, "slow down");
    expected.status = Some(429);
    expected.retry_after = Some(Duration::from_secs(7));
    assert_eq!(error, expected);
}

#[tokio::test]
async fn keys_are_masked_where_a_server_repeats_them() {
    let body = r#"{"error":{"message":"no such key: sk-secret-1 (team-secret-2)"}}"#;
    let fake = Fake::start(vec![(reply("401 X", "", body), Then::Close)]).await;
    let mut config = fake.config(ProviderKind::OpenaiChat);
    config.api_key = Some("sk-secret-1".into());
    config.headers = vec![("x-team".into(), "Basic team-secret-2".into())];
    let provider = Provider::new(config.clone()).unwrap();
    for shown in [format!("{config:?}"), format!("{provider:?}")] {
        assert!(!shown.contains("secret-"), "{shown}");
    }
    let error = ask(config).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(error.message, "no such key: [secret] ([secret])");
}

#[tokio::test]
async fn redirects_are_told_and_not_followed() {
    let to = "location: http://elsewhere.test/v2\r\n";
    let fake = Fake::start(vec![(reply("307 X", to, ""), Then::Close)]).await;
    let error = ask(fake.config(ProviderKind::OpenaiChat)).await.unwrap_err();
    assert_eq!((error.kind, error.status), (ModelErrorKind::Invalid, Some(307)));
    assert_eq!(
        error.message,
        format!(
            "{} redirects to http://elsewhere.test/v2; `base_url` must name that server itself",
            fake.base_url
        )
    );
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    let piece = stream(&[r#"{"choices":[{"delta":{"content":"Hel"}}]}"#]);
    for (reply, streamed) in [
        (String::new(), false),
        (EVENTS.to_owned(), false),
        (format!("{EVENTS}{}", chunk(&piece)), true),
    ] {
        let fake = Fake::start(vec![(reply, Then::Hang)]).await;
        let mut config = fake.config(ProviderKind::OpenaiChat);
        config.timeouts.idle = Duration::from_millis(60);
        let error = ask(config).await.unwrap_err();
        assert_eq!((error.kind, error.streamed), (ModelErrorKind::Network, streamed));
        assert_eq!(error.message, format!("{} sent nothing for 0.06 seconds", fake.base_url));
        fake.left.await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_no_answer() {
    let piece = stream(&[
        r#"{"choices":[{"delta":{"content":"Hel"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    ]);
    let broken = format!("{EVENTS}{}", chunk(&piece));
    let fake = Fake::start(vec![(broken, Then::Close)]).await;
    let error = ask(fake.config(ProviderKind::OpenaiChat)).await.unwrap_err();
    assert_eq!((error.kind, error.streamed), (ModelErrorKind::Network, true));
    assert!(error.message.starts_with(&format!("the connection to {} broke: ", fake.base_url)));
}

#[tokio::test]
async fn nobody_there_is_told_with_the_place() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let mut config = ProviderConfig::new("lab", ProviderKind::Anthropic);
    config.base_url = Some(format!("{base_url}/?key=hidden"));
    let error = ask(config).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Network);
    assert!(error.message.starts_with(&format!("cannot reach {base_url}: ")), "{}", error.message);
    assert!(
        error.message.contains("refused") && !error.message.contains("hidden"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_cancel_closes_the_connection() {
    let piece = stream(&[r#"{"choices":[{"delta":{"content":"Hel"}}]}"#]);
    let fake = Fake::start(vec![(format!("{EVENTS}{}", chunk(&piece)), Then::Hang)]).await;
    let provider = Provider::new(fake.config(ProviderKind::OpenaiChat)).unwrap();
    let model = provider.provided("coder", ModelOptions::default());
    let (cx, mut told) = context();
    let request = request(vec![user("Hi")]);
    let cancel = async {
        assert_eq!(told.recv().await, Some(Progress::Text("Hel".into())));
        cx.cancel.cancel();
    };
    let (answer, ()) = tokio::join!(model.ask(&request, &cx), cancel);
    let error = answer.unwrap_err();
    assert_eq!((error.kind, error.streamed), (ModelErrorKind::Network, true));
    fake.left.await.unwrap();
}

#[tokio::test]
async fn a_reader_that_went_away_does_not_spoil_the_answer() {
    let fake = Fake::start(vec![(hello(), Then::Keep)]).await;
    let provider = Provider::new(fake.config(ProviderKind::OpenaiChat)).unwrap();
    let (cx, told) = context();
    drop(told);
    let model = provider.provided("coder", ModelOptions::default());
    assert!(model.ask(&request(vec![user("Hi")]), &cx).await.is_ok());
}

#[tokio::test]
async fn a_plain_answer_to_a_streamed_request_is_read() {
    let body = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
    let fake = Fake::start(vec![(
        reply("200 OK", "content-type: application/json\r\n", body),
        Then::Keep,
    )])
    .await;
    let answer = ask(fake.config(ProviderKind::OpenaiChat)).await.unwrap();
    assert_eq!(answer.parts, [AnswerPart::Text("Hello".into())]);
}

#[tokio::test]
async fn the_models_of_a_server_are_listed() {
    let list = r#"{"data":[{"id":"a"},{"id":"b","max_model_len":4096}]}"#;
    let fake = Fake::start(vec![
        (reply("200 OK", "", list), Then::Keep),
        (reply("401 X", "", r#"{"error":{"message":"bad key k-1234"}}"#), Then::Close),
    ])
    .await;
    let mut config = fake.config(ProviderKind::Anthropic);
    config.base_url = Some(format!("{}?api-version=3", fake.base_url));
    config.api_key = Some("k-1234".into());
    let provider = Provider::new(config).unwrap();
    let models = provider.list().await.unwrap();
    assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(models[1].context_tokens, Some(4096));
    assert_eq!(provider.list().await.unwrap_err().message, "bad key [secret]");
    assert!(fake.asked()[0].head.starts_with("GET /v1/models?api-version=3&limit=1000 HTTP/1.1"));
}

#[tokio::test]
async fn a_script_is_a_provider_like_any_other() {
    let mut config = ProviderConfig::new("script", ProviderKind::Script);
    config.script = Some(ScriptSource::Text(r#"{"text": "Hi."}"#.into()));
    let provider = Provider::new(config.clone()).unwrap();
    assert_eq!(provider.list().await.unwrap(), []);
    let options = ModelOptions { context_tokens: Some(1000), ..ModelOptions::default() };
    let info = provider.model("demo", options).info().clone();
    assert_eq!((info.name.as_str(), info.context_tokens), ("script/demo", Some(1000)));
    assert_eq!(ask(config).await.unwrap().parts, [AnswerPart::Text("Hi.".into())]);
}

#[test]
fn settings_that_cannot_work_are_named() {
    let error = |change: fn(&mut ProviderConfig)| {
        let mut config = ProviderConfig::new("lab", ProviderKind::OpenaiChat);
        config.base_url = Some("http://localhost:8080/v1".into());
        change(&mut config);
        Provider::new(config).unwrap_err().to_string()
    };
    assert_eq!(error(|config| config.base_url = None), "provider `lab`: base_url: is missing");
    assert_eq!(
        error(|config| config.base_url = Some("localhost:8080/v1".into())),
        "provider `lab`: base_url: must begin with http:// or https:// and a host"
    );
    assert_eq!(
        error(|config| config.base_url = Some("nowhere".into())),
        "provider `lab`: base_url: is no URL: relative URL without a base"
    );
    assert_eq!(
        error(|config| config.base_url = Some("http://a:b@c/v1".into())),
        "provider `lab`: base_url: must not hold a user or password; use `headers`"
    );
    assert_eq!(
        error(|config| config.api_key = Some("a\nb".into())),
        "provider `lab`: the API key holds characters that a header cannot carry"
    );
    assert_eq!(
        error(|config| config.headers = vec![("x y".into(), "secret".into())]),
        "provider `lab`: the header `x y` holds characters that a header cannot carry"
    );
    assert_eq!(
        error(|config| config.kind = ProviderKind::Script),
        "provider `lab`: a provider of kind `script` needs a script"
    );
}
