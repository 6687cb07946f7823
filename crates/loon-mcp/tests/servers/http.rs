//! Servers that listen for Streamable HTTP.

use loon_api::{McpState, ToolCallStatus};
use loon_mcp::Way;
use serde_json::{Value, json};

use crate::bench::{Bench, asked, config, listening, methods};

fn http(url: &str) -> loon_mcp::ServerConfig {
    let headers = vec![("x-key".to_owned(), "sesame".to_owned())];
    config("web", Way::Http { url: url.to_owned(), headers })
}

#[tokio::test]
async fn h230_h231_json_and_event_streams_are_read_and_session_and_version_sent_on() {
    for flags in [&[][..], &["--sse"][..]] {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let flags: Vec<&str> =
            flags.iter().copied().chain(["--log", log.to_str().unwrap()]).collect();
        let (_server, url) = listening(&flags).await;
        let bench = Bench::new(vec![http(&url)]).await;
        let called = bench.call("mcp__web__echo", json!({"text": "hello"})).await;
        assert_eq!((called.status, called.text.as_str()), (ToolCallStatus::Done, "hello"));
        let messages = asked(&log);
        let of = |method: &str| -> &Value {
            messages.iter().find(|message| message["method"] == method).unwrap()
        };
        assert_eq!(of("initialize")["session"], Value::Null);
        let version = &of("initialize")["params"]["protocolVersion"];
        for method in ["notifications/initialized", "tools/list", "tools/call"] {
            assert_eq!(of(method)["session"], "s1", "{method}");
            assert_eq!(of(method)["version"], *version, "{method}");
            assert_eq!(of(method)["key"], "sesame", "{method}");
        }
    }
}

#[tokio::test]
async fn h231_a_stream_that_was_cut_is_taken_up_after_its_last_event() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (_server, url) = listening(&["--cut", "--log", log.to_str().unwrap()]).await;
    let bench = Bench::new(vec![http(&url)]).await;
    assert_eq!(bench.call("mcp__web__echo", json!({"text": "late"})).await.text, "late");
    assert!(asked(&log).iter().any(|message| message["last"] == "e1"));
    assert_eq!(methods(&log).iter().filter(|method| *method == "tools/call").count(), 1);
}

#[tokio::test]
async fn a_forgotten_session_is_begun_anew_once_and_the_call_made_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (_server, url) = listening(&["--expire", "1", "--log", log.to_str().unwrap()]).await;
    let bench = Bench::new(vec![http(&url)]).await;
    assert_eq!(bench.call("mcp__web__echo", json!({"text": "one"})).await.text, "one");
    let (two, three) = tokio::join!(
        bench.call("mcp__web__echo", json!({"text": "two"})),
        bench.call("mcp__web__echo", json!({"text": "three"})),
    );
    assert_eq!((two.text.as_str(), three.text.as_str()), ("two", "three"));
    let methods = methods(&log);
    let count = |wanted: &str| methods.iter().filter(|method| *method == wanted).count();
    assert_eq!((count("initialize"), count("tools/list")), (2, 2), "{methods:?}");
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_no_loop() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (_server, url) = listening(&["--forget", "--log", log.to_str().unwrap()]).await;
    let bench = Bench::new(vec![http(&url)]).await;
    let called = bench.call("mcp__web__echo", json!({"text": "x"})).await;
    assert!(called.text.contains("forgets its sessions"), "{}", called.text);
    assert_eq!(methods(&log).iter().filter(|method| *method == "initialize").count(), 2);
}

#[tokio::test]
async fn h242_a_server_that_wants_a_sign_in_is_told_of_and_a_redirect_not_followed() {
    for (status, why) in [("401", "Loom signs in nowhere"), ("302", "302"), ("500", "500")] {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let (_server, url) = listening(&["--status", status, "--log", log.to_str().unwrap()]).await;
        let bench = Bench::new(vec![http(&url)]).await;
        let server = bench.settled("web").await;
        assert_eq!(server.state, McpState::Failed);
        let error = server.error.unwrap();
        assert!(error.contains(why) && !error.contains("sesame"), "{status}: {error}");
        // Nothing but the handshake was tried: no discovery, no other address.
        assert!(methods(&log).iter().all(|method| method == "initialize"));
    }
}

#[tokio::test]
async fn h240_h241_other_transports_are_refused() {
    let bench = Bench::new(vec![config(
        "web",
        Way::Http { url: "ws://127.0.0.1:1/mcp".to_owned(), headers: vec![] },
    )])
    .await;
    let server = bench.settled("web").await;
    assert!(server.error.unwrap().contains("begins with ws; there are http and https"));
    // Nobody listens there: told in words, soon.
    let bench = Bench::new(vec![http("http://127.0.0.1:9/mcp")]).await;
    assert_eq!(bench.settled("web").await.state, McpState::Failed);
}
