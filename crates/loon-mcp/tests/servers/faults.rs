//! What servers do wrong.

use std::time::Duration;

use loon_api::{McpState, ToolCallStatus};
use loon_kernel::RemoteTools;
use loon_mcp::{ServerConfig, Way};
use serde_json::json;

use crate::bench::{Bench, config, methods, stdio};

#[tokio::test]
async fn noise_on_standard_output_is_passed_over() {
    let bench = Bench::new(vec![stdio("lab", &["--noise"])]).await;
    for text in ["one", "two"] {
        let called = bench.call("mcp__lab__echo", json!({"text": text})).await;
        assert_eq!(called.text, text);
    }
}

#[tokio::test]
async fn a_dead_a_hanging_a_flooding_and_a_loud_server_each_get_their_due() {
    let soon = |mut config: ServerConfig| {
        config.startup_timeout = Duration::from_secs(2);
        config
    };
    let missing =
        Way::Stdio { command: vec!["no-such-program".into()], env: vec![], cwd: "/".into() };
    let bench = Bench::new(vec![
        stdio("dead", &["--dead"]),
        soon(stdio("hangs", &["--hang-init"])),
        soon(stdio("mute", &["--hang-list"])),
        stdio("floods", &["--flood"]),
        stdio("loud", &["--loud"]),
        config("missing", missing),
        config("broken", Way::Unusable("the environment variable X is not set".into())),
        config("off", Way::Off),
    ])
    .await;
    let mut news = bench.pool.news();
    bench.pool.start_all().await;
    let servers = bench.pool.servers();
    let words = |name: &str| {
        let server = servers.iter().find(|server| server.name == name).unwrap();
        (server.state, server.error.clone().unwrap_or_default())
    };
    let failed = |name: &str, why: &str| {
        let (state, error) = words(name);
        assert_eq!(state, McpState::Failed, "{name}");
        assert!(error.contains(why), "{name}: {error}");
    };
    failed("dead", "exit status 1; it said last: ModuleNotFoundError: yaml");
    failed("hangs", "not ready within 2 seconds");
    failed("mute", "not ready within 2 seconds");
    failed("floods", "longer than 16777216 bytes");
    failed("missing", "no such program");
    failed("broken", "variable X is not set");
    assert_eq!(words("off").0, McpState::Off);
    assert_eq!(words("loud").0, McpState::Ready);
    assert_eq!(bench.call("mcp__loud__echo", json!({"text": "x"})).await.text, "x");
    let loud = bench.settled("loud").await;
    assert!(loud.stderr.len() <= 9000 && loud.stderr.ends_with("loud"));
    // Each failure is told once, however often servers are wanted.
    bench.pool.settle().await;
    let mut told = Vec::new();
    while let Ok(notice) = news.try_recv() {
        told.push(notice.message);
    }
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(told.iter().any(|told| told.starts_with("The MCP server dead is not there: ")));
}

#[tokio::test]
async fn a_call_in_flight_when_the_server_ends_is_an_error_and_the_next_one_starts_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let (log, starts) = (dir.path().join("log"), dir.path().join("starts"));
    let flags = ["--log", log.to_str().unwrap(), "--starts", starts.to_str().unwrap()];
    let bench = Bench::new(vec![stdio("lab", &flags)]).await;
    let died = bench.call("mcp__lab__die", json!({})).await;
    assert_eq!(died.status, ToolCallStatus::Failed);
    assert!(died.text.contains("ended with exit status 3"), "{}", died.text);
    assert!(died.text.contains("was not repeated"), "{}", died.text);
    assert_eq!(bench.call("mcp__lab__echo", json!({"text": "back"})).await.text, "back");
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "xx");
    assert_eq!(methods(&log).iter().filter(|method| *method == "tools/call").count(), 2);
}

#[tokio::test]
async fn a_server_that_fails_at_first_is_tried_again_and_one_that_never_comes_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    let bench = Bench::new(vec![
        stdio("late", &["--starts", one.to_str().unwrap(), "--die-at-start", "2"]),
        stdio("never", &["--starts", other.to_str().unwrap(), "--die-at-start", "1000"]),
    ])
    .await;
    assert_eq!(bench.settled("late").await.state, McpState::Ready);
    for _ in 0..4 {
        assert_eq!(bench.settled("never").await.state, McpState::Failed);
    }
    // The circuit opens after five starts; what comes later starts nothing.
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "xxxxx");
}

