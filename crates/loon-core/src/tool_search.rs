//! `tool_search`: finds tools that requests do not list, and has them listed from then on.

use std::fmt::Write as _;

use loon_api::{RecordChange, Subject, ToolClass, ToolSpec};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
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

    pub(crate) fn new(exposure: Exposure, catalog: Vec<ToolSpec>) -> Self {
        Self { exposure, catalog }
    }

    fn list(&self) -> ToolOutput {
        let tools: Vec<&ToolSpec> =
            self.catalog.iter().filter(|tool| self.exposure.is_found(tool)).collect();
        if tools.is_empty() {
            let text = "There are no tools beyond those you have.";
            return ToolOutput::ok(text, "no tools");
        }
        let mut text = String::new();
        for tool in tools.iter().take(LISTED) {
            let loaded = if self.exposure.is_loaded(&tool.name) { " (loaded)" } else { "" };
            let _ = writeln!(text, "{}{loaded}: {}", tool.name, first_sentence(&tool.description));
        }
        if tools.len() > LISTED {
            let _ = writeln!(text, "[{LISTED} of {} tools; search by words]", tools.len());
        }
        text.push_str("Search by name or words to load the ones you need.");
        ToolOutput::ok(text, format!("{} tools", tools.len()))
    }

    fn load(&self, query: &str) -> ToolOutput {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let mut hits: Vec<(u32, &ToolSpec)> = self
            .catalog
            .iter()
            .filter(|tool| self.exposure.is_found(tool))
            .filter_map(|tool| Some((score(tool, &words)?, tool)))
            .collect();
        // The order of the catalog decides between equals.
        hits.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        if hits.is_empty() {
            let text = format!(
                "No tool matches {query:?} beyond those you have. An empty query lists all there are."
            );
            return ToolOutput::ok(text, "no match");
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

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
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
