//! MCP servers of the settings, made ready for the pool: references expanded, folders absolute.

use std::path::Path;
use std::time::Duration;

use loon_api::text::visible_line;
use loon_config::mcp::expand;
use loon_config::{McpServer, Settings};
use loon_mcp::{ServerConfig, Way};
use secrecy::{ExposeSecret as _, SecretString};

use super::secrets::carries_secret;

/// The servers that these settings make, in their order. `root` is the workspace root.
pub(super) fn of_settings(settings: &Settings, root: &Path) -> Vec<ServerConfig> {
    let variable = |name: &str| std::env::var(name).ok();
    settings.mcp.iter().map(|(name, server)| config(name, server, root, &variable)).collect()
}

fn config(
    name: &str,
    server: &McpServer,
    root: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> ServerConfig {
    ServerConfig {
        name: name.to_owned(),
        way: if server.enabled {
            way(server, root, variable).unwrap_or_else(Way::Unusable)
        } else {
            Way::Off
        },
        target: target(server),
        warm: server.warm,
        startup_timeout: Duration::from_secs(server.startup_timeout_secs),
        call_timeout: server.timeout_secs.map(Duration::from_secs),
    }
}

/// How it is reached. The error is what is wrong with the settings.
fn way(
    server: &McpServer,
    root: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Way, String> {
    let text = |text: &str| {
        expand(text, variable).map_err(|missing| match missing.as_slice() {
            [one] => format!("the environment variable {one} is not set"),
            several => format!("the environment variables {} are not set", several.join(", ")),
        })
    };
    let secret =
        |(name, value): (&String, &SecretString)| Ok((name.clone(), text(value.expose_secret())?));
    match (&server.url, server.command.is_empty()) {
        (Some(_), false) => Err("it has both `command` and `url`; give one of them".to_owned()),
        (None, true) => Err("it has neither `command` nor `url`".to_owned()),
        (Some(url), true) => {
            let headers: Result<_, String> = server.headers.iter().map(secret).collect();
            Ok(Way::Http { url: text(url)?, headers: headers? })
        }
        (None, false) => {
            let command: Result<_, String> = server.command.iter().map(|word| text(word)).collect();
            let env: Result<_, String> = server.env.iter().map(secret).collect();
            let cwd = server.cwd.as_deref().map(text).transpose()?;
            let cwd = cwd.map_or_else(|| root.to_owned(), |folder| root.join(folder));
            Ok(Way::Stdio { command: command?, env: env?, cwd })
        }
    }
}

/// What people are shown: as it was written, so that no secret of a variable is in it.
fn target(server: &McpServer) -> String {
    match &server.url {
        // What stands before the host or after the path may be a key.
        Some(url) => match url::Url::parse(url) {
            Ok(mut url) => {
                let _ = url.set_password(None);
                let _ = url.set_username("");
                url.set_query(None);
                url.to_string()
            }
            Err(_) => url.clone(),
        },
        None => visible_line(&server.command.join(" ")),
    }
}

/// Names of the variables that headers refer to: nothing but keys stands there as a rule.
pub(super) fn header_variables(settings: &Settings) -> Vec<String> {
    let headers = settings.mcp.values().flat_map(|server| server.headers.values());
    headers.flat_map(|value| loon_config::mcp::references(value.expose_secret())).collect()
}

/// Credentials that the settings hold themselves, as `(where, value)`.
pub(super) fn credentials(settings: &Settings) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, server) in &settings.mcp {
        for (section, values) in [("headers", &server.headers), ("env", &server.env)] {
            for (key, value) in values.iter().filter(|(key, _)| carries_secret(key)) {
                let value = value.expose_secret();
                // The scheme before a credential is none itself; a reference is masked where it leads.
                let word = value.split_whitespace().next_back().unwrap_or_default();
                if loon_config::mcp::references(word).is_empty() {
                    found.push((format!("mcp.{name}.{section}.{key}"), word.to_owned()));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(server: serde_json::Value) -> ServerConfig {
        let server: McpServer = serde_json::from_value(server).unwrap();
        let variable = |name: &str| (name == "KEY").then(|| "secret-value".to_owned());
        config("lab", &server, Path::new("/w"), &variable)
    }

    fn unusable(server: serde_json::Value) -> String {
        match one(server).way {
            Way::Unusable(why) => why,
            _ => panic!("it can be used"),
        }
    }

    #[test]
    fn references_are_expanded_and_never_shown() {
        let lab = one(
            json!({"command": ["run", "--key=${KEY}"], "env": {"A": "${NO:-x}"}, "cwd": "sub"}),
        );
        let Way::Stdio { command, env, cwd } = lab.way else { panic!("no program") };
        assert_eq!(command, ["run", "--key=secret-value"]);
        assert_eq!((env, cwd.as_path()), (vec![("A".into(), "x".into())], Path::new("/w/sub")));
        assert_eq!(lab.target, "run --key=${KEY}");
        let web = one(json!({"url": "https://me:pw@x.test/mcp?token=abc", "headers": {"k": "v"}}));
        assert_eq!(web.target, "https://x.test/mcp");
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        assert_eq!(unusable(json!({})), "it has neither `command` nor `url`");
        assert!(unusable(json!({"command": ["a"], "url": "b"})).contains("both"));
        assert_eq!(
            unusable(json!({"command": ["${GONE}"]})),
            "the environment variable GONE is not set"
        );
        assert!(one(json!({"enabled": false})).way == Way::Off);
    }

    #[test]
    fn credentials_are_known_by_the_name_of_what_carries_them() {
        let settings: Settings = serde_json::from_value(json!({"mcp": {"lab": {
            "headers": {"Authorization": "Bearer abc-secret", "x-key": "${LAB}", "accept": "x"},
            "env": {"API_TOKEN": "def-secret", "MODE": "fast"},
        }}}))
        .unwrap();
        let expected = [
            ("mcp.lab.headers.Authorization".to_owned(), "abc-secret".to_owned()),
            ("mcp.lab.env.API_TOKEN".to_owned(), "def-secret".to_owned()),
        ];
        assert_eq!(credentials(&settings), expected);
        assert_eq!(header_variables(&settings), ["LAB"]);
    }
}
