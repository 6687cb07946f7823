//! The way to a worker over HTTP.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use loon_api::{BoxFuture, Envelope, ErrorCode, ErrorInfo, ExecutionId};
use loon_kernel::placement::MAX_LINE;
use loon_kernel::{CancelRequest, Dispatch, DispatchError, Dispatcher, FromWorker, Settled};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, redirect};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use url::Url;

use super::Token;
use crate::failure::Failure;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long the answer to a cancel may take.
const CANCEL: Duration = Duration::from_secs(10);
/// How often a silent connection is tried, so that a machine that is gone is noticed.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Most bytes of an answer that is an error.
const MAX_ERROR: usize = 64 * 1024;

/// Runs executions on a worker over HTTP.
pub(super) struct RemoteDispatcher {
    name: String,
    base: Url,
    client: Client,
}

impl RemoteDispatcher {
    /// The worker called `name` in the settings. Nothing is connected yet.
    pub(super) fn new(name: &str, url: &str, token: Option<Token>) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::usage(format!("workers.{name}.url: {why}"));
        let mut base = Url::parse(url).map_err(|error| wrong(format!("is no URL: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(wrong("must begin with http:// or https:// and a host".to_owned()));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&token.header())
                .map_err(|error| wrong(format!("the token cannot be sent: {error}")))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut builder = Client::builder()
            .user_agent(concat!("loon/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEPALIVE)
            // A redirect would carry the token to a server that no setting names.
            .redirect(redirect::Policy::none());
        if base.scheme() == "http" {
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| wrong(error.to_string()))?;
        Ok(Self { name: name.to_owned(), base, client })
    }

    fn target(&self) -> String {
        format!("worker {}", self.name)
    }

    fn lost(&self, reason: &dyn Display) -> DispatchError {
        DispatchError::Lost { target: self.target(), reason: reason.to_string() }
    }

    fn unreachable(&self, reason: &dyn Display) -> DispatchError {
        DispatchError::Unreachable { target: self.target(), reason: reason.to_string() }
    }

    async fn post(&self, path: &str, body: &impl Serialize) -> Result<Response, DispatchError> {
        let url = self.base.join(path).map_err(|error| self.unreachable(&error))?;
        let body = serde_json::to_vec(body).map_err(|error| self.unreachable(&error))?;
        self.client.post(url).body(body).send().await.map_err(|error| {
            let why = causes(&error);
            // Only a connection that never stood is sure to have brought nothing.
            if error.is_connect() { self.unreachable(&why) } else { self.lost(&why) }
        })
    }

    async fn run(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> Result<Settled, DispatchError> {
        let mut response = self.post("run", &dispatch).await?;
        if !response.status().is_success() {
            return self.refused(response).await;
        }
        let mut buffer: Vec<u8> = Vec::new();
        let mut searched = 0;
        loop {
            while let Some(end) = buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=searched + end).collect();
                searched = 0;
                match FromWorker::parse(&line) {
                    // Without a reader the work goes on, and its end is waited for.
                    Ok(FromWorker::Event(event)) => drop(events.send(event).await),
                    Ok(FromWorker::Settled(settled)) => return Ok(settled),
                    Ok(FromWorker::Cancelled(_)) => {}
                    Err(reason) => return Err(self.lost(&reason)),
                }
            }
            searched = buffer.len();
            if buffer.len() > MAX_LINE {
                return Err(self.lost(&format!("it sent a line longer than {MAX_LINE} bytes")));
            }
            match response.chunk().await {
                Ok(Some(bytes)) => buffer.extend_from_slice(&bytes),
                Ok(None) => return Err(self.lost(&"the stream ended before the work")),
                Err(error) => return Err(self.lost(&causes(&error))),
            }
        }
    }

    /// What an answer without success says. Only "too busy" may be tried again.
    async fn refused(&self, mut response: Response) -> Result<Settled, DispatchError> {
        let status = response.status();
        let mut body = Vec::new();
        while let Ok(Some(bytes)) = response.chunk().await
            && body.len() < MAX_ERROR
        {
            body.extend_from_slice(&bytes);
        }
        let told = serde_json::from_slice::<Value>(&body)
            .ok()
            .and_then(|body| serde_json::from_value::<ErrorInfo>(body.get("error")?.clone()).ok());
        let mut error = told.unwrap_or_else(|| {
            let message = format!("it answered with status {}", status.as_u16());
            ErrorInfo::new(ErrorCode::Protocol, message)
        });
        if error.code == ErrorCode::Overloaded {
            return Err(self.unreachable(&error.message));
        }
        error.message = format!("{}: {}", self.target(), error.message);
        if error.code == ErrorCode::Auth {
            let name = &self.name;
            error = error
                .hint(format!("workers.{name}.token_env names the variable that holds its token"));
        }
        Ok(Settled::Failed { error })
    }

    async fn send_cancel(&self, cancel: &CancelRequest) -> Option<bool> {
        let mut response = self.post("cancel", cancel).await.ok()?;
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.ok()?
            && body.len() < MAX_ERROR
        {
            body.extend_from_slice(&bytes);
        }
        serde_json::from_slice::<Value>(&body).ok()?.get("cancelled")?.as_bool()
    }
}

impl Dispatcher for RemoteDispatcher {
    fn dispatch(
        &self,
        dispatch: Dispatch,
        events: mpsc::Sender<Arc<Envelope>>,
    ) -> BoxFuture<'_, Result<Settled, DispatchError>> {
        Box::pin(self.run(dispatch, events))
    }

    fn cancel(&self, exec: ExecutionId, reason: Option<String>) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let cancel = CancelRequest { execution_id: exec, reason };
            let sent = tokio::time::timeout(CANCEL, self.send_cancel(&cancel)).await;
            sent.ok().flatten().unwrap_or(false)
        })
    }
}

/// The innermost cause, without the URL.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
