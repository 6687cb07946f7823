//! The HTTP client. It follows no redirect, and a name of the public network leads it to no other
//! network.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use loon_api::BoxFuture;
use loon_api::network::{is_local_name, is_public_address};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response, redirect};
use url::{Host, Url};

use crate::text;

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(10);

/// Finds the addresses of a name.
pub(crate) type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// As the system finds them.
pub(crate) fn system_lookup(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
}

/// A client for requests to the host of `url`. `private_hosts` are names that may lead out of the
/// public network; an address that the URL itself names is the gate's to judge.
pub(crate) fn client(
    url: &Url,
    private_hosts: &[String],
    lookup: Lookup,
) -> Result<Client, String> {
    let mut builder = Client::builder()
        .user_agent(concat!("loon/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .dns_resolver(Guard::new(url, private_hosts, lookup));
    if url.scheme() == "http" {
        // Reading the trust store takes longer than the rest of the set-up.
        builder = builder.tls_certs_only([]);
    }
    if is_this_machine(url) {
        // A proxy could not reach it.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| format!("Cannot set up connections: {}.", causes(&error)))
}

/// That `server` gave no answer, and why.
pub(crate) fn unreached(server: &str, error: &reqwest::Error) -> String {
    let what = if error.is_connect() { "Cannot reach" } else { "No answer from" };
    format!("{what} {server}: {}.", text::visible_line(&causes(error)))
}

/// When the server wants to be asked again: `in 30 seconds`, or `after` a date.
pub(crate) fn retry_after(response: &Response) -> Option<String> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = !value.is_empty() && value.chars().all(|ch| ch.is_ascii_digit());
    Some(if seconds {
        format!("in {value} seconds")
    } else {
        format!("after {}", text::visible_line(value))
    })
}

/// The error and what caused it, without the URL.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let word = cause.to_string();
        if words.last().is_none_or(|last| !last.contains(&word)) {
            words.push(word);
        }
        next = cause.source();
    }
    if words.is_empty() { "it was not sent".to_owned() } else { words.join(": ") }
}

/// It names a server on this machine, which may listen on it alone.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_same_name(name, "localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn is_same_name(one: &str, other: &str) -> bool {
    one.trim_end_matches('.').eq_ignore_ascii_case(other.trim_end_matches('.'))
}

/// Keeps a name of the public network from leading elsewhere.
struct Guard {
    /// The name to watch. Others are those of proxies, which stand where they stand.
    watched: Option<String>,
    lookup: Lookup,
}

impl Guard {
    fn new(url: &Url, private_hosts: &[String], lookup: Lookup) -> Self {
        let watched = url.domain().filter(|name| {
            // A local name was judged as one.
            !is_local_name(name) && !private_hosts.iter().any(|host| is_same_name(host, name))
        });
        Self { watched: watched.map(str::to_owned), lookup }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let watched = self.watched.as_deref().is_some_and(|host| is_same_name(host, &name));
        let found = (self.lookup)(name.clone());
        Box::pin(async move {
            let mut addresses = found.await?;
            let private = addresses.iter().map(SocketAddr::ip).find(|ip| !is_public_address(*ip));
            if let (true, Some(address)) = (watched, private) {
                addresses.retain(|found| is_public_address(found.ip()));
                if addresses.is_empty() {
                    return Err(LeadsAway { name, address }.into());
                }
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// A name of the public network that leads elsewhere.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} leads to {address}, which is not an address of the public network. If that is right, \
     fetch the address itself, which a person is asked about, or have {name} added to the setting \
     web.private_hosts"
)]
struct LeadsAway {
    name: String,
    address: IpAddr,
}
