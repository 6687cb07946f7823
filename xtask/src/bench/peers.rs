//! Other agents that are measured beside ours when their command is on PATH.

use std::path::Path;

/// An agent with the commands that make it ask the benchmark's server.
pub(super) struct Peer {
    /// Its command, looked up on PATH.
    pub(super) name: &'static str,
    /// Runs one prompt without a screen.
    pub(super) prompt: &'static str,
    /// Opens its screen; empty if that cannot be told the server on the command line.
    pub(super) screen: &'static str,
}

/// All of them. What is not given on the command line comes from the user's own settings of it.
pub(super) const PEERS: [Peer; 1] = [Peer {
    name: "codex",
    prompt: "codex exec --json --skip-git-repo-check -c model=gpt-5.5 -c model_provider=bench \
             -c model_providers.bench.name=bench -c model_providers.bench.base_url={url} \
             -c model_providers.bench.wire_api=responses -c approval_policy=never \
             -c sandbox_mode=danger-full-access {prompt}",
    screen: "codex -c model=gpt-5.5 -c model_provider=bench -c model_providers.bench.name=bench \
             -c model_providers.bench.base_url={url} -c model_providers.bench.wire_api=responses \
             -c approval_policy=never -c sandbox_mode=danger-full-access",
}];

/// True if a command of this name is on PATH.
pub(super) fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(name).is_file())
}
