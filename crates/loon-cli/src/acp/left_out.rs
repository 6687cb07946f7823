//! What a client asks of a session and does not get, in words for the person in front of it.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{McpServer, SystemPrompt};

/// The remarks a session begins with.
pub(super) fn remarks(
    servers: &[McpServer],
    folders: &[PathBuf],
    system: Option<&SystemPrompt>,
) -> Vec<String> {
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let folders = (!folders.is_empty()).then(|| {
        let names = folders.join(", ");
        format!("A session works in one folder; these of the editor are left out: {names}.")
    });
    let system =
        system.map(|_| "The system text of the editor is left out; Loom has its own.".to_owned());
    mcp_servers(servers).into_iter().chain(folders).chain(system).collect()
}

/// The servers that the editor wants a session to use. A session that speaks to such servers takes
/// them over here, and what is left to say is which it cannot use.
fn mcp_servers(servers: &[McpServer]) -> Option<String> {
    let names: Vec<&str> = servers.iter().filter_map(name).collect();
    (!servers.is_empty()).then(|| {
        format!(
            "Loom does not use the MCP servers of the editor; left out: {}.",
            if names.is_empty() { "servers without a name".to_owned() } else { names.join(", ") }
        )
    })
}

fn name(server: &McpServer) -> Option<&str> {
    match server {
        McpServer::Stdio(server) => Some(&server.name),
        McpServer::Http(server) => Some(&server.name),
        McpServer::Sse(server) => Some(&server.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol_schema::v1::{McpServerHttp, McpServerStdio};

    #[test]
    fn what_is_left_out_is_named() {
        assert_eq!(remarks(&[], &[], None), Vec::<String>::new());
        let servers = [
            McpServer::Stdio(McpServerStdio::new("files", "/bin/files")),
            McpServer::Http(McpServerHttp::new("docs", "http://127.0.0.1:1/mcp")),
        ];
        let told = remarks(&servers, &["/other".into()], None);
        assert_eq!(told.len(), 2);
        assert!(told[0].contains("files, docs") && told[1].contains("/other"), "{told:?}");
    }
}
