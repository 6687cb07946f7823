//! Resources and prompts of a server as tools: list and read, list and get.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use loon_api::{BoxFuture, Subject, ToolClass, ToolSpec};
use loon_kernel::{Admitted, EffectContext, Tool, ToolOutput};
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ReadResourceRequest,
    ReadResourceRequestParams,
};
use serde_json::{Value, json};

use crate::listing::Kind;
use crate::offer::Offer;
use crate::result::{Place, bounded, of_prompt, of_resource};
use crate::server::Server;
use crate::{names, words};

/// What such a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    ListResources,
    ReadResource,
    ListTemplates,
    ListPrompts,
    GetPrompt,
}

impl What {
    /// Those that a server has a use for.
    pub(crate) fn of(offer: &Offer) -> Vec<Self> {
        let resources = [Self::ListResources, Self::ReadResource, Self::ListTemplates];
        let prompts = [Self::ListPrompts, Self::GetPrompt];
        let resources = resources.into_iter().filter(|_| offer.resources);
        resources.chain(prompts.into_iter().filter(|_| offer.prompts)).collect()
    }

    /// Its name among the tools of the server, of which none has the same.
    pub(crate) fn name(self, server: &str, offer: &Offer) -> String {
        let word = match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListTemplates => "list_resource_templates",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        };
        let name = names::tool_name(server, word);
        if offer.tools.iter().any(|tool| tool.spec.name == name) {
            return names::marked(&name, &format!("{server}\0\0{word}"));
        }
        name
    }

    fn spec(self, server: &str, offer: &Offer) -> ToolSpec {
        let (does, parameters) = match self {
            Self::ListResources => ("Lists the resources (files, records, pages) it has.", none()),
            Self::ReadResource => (
                "Reads one of its resources by URI.",
                json!({
                    "type": "object",
                    "properties": {"uri": {"type": "string", "description": "As listed, or made of a template."}},
                    "required": ["uri"],
                }),
            ),
            Self::ListTemplates => ("Lists the URI templates of its resources.", none()),
            Self::ListPrompts => ("Lists the prompts it has, with their arguments.", none()),
            Self::GetPrompt => (
                "Gives one of its prompts.",
                json!({
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                    "required": ["name"],
                }),
            ),
        };
        ToolSpec {
            name: self.name(server, offer),
            description: format!("[MCP server {}] {does}", words::line(server, 64)),
            parameters,
            class: ToolClass::Remote,
        }
    }
}

fn none() -> Value {
    json!({"type": "object", "properties": {}})
}

/// One such tool.
pub(crate) struct Adapter {
    server: Arc<Server>,
    what: What,
    spec: ToolSpec,
    reader: String,
}

impl Adapter {
    pub(crate) fn new(server: Arc<Server>, what: What, offer: &Offer) -> Self {
        let spec = what.spec(&server.config.name, offer);
        let reader = What::ReadResource.name(&server.config.name, offer);
        Self { server, what, spec, reader }
    }

    async fn call(&self, arguments: &Value, cx: &EffectContext) -> ToolOutput {
        let word = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let results = &self.server.means.results;
        let reader = self.server.offer().resources.then_some(self.reader.as_str());
        let place = Place { results, reader };
        let given = match self.what {
            What::ListResources => self.list(Kind::Resources, cx).await,
            What::ListTemplates => self.list(Kind::Templates, cx).await,
            What::ListPrompts => self.list(Kind::Prompts, cx).await,
            What::ReadResource => {
                let request = || {
                    let params = ReadResourceRequestParams::new(word("uri"));
                    ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
                };
                let asked = self.server.ask(request, None, Some(&cx.progress), &cx.cancel).await;
                asked.map(|answer| of_resource(&answer, &place))
            }
            What::GetPrompt => {
                let given = arguments.get("arguments").and_then(Value::as_object);
                let request = || {
                    let mut params = GetPromptRequestParams::new(word("name"));
                    params.arguments = given.cloned();
                    ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
                };
                let asked = self.server.ask(request, None, Some(&cx.progress), &cx.cancel).await;
                asked.map(|answer| of_prompt(&answer, &place))
            }
        };
        given.unwrap_or_else(ToolOutput::error)
    }

    async fn list(&self, kind: Kind, cx: &EffectContext) -> Result<ToolOutput, String> {
        let listing = self.server.list(kind, &cx.cancel).await?;
        let mut text = String::new();
        for entry in &listing.entries {
            describe(kind, entry, &mut text);
        }
        if listing.entries.is_empty() {
            return Ok(ToolOutput::ok("The server lists none.", "none"));
        }
        if let Some(cut) = listing.cut {
            let _ = writeln!(text, "[{cut}]");
        }
        Ok(bounded(text, &self.server.means.results))
    }
}

/// One line for an entry of a list, and one for each argument of a prompt.
fn describe(kind: Kind, entry: &Value, text: &mut String) {
    let said =
        |member: &str| entry.get(member).and_then(Value::as_str).map(|text| words::line(text, 500));
    let about = said("description").or_else(|| said("title"));
    let key = match kind {
        Kind::Resources => said("uri"),
        Kind::Templates => said("uriTemplate"),
        Kind::Prompts | Kind::Tools => said("name"),
    };
    let _ = write!(text, "{}", key.clone().unwrap_or_default());
    if let Some(name) = said("name").filter(|name| Some(name) != key.as_ref()) {
        let _ = write!(text, " ({name})");
    }
    if let Some(about) = about {
        let _ = write!(text, ": {about}");
    }
    text.push('\n');
    for argument in entry.get("arguments").and_then(Value::as_array).into_iter().flatten() {
        let said = |member: &str| {
            argument.get(member).and_then(Value::as_str).map(|text| words::line(text, 300))
        };
        let needed = argument.get("required").and_then(Value::as_bool).unwrap_or_default();
        let needed = if needed { " (required)" } else { "" };
        let _ = write!(text, "  - {}{needed}", said("name").unwrap_or_default());
        if let Some(about) = said("description") {
            let _ = write!(text, ": {about}");
        }
        text.push('\n');
    }
}

impl Tool for Adapter {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, arguments: &Value) -> String {
        let word = ["uri", "name"].iter().find_map(|name| arguments.get(name)?.as_str());
        words::line(word.unwrap_or_default(), 160)
    }

    fn subjects(&self, arguments: &Value) -> Result<Vec<Subject>, String> {
        let needed = match self.what {
            What::ReadResource => "uri",
            What::GetPrompt => "name",
            What::ListResources | What::ListTemplates | What::ListPrompts => return Ok(Vec::new()),
        };
        let given = arguments.get(needed).and_then(Value::as_str).unwrap_or_default();
        let inner = arguments.get("arguments").is_none_or(Value::is_object);
        match (given.is_empty(), inner) {
            (false, true) => Ok(Vec::new()),
            (true, _) => Err(format!("{needed} is missing: give the one that is listed.")),
            (false, false) => Err("arguments must be an object.".to_owned()),
        }
    }

    fn timeout(&self, _: &Value) -> Option<Duration> {
        self.server.config.call_timeout
    }

    fn run<'a>(
        &'a self,
        _admitted: Admitted,
        arguments: &'a Value,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.call(arguments, cx))
    }
}
