//! `tool_search`: finds tools that requests do not list, and has them listed from then on.

use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{McpState, RecordChange, Subject, ToolClass, ToolSpec};
use loon_kernel::{EffectContext, NativeTool, RemoteTools, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::exposure::Exposure;

/// Most tools loaded by one search.
const LOADED: usize = 8;

/// Most tools named by an empty search.
const LISTED: usize = 200;

/// Finds tools.
pub(crate) struct ToolSearch {
    exposure: Exposure,
    catalog: Vec<ToolSpec>,
    remote: Arc<dyn RemoteTools>,
}

/// Arguments of `tool_search`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Words; empty lists all.
    #[serde(default)]
    query: String,
}

impl ToolSearch {
    pub(crate) const NAME: &str = "tool_search";

    pub(crate) fn new(
        exposure: Exposure,
        catalog: Vec<ToolSpec>,
        remote: Arc<dyn RemoteTools>,
    ) -> Self {
        Self { exposure, catalog, remote }
    }

    /// What there is to find now. A remote tool never takes the place of one of the session.
    fn catalog(&self) -> Vec<ToolSpec> {
        let own = self.catalog.iter();
        let remote = self.remote.now();
        let known = |name: &str| self.catalog.iter().any(|own| own.name == name);
        let remote = remote.iter().map(|tool| tool.spec()).filter(|tool| !known(&tool.name));
        own.chain(remote).filter(|tool| self.exposure.is_found(tool)).cloned().collect()
    }

    /// Servers that give nothing now, and why. Of one that is not there, what it gave may be known.
    fn missing(&self) -> String {
        let mut text = String::new();
        for server in self.remote.servers() {
            let name = server.name;
            let _ = match (server.state, server.error) {
                (McpState::Failed, why) => {
                    writeln!(text, "[server {name} is not there: {}]", why.unwrap_or_default())
                }
                (McpState::Starting, _) => {
                    writeln!(text, "[server {name} is still starting; search again later]")
                }
                (McpState::Off | McpState::Idle | McpState::Ready, _) => Ok(()),
            };
        }
        text
    }

    fn list(&self) -> ToolOutput {
        let tools = self.catalog();
        if tools.is_empty() {
            let text = format!("There are no tools beyond those you have.\n{}", self.missing());
            return ToolOutput::ok(text.trim_end(), "no tools");
        }
        let mut text = String::new();
        for tool in tools.iter().take(LISTED) {
            let loaded = if self.exposure.is_loaded(&tool.name) { " (loaded)" } else { "" };
            let _ = writeln!(text, "{}{loaded}: {}", tool.name, first_sentence(&tool.description));
        }
        if tools.len() > LISTED {
            let _ = writeln!(text, "[{LISTED} of {} tools; search by words]", tools.len());
        }
        text.push_str(&self.missing());
        text.push_str("Search by name or words to load the ones you need.");
        ToolOutput::ok(text, format!("{} tools", tools.len()))
    }

    fn load(&self, query: &str) -> ToolOutput {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let catalog = self.catalog();
        let mut hits: Vec<(u32, &ToolSpec)> =
            catalog.iter().filter_map(|tool| Some((score(tool, &words)?, tool))).collect();
        // The order of the catalog decides between equals.
        hits.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        if hits.is_empty() {
            let text = format!(
                "No tool matches {query:?} beyond those you have. An empty query lists all there \
                 are.\n{}",
                self.missing()
            );
            return ToolOutput::ok(text.trim_end(), "no match");
        }
        let found = hits.len();
        hits.truncate(LOADED);
        let mut text = "Loaded; they can be called from your next answer on:\n".to_owned();
        for (_, tool) in &hits {
            let _ = writeln!(text, "{}: {}", tool.name, tool.description);
        }
        if found > LOADED {
            let _ =
                writeln!(text, "[{LOADED} of {found} matches; search for a name to load another]");
        }
        let names: Vec<String> = hits.iter().map(|(_, tool)| tool.name.clone()).collect();
        let summary = names.join(", ");
        let record = vec![RecordChange::ToolsLoaded { names }];
        ToolOutput { record, ..ToolOutput::ok(text, summary) }
    }
}

impl NativeTool for ToolSearch {
    type Args = Args;

    const NAME: &'static str = Self::NAME;
    const DESCRIPTION: &'static str =
        "Find and load further tools (remote servers, less common work) by name or words.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        // One line without control characters, whatever the model wrote.
        args.query.split(|ch: char| ch.is_control()).collect::<Vec<_>>().join(" ")
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return ToolOutput::error("Cancelled."),
            () = self.remote.settle() => {}
        }
        match args.query.trim() {
            "" => self.list(),
            query => self.load(query),
        }
    }
}

/// How well a tool matches: every word must be in its name or description; its name counts more.
fn score(tool: &ToolSpec, words: &[String]) -> Option<u32> {
    let (name, description) = (tool.name.to_lowercase(), tool.description.to_lowercase());
    words.iter().try_fold(0, |sum, word| {
        if name == *word {
            Some(sum + 100)
        } else if name.contains(word) {
            Some(sum + 10)
        } else {
            description.contains(word).then_some(sum + 1)
        }
    })
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first)
}
