//! Which credentials Loom knows: keys of the settings, and variables of its environment that hold one.

use loon_config::Settings;
use loon_kernel::Redactor;
use loon_kernel::secrets::SHORTEST;
use secrecy::ExposeSecret as _;

use super::{Setup, mcp};

/// How names of variables end that hold a credential.
const VARIABLES: [&str; 10] = [
    "_TOKEN",
    "_SECRET",
    "_PASSWORD",
    "_PASSWD",
    "_PASSPHRASE",
    "_API_KEY",
    "_APIKEY",
    "_SECRET_KEY",
    "_ACCESS_KEY",
    "_PRIVATE_KEY",
];

/// What names of headers have that carry a credential.
const HEADERS: [&str; 6] = ["auth", "key", "token", "secret", "cookie", "password"];

/// One credential.
struct Known {
    /// What its mask says.
    name: String,
    value: String,
    /// Too short to be masked, it is worth a word: a server elsewhere takes it for a key.
    matters: bool,
}

/// Knows everything that these settings and the environment hold. Also says what is too short to be
/// masked.
pub(super) fn redactor(settings: &Settings) -> (Redactor, Option<String>) {
    let redactor = Redactor::new(settings.secrets.shapes);
    let short = learn(&redactor, settings);
    let remark = (!short.is_empty()).then(|| {
        format!(
            "Too short to be masked where they occur, with fewer than {SHORTEST} characters: {}.",
            short.join(", ")
        )
    });
    (redactor, remark)
}

/// Takes over changed settings. What was known stays known.
pub(super) fn renew(redactor: &Redactor, settings: &Settings) {
    redactor.look_for_shapes(settings.secrets.shapes);
    learn(redactor, settings);
}

/// What masks where no session is at hand: it knows what the settings of the current folder hold, or
/// the defaults if they cannot be read.
pub(crate) fn redactor_here() -> Redactor {
    let settings = Setup::load(None, &[]).map(|setup| setup.loaded.settings).unwrap_or_default();
    redactor(&settings).0
}

fn learn(redactor: &Redactor, settings: &Settings) -> Vec<String> {
    let mut known = of_settings(settings);
    known.extend(of_environment(variables(), settings));
    // A local server's key is often its own name; masked, no model could be named any more.
    let names = settings.providers.iter().flat_map(|(name, provider)| {
        provider.models.keys().map(String::as_str).chain([name.as_str()])
    });
    let names: Vec<&str> = names.chain(settings.session.model.as_deref()).collect();
    known.retain(|known| !names.iter().any(|name| name.contains(known.value.as_str())));
    let quiet: Vec<String> =
        known.iter().filter(|known| !known.matters).map(|known| known.name.clone()).collect();
    let short = redactor.learn(known.into_iter().map(|known| (known.name, known.value)));
    short.into_iter().filter(|name| !quiet.contains(name)).collect()
}

fn of_settings(settings: &Settings) -> Vec<Known> {
    let mut known = Vec::new();
    for (name, provider) in &settings.providers {
        let matters = !provider.base_url.as_deref().is_some_and(is_local);
        if let Some(key) = &provider.api_key {
            let value = key.expose_secret().to_owned();
            known.push(Known { name: format!("providers.{name}.api_key"), value, matters });
        }
        for (header, value) in &provider.headers {
            if carries_secret(header) {
                // The scheme before the credential is none itself.
                for value in value.expose_secret().split_whitespace().rev().take(1) {
                    let name = format!("providers.{name}.headers.{header}");
                    known.push(Known { name, value: value.to_owned(), matters });
                }
            }
        }
    }
    for (name, value) in mcp::credentials(settings) {
        known.push(Known { name, value, matters: true });
    }
    if let Some(key) = &settings.context7.api_key {
        let value = key.expose_secret().to_owned();
        known.push(Known { name: "context7.api_key".to_owned(), value, matters: true });
    }
    known
}

/// True for names of headers and variables that carry a credential.
pub(super) fn carries_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    HEADERS.iter().any(|part| lower.contains(part))
}

/// The variables that are text; no credential of ours is anything else.
fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn of_environment(variables: Vec<(String, String)>, settings: &Settings) -> Vec<Known> {
    let workers = settings.workers.values();
    let tokens = workers.filter_map(|worker| worker.token_env.as_deref());
    let of_headers = mcp::header_variables(settings);
    let keys: Vec<(&str, bool)> = settings
        .providers
        .values()
        .filter_map(|provider| {
            let local = provider.base_url.as_deref().is_some_and(is_local);
            Some((provider.api_key_env.as_deref()?, !local))
        })
        .chain([(settings.context7.api_key_env.as_str(), true)])
        .chain(tokens.map(|name| (name, true)))
        .chain(of_headers.iter().map(|name| (name.as_str(), true)))
        .collect();
    let known = variables.into_iter().filter_map(|(name, value)| {
        let named = keys.iter().find(|(key, _)| *key == name);
        let by_name = VARIABLES.iter().any(|end| name.to_uppercase().ends_with(end));
        let matters = match named {
            Some((_, matters)) => *matters,
            // The path of a file with a credential is none.
            None if by_name && !std::path::Path::new(&value).exists() => false,
            None => return None,
        };
        Some(Known { name, value, matters })
    });
    known.collect()
}

/// True for a server on this machine, whose key is a formality as a rule.
fn is_local(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(json: serde_json::Value) -> Settings {
        serde_json::from_value(json).unwrap()
    }

    fn names(known: Vec<Known>) -> Vec<(String, String, bool)> {
        known.into_iter().map(|known| (known.name, known.value, known.matters)).collect()
    }

    #[test]
    fn keys_and_headers_of_the_settings_are_known() {
        let settings = settings(json!({
            "providers": {"lab": {
                "kind": "anthropic", "base_url": "https://lab.test/v1", "api_key": "one-secret",
                "headers": {
                    "x-team-token": "Basic two-secret", "anthropic-version": "2023-06-01"
                },
            }},
            "context7": {"api_key": "three-secret"},
        }));
        let expected = [
            ("providers.lab.api_key", "one-secret", true),
            ("providers.lab.headers.x-team-token", "two-secret", true),
            ("context7.api_key", "three-secret", true),
        ]
        .map(|(name, value, matters)| (name.to_owned(), value.to_owned(), matters));
        assert_eq!(names(of_settings(&settings)), expected);
    }

    #[test]
    fn variables_are_known_by_the_settings_or_by_their_name() {
        let settings = settings(json!({"providers": {"lab": {
            "kind": "openai-chat", "base_url": "http://127.0.0.1:1/v1", "api_key_env": "LAB"
        }}}));
        let variables = [
            ("LAB", "abc"),
            ("DEPLOY_TOKEN", "deploy-secret"),
            ("db_password", "hunter2hunter2"),
            ("JWT_PRIVATE_KEY", "/"),
            ("TOKEN_COUNT", "200000"),
            ("PATH", "/usr/bin"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = [
            ("LAB", "abc", false),
            ("DEPLOY_TOKEN", "deploy-secret", false),
            ("db_password", "hunter2hunter2", false),
        ]
        .map(|(name, value, matters)| (name.to_owned(), value.to_owned(), matters));
        assert_eq!(names(of_environment(variables.to_vec(), &settings)), expected);
    }
}
