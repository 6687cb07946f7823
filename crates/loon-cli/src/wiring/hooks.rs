//! The way of lifecycle hooks to their addresses.

use std::time::Duration;

use loon_api::BoxFuture;
use loon_core::hooks::MAX_ANSWER;
use loon_core::{HookPoster, Posted};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, redirect};

use crate::worker::causes;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Sends the input of hooks over HTTP, each by a client of its own: hooks are rare, and none keeps a
/// connection open.
pub(super) struct HttpPoster;

impl HookPoster for HttpPoster {
    fn post<'a>(&'a self, url: &'a str, body: Vec<u8>) -> BoxFuture<'a, Result<Posted, String>> {
        Box::pin(async move {
            let mut builder = Client::builder()
                .user_agent(concat!("loon/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT)
                // What a session does is told to nobody but the address of the settings.
                .redirect(redirect::Policy::none());
            if url.starts_with("http://") {
                // No certificates need to be read then.
                builder = builder.tls_certs_only([]);
            }
            let client = builder.build().map_err(|error| causes(&error))?;
            let request = client.post(url).header(CONTENT_TYPE, "application/json").body(body);
            let mut answer = request.send().await.map_err(|error| causes(&error))?;
            let status = answer.status().as_u16();
            let mut body = Vec::new();
            while body.len() <= MAX_ANSWER
                && let Some(chunk) = answer.chunk().await.map_err(|error| causes(&error))?
            {
                let room = MAX_ANSWER + 1 - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Ok(Posted { status, body })
        })
    }
}
