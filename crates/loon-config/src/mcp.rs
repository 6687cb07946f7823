//! MCP servers: their settings, the file `.mcp.json` that many projects have, and the references to
//! environment variables in both.

use std::fmt::Write as _;

use indexmap::IndexMap;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

use crate::scalar;

/// A server that offers tools, resources and prompts. It is either a program (`command`) or listens
/// elsewhere (`url`). `${NAME}` in its texts stands for an environment variable, `${NAME:-words}` for
/// the words where that is not set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpServer {
    /// The program and its arguments.
    #[schemars(title = "Command", extend("x-live" = true))]
    pub command: Vec<String>,
    /// Variables of its environment. Besides these it sees only a few of yours, such as `PATH` and
    /// `HOME`.
    #[schemars(title = "Environment", schema_with = "scalar::secret_map_schema", extend("x-live" = true))]
    pub env: IndexMap<String, SecretString>,
    /// Folder it runs in. A relative one begins at the workspace root, which is also the default.
    #[schemars(title = "Folder", extend("x-live" = true))]
    pub cwd: Option<String>,
    /// Where it listens for Streamable HTTP (`https://mcp.example.org/mcp`).
    #[schemars(title = "URL", extend("x-live" = true))]
    pub url: Option<String>,
    /// Further HTTP headers of each request. Keys belong in variables: `Bearer ${LAB_TOKEN}`.
    #[schemars(title = "Headers", schema_with = "scalar::secret_map_schema", extend("x-live" = true))]
    pub headers: IndexMap<String, SecretString>,
    /// Use it. Off, nothing is started or asked.
    #[serde(default = "yes")]
    #[schemars(title = "Enabled", extend("x-live" = true))]
    pub enabled: bool,
    /// Start it with the session. Without, it is started when the model first looks for tools.
    #[schemars(title = "Start ahead", extend("x-live" = true))]
    pub warm: bool,
    /// Seconds it may take to start and to say what it offers.
    #[serde(default = "startup_timeout")]
    #[schemars(title = "Start timeout", range(min = 1, max = 600), extend("x-live" = true))]
    pub startup_timeout_secs: u64,
    /// Seconds a call may take. Without it, `session.tool_timeout_secs` holds.
    #[schemars(title = "Call timeout", range(min = 1, max = 86400), extend("x-live" = true))]
    pub timeout_secs: Option<u64>,
}

fn yes() -> bool {
    true
}

fn startup_timeout() -> u64 {
    30
}

/// The text with its references replaced by what `variable` gives. The error names the variables that
/// are missing.
pub fn expand(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, Vec<String>> {
    let (mut expanded, mut missing) = (String::new(), Vec::new());
    for part in parts(text) {
        match part {
            Part::Text(text) => expanded.push_str(text),
            Part::Reference { name, default } => match (variable(name), default) {
                (Some(value), _) => expanded.push_str(&value),
                (None, Some(default)) => expanded.push_str(default),
                (None, None) => missing.push(name.to_owned()),
            },
        }
    }
    if missing.is_empty() { Ok(expanded) } else { Err(missing) }
}

/// The names of the variables that a text refers to.
pub fn references(text: &str) -> Vec<String> {
    let name = |part| match part {
        Part::Reference { name, .. } => Some(str::to_owned(name)),
        Part::Text(_) => None,
    };
    parts(text).into_iter().filter_map(name).collect()
}

enum Part<'a> {
    Text(&'a str),
    Reference { name: &'a str, default: Option<&'a str> },
}

/// Takes a text apart. What looks nearly like a reference is text.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(at) = rest[from..].find("${").map(|at| from + at) {
        let reference = rest[at + 2..].find('}').and_then(|end| {
            let inner = &rest[at + 2..at + 2 + end];
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            is_name(name).then_some((name, default, at + 3 + end))
        });
        match reference {
            Some((name, default, end)) => {
                parts.push(Part::Text(&rest[..at]));
                parts.push(Part::Reference { name, default });
                (rest, from) = (&rest[end..], 0);
            }
            None => from = at + 2,
        }
    }
    parts.push(Part::Text(rest));
    parts
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.starts_with(|ch: char| ch.is_ascii_digit()) && !name.is_empty() && name.bytes().all(plain)
}

