//! Servers as the wiring hands them over: references expanded, secrets in place.

use std::path::PathBuf;
use std::time::Duration;

use loon_api::McpState;

use crate::digest::hex;

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Way {
    /// A program that is talked to on its standard input and output.
    Stdio {
        /// The program and its arguments; not empty.
        command: Vec<String>,
        /// Variables of its environment, besides the few of ours that it sees.
        env: Vec<(String, String)>,
        /// Absolute folder it runs in.
        cwd: PathBuf,
    },
    /// A server that listens for Streamable HTTP.
    Http {
        /// Where.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, String)>,
    },
    /// The settings switch it off.
    Off,
    /// The settings cannot be used, for this reason.
    Unusable(String),
}

/// One server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its name in the settings.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// What people are shown of that, without secrets.
    pub target: String,
    /// Start it with the session.
    pub warm: bool,
    /// How long it may take to start and to say what it offers.
    pub startup_timeout: Duration,
    /// How long a call may take; absent is the session's default.
    pub call_timeout: Option<Duration>,
}

impl ServerConfig {
    /// What a definition of its tools is remembered under: another program or URL is another server.
    pub(crate) fn identity(&self) -> String {
        let place = match &self.way {
            Way::Stdio { command, .. } => command.join("\0"),
            Way::Http { url, .. } => url.clone(),
            Way::Off | Way::Unusable(_) => String::new(),
        };
        hex(format!("{}\0{place}", self.name), 16)
    }

    /// The state of a server that is never started.
    pub(crate) fn fixed_state(&self) -> Option<(McpState, Option<String>)> {
        match &self.way {
            Way::Off => Some((McpState::Off, None)),
            Way::Unusable(why) => Some((McpState::Failed, Some(why.clone()))),
            Way::Stdio { .. } | Way::Http { .. } => None,
        }
    }
}
