//! What a server offers, made of what it says: tools with mended schemas, and what had to be left out.

use std::collections::BTreeSet;

use loon_api::{McpProblem, ToolClass, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, Fault};
use crate::digest::hex;
use crate::listing::{Kind, list};
use crate::{names, schema, words};

/// Most bytes of a description.
const DESCRIPTION: usize = 2048;

/// What a server offers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offer {
    /// What it calls itself, with its version.
    pub(crate) implementation: Option<String>,
    pub(crate) tools: Vec<Offered>,
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
    pub(crate) problems: Vec<McpProblem>,
}

/// A tool of a server.
#[derive(Clone, Debug)]
pub(crate) struct Offered {
    /// What the server calls it.
    pub(crate) original: String,
    /// What models are told.
    pub(crate) spec: ToolSpec,
    /// Hash of what the server says of it.
    pub(crate) digest: String,
}

impl Offer {
    /// Asks a server for all it has.
    pub(crate) async fn ask(
        server: &str,
        connection: &Connection,
        cancel: &CancellationToken,
    ) -> Result<Self, Fault> {
        let info = connection.info();
        let capabilities = info.as_ref().map(|info| info.capabilities.clone()).unwrap_or_default();
        let own = info.as_ref().and_then(|info| info.server_info.as_ref());
        let mut offer = Self {
            implementation: own
                .map(|own| words::line(&format!("{} {}", own.name, own.version), 200)),
            resources: capabilities.resources.is_some(),
            prompts: capabilities.prompts.is_some(),
            ..Self::default()
        };
        if capabilities.tools.is_some() {
            let listing = list(connection, Kind::Tools, cancel).await?;
            offer.take_tools(server, &listing.entries);
            if let Some(reason) = listing.cut {
                offer.problems.push(McpProblem { tool: "tools/list".to_owned(), reason });
            }
        }
        Ok(offer)
    }

    fn take_tools(&mut self, server: &str, entries: &[Value]) {
        let mut seen = BTreeSet::new();
        for entry in entries {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
            let tool = words::line(name, 100);
            match Offered::new(server, entry) {
                Ok((offered, _)) if !seen.insert(offered.spec.name.clone()) => {
                    let reason = "a tool of this name was listed before".to_owned();
                    self.problems.push(McpProblem { tool, reason });
                }
                Ok((offered, change)) => {
                    if let Some(change) = change {
                        let reason = format!("{change}; mended");
                        self.problems.push(McpProblem { tool, reason });
                    }
                    self.tools.push(offered);
                }
                Err(why) => {
                    self.problems.push(McpProblem { tool, reason: format!("{why}; left out") });
                }
            }
        }
    }

    /// Tools of which this offer says something else than the former one.
    pub(crate) fn changed_since(&self, former: &Self) -> Vec<&str> {
        let changed = |tool: &&Offered| {
            let known = former.tools.iter().find(|known| known.original == tool.original);
            known.is_some_and(|known| known.digest != tool.digest)
        };
        self.tools.iter().filter(changed).map(|tool| tool.spec.name.as_str()).collect()
    }
}

impl Offered {
    /// Makes a tool of an entry, and says what had to be mended. The error says why it cannot be used.
    fn new(server: &str, entry: &Value) -> Result<(Self, Option<&'static str>), String> {
        let Some(original) = entry.get("name").and_then(Value::as_str) else {
            return Err("it has no name".to_owned());
        };
        let mended = schema::mend(entry.get("inputSchema"))?;
        let said = ["description", "title"].map(|member| entry.get(member).and_then(Value::as_str));
        let said =
            said.into_iter().flatten().find(|text| !text.trim().is_empty()).unwrap_or_default();
        let description = format!(
            "[MCP server {}] {}",
            words::line(server, 64),
            words::bounded(said.trim(), DESCRIPTION)
        );
        let spec = ToolSpec {
            name: names::tool_name(server, original),
            description: description.trim_end().to_owned(),
            parameters: mended.schema,
            class: ToolClass::Remote,
        };
        let told = [entry.get("name"), entry.get("description"), entry.get("inputSchema")];
        let digest = hex(serde_json::to_vec(&told).unwrap_or_default(), 16);
        Ok((Self { original: original.to_owned(), spec, digest }, mended.change))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn offer(entries: &[Value]) -> Offer {
        let mut offer = Offer::default();
        offer.take_tools("lab", entries);
        offer
    }

    #[test]
    fn bad_tools_are_left_out_with_a_reason_and_the_others_stay() {
        let object = json!({"type": "object", "properties": {}});
        let offer = offer(&[
            json!({"name": "ok", "description": "Does\u{1b}[2J it.", "inputSchema": object}),
            json!({"name": "none"}),
            json!({"name": "text", "inputSchema": {"type": "string"}}),
            json!({"description": "nameless"}),
            json!("odd"),
            json!({"name": "ok", "inputSchema": object}),
        ]);
        let names: Vec<&str> = offer.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        assert_eq!(names, ["mcp__lab__ok", "mcp__lab__none"]);
        assert_eq!(offer.tools[0].spec.description, "[MCP server lab] Does\u{241b}[2J it.");
        let problems: Vec<String> = offer
            .problems
            .iter()
            .map(|problem| format!("{}: {}", problem.tool, problem.reason))
            .collect();
        assert_eq!(
            problems,
            [
                "none: it had no schema of its arguments; mended",
                "text: its arguments are no object; left out",
                ": it has no name; left out",
                ": it has no name; left out",
                "ok: a tool of this name was listed before",
            ]
        );
    }

    #[test]
    fn long_descriptions_are_cut_and_a_change_of_any_word_is_seen() {
        let tool = |words: &str| json!({"name": "t", "description": words, "inputSchema": {}});
        let (one, other) = (offer(&[tool(&"a".repeat(9000))]), offer(&[tool("b")]));
        assert!(one.tools[0].spec.description.len() < DESCRIPTION + 100);
        assert_eq!(other.changed_since(&one), ["mcp__lab__t"]);
        assert!(one.changed_since(&one).is_empty());
    }
}
