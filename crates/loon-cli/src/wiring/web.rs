//! What the settings and the environment say to the tools that talk to a network.

use std::time::Duration;

use loon_config::Settings;
use loon_tool::{Context7Options, WebOptions};
use secrecy::ExposeSecret as _;

use super::models::exported_key;

/// The options that these settings make. An exported key goes before a saved one.
pub(super) fn options(settings: &Settings) -> WebOptions {
    let context7 = &settings.context7;
    let saved = || context7.api_key.clone().filter(|key| !key.expose_secret().is_empty());
    WebOptions {
        timeout: Duration::from_secs(settings.web.timeout_secs),
        private_hosts: settings.web.private_hosts.clone(),
        context7: Context7Options {
            enabled: context7.enabled,
            api_key: exported_key(&context7.api_key_env).or_else(saved),
            api_key_env: context7.api_key_env.clone(),
            timeout: Duration::from_secs(context7.timeout_secs),
            base_url: context7.base_url.clone(),
        },
    }
}
