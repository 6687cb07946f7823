//! `loon mcp ...`.

use std::fmt::Write as _;
use std::io::Write as _;

use loon_api::{McpServer, McpState};
use loon_kernel::RemoteTools as _;
use loon_mcp::Pool;

use crate::args::McpCommand;
use crate::failure::Failure;
use crate::safe::plain;
use crate::wiring::Setup;

/// Runs one of them. The status is 1 if a server that was asked for is not there.
pub(super) fn run(command: &McpCommand) -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    for remark in setup.remarks() {
        // Standard output is for the servers alone.
        let _ = writeln!(std::io::stderr().lock(), "{}", plain(&remark));
    }
    let runtime = super::runtime()?;
    runtime.block_on(async {
        let pool = setup.mcp_pool_alone();
        match command {
            McpCommand::List { json } => list(&pool, *json).await,
            McpCommand::Test { name, json } => test(&pool, name, *json).await,
        }
    })
}

async fn list(pool: &Pool, json: bool) -> Result<u8, Failure> {
    pool.start_all().await;
    let servers = pool.servers();
    if json {
        return print_json(&servers);
    }
    if servers.is_empty() {
        return super::print("No MCP servers are set up. docs/MCP.md shows how.\n");
    }
    let mut text = String::new();
    for server in &servers {
        let _ = writeln!(text, "{:<20} {:<11} {}", server.name, server.state.word(), server.target);
        if server.state == McpState::Ready {
            let _ = writeln!(text, "  {} tools", server.tools.len());
        }
        why(server, &mut text);
        if !server.problems.is_empty() {
            let count = server.problems.len();
            let _ = writeln!(
                text,
                "  {count} tools mended or left out: `loon mcp test {}`",
                server.name
            );
        }
    }
    super::print(&text)
}

async fn test(pool: &Pool, name: &str, json: bool) -> Result<u8, Failure> {
    let Some(server) = pool.test(name).await else {
        let known: Vec<String> = pool.servers().into_iter().map(|server| server.name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Failure::usage(format!(
            "There is no MCP server called {name:?}. There are: {known}."
        )));
    };
    let is_ready = server.state == McpState::Ready;
    let status = if json {
        print_json(std::slice::from_ref(&server))?
    } else {
        super::print(&describe(&server, pool))?
    };
    Ok(if is_ready { status } else { 1 })
}

fn describe(server: &McpServer, pool: &Pool) -> String {
    let mut text = format!("{} is {} ({})\n", server.name, server.state.word(), server.target);
    if let Some(implementation) = &server.implementation {
        let _ = writeln!(text, "  {implementation}");
    }
    why(server, &mut text);
    let tools = pool.now();
    for name in &server.tools {
        let tool = tools.iter().find(|tool| tool.spec().name == *name);
        let about = tool.map(|tool| tool.spec().description.as_str()).unwrap_or_default();
        let about = about.lines().next().unwrap_or_default();
        let _ = writeln!(text, "  {name}  {about}");
    }
    for problem in &server.problems {
        let _ = writeln!(text, "  ! {}: {}", problem.tool, problem.reason);
    }
    text
}

/// Why a server is not there, and the last it said.
fn why(server: &McpServer, text: &mut String) {
    if let Some(error) = &server.error {
        let _ = writeln!(text, "  {error}");
    }
    if server.state == McpState::Failed {
        for line in server.stderr.lines() {
            let _ = writeln!(text, "  | {line}");
        }
    }
}

fn print_json(servers: &[McpServer]) -> Result<u8, Failure> {
    let mut text = String::new();
    for server in servers {
        let line = serde_json::to_string(server)
            .map_err(|error| Failure::other(format!("Cannot write JSON: {error}")))?;
        let _ = writeln!(text, "{line}");
    }
    super::print(&text)
}
