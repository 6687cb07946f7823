//! What works: tools, resources, prompts, progress, cancel.

use loon_api::{McpState, ToolCallStatus, ToolClass};
use loon_kernel::RemoteTools;
use serde_json::json;

use crate::bench::{Bench, asked, methods, stdio};

#[tokio::test]
async fn h230_a_program_is_initialised_listed_in_pages_and_called() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let flags = ["--tools", "120", "--log", log.to_str().unwrap()];
    let bench = Bench::new(vec![stdio("lab", &flags)]).await;
    let server = bench.settled("lab").await;
    assert_eq!(server.state, McpState::Ready, "{server:?}");
    // 10 of its own, 120 more, 5 for resources and prompts.
    assert_eq!(server.tools.len(), 135);
    assert_eq!(methods(&log).iter().filter(|method| *method == "tools/list").count(), 3);
    let called = bench.call("mcp__lab__echo", json!({"text": "hello"})).await;
    assert_eq!((called.status, called.text.as_str()), (ToolCallStatus::Done, "hello"));
    let failed = bench.call("mcp__lab__fail", json!({})).await;
    assert_eq!((failed.status, failed.text.as_str()), (ToolCallStatus::Failed, "no such row"));
    assert_eq!(methods(&log)[..2], ["initialize", "notifications/initialized"]);
}

#[tokio::test]
async fn h054_arguments_that_do_not_fit_never_reach_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let bench = Bench::new(vec![stdio("lab", &["--log", log.to_str().unwrap()])]).await;
    let called = bench.call("mcp__lab__echo", json!({"text": 7})).await;
    assert_eq!(called.status, ToolCallStatus::Failed);
    assert!(called.text.contains("do not fit"), "{}", called.text);
    assert!(!methods(&log).contains(&"tools/call".to_owned()));
    let invented = bench.call("mcp__lab__invented", json!({})).await;
    assert!(invented.text.contains("There is no tool"), "{}", invented.text);
    let other = bench.call("mcp__nobody__echo", json!({})).await;
    assert!(other.text.contains("There is no tool"), "{}", other.text);
}

#[tokio::test]
async fn h232_resources_and_prompts_are_tools() {
    let bench = Bench::new(vec![stdio("lab", &[])]).await;
    bench.settled("lab").await;
    let listed = bench.call("mcp__lab__list_resources", json!({})).await;
    assert_eq!(listed.text, "memo://one (one): The first memo.\n");
    let templates = bench.call("mcp__lab__list_resource_templates", json!({})).await;
    assert_eq!(templates.text, "memo://{name} (memo)\n");
    let read = bench.call("mcp__lab__read_resource", json!({"uri": "memo://one"})).await;
    assert_eq!(read.text, "[resource memo://one]\nremember");
    let prompts = bench.call("mcp__lab__list_prompts", json!({})).await;
    assert_eq!(prompts.text, "review\n  - path (required)\n");
    let prompt = json!({"name": "review", "arguments": {"path": "a.rs"}});
    assert_eq!(bench.call("mcp__lab__get_prompt", prompt).await.text, "[user]\nReview it.");
    let missing = bench.call("mcp__lab__read_resource", json!({})).await;
    assert!(missing.text.contains("uri is missing"), "{}", missing.text);
}

#[tokio::test]
async fn progress_is_shown_and_a_cancel_reaches_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let bench = Bench::new(vec![stdio("lab", &["--log", log.to_str().unwrap()])]).await;
    let called = bench.call_until("mcp__lab__slow", json!({}), Some("step 2")).await;
    assert_eq!(called.status, ToolCallStatus::Cancelled, "{called:?}");
    assert_eq!(
        called.progress,
        "1/3 step 0\u{241b}[1m\n2/3 step 1\u{241b}[1m\n3/3 step 2\u{241b}[1m\n"
    );
    // The server goes on: it got word, and it is asked again.
    assert_eq!(bench.call("mcp__lab__echo", json!({"text": "after"})).await.text, "after");
    let messages = asked(&log);
    let call = messages.iter().find(|message| message["params"]["name"] == "slow").unwrap();
    let cancel =
        messages.iter().find(|message| message["method"] == "notifications/cancelled").unwrap();
    assert_eq!(cancel["params"]["requestId"], call["id"]);
}

#[tokio::test]
async fn h243_what_a_server_asks_of_us_is_not_supported() {
    let bench = Bench::new(vec![stdio("lab", &[])]).await;
    let called = bench.call("mcp__lab__ask", json!({})).await;
    assert_eq!(called.text, "[-32601, -32601, -32601, -32601]");
}

#[tokio::test]
async fn what_a_server_says_is_made_safe_and_its_hints_are_not_believed() {
    let bench = Bench::new(vec![stdio("lab", &[])]).await;
    let server = bench.settled("lab").await;
    assert_eq!(server.implementation.as_deref(), Some("test\u{241b}[2J 1"));
    let tools = bench.pool.now();
    for tool in tools.iter() {
        let spec = tool.spec();
        assert_eq!(spec.class, ToolClass::Remote, "{}", spec.name);
        assert!(!spec.description.chars().any(|ch| ch.is_control() || ch == '\u{202e}'));
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        assert!(spec.name.len() <= 64 && spec.name.bytes().all(legal), "{}", spec.name);
    }
    assert!(bench.names().iter().any(|name| name.starts_with("mcp__lab__odd_name_1_")));
    let called = bench.call("mcp__lab__control", json!({})).await;
    assert_eq!(called.text, "a\u{2400}b\u{241b}[31mred\u{241b}[0m\u{240d}END");
}

#[tokio::test]
async fn a_program_sees_little_of_our_environment() {
    let bench = Bench::new(vec![stdio("lab", &[])]).await;
    let seen = bench.call("mcp__lab__env", json!({})).await.text;
    let seen: Vec<&str> = seen.split(' ').collect();
    assert!(seen.contains(&"PATH"), "{seen:?}");
    assert!(!seen.iter().any(|name| name.starts_with("CARGO")), "{seen:?}");
}
