//! The client under the protocol's own conformance tests: it connects to the URL that is its last
//! argument and calls every tool it finds there. The status is 0 if all of that worked.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the bench reports by panicking")]
#![expect(dead_code, reason = "the bench of the tests has more than is used here")]

use std::process::ExitCode;

use loon_api::{McpState, ToolCallStatus};
use loon_kernel::RemoteTools as _;
use loon_mcp::Way;
use serde_json::{Map, Value, json};

#[path = "../tests/servers/bench.rs"]
mod bench;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let url = std::env::args().next_back().expect("a URL");
    let way = Way::Http { url, headers: Vec::new() };
    let bench = bench::Bench::new(vec![bench::config("peer", way)]).await;
    let server = bench.settled("peer").await;
    if server.state != McpState::Ready {
        return ExitCode::FAILURE;
    }
    let tools = bench.pool.now();
    for name in server.tools {
        let tool = tools.iter().find(|tool| tool.spec().name == name).expect("a listed tool");
        let called = bench.call(&name, arguments(&tool.spec().parameters)).await;
        if called.status != ToolCallStatus::Done {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Arguments that fit a schema.
fn arguments(schema: &Value) -> Value {
    let members = schema["properties"].as_object().cloned().unwrap_or_default();
    let value = |schema: &Value| match schema["type"].as_str() {
        Some("number" | "integer") => json!(2),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("words"),
    };
    let given: Map<String, Value> =
        members.iter().map(|(name, schema)| (name.clone(), value(schema))).collect();
    Value::Object(given)
}
