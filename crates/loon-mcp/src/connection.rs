//! One connection to a server: requests with their progress and their cancel.

use std::sync::Arc;
use std::time::Duration;

use loon_kernel::Progress;
use rmcp::model::{ClientRequest, ServerPeerInfo, ServerResult};
use rmcp::service::{
    ClientInitializeError, Peer, PeerRequestOptions, RequestHandle, RoleClient,
    RunningServiceCancellationToken, ServiceError, serve_client,
};
use rmcp::transport::IntoTransport;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::client::{Client, Followers};
use crate::http::{is_expired, words_of};
use crate::stdio::EndNote;
use crate::words;

/// How long telling a server of a cancel may take.
const CANCEL_TIME: Duration = Duration::from_millis(250);

/// Why a request gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The server answered with an error.
    #[error("{0}")]
    Answered(String),
    /// The server forgot the session: the request was not looked at.
    #[error("the server no longer knows this session")]
    Expired,
    /// The connection ended or broke while the request was under way.
    #[error("{0}")]
    Lost(String),
    /// We stopped it.
    #[error("it was cancelled")]
    Cancelled,
}

/// A connection that was initialised. Dropped, it is closed.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    followers: Followers,
    closed: watch::Receiver<bool>,
    end: Arc<EndNote>,
    token: Option<RunningServiceCancellationToken>,
}

impl Connection {
    /// Shakes hands over `transport`.
    pub(crate) async fn open<T, E, A>(transport: T, end: Arc<EndNote>) -> Result<Self, String>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let client = Client::default();
        let followers = client.followers.clone();
        let service = match serve_client(client, transport).await {
            Ok(service) => service,
            Err(error) => {
                let words = match &error {
                    ClientInitializeError::TransportError { error, .. } => {
                        words_of(error.error.as_ref())
                    }
                    other => words_of(other),
                };
                return Err(match end.get() {
                    Some(why) => why,
                    None => format!("the handshake failed: {words}"),
                });
            }
        };
        let (peer, token) = (service.peer().clone(), Some(service.cancellation_token()));
        let (tell, closed) = watch::channel(false);
        tokio::spawn(async move {
            let _ = service.waiting().await;
            tell.send_replace(true);
        });
        Ok(Self { peer, followers, closed, end, token })
    }

    /// What the server said of itself.
    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// True once nothing more can be asked.
    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow() || self.peer.is_transport_closed()
    }

    /// Completes with its end, and gives why it came. Does not keep it open.
    pub(crate) fn ending(&self) -> impl Future<Output = String> + Send + 'static {
        let (mut closed, end) = (self.closed.clone(), Arc::clone(&self.end));
        async move {
            let _ = closed.wait_for(|closed| *closed).await;
            end.get().unwrap_or_else(|| "the connection was closed".to_owned())
        }
    }

    /// Asks one thing. What the answer is like, nobody has checked. `progress` is told what the server
    /// says meanwhile; when `cancel` fires, the server is told and the answer not waited for.
    pub(crate) async fn ask(
        &self,
        request: ClientRequest,
        progress: Option<&mpsc::Sender<Progress>>,
        cancel: &CancellationToken,
    ) -> Result<Value, Fault> {
        let sending = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Fault::Cancelled),
            handle = sending => handle.map_err(|error| self.fault(&error))?,
        };
        let _following =
            progress.map(|to| self.followers.add(handle.progress_token.clone(), to.clone()));
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer,
            () = cancel.cancelled() => {
                tell_cancelled(handle).await;
                return Err(Fault::Cancelled);
            }
        };
        match answer {
            Ok(Ok(ServerResult::CustomResult(result))) => Ok(result.0),
            Ok(Ok(result)) => serde_json::to_value(&result)
                .map_err(|error| Fault::Answered(format!("its answer cannot be read: {error}"))),
            Ok(Err(error)) => Err(self.fault(&error)),
            // The end of the program is noted a moment after its output has ended.
            Err(_) => Err(Fault::Lost(self.ending().await)),
        }
    }

    fn fault(&self, error: &ServiceError) -> Fault {
        match error {
            ServiceError::McpError(error) => {
                let code = error.code.0;
                Fault::Answered(format!("{} (error {code})", words::bounded(&error.message, 4000)))
            }
            ServiceError::TransportSend(error) if is_expired(error.error.as_ref()) => {
                Fault::Expired
            }
            ServiceError::TransportSend(error) => {
                Fault::Lost(self.end.get().unwrap_or_else(|| words_of(error.error.as_ref())))
            }
            other => {
                Fault::Lost(self.end.get().unwrap_or_else(|| words::line(&other.to_string(), 500)))
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            token.cancel();
        }
    }
}

async fn tell_cancelled(handle: RequestHandle<RoleClient>) {
    let telling = handle.cancel(Some("the call was stopped".to_owned()));
    let _ = tokio::time::timeout(CANCEL_TIME, telling).await;
}