#[tokio::test]
async fn a_list_without_end_ends_and_bad_tools_are_named() {
    let bench = Bench::new(vec![stdio("loops", &["--loop"]), stdio("bad", &["--bad"])]).await;
    let loops = bench.settled("loops").await;
    assert_eq!(loops.state, McpState::Ready);
    assert!(loops.problems.iter().any(|problem| problem.reason.contains("in a circle")));
    let bad = bench.settled("bad").await;
    let problems: Vec<String> = bad
        .problems
        .iter()
        .map(|problem| format!("{}: {}", problem.tool, problem.reason))
        .collect();
    assert_eq!(
        problems,
        [
            "none: it had no schema of its arguments; mended",
            "text: its arguments are no object; left out",
            "yes: it had no schema of its arguments; mended",
            ": it has no name; left out",
            ": it has no name; left out",
        ]
    );
    // The server gets the arguments as they were written.
    let called = bench.call("mcp__bad__ref", json!({"r": {"n": 1}})).await;
    assert_eq!(called.text, "ref {\"r\": {\"n\": 1}}");
    let called = bench.call("mcp__bad__none", json!({"any": [1]})).await;
    assert_eq!(called.text, "none {\"any\": [1]}");
}

#[tokio::test]
async fn h233_a_result_too_long_to_read_is_a_file() {
    let bench = Bench::new(vec![stdio("lab", &[])]).await;
    let called = bench.call("mcp__lab__big", json!({})).await;
    assert!(called.text.len() < 33_000, "{}", called.text.len());
    let path = called.text.split("are in ").nth(1).unwrap().split(": read").next().unwrap();
    assert!(std::fs::read_to_string(path).unwrap().contains("row 150000\n"));
    let mixed = bench.call("mcp__lab__mixed", json!({})).await;
    assert_eq!(
        mixed.text,
        "[image, image/png, 2.9 KiB: not shown]\n\
         [resource memo://one (one): read it with mcp__lab__read_resource]"
    );
}

#[tokio::test]
async fn a_tool_that_is_described_otherwise_is_not_the_one_that_was_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let starts = dir.path().join("starts");
    let bench =
        Bench::new(vec![stdio("lab", &["--changes", "--starts", starts.to_str().unwrap()])]).await;
    let mut news = bench.pool.news();
    bench.call("mcp__lab__echo", json!({"text": "first"})).await;
    let spec = |name: &str| {
        let tools = bench.pool.now();
        tools.iter().find(|tool| tool.spec().name == name).unwrap().spec().clone()
    };
    assert!(!bench.pool.is_changed(&spec("mcp__lab__echo")));
    bench.call("mcp__lab__die", json!({})).await;
    // Found before the restart, it is called after it: that is not what was looked at.
    let refused = bench.call("mcp__lab__echo", json!({"text": "second"})).await;
    assert!(refused.text.contains("describes mcp__lab__echo otherwise"), "{}", refused.text);
    assert!(
        bench.pool.is_changed(&spec("mcp__lab__echo"))
            && !bench.pool.is_changed(&spec("mcp__lab__die"))
    );
    let mut told = Vec::new();
    while let Ok(notice) = news.try_recv() {
        told.push(notice.message);
    }
    assert!(
        told.iter().any(|told| told.ends_with("otherwise than before: mcp__lab__echo.")),
        "{told:?}"
    );
    // Called again after it was looked at again, it is known.
    assert_eq!(bench.call("mcp__lab__echo", json!({"text": "third"})).await.text, "third");
    assert!(!bench.pool.is_changed(&spec("mcp__lab__echo")));
}

#[tokio::test]
async fn changed_settings_end_a_server_and_start_the_new_one() {
    let bench = Bench::new(vec![stdio("lab", &[]), stdio("idle", &[])]).await;
    bench.settled("lab").await;
    bench.pool.apply(vec![stdio("lab", &["--tools", "1"]), stdio("idle", &["--tools", "1"])]);
    let servers = bench.pool.servers();
    assert_eq!((servers[0].state, servers[1].state), (McpState::Starting, McpState::Idle));
    bench.settled("lab").await;
    assert!(bench.names().contains(&"mcp__lab__extra_0".to_owned()));
    bench.pool.apply(vec![]);
    assert!(bench.names().is_empty());
}
