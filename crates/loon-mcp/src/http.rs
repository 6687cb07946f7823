//! A server that listens for Streamable HTTP.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, redirect};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use url::{Host, Url};

use crate::stdio::LARGEST;
use crate::words;

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(10);

/// How often a stream that broke off is taken up again without anything new.
const RECONNECTS: usize = 5;

/// The transport to the server at `url`. Nothing is connected yet.
pub(crate) fn transport(
    url: &str,
    headers: &[(String, String)],
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let parsed = Url::parse(url).map_err(|error| format!("its url is no URL: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!("its url begins with {}; there are http and https", parsed.scheme()));
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(read_headers(headers)?)
        // A new session may have other tools: the connection is made anew, and asked for them.
        .reinit_on_expired_session(false)
        .max_sse_event_size(LARGEST);
    config.max_json_response_size = LARGEST;
    let mut retry = ExponentialBackoff::default();
    retry.max_times = Some(RECONNECTS);
    config.retry_config = Arc::new(retry);
    Ok(StreamableHttpClientTransport::with_client(client(&parsed)?, config))
}

fn client(url: &Url) -> Result<Client, String> {
    let mut builder = Client::builder()
        .user_agent(concat!("loon/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        // It would carry the headers to a server that no setting names.
        .redirect(redirect::Policy::none())
        .pool_max_idle_per_host(0);
    if url.scheme() == "http" {
        // Reading the trust store takes longer than the rest of the set-up.
        builder = builder.tls_certs_only([]);
    }
    if is_this_machine(url) {
        // A proxy could not reach it.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| format!("connections cannot be set up: {error}"))
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn read_headers(headers: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let read = |(name, value): &(String, String)| {
        let header = HeaderName::try_from(name.as_str());
        let header = header.map_err(|_| format!("headers.{name} is no name of a header"))?;
        let mut value = HeaderValue::try_from(value.as_str())
            .map_err(|_| format!("headers.{name} holds characters that no header can"))?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.iter().map(read).collect()
}

/// What went wrong, in words for a person.
pub(crate) fn words_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(known) = current.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return words_of_http(known);
        }
        next = current.source();
    }
    words::line(&error.to_string(), 500)
}

fn words_of_http(error: &StreamableHttpError<reqwest::Error>) -> String {
    match error {
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            "the server wants other credentials (HTTP 401 or 403). Loom signs in nowhere: put a token \
             into the server's `headers`"
                .to_owned()
        }
        StreamableHttpError::Client(error) => {
            let mut words = vec![error.to_string()];
            let mut next = std::error::Error::source(error);
            while let Some(cause) = next {
                words.push(cause.to_string());
                next = cause.source();
            }
            crate::words::line(&words.join(": "), 500)
        }
        other => crate::words::line(&other.to_string(), 500),
    }
}

/// True if the server no longer knows the session of the connection.
pub(crate) fn is_expired(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(StreamableHttpError::SessionExpired) =
            current.downcast_ref::<StreamableHttpError<reqwest::Error>>()
        {
            return true;
        }
        next = current.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_no_request_can_be_made_of_is_refused_without_its_value() {
        let header = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let url = "https://x.test/mcp";
        assert!(transport(url, &header("authorization", "Bearer x")).is_ok());
        let wrong = transport(url, &header("key", "secret\n")).err().unwrap();
        assert!(wrong.contains("headers.key") && !wrong.contains("secret"), "{wrong}");
        assert!(transport(url, &header("a b", "x")).is_err());
        assert!(transport("ftp://x.test", &[]).err().unwrap().contains("ftp"));
        assert!(transport("nonsense", &[]).is_err());
    }
}
