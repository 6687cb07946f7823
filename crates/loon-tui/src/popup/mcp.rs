//! MCP servers: how each is, what it offers, and why it is not there.

use loon_api::{McpServer, McpState};

use super::{Kind, Popup, Row, Value};

/// Tools named in the description of one server.
const NAMED: usize = 30;

/// The list before its rows are known.
pub(crate) fn open() -> Popup {
    Popup::new(Kind::Mcp, "mcp servers", "no server is set up; see docs/MCP.md", Vec::new())
}

/// One row for each server.
pub(crate) fn rows(servers: &[McpServer]) -> Vec<Row> {
    servers.iter().map(row).collect()
}

fn row(server: &McpServer) -> Row {
    let note = match (server.state, server.tools.len()) {
        (McpState::Ready, 1) => "ready, 1 tool".to_owned(),
        (McpState::Ready, tools) => format!("ready, {tools} tools"),
        (state, _) => state.word().to_owned(),
    };
    Row { label: server.name.clone(), note, about: about(server), value: Value::Nothing }
}

fn about(server: &McpServer) -> String {
    let mut lines = vec![server.target.clone()];
    lines.extend(server.implementation.clone());
    lines.extend(server.error.clone());
    lines.extend(
        server.problems.iter().map(|problem| format!("{}: {}", problem.tool, problem.reason)),
    );
    if !server.tools.is_empty() {
        let more = server.tools.len().saturating_sub(NAMED);
        let named: Vec<&str> = server.tools.iter().take(NAMED).map(String::as_str).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("{}{more}", named.join(", ")));
    }
    if !server.stderr.is_empty() {
        lines.push(format!("standard error:\n{}", server.stderr));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use loon_api::McpProblem;

    use super::*;

    #[test]
    fn a_row_says_how_a_server_is_and_why() {
        let failed = McpServer {
            name: "lab".into(),
            state: McpState::Failed,
            target: "run lab".into(),
            error: Some("the program ended with exit status 1".into()),
            problems: vec![McpProblem { tool: "x".into(), reason: "left out".into() }],
            stderr: "no module".into(),
            ..McpServer::default()
        };
        let ready = McpServer {
            state: McpState::Ready,
            tools: (0..40).map(|n| format!("t{n}")).collect(),
            ..failed.clone()
        };
        let rows = rows(&[failed, ready]);
        assert_eq!((rows[0].note.as_str(), rows[1].note.as_str()), ("failed", "ready, 40 tools"));
        assert_eq!(
            rows[0].about,
            "run lab\nthe program ended with exit status 1\nx: left out\nstandard error:\nno module"
        );
        assert!(rows[1].about.contains("t29 and 10 more"));
    }
}
