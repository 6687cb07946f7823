//! The first words of a connection: which version both speak, and what Loom can do.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, Implementation, InitializeRequest, InitializeResponse, PromptCapabilities,
    SessionCapabilities, SessionCloseCapabilities, SessionListCapabilities,
    SessionResumeCapabilities,
};

/// What matters of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Client {
    /// It shows notices apart from the model's words.
    pub(super) notices: bool,
}

impl Client {
    /// As the client tells of itself. Its file system and terminals are not used: what a tool reads,
    /// writes and runs passes Loom's own gate, write path and spawner, and hashes of a file's bytes
    /// on disk decide whether an edit may be made. Texts that are not saved come with the prompt.
    pub(super) fn of(request: &InitializeRequest) -> Self {
        let session = request.client_capabilities.session.as_ref();
        Self { notices: session.is_some_and(|session| session.notices.is_some()) }
    }
}

/// The answer. A client that cannot speak version 1 ends the connection.
pub(super) fn answer() -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
        .session_capabilities(sessions);
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(Implementation::new("loon", env!("CARGO_PKG_VERSION")).title("Loom".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_more_is_promised_than_there_is() {
        let told = serde_json::to_value(answer()).unwrap();
        assert_eq!(told["protocolVersion"], 1);
        assert_eq!(told["authMethods"], json!([]));
        let able = &told["agentCapabilities"];
        assert_eq!(able["loadSession"], true);
        assert_eq!(
            able["promptCapabilities"],
            json!({"image": false, "audio": false, "embeddedContext": true})
        );
        assert_eq!(able["mcpCapabilities"], json!({"http": false, "sse": false}));
        assert_eq!(able["sessionCapabilities"], json!({"list": {}, "resume": {}, "close": {}}));
    }

    #[test]
    fn a_client_shows_notices_if_it_says_so() {
        let client = |capabilities| {
            let request = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
            Client::of(&serde_json::from_value(request).unwrap())
        };
        assert!(!client(json!({})).notices);
        assert!(client(json!({"session": {"notices": {}}})).notices);
    }
}