/// One entry of such a file.
#[derive(Deserialize)]
struct Entry {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: IndexMap<String, SecretString>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: IndexMap<String, SecretString>,
}

/// The servers that a `.mcp.json` names, and what is wrong with the others. The error is about the file
/// as a whole.
pub(crate) fn read_project(
    text: &str,
) -> Result<(IndexMap<String, McpServer>, Vec<String>), String> {
    let file: Value =
        serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let Some(entries) = file.get("mcpServers").and_then(Value::as_object) else {
        return Err("it has no `mcpServers` object".to_owned());
    };
    let (mut servers, mut wrong) = (IndexMap::new(), Vec::new());
    for (name, entry) in entries {
        match read_entry(entry) {
            Ok(server) => {
                servers.insert(name.clone(), server);
            }
            Err(why) => wrong.push(format!("the server {name:?} is left out: {why}")),
        }
    }
    Ok((servers, wrong))
}

fn read_entry(entry: &Value) -> Result<McpServer, String> {
    // The message of the parser could quote a secret; its place is enough.
    let entry = Entry::deserialize(entry).map_err(|_| {
        let mut words = "command, url, cwd and type are texts".to_owned();
        let _ = write!(words, ", args a list of texts, env and headers objects of texts");
        words
    })?;
    match entry.kind.as_deref() {
        None | Some("stdio" | "http" | "streamable-http" | "streamableHttp") => {}
        Some(kind) => {
            return Err(format!("type {kind:?} is not supported; there are stdio and http"));
        }
    }
    let command = entry.command.into_iter().chain(entry.args).collect();
    Ok(McpServer {
        command,
        env: entry.env,
        cwd: entry.cwd,
        url: entry.url,
        headers: entry.headers,
        enabled: true,
        warm: false,
        startup_timeout_secs: startup_timeout(),
        timeout_secs: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        (name == "KEY").then(|| "a$b".to_owned())
    }

    #[test]
    fn references_are_expanded_once_and_missing_ones_named() {
        let cases = [
            ("Bearer ${KEY}", Ok("Bearer a$b".to_owned())),
            ("${NO:-x y}/${KEY}", Ok("x y/a$b".to_owned())),
            ("${KEY:-x}", Ok("a$b".to_owned())),
            ("${NO:-}", Ok(String::new())),
            ("$KEY ${} ${1} ${a b} ${KEY", Ok("$KEY ${} ${1} ${a b} ${KEY".to_owned())),
            ("${${KEY}}", Ok("${a$b}".to_owned())),
            ("${NO} ${NOT}", Err(vec!["NO".to_owned(), "NOT".to_owned()])),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text, lookup), expected, "{text}");
        }
        assert_eq!(references("${A} $B ${C:-d}"), ["A", "C"]);
    }

    #[test]
    fn servers_of_a_project_are_read_and_those_that_cannot_be_used_are_named() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "${B}"}},
            "web": {"type": "http", "url": "https://x.test/mcp", "headers": {"k": "v"}},
            "old": {"type": "sse", "url": "https://x.test/sse"},
            "odd": {"command": ["npx"]}
        }, "more": 1}"#;
        let (servers, wrong) = read_project(text).unwrap();
        assert_eq!(servers["files"].command, ["npx", "-y", "x"]);
        assert_eq!(servers["web"].url.as_deref(), Some("https://x.test/mcp"));
        assert!(servers["web"].enabled && servers.len() == 2);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].contains("\"old\"") && wrong[0].contains("\"sse\" is not supported"));
        assert!(read_project("[]").is_err() && read_project("{").is_err());
    }
}
