//! What the tools that talk to a network share: their options, the HTTP client, bounded bodies.

pub(crate) mod body;
pub(crate) mod client;
#[cfg(test)]
pub(crate) mod server;

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::watch;

/// The options in force. They can change between two calls.
pub type LiveWebOptions = watch::Receiver<Arc<WebOptions>>;

/// What settings say of the network.
#[derive(Clone, Debug)]
pub struct WebOptions {
    /// How long a page may take, redirects and body included.
    pub timeout: Duration,
    /// Names that may lead to addresses outside the public network.
    pub private_hosts: Vec<String>,
    /// Documentation of libraries.
    pub context7: Context7Options,
}

/// What settings say of Context7.
#[derive(Clone, Debug)]
pub struct Context7Options {
    /// Its tools may be used.
    pub enabled: bool,
    /// The key in force: the exported one, else the saved one.
    pub api_key: Option<SecretString>,
    /// Name of the variable that the exported key is looked for in.
    pub api_key_env: String,
    /// How long a request may take.
    pub timeout: Duration,
    /// Where it answers.
    pub base_url: String,
}
