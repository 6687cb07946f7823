//! Our side of the protocol: progress is passed on, and whatever else a server asks of us is answered
//! with "not supported".

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loon_kernel::Progress;
use rmcp::ClientHandler;
#[expect(deprecated, reason = "servers ask for roots all the same, and must be refused")]
use rmcp::model::ListRootsResult;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode, ErrorData,
    Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::mpsc;

use crate::words;

/// Most bytes of one piece of progress.
const PIECE: usize = 500;

/// Whom progress of which request goes to. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followers(Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<Progress>>>>);

impl Followers {
    pub(crate) fn add(&self, token: ProgressToken, to: mpsc::Sender<Progress>) -> Following {
        self.lock().insert(token.clone(), to);
        Following { followers: self.clone(), token }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<Progress>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held while the request is under way.
pub(crate) struct Following {
    followers: Followers,
    token: ProgressToken,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.followers.lock().remove(&self.token);
    }
}

/// The handler of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub(crate) followers: Followers,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("loon", env!("CARGO_PKG_VERSION"));
        // Later versions of the protocol begin without this handshake.
        let version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        ClientConfig::new(ClientCapabilities::default(), own).with_protocol_version(version)
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let to = self.followers.lock().get(&progress.progress_token).cloned();
        if let Some(to) = to {
            // Of a flood, what finds no room is left out: the result does not depend on it.
            let _ = to.try_send(Progress::Output(progress_line(&progress)));
        }
    }

    #[expect(deprecated, reason = "servers ask for roots all the same, and must be refused")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(not_supported("roots/list"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(not_supported("elicitation/create"))
    }
}

fn not_supported(method: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)
}

fn progress_line(progress: &ProgressNotificationParam) -> String {
    let done = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match progress.message.as_deref().filter(|message| !message.trim().is_empty()) {
        Some(message) => format!("{done} {}\n", words::line(message, PIECE)),
        None => format!("{done}\n"),
    }
}
