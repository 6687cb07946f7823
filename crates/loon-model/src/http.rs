//! The HTTP side: one client for all requests of a provider, made when the first one is sent.
//!
//! Bodies are read to their end, so that connections stay open for the next request. Redirects are
//! not followed: they would carry keys to servers that no setting names.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use loon_api::{ModelError, ModelErrorKind};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, redirect};
use url::{Host, Url};

use crate::error;

/// Most bytes of a body that tells of an error.
const MAX_ERROR_BYTES: usize = 1 << 20;
/// How long an idle connection is sure to be still there.
const KEPT: Duration = Duration::from_mins(1);
/// How long to wait for the end of a body after its end mark.
const DRAIN_TIME: Duration = Duration::from_millis(100);

/// How long a server may keep us waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the next byte of an answer, the first one included.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), idle: Duration::from_mins(5) }
    }
}

/// A server that is reached over HTTP.
pub(crate) struct Server {
    /// Ends in a slash.
    base: Url,
    headers: HeaderMap,
    timeouts: Timeouts,
    client: OnceLock<Client>,
    /// When a connection was last used.
    used: Mutex<Option<Instant>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("base", &self.place()).finish_non_exhaustive()
    }
}

impl Server {
    /// A server whose `base` URL includes the version segment. Nothing is connected yet.
    pub(crate) fn new(mut base: Url, headers: HeaderMap, timeouts: Timeouts) -> Self {
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Self { base, headers, timeouts, client: OnceLock::new(), used: Mutex::default() }
    }

    /// The URL as errors show it. A query may hold a key.
    fn place(&self) -> String {
        let mut shown = self.base.clone();
        shown.set_query(None);
        shown.as_str().trim_end_matches('/').to_owned()
    }

    #[expect(clippy::result_large_err, reason = "the error type is the vocabulary's")]
    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = self.client_builder().build().map_err(|error| {
            ModelError::new(
                ModelErrorKind::Network,
                format!("cannot set up connections to {}: {}", self.place(), causes(&error)),
            )
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    fn client_builder(&self) -> ClientBuilder {
        let mut builder = Client::builder()
            .user_agent(concat!("loon/", env!("CARGO_PKG_VERSION")))
            .default_headers(self.headers.clone())
            .connect_timeout(self.timeouts.connect)
            .redirect(redirect::Policy::none());
        if self.base.scheme() == "http" {
            // Reading the trust store costs more than everything else at start-up.
            builder = builder.tls_certs_only([]);
        }
        if is_this_machine(&self.base) {
            builder = builder.no_proxy();
        }
        builder
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        url
    }

    /// Opens a connection that the next request finds open, unless one was used so lately that it is
    /// there. What the server answers does not matter.
    pub(crate) async fn warm(&self) {
        if self.note_use().is_some_and(|last| last.elapsed() < KEPT) {
            return;
        }
        if let Ok(client) = self.client() {
            let answer = async {
                if let Ok(response) = client.head(self.base.clone()).send().await {
                    drain(response).await;
                }
            };
            let _ = tokio::time::timeout(self.timeouts.connect, answer).await;
        }
    }

    /// Notes that a connection is used now. Gives when one was before.
    fn note_use(&self) -> Option<Instant> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.replace(Instant::now())
    }

    /// Asks for `path` with these parameters.
    pub(crate) async fn get(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Response, ModelError> {
        let request = self.client()?.get(self.url(path)).query(parameters);
        self.send(request).await
    }

    /// Sends a JSON body to `path`.
    pub(crate) async fn post(&self, path: &str, body: Vec<u8>) -> Result<Response, ModelError> {
        let request =
            self.client()?.post(self.url(path)).header(CONTENT_TYPE, "application/json").body(body);
        self.send(request).await
    }

    /// An answer of success, at the start of its body.
    async fn send(&self, request: RequestBuilder) -> Result<Response, ModelError> {
        self.note_use();
        let response = tokio::time::timeout(self.timeouts.idle, request.send())
            .await
            .map_err(|_| self.silent())?
            .map_err(|error| self.unreached(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        if status.is_redirection() {
            let to = headers.get("location").and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
            let message = format!(
                "{} redirects to {to}; `base_url` must name that server itself",
                self.place()
            );
            let mut error = ModelError::new(ModelErrorKind::Invalid, message);
            error.status = Some(status.as_u16());
            return Err(error);
        }
        let body = self.whole(response, MAX_ERROR_BYTES).await.unwrap_or_default();
        Err(error::from_response(status.as_u16(), &headers, &body, jiff::Timestamp::now()))
    }

    /// The next bytes of a body; `None` at its end.
    pub(crate) async fn next(
        &self,
        response: &mut Response,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, ModelError> {
        tokio::time::timeout(self.timeouts.idle, response.chunk())
            .await
            .map_err(|_| self.silent())?
            .map_err(|error| {
                ModelError::new(
                    ModelErrorKind::Network,
                    format!("the connection to {} broke: {}", self.place(), causes(&error)),
                )
            })
    }

    /// A whole body, cut at `limit` bytes.
    pub(crate) async fn whole(
        &self,
        mut response: Response,
        limit: usize,
    ) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next(&mut response).await? {
            let bytes = bytes.as_ref();
            body.extend_from_slice(&bytes[..bytes.len().min(limit - body.len())]);
            if body.len() == limit {
                break;
            }
        }
        Ok(body)
    }

    fn silent(&self) -> ModelError {
        let seconds = self.timeouts.idle.as_secs_f64();
        ModelError::new(
            ModelErrorKind::Network,
            format!("{} sent nothing for {seconds} seconds", self.place()),
        )
    }

    fn unreached(&self, error: &reqwest::Error) -> ModelError {
        let what = if error.is_connect() { "cannot reach" } else { "no answer from" };
        ModelError::new(
            ModelErrorKind::Network,
            format!("{what} {}: {}", self.place(), causes(error)),
        )
    }
}

/// Reads what follows the end mark of a body, if it comes at once. That is what lets the connection
/// be used again.
pub(crate) async fn drain(mut response: Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = tokio::time::timeout(DRAIN_TIME, rest).await;
}

/// A proxy could not reach a server that listens on this machine alone.
fn is_this_machine(base: &Url) -> bool {
    match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The error and what caused it, without the URL.
fn causes(error: &reqwest::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let word = error.to_string();
        if words.last().is_none_or(|last| !last.contains(&word)) {
            words.push(word);
        }
        cause = error.source();
    }
    if words.is_empty() { "it was not sent".to_owned() } else { words.join(": ") }
}
