//! Lists of models in the shapes of several servers.

use loon_api::ModelErrorKind;

use super::*;
use crate::testing::server::{Fake, Then, reply};

fn ids(body: &str) -> Vec<String> {
    read_list(body.as_bytes()).unwrap().into_iter().map(|model| model.id).collect()
}

#[test]
fn lists_of_every_shape_are_read() {
    assert_eq!(
        ids(r#"{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}"#),
        ["a", "b"]
    );
    assert_eq!(
        ids(r#"{"data":[{"type":"model","id":"a","display_name":"A"}],"has_more":false}"#),
        ["a"]
    );
    assert_eq!(ids(r#"{"models":[{"name":"a:7b","model":"a:7b","size":1}]}"#), ["a:7b"]);
    assert_eq!(ids(r#"{"models":[{"model":"a"}],"object":"list","data":[{"id":"a"}]}"#), ["a"]);
    assert_eq!(ids(r#"{"data":[{"id":"a"}],"models":[]}"#), ["a"]);
    assert_eq!(ids(r#"["a",{"id":"b"},{"id":""},null,5]"#), ["a", "b"]);
    assert_eq!(ids(r#"{"data":[]}"#), [""; 0]);
}

#[test]
fn limits_come_under_several_names() {
    let model = |entry: &str| {
        let list = read_list(format!(r#"{{"data":[{entry}]}}"#).as_bytes()).unwrap();
        (list[0].context_tokens, list[0].max_output_tokens)
    };
    assert_eq!(model(r#"{"id":"a"}"#), (None, None));
    assert_eq!(model(r#"{"id":"a","max_model_len":4096}"#), (Some(4096), None));
    assert_eq!(
        model(r#"{"id":"a","context_length":8192,"top_provider":{"max_completion_tokens":1024}}"#),
        (Some(8192), Some(1024))
    );
    assert_eq!(
        model(r#"{"id":"a","max_input_tokens":200000,"max_tokens":64000}"#),
        (Some(200_000), Some(64_000))
    );
}

#[test]
fn what_is_no_list_is_an_error() {
    let kind = |body: &str| read_list(body.as_bytes()).unwrap_err().kind;
    assert_eq!(kind("<html>"), ModelErrorKind::Protocol);
    assert_eq!(kind("{}"), ModelErrorKind::Protocol);
    assert_eq!(kind(r#"{"error":{"message":"x","code":503}}"#), ModelErrorKind::Overloaded);
}

fn port(base_url: &str) -> u16 {
    Url::parse(base_url).unwrap().port().unwrap()
}

#[tokio::test]
async fn a_server_on_this_machine_is_found_with_its_models() {
    let fake = Fake::start(vec![(String::new(), Then::Close)]).await;
    assert_eq!(probe("vllm", port(&fake.base_url)).await, None);
    let list = r#"{"data":[{"id":"a","max_model_len":4096}]}"#;
    // The first connection only knocks.
    let fake = Fake::start(vec![(reply("200 OK", "", list), Then::Keep)]).await;
    assert_eq!(
        probe("vllm", port(&fake.base_url)).await,
        Some(LocalServer {
            name: "vllm",
            base_url: fake.base_url.clone(),
            models: vec![RemoteModel {
                id: "a".into(),
                context_tokens: Some(4096),
                max_output_tokens: None,
            }],
        })
    );
}

#[tokio::test]
async fn what_is_no_model_server_is_passed_over() {
    let page = Fake::start(vec![(reply("200 OK", "", "<html></html>"), Then::Keep)]).await;
    assert_eq!(probe("llama-cpp", port(&page.base_url)).await, None);
    let silent = Fake::start(vec![(String::new(), Then::Hang)]).await;
    assert_eq!(probe("llama-cpp", port(&silent.base_url)).await, None);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = listener.local_addr().unwrap().port();
    drop(listener);
    assert_eq!(probe("llama-cpp", free).await, None);
}
